"""A bench that measures nothing: it puts a prepared run into the store as the suites do, or is killed half-way.

Needs the standard library alone, so that it starts at once.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
from pathlib import Path


def main() -> int:
    """Publish the runs, or leave the draft that one is and die."""
    parser = argparse.ArgumentParser()
    parser.add_argument("prepared", type=Path, nargs="+")
    parser.add_argument("--leave-with", type=int, default=0)
    parser.add_argument("--device", required=True)
    parser.add_argument("--ref")
    parser.add_argument("--store", required=True)
    for name in ("--into", "--path-file"):
        parser.add_argument(name, type=Path, required=True)
    options = parser.parse_args()
    folders = [options.into / each.name for each in options.prepared]
    for prepared, folder in zip(options.prepared, folders, strict=True):
        shutil.copytree(prepared, folder)
        if folder.name.startswith("."):
            os.kill(os.getpid(), signal.SIGKILL)
    if options.ref and not json.loads((folders[-1] / "run.json").read_text(encoding="utf-8"))["partial"]:
        (options.into / "refs").mkdir(exist_ok=True)
        (options.into / "refs" / options.ref).write_text(f"{folders[-1].name}\n", encoding="utf-8")
    options.path_file.write_text("".join(f"{folder}\n" for folder in folders), encoding="utf-8")
    return int(options.leave_with)


if __name__ == "__main__":
    raise SystemExit(main())
