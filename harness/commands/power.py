"""Measure what the words of `compare` are worth: false alarms and planted slowdowns, from runs with many trials."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.table import Column, Table

from harness.command_line import PIPE_WIDTH
from harness.comparison.power import TRIALS, Null, Planted, Power, power
from harness.comparison.records import Change
from harness.errors import CommandError, Exit
from harness.model import Run
from harness.store import SELECTORS, Store, load_whole
from harness.words import LONGEST_LINE, visible

HELP = "false alarms and slowdowns found, from runs with many trials"

Row = tuple[str, str, str, str]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which runs, and how many trials a group."""
    parser.add_argument("run", nargs="+", metavar="RUN", help=SELECTORS)
    parser.add_argument("--trials", metavar="N", default=str(TRIALS), help=f"in each group (default: {TRIALS})")


def run(store: Store, options: argparse.Namespace) -> int:
    """The rates, a line each."""
    if not options.trials.isdecimal() or not 2 <= int(options.trials) <= 1000:
        raise CommandError(f"--trials: found {options.trials!r}, wanted a whole number from 2 to 1000", Exit.USAGE)
    runs = _runs(store, options.run)
    found = power(runs, trials=int(options.trials))
    for number, each in enumerate(runs, start=1):
        sys.stdout.write(f"run {number}: {visible(each.id, LONGEST_LINE)}, {each.options.trials} trials\n")
    head, *body = rows(found)
    table = Table(*(Column(name, overflow="fold") for name in head), box=None, pad_edge=False)
    for row in body:
        table.add_row(*row)
    console = Console(width=None if sys.stdout.isatty() else PIPE_WIDTH, highlight=False, markup=False, emoji=False)
    console.print(table)
    return Exit.FINE


def _runs(store: Store, selectors: Sequence[str]) -> list[Run]:
    """The runs that are named; trials of one run would not be those of another."""
    runs: dict[str, Run] = {}
    named: dict[str, str] = {}
    for selector in selectors:
        run = load_whole(store.resolve(selector))
        if run.id in runs:
            what = f"{named[run.id]!r} and {selector!r} are one run, {run.id}"
            raise CommandError(f"power: {what}; name each run once", Exit.USAGE)
        runs[run.id], named[run.id] = run, selector
    return list(runs.values())


def rows(found: Power) -> Iterator[Row]:
    """The rates as text: a head, then what was compared, what was counted, how often, and the case it is worst for."""
    yield f"{found.trials} against {found.trials} trials", "counted", "found", "worst case"
    for null in found.nulls:
        both = dict.fromkeys(f"run {each}" for each in (null.base, null.new))
        yield (
            f"nothing changed, {' against '.join(both)}",
            f"tables with any `{Change.SLOWER}`, any `{Change.FASTER}`",
            f"{null.slower}, {null.faster} of {null.tables}",
            _named(null),
        )
    for planted in found.planted:
        what = f"one case made {100 * planted.effect:g} % slower, {'one run' if planted.one_run else 'two runs'}"
        slower, same = (_percent(planted.share(change)) for change in (Change.SLOWER, Change.SAME))
        yield (
            what,
            f"called `{Change.SLOWER}`, `{Change.SAME}`",
            f"{slower}, {same} of {planted.draws}",
            _worst(planted),
        )


def _named(null: Null) -> str:
    case, times = next(iter(null.named.items()), ("", 0))
    return f"{visible(case)}: {times} of {null.tables}, the most" if times else f"none of {null.cases}"


def _worst(planted: Planted) -> str:
    """The case that was the most often called the same, which is wrong; of none, the one that was found the least."""
    (least, slower), (most, same) = planted.least(Change.SLOWER), planted.most(Change.SAME)
    case, share, change, extreme = (
        (most, same, Change.SAME, "the most") if same else (least, slower, Change.SLOWER, "the least")
    )
    return f"{visible(case)}: `{change}` in {_percent(share)} of {planted.words[case].total()}, {extreme}"


def _percent(share: float) -> str:
    """No more digits than the draws have: one near 0 and 100, else none."""
    return f"{100 * share:.1f} %" if min(share, 1 - share) < 0.1 else f"{100 * share:.0f} %"
