"""Comparisons on the terminal, fit for 80 columns: one new run with all its figures, several side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from harness.comparison.records import CaseChange, Comparison
from harness.comparison.request import Compared
from harness.comparison.text_environment import environment
from harness.comparison.text_remarks import MOST_LINES, remarks
from harness.comparison.text_tables import FOLDED, ORDER, STYLES, CaseTable, SideBySide
from harness.words import LONGEST_LINE, visible

FEWEST_LINES = 5
"""Of reasons and notes of each new run, however many there are."""

MOST_KERNELS = 3
"""Named with their own thresholds; more are counted, unless all are asked for."""


def comparison_text(compared: Compared, *, every: bool = False) -> RenderableType:
    """What differs in the environment, the cases, their reasons and notes, the counts, and the exit code.

    Args:
        compared: what to show.
        every: also the cases that are the same or not comparable, each, and every reason and note.
    """
    parts = _one(compared, every=every) if len(compared.found) == 1 else _several(compared, every=every)
    code = Text(f"exit code {int(compared.exit_code)}: {compared.exit_means}")
    return Group(*parts, code)


def _one(compared: Compared, *, every: bool) -> Iterator[RenderableType]:
    found = compared.found[0]
    if found.base_id == found.new_id:
        yield Text(f"base, new  {_name(found.base_id)}: same run")
    else:
        yield Text(f"base  {_name(found.base_id)}")
        yield Text(f"new   {_name(found.new_id)}")
    yield from _not_all({"base": found.base_partial, "new": found.new_partial}, compared.selection(0))
    yield from environment(found)
    cases = sorted(found.cases, key=lambda each: ORDER.index(each.change))
    if shown := [each for each in cases if every or each.change not in FOLDED]:
        yield Text("\ntime ± half its 95 % interval; ratio: time in new over base, with its interval", style="dim")
        yield CaseTable(shown)
    counted = [f"{found.counts[each]} {each}" for each in reversed(FOLDED) if found.counts[each]]
    if counted and not every:
        yield Text(f"\n{' and '.join(counted)}: --all shows each", style="dim")
    if lines := remarks(cases, every=every):
        yield from (Text(), *lines)
    yield Text("\n") + _counts(found) + Text(f", {_thresholds([found], every=every)}")


def _several(compared: Compared, *, every: bool) -> Iterator[RenderableType]:
    """Every new run has its number."""
    numbered = {f"new {place}": each for place, each in enumerate(compared.found, 1)}
    width = max(map(len, numbered))
    yield Text(f"{'base':{width}}  {_name(compared.base.id)}")
    for name, found in numbered.items():
        yield Text(f"{name:{width}}  {_name(found.new_id)}{': same run' if found.new_id == found.base_id else ''}")
    cut_short = {name: found.new_partial for name, found in numbered.items()}
    chosen = f"only {compared.filter}: how many of each run stands below" if compared.filter else ""
    yield from _not_all({"base": compared.base.partial, **cut_short}, chosen)
    for name, found in numbered.items():
        yield from environment(found, name)
    yield from _side_by_side(compared.found, every=every)
    for place, (name, found) in enumerate(numbered.items()):
        yield Text.assemble("\n", (f"{name}: ", "bold"), _counts(found))
        if selection := compared.selection(place):
            yield Text(visible(selection, LONGEST_LINE), style="yellow")
        cases = sorted(found.cases, key=lambda each: ORDER.index(each.change))
        yield from remarks(cases, every=every, most=max(FEWEST_LINES, MOST_LINES // len(numbered)))
    yield Text(f"\n{_thresholds(compared.found, every=every)}")


def _not_all(cut_short: Mapping[str, bool], selection: str = "") -> Iterator[RenderableType]:
    """What these are not all the cases of.

    Args:
        cut_short: by a run's name, whether it was.
        selection: which cases were asked for; "": all.
    """
    for name in (name for name, was in cut_short.items() if was):
        yield Text(f"{name} was cut short: what had not been measured until then is missing", style="yellow")
    if selection:
        yield Text(visible(selection, LONGEST_LINE), style="yellow")


def _side_by_side(found: Sequence[Comparison], *, every: bool) -> Iterator[RenderableType]:
    """A row a case of any run, what needs a look first; those that need none in all runs are counted."""
    rows: dict[str, list[CaseChange | None]] = {}
    for place, comparison in enumerate(found):
        for each in comparison.cases:
            rows.setdefault(each.case.id, [None] * len(found))[place] = each
    ordered = sorted(rows.values(), key=lambda row: min(ORDER.index(each.change) for each in row if each))
    shown = [row for row in ordered if every or any(each and each.change not in FOLDED for each in row)]
    if shown:
        yield Text("\nratio: time in the new run over time in base; ± half the 95 % interval", style="dim")
        yield SideBySide(shown)
    if left := len(rows) - len(shown):
        words = " or ".join(reversed(FOLDED))
        yield Text(f"\n{left} {words} in every new run: --all shows each", style="dim")


def _name(run_id: str) -> str:
    return visible(run_id, LONGEST_LINE)


def _counts(found: Comparison) -> Text:
    """How many cases have each word."""
    counts = found.counts
    words = [(f"{counts[each]} {each}", STYLES.get(each, "")) for each in ORDER if counts[each]]
    line = Text(", ").join(Text(text, style=style) for text, style in words) if words else Text("no case")
    total = len(found.cases)
    return line + Text(f" of {total} case{'' if total == 1 else 's'}")


def _thresholds(found: Sequence[Comparison], *, every: bool) -> str:
    """The default one, and the kernels whose cases have another."""
    default = found[0].threshold
    cases = [each for comparison in found for each in comparison.cases]
    own = {each.case.kernel: each.threshold for each in cases if each.threshold != default}
    named = [f"{_percent(value)} of {visible(kernel)}" for kernel, value in own.items()]
    if len(named) > MOST_KERNELS and not every:
        named[MOST_KERNELS - 1 :] = [f"other ones of {len(named) - MOST_KERNELS + 1} more kernels"]
    return ", ".join([f"threshold {_percent(default)}", *named])


def _percent(fraction: float) -> str:
    return f"{100 * fraction:.4g} %"
