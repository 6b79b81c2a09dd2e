"""A case's line in the table of a history: its newest figure, what became of it, and since when."""

from __future__ import annotations

import math
from dataclasses import dataclass

from harness.comparison.records import CaseChange, Change
from harness.history.devices import Device
from harness.history.standing import Standing
from reports import format as fmt
from reports.history.changes import in_short
from reports.history.sparkline import Sparkline, sparkline

LOOKS = {Change.FAILED: "bad", Change.SLOWER: "bad", Change.FASTER: "best"}
"""CSS class by word; others are quiet."""


@dataclass(frozen=True, kw_only=True)
class Against:
    """What became of a case since another run."""

    word: str
    figure: str
    """The difference in time, with sign and unit; "" without figures on both sides."""
    note: str
    """Its interval, or why there is none."""
    looks: str
    """CSS class."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One case."""

    kernel: str
    timer: str
    """Both as recorded, for the filters."""
    name: str
    """The kernel's, fit to be shown."""
    problem: str
    way: str
    """Timer and cache."""
    newest: str
    """Its figure with unit; the verdict's word without."""
    newest_note: str
    """Its spread; when it was measured, where that was not in the newest run; why there is no figure."""
    failed: bool
    previous: Against
    best: Against
    began: str
    """The day on which what the newest shows began; "" where nothing did."""
    began_note: str
    """What changed then."""
    effect: float
    """The larger of both differences, as a fraction, for sorting; failures come first."""
    alarming: bool
    """Failed, or slower than before by more than is usual, or slower than the best."""
    moved: bool
    """Failed, slower or faster, against either."""
    sparkline: Sparkline


def rows(device: Device, shown: list[Standing]) -> list[Row]:
    """A row a case, those that a reader must see first."""
    return [_row(device, each) for each in shown]


def by_effect(device: Device, shown: list[Standing]) -> list[Standing]:
    """Failures, then slower than before, then slower than the best, then faster, then the rest.

    Within each what the newest run has comes first, and the largest effect.
    """
    last = len(device.runs) - 1
    return sorted(shown, key=lambda each: (_rank(each), each.newest < last, -_effect(each)))


def stands_out(standing: Standing) -> bool:
    """Slower than in the run before, by more than this case usually moves from run to run."""
    return standing.against_previous.change is Change.SLOWER and not standing.usual_step


def _rank(each: Standing) -> int:
    before, best = each.against_previous.change, each.against_best.change
    order = (
        Change.FAILED in (before, best),
        stands_out(each),
        best is Change.SLOWER,
        before is Change.SLOWER,
        before is Change.FASTER and not each.usual_step,
        Change.FASTER in (before, best),
    )
    return order.index(True) if any(order) else len(order)


def _effect(each: Standing) -> float:
    ratios = [change.ratio.estimate for change in (each.against_previous, each.against_best) if change.ratio]
    return max((abs(ratio - 1) for ratio in ratios), default=0.0)


def _row(device: Device, each: Standing) -> Row:
    case = each.case
    newest, note = _newest(device, each)
    words = (each.against_previous.change, each.against_best.change)
    return Row(
        kernel=case.kernel,
        timer=case.timer,
        name=fmt.name(case.kernel),
        problem=fmt.problem(case.problem),
        way=f"{fmt.name(case.timer)}, {case.cache}",
        newest=newest,
        newest_note=note,
        failed=Change.FAILED in words,
        previous=against(each.against_previous, day(device, each.previous), usual=each.usual_step),
        best=against(each.against_best, day(device, each.best)),
        began=day(device, each.began),
        began_note="" if each.began is None else in_short(device, each.began) or _kernel_changed(device, each),
        effect=_effect(each),
        alarming=_rank(each) <= 2,
        moved=bool({Change.FAILED, Change.SLOWER, Change.FASTER} & set(words)),
        sparkline=sparkline(device, each),
    )


def _kernel_changed(device: Device, each: Standing) -> str:
    return device.kernel_changes[each.case.kernel].get(each.began or 0, "no change recorded")


def _newest(device: Device, each: Standing) -> tuple[str, str]:
    found = each.against_previous.new_ns or each.against_best.new_ns
    verdict = device.verdict(each.newest, each.place)
    old = "" if each.newest == len(device.runs) - 1 else f"last measured {day(device, each.newest)}"
    if found is None:
        word = "no figure" if verdict is None else str(verdict.word)
        reason = fmt.line(verdict.reason) if verdict and verdict.reason else ""
        return word, "; ".join(part for part in (reason, old) if part)
    held_back = device.held_back[each.newest, each.place]
    throttled = f"{fmt.percent(held_back)} held back" if held_back > 0 else ""
    said = (fmt.plus_minus(found), throttled, old)
    return fmt.microseconds(found.estimate), "; ".join(part for part in said if part)


def against(change: CaseChange, when: str, *, usual: bool = False) -> Against:
    """The cell of a comparison.

    Args:
        change: what became of the case.
        when: the day of the run compared with; "": there is none.
        usual: the case usually moves as far.
    """
    looks = "quiet" if usual and change.change is not Change.FAILED else LOOKS.get(change.change, "quiet")
    if change.ratio is None:
        told = change.change is Change.FAILED  # beside the newest figure's place
        note = "" if told else fmt.line(change.reason or "") if when else "no earlier figure"
        return Against(word=str(change.change), figure="", note=note, looks=looks)
    wanders = usual and change.change in LOOKS
    notes = [fmt.difference_range(change.ratio), "as runs usually differ" if wanders else "", when]
    return Against(
        word=str(change.change),
        figure=fmt.difference(change.ratio),
        note=" · ".join(part for part in notes if part),
        looks=looks,
    )


def remarks(each: Standing) -> list[str]:
    """What stands beside a case's chart: how much its runs usually differ, and why a word is not a clearer one."""
    said = []
    if each.noise is not None:
        usual = fmt.percent(each.noise * math.sqrt(2))
        said.append(f"One run of this case usually differs from the next by {usual} (standard deviation).")
    for name, change in (("the run before", each.against_previous), ("the best before", each.against_best)):
        if change.change is Change.AMBIGUOUS and change.reason:
            said.append(f"Ambiguous against {name}: {fmt.line(change.reason)}.")
    return said


def day(device: Device, run: int | None) -> str:
    """The day of a run, with its time where another run has the same day; "" for none."""
    if run is None:
        return ""
    moment = fmt.moment(device.runs[run].run.started_utc).removesuffix(" UTC")
    date, _, time = moment.partition(", ")
    neighbours = [device.runs[i].run.started_utc for i in (run - 1, run + 1) if 0 <= i < len(device.runs)]
    alone = not any(fmt.moment(other).startswith(f"{date},") for other in neighbours)
    return (date if alone or not time else moment).replace(" ", fmt.NBSP)
