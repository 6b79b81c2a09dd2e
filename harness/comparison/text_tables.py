"""The cases of comparisons as tables on the terminal: of one new run, and of several side by side."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich.table import Column, Table
from rich.text import Text

from harness.comparison.records import CaseChange, Change
from harness.model import Case
from harness.stats import Interval
from harness.words import problem_in_words, significant, visible

FOLDED = (Change.NOT_COMPARABLE, Change.SAME)
"""Counted in one line: they have nothing to read in a table of changes."""

ORDER = (Change.FAILED, Change.SLOWER, Change.FASTER, Change.AMBIGUOUS, Change.NEW, Change.GONE, *FOLDED)
"""Of the words in a table, what needs a look first."""

STYLES = {Change.FAILED: "bold red", Change.SLOWER: "red", Change.FASTER: "green", Change.AMBIGUOUS: "yellow"}
"""Of the words; the others have none."""

CHANGED = (Change.SLOWER, Change.FASTER)
"""Words that may come from the device: its marks stand beside them."""

RUNS_A_TABLE = 3
"""New runs side by side, as 80 columns hold; more of them go into a table of their own."""

_NONE = "–"
_TIGHT = {"box": None, "pad_edge": False, "padding": (0, 1, 0, 0), "header_style": "dim"}


def case_table(cases: Iterable[CaseChange]) -> Table:
    """A line a case; the figures keep together, names are folded.

    Args:
        cases: in their order.
    """
    table = _table("problem", "kernel", "timer")
    for name in ("base\nµs", "new\nµs"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("ratio", no_wrap=True)
    table.add_column("change", overflow="fold")
    for each in cases:
        table.add_row(
            Text(problem_in_words(each.case.problem)),
            Text(visible(each.case.kernel)),
            Text(_way(each.case)),
            Text(_microseconds(each.base_ns)),
            Text(_microseconds(each.new_ns)),
            Text(_ratio(each.ratio), style=STYLES.get(each.change, "")),
            _word(each),
        )
    return table


def side_by_side(rows: Sequence[Sequence[CaseChange | None]]) -> Iterator[Table]:
    """A row a case and a column a new run, which stands there by its number: the ratio, and the word below.

    Args:
        rows: what became of a case by new run; None: neither that run nor the base has it. At least one row.
    """
    runs = len(rows[0])
    for first in range(0, runs, RUNS_A_TABLE):
        places = range(first, min(first + RUNS_A_TABLE, runs))
        table = _table("case")
        table.add_column("base\nµs", justify="right", no_wrap=True)
        for place in places:
            table.add_column(f"new {place + 1}", overflow="fold")
        for row in rows:
            known = next(each for each in row if each)
            name = f"{visible(known.case.kernel)}\n{problem_in_words(known.case.problem)} {_way(known.case)}"
            base_ns = next((each.base_ns for each in row if each and each.base_ns), None)
            table.add_row(Text(name), Text(_microseconds(base_ns)), *(_cell(row[place]) for place in places))
        yield table


def _table(*names: str) -> Table:
    return Table(*(Column(name, overflow="fold") for name in names), **_TIGHT)  # type: ignore[arg-type]


def _way(case: Case) -> str:
    return f"{visible(case.timer)} {case.cache}"


def _word(each: CaseChange) -> Text:
    """With what the device did otherwise, where it changed."""
    marks = [visible(mark) for mark in each.marks] if each.change in CHANGED else []
    return Text.assemble((each.change, STYLES.get(each.change, "")), *(f"\n{mark}" for mark in marks))


def _cell(each: CaseChange | None) -> Text:
    if each is None:
        return Text(_NONE)
    ratio = Text("" if each.ratio is None else f"{_figure(each.ratio.estimate)} {_spread(each.ratio)}\n")
    return ratio + _word(each)


def _spread(ratio: Interval) -> str:
    half = ratio.half_width
    return "1 trial" if half is None else f"±{100 * half:.2g} %"


def _microseconds(ns: Interval | None) -> str:
    return _NONE if ns is None else _figure(ns.estimate / 1e3)


def _ratio(ratio: Interval | None) -> str:
    if ratio is None:
        return _NONE
    ends = [_figure(end) for end in (ratio.low, ratio.high) if end is not None]
    return f"{_figure(ratio.estimate)} {'–'.join(ends) if len(ends) == 2 else 'no interval'}"


def _figure(value: float) -> str:
    """Four digits, at most three of them behind the point: 0.690, 1.723, 17.20, 1 014."""
    if not 0.001 <= value < 1e6:
        return f"{value:.2g}"
    return significant(value, thousands=" ")
