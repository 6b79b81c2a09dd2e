"""`python -m harness.nightly`: one night on this machine; `nox -s nightly` is the same in an environment of its own.

Options that are not its own go to the suites: `nox -s nightly -- --quick --shape 4096x4096`.
"""

from __future__ import annotations

import argparse
import math
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from harness.command_line import Parser
from harness.ending import ended
from harness.errors import CommandError, Exit
from harness.standing import STANDING

LONGEST_WAIT_S = 86_400.0

DEVICES = "cuda, cuda:N, a UUID (GPU-… or MIG-…), all or cpu"


def main(arguments: Sequence[str] | None = None) -> int:
    """One night; its exit code."""
    return ended(lambda: _nightly(arguments))


def _nightly(arguments: Sequence[str] | None) -> int:
    from harness.nightly.night import REF, Wish  # only now, where a package may be missing
    from harness.nightly.session import nightly
    from harness.store.open_store import open_store

    options, others = _parser().parse_known_args(arguments)
    for name, value in (("--ref", options.ref), ("--path-file", options.path_file)):
        if value is not None:
            raise CommandError(f"{name}: not of nightly, whose ref is {REF!r}; leave it out", Exit.USAGE)
    store = open_store(options.store)
    beside = store.derived / "reports"
    wish = Wish(
        store=store,
        device=_device(options.device),
        options=tuple(others[1:] if others[:1] == ["--"] else others),
        idle_wait_s=_seconds(options.idle_wait),
        pages=_named(options.pages, beside),
        summary=_named(options.summary, beside / "nightly.md"),
    )
    return int(nightly(wish))


def _parser() -> Parser:
    parser = Parser(prog="python -m harness.nightly", description=__doc__, allow_abbrev=False)
    parser.add_argument("--store", metavar="STORE", help="folder or URL of runs; default: SGEMV_STORE, else artifacts/")
    device = f"{DEVICES}; default: cuda, and never the CPU for a GPU that is missing"
    parser.add_argument("--device", default="cuda", help=device)
    wait = "how long a GPU may take until nobody else is at work on it (default: 600)"
    parser.add_argument("--idle-wait", metavar="SECONDS", default="600", help=wait)
    parser.add_argument("--summary", metavar="FILE", help="in Markdown; default: reports/nightly.md in the store")
    parser.add_argument("--pages", metavar="FOLDER", help="of the pages; default: reports/ in the store")
    for name in ("--ref", "--path-file"):
        parser.add_argument(name, help=argparse.SUPPRESS)
    return parser


def _device(text: str) -> str:
    if not re.fullmatch(r"cuda(:\d+)?|(GPU|MIG)-[\w-]+|all|cpu", text):
        raise CommandError(f"--device: found {text!r}, wanted {DEVICES}", Exit.USAGE)
    return text


def _seconds(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not 0 <= found <= LONGEST_WAIT_S:
        what = f"--idle-wait: found {text!r}, wanted a number of seconds from 0 to {LONGEST_WAIT_S:g}"
        raise CommandError(what, Exit.USAGE)
    return found


def _named(text: str | None, default: Path) -> Path:
    """A path from where the user stands: nox stands in the project, and says where that was."""
    return Path(os.environ.get(STANDING, ""), Path(text).expanduser()).absolute() if text else default


if __name__ == "__main__":
    sys.exit(main())
