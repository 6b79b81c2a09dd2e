"""Check runs against their sums, and that they can be read; of a store at a URL they are fetched again for that."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from harness.ending import say_error
from harness.errors import CommandError, Exit
from harness.store import SELECTORS, Store, is_run, load_whole
from harness.words import LONGEST_LINE, visible

HELP = "check runs against their sums"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which runs."""
    parser.add_argument("run", nargs="*", metavar="RUN", help=f"{SELECTORS}; default: all")


def run(store: Store, options: argparse.Namespace) -> int:
    """A line a run."""
    named = list(_named(store, options.run)) if options.run else store.ids()
    if not named:
        raise CommandError(f"no runs in {store.name}{store.missing()}", Exit.RUN)
    worst = Exit.FINE
    for each in named:
        try:
            place = _verified(store, each)
            sys.stdout.write(f"{visible(place, LONGEST_LINE)}: whole\n")
        except CommandError as error:
            if error.code is not Exit.RUN:
                raise
            say_error(error)
            worst = max(worst, error.code)
    return worst


def _named(store: Store, selectors: list[str]) -> Iterator[Path | str]:
    """A folder, or the id of a run of the store."""
    for selector in selectors:
        yield Path(selector) if is_run(Path(selector)) else store.find(selector)


def _verified(store: Store, each: Path | str) -> str:
    """What its place is called."""
    if isinstance(each, Path):
        load_whole(each)
        return str(each)
    store.verify(each)
    return store.place(each)
