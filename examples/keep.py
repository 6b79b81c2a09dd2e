"""Copy a run into examples/ without what belongs to one machine: `python examples/keep.py RUN NAME`.

Hostname, UUIDs and absolute paths become placeholders and samples stay as they are. What follows from them, the
selfcheck's table and the sums, is made anew by this version.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from harness.draft import write_sums  # noqa: E402 - the project is found only now
from harness.errors import CommandError  # noqa: E402
from harness.selfcheck import selfcheck  # noqa: E402
from harness.store import Store, load, store_root, verify  # noqa: E402
from reports.render import write_run_page  # noqa: E402

TEXTS = {".json", ".log", ".txt", ".ptx", ".sass", ".diff"}

PLACEHOLDERS = (
    (re.compile(r"GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"), "GPU-00000000-0000-0000-0000-000000000000"),
    (re.compile(r"/[\w./+-]*/site-packages"), "<site-packages>"),
    (re.compile(r"/[\w./+-]*/sgemv-bench(?=/)"), "<cache>"),
    (re.compile(r"/(?:usr|opt|home|root|tmp|work|mnt|data)/[\w./+-]*/(?=\w)"), "<path>/"),
    (re.compile(r"/(?:home|root|tmp|work|mnt|data)/[\w.+-]+(?![\w./])"), "<path>"),
)


def main() -> int:
    """Copy, replace, render; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", help="a path, an id or its start, latest, a ref")
    parser.add_argument("name", help="folder and page to make in examples/")
    parser.add_argument("--store", help="folder of runs (default: SGEMV_STORE, else artifacts/)")
    options = parser.parse_args()
    try:
        source = Store(store_root(options.store)).resolve(options.run)
        verify(source)
    except CommandError as error:
        sys.stderr.write(f"{error}\n")
        return int(error.code)
    target = ROOT / "examples" / options.name
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target)
    hostname = json.loads((source / "run.json").read_text(encoding="utf-8"))["environment"]["values"].get("hostname")
    for path in target.rglob("*"):
        if path.suffix in TEXTS:
            path.write_text(without_machine(path.read_text(encoding="utf-8"), hostname), encoding="utf-8")
    derive_selfcheck(target)
    write_sums(target)
    sys.stdout.write(f"{target}\n{write_run_page(target, target.with_suffix('.html'))}\n")
    return 0


def derive_selfcheck(folder: Path) -> None:
    """Replace the selfcheck's table by what this version makes of the run's measurements."""
    run = load(folder)
    if run.selfcheck is None:
        return
    path = folder / "run.json"
    data = json.loads(path.read_text(encoding="utf-8"))
    data["selfcheck"] = [check.to_dict() for check in selfcheck(run.measurements)]
    path.write_text(json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8")


def without_machine(text: str, hostname: str | None) -> str:
    """`text` with placeholders for what names one machine; the hostname only where it is a JSON value of its own."""
    if hostname is not None:
        text = text.replace(f'"{hostname}"', '"<hostname>"')
    for pattern, placeholder in PLACEHOLDERS:
        text = pattern.sub(placeholder, text)
    return text


if __name__ == "__main__":
    sys.exit(main())
