"""What a comparison's figures are not of: cases that were not asked for, and those that a run cut short has not."""

from __future__ import annotations

from collections.abc import Sequence

from harness.comparison.request import Compared
from reports import format as fmt
from reports.comparison.columns import Column

MOST_NAMED = 3
"""Runs that a sentence names; more are counted."""


def cut_short(compared: Compared, runs: Sequence[Column]) -> str:
    """Which runs have not all of their cases, in a sentence; "" for none.

    Args:
        compared: the runs.
        runs: the same, the base first.
    """
    news = [run.text for run in runs[1:] if run.run.partial]
    if len(runs) == 2 and news:
        news = ["the new run"]
    named = [*(["the base run"] if compared.base.partial else []), *news]
    if not named:
        return ""
    be = "was" if len(named) == 1 else "were"
    if len(named) > MOST_NAMED:
        named[MOST_NAMED:] = [f"{len(named) - MOST_NAMED} more"]
    said = f"{fmt.listing(named)} {be} cut short: what had not been measured until then is missing."
    return said[0].upper() + said[1:]


def selection(compared: Compared) -> str:
    """Which cases are asked for and what is among the others, as the middle of a sentence; "" where all are."""
    if not compared.filter:
        return ""
    first, *others = dict.fromkeys(counted_by_run(compared))
    return f"only {fmt.line(compared.filter)}: {'counted by run in the table' if others else first}"


def counted_by_run(compared: Compared) -> tuple[str, ...]:
    """`8 of 49 cases; 5 slower among those left out`, by new run; all "" where all cases are asked for."""
    said = (compared.selection(place) for place in range(len(compared.found)))
    return tuple(fmt.line(each.removeprefix(f"only {compared.filter}: ")) for each in said)


def as_sentence(said: str) -> str:
    """`only --kernel read: 8 of 49 cases` → `Only --kernel read: 8 of 49 cases.`; "" stays so."""
    return f"{said[0].upper()}{said[1:]}." if said else ""


def exit_line(compared: Compared) -> str:
    """The exit code in words, with what it is not of."""
    said = selection(compared)
    return f"Exit code {int(compared.exit_code)}: {compared.exit_means}{f' ({said})' if said else ''}."
