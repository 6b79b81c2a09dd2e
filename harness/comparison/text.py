"""A comparison on the terminal, fit for 80 columns, and as JSON for programs."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Column, Table
from rich.text import Text

from harness.comparison.records import CaseChange, Change, Comparison, EnvironmentDifference
from harness.errors import Exit
from harness.model import Case
from harness.stats import Interval
from harness.words import LONGEST_LINE, problem_in_words, significant, visible

FOLDED = (Change.NOT_COMPARABLE, Change.SAME)
"""Counted in one line: they have nothing to read in a table of changes."""

ORDER = (Change.FAILED, Change.SLOWER, Change.FASTER, Change.AMBIGUOUS, Change.NEW, Change.GONE, *FOLDED)
"""Of the words in the table, what needs a look first."""

STYLES = {Change.FAILED: "bold red", Change.SLOWER: "red", Change.FASTER: "green", Change.AMBIGUOUS: "yellow"}
"""Of the words; the others have none."""

EXIT_MEANS = {
    Exit.FINE: "no case is known to be slower",
    Exit.SLOWER: "a case is slower",
    Exit.NOT_COMPARABLE: "no case is comparable",
    Exit.KERNEL: "a kernel is wrong or crashed in the new run",
}
"""The codes that a comparison leaves with."""

MOST_LINES = 20
"""Of reasons and notes, unless all are asked for."""

MOST_CASES = 2
"""Named in one such line; more are counted, unless all are asked for."""

JSON_SCHEMA_VERSION = 1

_NONE = "–"


def comparison_text(found: Comparison, *, every: bool = False) -> RenderableType:
    """What differs in the environment, the cases, their reasons and notes, and the counts.

    Args:
        found: what to show.
        every: also the cases that are the same or not comparable, each, and every reason and note.
    """
    cases = sorted(found.cases, key=lambda each: ORDER.index(each.change))
    shown = [each for each in cases if every or each.change not in FOLDED]
    parts: list[RenderableType] = [*_heads(found), *_environment(found)]
    if shown:
        parts += [Text("\nratio: time in new over time in base, with its 95 % interval", style="dim"), _table(shown)]
    parts += [*_folded(found, every=every), *_remarks(cases, every=every), Text(), *_summary(found)]
    return Group(*parts)


def comparison_json(found: Comparison) -> str:
    """All of a comparison; what is not finite is null."""
    data = {
        "schema_version": JSON_SCHEMA_VERSION,
        "same_run": found.base_id == found.new_id,
        **asdict(found),
        "counts": {str(change): count for change, count in found.counts.items()},
        "exit_code": int(found.exit_code),
        "exit_means": EXIT_MEANS[found.exit_code],
    }
    return json.dumps(_finite(data), indent=1, allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _heads(found: Comparison) -> Iterator[Text]:
    """Which runs."""
    if found.base_id == found.new_id:
        yield Text(f"base, new  {visible(found.base_id, LONGEST_LINE)}: same run")
        return
    yield Text(f"base  {visible(found.base_id, LONGEST_LINE)}")
    yield Text(f"new   {visible(found.new_id, LONGEST_LINE)}")


def _environment(found: Comparison) -> Iterator[RenderableType]:
    """What it comes down to, what forbids the comparison, and the differing facts by group."""
    yield Text.assemble(("\nenvironment: ", "bold"), visible(found.attribution, LONGEST_LINE))
    for reason in found.not_comparable:
        yield Text.assemble(("not comparable: ", "yellow"), visible(reason, LONGEST_LINE))
    if not found.environment:
        return
    table = Table("", Column(overflow="fold"), Column("base", overflow="fold"), box=None, pad_edge=False)
    table.add_column("new", overflow="fold")
    table.columns[0].no_wrap = True
    for group, differences in found.by_group.items():
        for place, each in enumerate(differences):
            name = visible(each.key)
            table.add_row(Text("" if place else group, style="dim"), Text(name), *_values(each))
    yield table


def _values(difference: EnvironmentDifference) -> Iterator[Text]:
    for value in (difference.base, difference.new):
        if value is None:
            yield Text("unknown", style="dim")
        elif isinstance(value, bool):
            yield Text(("no", "yes")[value])
        elif difference.unit and isinstance(value, int):
            yield Text(f"{value:,} {difference.unit}".replace(",", " "))
        else:
            yield Text(visible(str(value), LONGEST_LINE) + (f" {difference.unit}" if difference.unit else ""))


def _table(cases: Iterable[CaseChange]) -> Table:
    """A line a case; the figures keep together, names are folded."""
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="dim")
    for name in ("problem", "kernel"):
        table.add_column(name, overflow="fold")
    table.add_column("timer", overflow="fold")
    for name in ("base\nµs", "new\nµs"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("ratio", no_wrap=True)
    table.add_column("change", overflow="fold")
    for each in cases:
        style = STYLES.get(each.change, "")
        table.add_row(
            Text(problem_in_words(each.case.problem)),
            Text(visible(each.case.kernel)),
            Text(f"{visible(each.case.timer)} {each.case.cache}"),
            Text(_microseconds(each.base_ns)),
            Text(_microseconds(each.new_ns)),
            Text(_ratio(each.ratio), style=style),
            Text(each.change, style=style),
        )
    return table


def _microseconds(ns: Interval | None) -> str:
    return _NONE if ns is None else _figure(ns.estimate / 1e3)


def _ratio(ratio: Interval | None) -> str:
    if ratio is None:
        return _NONE
    ends = [_figure(end) for end in (ratio.low, ratio.high) if end is not None]
    return f"{_figure(ratio.estimate)} {'–'.join(ends) if len(ends) == 2 else 'one trial'}"


def _figure(value: float) -> str:
    """Four digits, at most three of them behind the point: 0.690, 1.723, 17.20, 1 014."""
    if not 0.001 <= value < 1e6:
        return f"{value:.2g}"
    return significant(value, thousands=" ")


def _folded(found: Comparison, *, every: bool) -> Iterator[Text]:
    """The cases that the table leaves out."""
    counted = [f"{found.counts[each]} {each}" for each in reversed(FOLDED) if found.counts[each]]
    if counted and not every:
        yield Text(f"\n{' and '.join(counted)}: --all shows each", style="dim")


def _remarks(cases: Iterable[CaseChange], *, every: bool) -> Iterator[Text]:
    """Reasons, then notes, each once with the cases that have it, in the order of the table."""
    found: dict[tuple[Change | None, str], list[Case]] = {}
    for each in cases:
        if each.reason:
            found.setdefault((each.change, each.reason), []).append(each.case)
        for note in each.notes:
            found.setdefault((None, note), []).append(each.case)
    for place, ((change, text), having) in enumerate(sorted(found.items(), key=lambda item: item[0][0] is None)):
        if place == MOST_LINES and not every:
            yield Text(f"… and {len(found) - place} more reasons and notes: --all shows each", style="dim")
            return
        word = (f"{change}: ", STYLES.get(change, "")) if change else ("note: ", "dim")
        line = Text.assemble(word, visible(text, LONGEST_LINE), (f" ({_cases(having, every=every)})", "dim"))
        yield line if place else Text("\n") + line


def _cases(cases: list[Case], *, every: bool) -> str:
    """Which ones: by name where they are few, else how many and of which kernel."""
    if every or len(cases) <= MOST_CASES:
        return "; ".join(_name(each) for each in cases)
    kernels = {each.kernel for each in cases}
    which = f"of {visible(cases[0].kernel)}" if len(kernels) == 1 else f"of {len(kernels)} kernels"
    return f"{len(cases)} cases {which}"


def _name(case: Case) -> str:
    return f"{visible(case.kernel)} {problem_in_words(case.problem)} {visible(case.timer)} {case.cache}"


def _summary(found: Comparison) -> Iterator[Text]:
    """How many cases have each word, and what the exit code means."""
    counts = found.counts
    words = [(f"{counts[each]} {each}", STYLES.get(each, "")) for each in ORDER if counts[each]]
    line = Text(", ").join(Text(text, style=style) for text, style in words) if words else Text("no case")
    own = "" if len({each.threshold for each in found.cases}) <= 1 else ", other ones by kernel"
    total = len(found.cases)
    yield line + Text(f" of {total} case{'' if total == 1 else 's'}, threshold {100 * found.threshold:.4g} %{own}")
    yield Text(f"exit code {int(found.exit_code)}: {EXIT_MEANS[found.exit_code]}")
