"""What changed from BASE to NEW, case by case."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterable
from dataclasses import replace

from rich.console import Console

from harness.compare import THRESHOLD, compare
from harness.comparison.records import CaseChange, Comparison
from harness.comparison.text import comparison_json, comparison_text
from harness.errors import CommandError, Exit
from harness.model import Problem
from harness.problems import parse_shapes
from harness.store import SELECTORS, Store, load_whole
from harness.words import visible

HELP = "what changed from a run to another"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options are text here: they are checked where an error is one line."""
    parser.add_argument("base", metavar="BASE", help=f"the run compared with: {SELECTORS}")
    parser.add_argument("new", metavar="NEW", help="the run that is judged, named the same way")
    parser.add_argument("more", nargs="*", default=[], help=argparse.SUPPRESS)
    fraction = f"smallest change that counts (default: {THRESHOLD})"
    parser.add_argument("--threshold", metavar="FRACTION", default=str(THRESHOLD), help=fraction)
    named = {"--kernel": "NAME", "--shape": "MxK", "--timer": "NAME"}
    for option, metavar in named.items():
        what = f"show only cases of this {option[2:]} (repeatable)"
        parser.add_argument(option, metavar=metavar, action="append", default=[], help=what)
    parser.add_argument("--all", action="store_true", help="show cases that are the same or not comparable too")
    parser.add_argument("--json", action="store_true", help="print JSON and nothing else")


def run(store: Store, options: argparse.Namespace) -> int:
    """What changed from one run to another; both must be whole."""
    if options.more:
        named = " ".join(visible(each) for each in options.more)
        raise CommandError(f"compare: wanted two runs, BASE and NEW, found also: {named}", Exit.USAGE)
    threshold, problems = _threshold(options.threshold), parse_shapes(options.shape)
    folders = [store.resolve(each) for each in (options.base, options.new)]
    known = {folder: load_whole(folder) for folder in dict.fromkeys(folders)}
    base, new = (known[folder] for folder in folders)
    found = _selected(compare(base, new, threshold=threshold), options, problems)
    if options.json:
        sys.stdout.write(comparison_json(found) + "\n")
    else:
        console = Console(highlight=False, markup=False, emoji=False)
        console.print(comparison_text(found, every=options.all))
    return int(found.exit_code)


def _threshold(text: str) -> float:
    """The fraction that --threshold names."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < 1:  # NaN is in no range
        raise CommandError(
            f"--threshold: found {text!r}, wanted a fraction from 0 to below 1, such as 0.02 for 2 %", Exit.USAGE
        )
    return value


def _selected(found: Comparison, options: argparse.Namespace, problems: list[Problem]) -> Comparison:
    """The comparison with the asked-for cases alone; no word depends on which others one looks at."""
    _check_known("--kernel", options.kernel, (each.case.kernel for each in found.cases))
    _check_known("--timer", options.timer, (each.case.timer for each in found.cases))
    shapes = {each.label for each in problems}

    def wanted(each: CaseChange) -> bool:
        pairs = (options.kernel, each.case.kernel), (options.timer, each.case.timer)
        return all(not names or name in names for names, name in pairs) and (
            not shapes or each.case.problem.label in shapes
        )

    cases = tuple(filter(wanted, found.cases))
    given = {"--kernel": options.kernel, "--shape": options.shape, "--timer": options.timer}
    filters = " ".join(f"{option} {visible(value)}" for option, values in given.items() for value in values)
    if filters and not cases:
        raise CommandError(f"{filters}: none of the {len(found.cases)} cases in these runs", Exit.USAGE)
    return replace(found, cases=cases)


def _check_known(option: str, names: list[str], known: Iterable[str]) -> None:
    """A name that neither run has is a slip."""
    there = list(dict.fromkeys(known))
    for name in names:
        if name not in there:
            wanted = f"one of {', '.join(visible(each) for each in there)}" if there else "none: no case in either run"
            raise CommandError(f"{option}: found {name!r}, wanted {wanted}", Exit.USAGE)
