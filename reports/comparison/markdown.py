"""A comparison as GitHub-flavoured Markdown, for a comment on a pull request."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from harness.comparison.boards import allowance
from harness.comparison.records import CaseChange, Change, Comparison
from harness.comparison.request import Compared
from harness.stats import CENTRE
from reports import format as fmt
from reports.comparison.columns import columns
from reports.comparison.environment import attribution, environment_table
from reports.comparison.heat_map import attention, cell
from reports.comparison.scope import cut_short, exit_line
from reports.comparison.summary import counts_table, takeaway
from reports.comparison.words import limit, signed, time_in_words, way
from reports.facts import device_name
from reports.tables import Cell, Table, number, table, text

MOST_BYTES = 65_536
"""GitHub refuses longer comments; it counts characters, of which there are never more than bytes."""

ROOM = 500
"""Bytes kept for the line that says what was cut."""

OPEN = (Change.FAILED, Change.SLOWER, Change.FASTER)
"""Words whose cases are shown at once."""

FOLDED = ((Change.AMBIGUOUS,), (Change.NEW, Change.GONE), (Change.SAME, Change.NOT_COMPARABLE))
"""The others, by what is folded together; the last are cut first."""

HOW_TO_READ = (
    "Ratio: time in the new run over time in the base run, as the difference from 1; + takes longer. Times: "
    f"{CENTRE} of the trials, ± half their 95{fmt.NBSP}% interval. p: after Holm's correction over all cases of a run."
)

_MARKUP = re.compile(
    r"[^\w \u00a0\u202f.,:;?+×=%()'’−–…±/✕▲▼-]"  # whatever Markdown, HTML or GitHub could see something in
    r"|(?<![^\W_])_|_(?![^\W_])"  # emphasis, but not sgemv_k16_f32
    r"|/(?=/)|(?<=/)/|(?<=www)\.",  # an address
    re.IGNORECASE,
)

_JOINER = "&#8288;"
"""No width; keeps GitHub from taking a name for a person or an issue."""


@dataclass(frozen=True, kw_only=True)
class Block:
    """Lines of which the later rows may be cut."""

    rows: tuple[str, ...]
    opening: tuple[str, ...] = ()
    """Before the rows; nothing without any."""
    closing: tuple[str, ...] = ()


def comparison_markdown(compared: Compared) -> str:
    """What differs, what changed and how sure it is, in less than `MOST_BYTES` bytes; what was cut is said.

    Args:
        compared: at least one new run.
    """
    lines = list(_head(compared))
    room, cut = MOST_BYTES - ROOM - _size(lines), 0
    for block in _blocks(compared):
        room -= _size(block.opening) + _size(block.closing)
        shown = 0
        while shown < len(block.rows) and room >= _size(block.rows[shown : shown + 1]):
            room -= _size(block.rows[shown : shown + 1])
            shown += 1
        cut += len(block.rows) - shown
        if shown:
            lines += [*block.opening, *block.rows[:shown], *block.closing]
        else:
            room += _size(block.opening) + _size(block.closing)
    if cut:
        lines += ["", f"Cut: {fmt.count(cut, 'more row')}, since GitHub takes {MOST_BYTES} characters at most."]
    return "\n".join(lines) + "\n"


def plain(said: str) -> str:
    """A line of text that Markdown shows as it is, whatever a name in it looks like."""
    return _MARKUP.sub(lambda found: f"&#{ord(found[0])};" + (_JOINER if found[0] in "@#" else ""), said)


def _size(lines: Sequence[str]) -> int:
    return sum(len(line.encode()) + 1 for line in lines)


def _head(compared: Compared) -> Iterator[str]:
    """A few lines, short whatever the runs hold."""
    runs = columns([compared.base, *compared.news])
    only = f", only {plain(fmt.line(compared.filter))}" if compared.filter else ""
    yield f"### SGEMV on {plain(device_name(compared.base))}{only}: {plain(attribution(compared.found))}"
    yield ""
    if missing := cut_short(compared, runs):
        yield f"**{plain(missing)}**"
        yield ""
    against = runs[1].text if len(runs) == 2 else f"{len(runs) - 1} runs"
    yield f"{plain(against)} against {plain(runs[0].text)}. {plain(takeaway(compared, runs))}"
    yield ""
    yield plain(exit_line(compared))


def _blocks(compared: Compared) -> Iterator[Block]:
    """What matters most first, since the last rows are cut first."""
    runs = columns([compared.base, *compared.news])
    pairs = list(zip(compared.found, runs[1:], strict=True))
    reasons = [(run, why) for each, run in pairs for why in each.not_comparable]
    yield Block(
        opening=("",),
        rows=tuple(f"* {plain(run.text)} cannot be compared: {plain(fmt.line(why))}" for run, why in reasons),
    )
    yield _table_block(counts_table(compared, runs))
    if environment := environment_table(compared.found, runs):
        yield _table_block(environment)
    several = len(pairs) > 1
    for each, run in pairs:
        yield _table_block(_cases(each, OPEN), ("", f"#### {plain(run.text)}") if several else ())
    yield Block(
        opening=("",),
        rows=(f"{HOW_TO_READ} Threshold: {limit(compared.found[0].threshold)} unless a case says otherwise.",),
    )
    if any(each.two_boards for each in compared.found):
        yield Block(opening=("",), rows=(allowance(),))
    for words in FOLDED:
        for each, run in pairs:
            counted = fmt.listing([f"{each.counts[word]} {word}" for word in words if each.counts[word]])
            summary = f"{counted}, {plain(run.text)}" if several else counted
            yield _table_block(_cases(each, words), ("", f"<details><summary>{summary}</summary>"), ("", "</details>"))


def _cases(found: Comparison, words: Sequence[Change]) -> Table:
    """A row a case that has one of these words, what needs a look first on top."""
    cases = sorted((each for each in found.cases if each.change in words), key=lambda each: attention([each]))
    heads = [text("change"), text("kernel"), text("problem"), text("timer"), number("base"), number("new")]
    heads += [number("ratio"), text(f"95{fmt.NBSP}% interval"), text("p"), text("to know")]
    return table("", heads, [_case(found, each) for each in cases])


def _case(found: Comparison, change: CaseChange) -> list[Cell | str]:
    shown = cell(change, found.threshold)
    what: list[Cell | str] = [fmt.name(change.case.kernel), fmt.problem(change.case.problem), way(change.case)]
    times: list[Cell | str] = [time_in_words(change.base_ns), shown.new]
    probability = shown.probability.removeprefix("p ").removeprefix("= ")
    marked = ", ".join(part for part in (signed(change.change), shown.marks) if part)
    return [marked, *what, *times, shown.figure, shown.interval, probability, shown.remark]


def _table_block(made: Table, before: tuple[str, ...] = (), after: tuple[str, ...] = ()) -> Block:
    heads = [plain(f"{column.title}, {column.unit}" if column.unit else column.title) for column in made.columns]
    rule = ["--:" if column.number else "---" for column in made.columns]
    return Block(
        opening=(*before, "", _row(heads), _row(rule)),
        rows=tuple(_row([_in_table(each) for each in row]) for row in made.rows),
        closing=after,
    )


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _in_table(each: Cell) -> str:
    return plain(each.text) + (f"<br><sub>{plain(each.note)}</sub>" if each.note else "")
