"""The cases of comparisons as tables on the terminal: of one new run, and of several side by side."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Column, Table
from rich.text import Text

from harness.comparison.records import CaseChange, Change
from harness.model import Case
from harness.stats import Interval
from harness.words import percent_decimals, problem_in_words, significant, visible

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

NARROW = 72
"""Columns below which the case's name has a line of its own, and what stands beside each other else is below it."""

_NONE = "–"
_TIGHT = {"box": None, "pad_edge": False, "padding": (0, 1, 0, 0), "header_style": "dim"}
_HEADS = ("problem", "kernel", "timer", "base\nµs", "new\nµs", "ratio", "change")
_FIGURES = 3
"""Place of the first figure in `_HEADS`."""


@dataclass(frozen=True)
class CaseTable:
    """A line a case, in their order, where no name has to be folded; else figures stand below the names."""

    cases: Sequence[CaseChange]

    def __rich_console__(self, _console: Console, options: ConsoleOptions) -> RenderResult:
        """By the width that there is."""
        rows = [_row(each) for each in self.cases]
        columns = list(zip(*rows, strict=True))
        whole = [max(map(_longest_line, [Text(head), *column])) for head, column in zip(_HEADS, columns, strict=True)]
        words = [cell_len(word) for cell in columns[-1] for word in cell.plain.split()]
        if sum(whole[:-1]) + max(words) + len(_HEADS) - 1 <= options.max_width:  # the change may be folded
            yield _wide(rows)
        else:
            yield from _stacked(rows, whole, options.max_width)


def _row(each: CaseChange) -> list[Text]:
    return [
        Text(problem_in_words(each.case.problem)),
        Text(visible(each.case.kernel)),
        Text(_way(each.case)),
        Text(_time(each.base_ns)),
        Text(_time(each.new_ns)),
        Text(_ratio(each.ratio), style=STYLES.get(each.change, "")),
        _word(each, "\n"),
    ]


def _longest_line(cell: Text) -> int:
    return max(map(cell_len, cell.plain.splitlines()), default=0)


def _wide(rows: Iterable[Sequence[Text]]) -> Table:
    table = Table(**_TIGHT)  # type: ignore[arg-type]
    for place, head in enumerate(_HEADS):
        is_time = head.endswith("µs")
        last = place == len(_HEADS) - 1
        table.add_column(head, justify="right" if is_time else "left", no_wrap=not last, overflow="fold")
    for row in rows:
        table.add_row(*row)
    return table


def _stacked(rows: Iterable[Sequence[Text]], widths: Sequence[int], room: int) -> Iterator[Text]:
    """The name of a case, then its figures, each below those of the case before where the terminal has room."""
    heads = [head.replace("\n", " ") for head in _HEADS]
    widths = [max(width, len(head)) for width, head in zip(widths, heads, strict=True)][_FIGURES:]
    if sum(widths) + 2 * len(widths) > room:
        widths = [0] * len(widths)

    def aligned(cells: Sequence[Text]) -> Text:
        for cell, width in zip(cells[:-1], widths, strict=False):
            cell.pad_right(max(0, width - cell_len(cell.plain)))
        return Text("  ").append_text(Text("  ").join(cells))

    yield Text("case", style="dim")
    yield aligned([Text(head, style="dim") for head in heads[_FIGURES:]])
    for problem, kernel, way, *figures, change in rows:
        yield Text(" ").join([kernel, problem, way])
        yield aligned([*figures, Text(", ").join(change.split("\n"))])


@dataclass(frozen=True)
class SideBySide:
    """A row a case and a column a new run, which stands there by its number: the ratio, and the word below."""

    rows: Sequence[Sequence[CaseChange | None]]
    """What became of a case by new run; None: neither that run nor the base has it. At least one row."""

    def __rich_console__(self, _console: Console, options: ConsoleOptions) -> RenderResult:
        """By the width that there is."""
        yield from self._below() if options.max_width < NARROW else self._beside()

    def _beside(self) -> Iterator[Table]:
        runs = len(self.rows[0])
        for first in range(0, runs, RUNS_A_TABLE):
            places = range(first, min(first + RUNS_A_TABLE, runs))
            table = Table(Column("case", overflow="fold"), **_TIGHT)  # type: ignore[arg-type]
            table.add_column("base\nµs", justify="right", no_wrap=True)
            for place in places:
                table.add_column(f"new {place + 1}", overflow="fold")
            for row in self.rows:
                base = Text(_time(_base_ns(row), "\n"))
                table.add_row(Text(_name(row, "\n")), base, *(_cell(row[place], "\n") for place in places))
            yield table

    def _below(self) -> Iterator[Text]:
        for row in self.rows:
            yield Text(_name(row, " "))
            yield Text(f"  base {_time(_base_ns(row))} µs" if _base_ns(row) else f"  base {_NONE}")
            for place, each in enumerate(row, 1):
                yield Text(f"  new {place}: ").append_text(_cell(each, " "))


def _name(row: Iterable[CaseChange | None], below: str) -> str:
    case = next(each.case for each in row if each)
    return f"{visible(case.kernel)}{below}{problem_in_words(case.problem)} {_way(case)}"


def _base_ns(row: Iterable[CaseChange | None]) -> Interval | None:
    return next((each.base_ns for each in row if each and each.base_ns), None)


def _way(case: Case) -> str:
    return f"{visible(case.timer)} {case.cache}"


def _word(each: CaseChange, below: str) -> Text:
    """With what the device did otherwise, where it changed; `below` stands between."""
    marks = [visible(mark) for mark in each.marks] if each.change in CHANGED else []
    return Text.assemble((each.change, STYLES.get(each.change, "")), *(f"{below}{mark}" for mark in marks))


def _cell(each: CaseChange | None, below: str) -> Text:
    if each is None:
        return Text(_NONE)
    ratio = "" if each.ratio is None else f"{_figure(each.ratio.estimate)} {_spread(each.ratio)}{below}"
    return Text(ratio).append_text(_word(each, "\n" if below == "\n" else ", "))


def _spread(interval: Interval) -> str:
    half = interval.half_width
    if half is None:
        return "1 trial"
    percent = 100 * half
    return f"±{percent:.{percent_decimals(percent)}f}%"


def _time(ns: Interval | None, between: str = " ") -> str:
    """In µs, with half its interval."""
    return _NONE if ns is None else f"{_figure(ns.estimate / 1e3)}{between}{_spread(ns)}"


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
