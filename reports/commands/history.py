"""Write the page of the store over time: what became slower, since when, and what changed then."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from harness import case_filter
from harness.case_filter import CaseFilter
from harness.ending import say_error
from harness.errors import CommandError, Exit
from harness.history.devices import History, read_history
from harness.store import Store
from harness.words import coded
from reports.packages import require_page_packages

HELP = "the page of all runs over time"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which cases and runs, and where the page goes."""
    parser.add_argument("--output", metavar="FILE", help="default: reports/history.html in the store")
    case_filter.add_arguments(parser)
    parser.add_argument("--last", metavar="N", help="only the newest N runs of the store")


def run(store: Store, options: argparse.Namespace) -> int:
    """The page of whatever can be read; what cannot is a line each and the code of a damaged run."""
    last, shown = _last(options.last), CaseFilter.of(options)
    require_page_packages()
    history = read_history(store, last)
    for error in history.unreadable:
        say_error(error)
    if not history.devices:
        lost = len(history.unreadable)
        what = f"none of {lost} runs can be read" if lost else f"no runs{store.missing()}"
        raise CommandError(f"{store.name}: {what}: there is nothing to show over time", Exit.RUN)
    _check(history, shown)
    target = Path(options.output) if options.output else store.derived / "reports" / "history.html"
    _write(history, target, shown)
    sys.stdout.write(f"{coded(str(target))}\n")
    return Exit.RUN if history.unreadable else Exit.FINE


def _check(history: History, shown: CaseFilter) -> None:
    cases = [case for device in history.devices for case in device.cases]
    if not cases:
        runs = sum(len(device.runs) for device in history.devices)
        raise CommandError(f"none of {runs} runs has a case with a figure or a failure", Exit.NOT_COMPARABLE)
    shown.check(cases)


def _write(history: History, target: Path, shown: CaseFilter) -> None:
    from reports.history.page import render_history
    from reports.page import write_page

    write_page(render_history(history, shown.wants, shown.in_words), target)


def _last(text: str | None) -> int | None:
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal() and int(text) > 0):
        raise CommandError(f"--last: found {text!r}, wanted a number of runs from 1 on", Exit.USAGE)
    return int(text)
