"""Copy a run into examples/ without what belongs to one machine: `python examples/keep.py RUN NAME`.

Hostname, the kernel's build, UUIDs (a board's always the same) and paths become placeholders; samples stay. What
follows from them, the selfcheck's table, the marks of samples and the sums, is made anew by this version.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import shutil
import sys
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from harness.errors import CommandError  # noqa: E402
from harness.selfcheck import selfcheck  # noqa: E402
from harness.store import load, verify  # noqa: E402
from harness.store.draft import write_run  # noqa: E402 - the project is found only now
from harness.store.open_store import open_store  # noqa: E402
from harness.store.sums import write_sums  # noqa: E402
from reports.render import write_run_page  # noqa: E402

TEXTS = {".json", ".log", ".txt", ".ptx", ".sass", ".diff"}

UUID = re.compile(r"(GPU|MIG)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
PLACEHOLDERS = (
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
    parser.add_argument(
        "--lean", action="store_true", help="without a page and pytest-benchmark.json, which holds the same samples"
    )
    parser.add_argument(
        "--no-machine-code", action="store_true", help="without PTX and SASS: megabytes that the commit gives again"
    )
    parser.add_argument("--store", help="folder or URL of runs (default: SGEMV_STORE, else artifacts/)")
    options = parser.parse_args()
    try:
        source = open_store(options.store).resolve(options.run)
        verify(source)
    except CommandError as error:
        sys.stderr.write(f"{error}\n")
        return int(error.code)
    target = ROOT / "examples" / options.name
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target)
    run = json.loads((source / "run.json").read_text(encoding="utf-8"))
    named = {key: run["environment"]["values"].get(key) for key in ("hostname", "kernel")}
    for path in target.rglob("*"):
        if path.suffix in TEXTS:
            path.write_text(without_machine(path.read_text(encoding="utf-8"), named), encoding="utf-8")
    if options.lean:
        (target / "pytest-benchmark.json").unlink(missing_ok=True)
    if options.no_machine_code:
        for kind in ("ptx", "sass"):
            for folder in target.glob(f"build/*/{kind}"):
                shutil.rmtree(folder)
    write_sums(target)
    derive(target)
    sys.stdout.write(f"{target}\n")
    if not options.lean:
        sys.stdout.write(f"{write_run_page(target, target.with_suffix('.html'))}\n")
    return 0


def derive(folder: Path) -> None:
    """Write the run again, with what this version makes of its samples and readings."""
    run = load(folder)
    checks = None if run.selfcheck is None else selfcheck(run.measurements)
    write_run(folder, replace(run, selfcheck=checks))


def without_machine(text: str, named: dict[str, str | None]) -> str:
    """`text` with placeholders for what names one machine; hostname and kernel only as JSON values of their own."""
    for key, value in named.items():
        if value is not None:
            text = text.replace(f'"{value}"', f'"<{key}>"')
    text = UUID.sub(board, text)
    for pattern, placeholder in PLACEHOLDERS:
        text = pattern.sub(placeholder, text)
    return text


def board(uuid: re.Match[str]) -> str:
    """A placeholder that is the same for the same board, and leads to none."""
    return f"{uuid[1]}-00000000-0000-0000-0000-{hashlib.sha256(uuid[0].encode()).hexdigest()[:12]}"


if __name__ == "__main__":
    sys.exit(main())
