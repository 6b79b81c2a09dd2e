"""Check runs against their sums, and that they can be read."""

from __future__ import annotations

import argparse
import sys

from harness.ending import say_error
from harness.errors import CommandError, Exit
from harness.store import SELECTORS, Store, load_whole
from harness.words import LONGEST_LINE, visible

HELP = "check runs against their sums"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which runs."""
    parser.add_argument("run", nargs="*", metavar="RUN", help=f"{SELECTORS}; default: all")


def run(store: Store, options: argparse.Namespace) -> int:
    """A line a run."""
    folders = [store.resolve(each) for each in options.run] or [store.root / run_id for run_id in store.ids()]
    if not folders:
        raise CommandError(f"no runs in {store.root}", Exit.RUN)
    worst = Exit.FINE
    for folder in folders:
        try:
            load_whole(folder)
            sys.stdout.write(f"{visible(str(folder), LONGEST_LINE)}: whole\n")
        except CommandError as error:
            say_error(error)
            worst = max(worst, error.code)
    return worst
