"""Two runs held against each other: what differs in the environment, and what became of each case.

A pure function of two records. The ratio is time in the new run over time in the base run: 1.03 is 3 % slower. The
test is `comparison.moderated`, the words are design.md's.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from harness.comparison.attribution import attribution, differences, obstacles
from harness.comparison.boards import Apart, apart, are_two_boards
from harness.comparison.moderated import Judgement, Pair, Table
from harness.comparison.notes import (
    device_kernel_notes,
    device_notes,
    drift_notes,
    kernel_notes,
    state_notes,
    trial_notes,
    variant_notes,
)
from harness.comparison.records import COMPARED, CaseChange, Change, Comparison, EnvironmentDifference
from harness.comparison.rows import Row, rows
from harness.errors import CommandError, Exit
from harness.model import Cache, Case, Run
from harness.stats import Interval
from harness.timing import HEADLINE

THRESHOLD = 0.01
"""A smaller change is nobody's concern, as a fraction."""

SIGNIFICANCE = 0.01
"""Chance of any wrong `slower` or `faster` in a table, so that two runs of the same code have a `slower` in at most 1
table of 200. Half of it is for the headline's cold cases."""


def compare(
    base: Run, new: Run, *, threshold: float = THRESHOLD, thresholds: Mapping[str, float] | None = None
) -> Comparison:
    """What changed from `base` to `new`.

    A case is `slower` if its ratio is significant at `SIGNIFICANCE` after Holm's correction and its estimate is above
    1 + threshold; `faster` if the inverse is; `same` if the whole interval lies between; else `ambiguous`.

    Args:
        base: with its samples, as `store.load` gives it.
        new: with its samples.
        threshold: as a fraction, in [0, 1).
        thresholds: other ones, by the kernel's name.

    Raises:
        CommandError: a threshold outside [0, 1) (USAGE).
    """
    own = {name: _checked(value, f"threshold of {name}") for name, value in (thresholds or {}).items()}
    default = _checked(threshold, "threshold")
    found, forbidden = differences(base, new), obstacles(base, new)
    table = rows(base, new, forbidden)
    open_rows = [place for place, row in enumerate(table) if row.change is None]
    two_boards = are_two_boards(base, new)
    allowed = [apart(row.case, two_boards=two_boards) for row in table]
    tests = Table([pair_of(table[place], allowed[place].spread) for place in open_rows])
    judged = dict(zip(open_rows, tests.judgements(), strict=True))
    noted = {kernel: kernel_notes(kernel, base, new) for kernel in {row.case.kernel for row in table}}
    return Comparison(
        base_id=base.id,
        new_id=new.id,
        base_partial=base.partial,
        new_partial=new.partial,
        threshold=default,
        two_boards=two_boards,
        environment=found,
        attribution=attribution(found, base, new),
        not_comparable=forbidden,
        cases=tuple(
            _change(row, judged.get(place), own.get(row.case.kernel, default), allowed[place], noted[row.case.kernel])
            for place, row in enumerate(table)
        ),
    )


def word(ratio: Interval, p: float | None, threshold: float, least: float = 0.0) -> Change:
    """The word on a case that was compared.

    Args:
        ratio: new over base, in time.
        p: after correction; None: nothing says how sure it is.
        threshold: as a fraction.
        least: no smaller change is `slower` or `faster`, as a fraction; it does not widen `same`.
    """
    beyond = 1 + max(threshold, least)
    if ratio.low is None or ratio.high is None or p is None:
        return Change.AMBIGUOUS
    if p <= SIGNIFICANCE and ratio.estimate > beyond:
        return Change.SLOWER
    if p <= SIGNIFICANCE and ratio.estimate < 1 / beyond:
        return Change.FASTER
    within = 1 / (1 + threshold) <= ratio.low and ratio.high <= 1 + threshold
    return Change.SAME if within else Change.AMBIGUOUS


def _checked(threshold: float, name: str) -> float:
    if not (math.isfinite(threshold) and 0 <= threshold < 1):
        raise CommandError(f"{name}: found {threshold}, wanted a fraction from 0 to below 1", Exit.USAGE)
    return threshold


def pair_of(row: Row, between: float) -> Pair:
    """What is tested of a row that both runs have figures of."""
    base, new = row.base_side, row.new_side
    if base is None or new is None:
        raise ValueError(f"{row.case.id}: compared, but not in both runs")
    return pair(row.case, base.logs, new.logs, max(base.tick, new.tick), between)


def pair(case: Case, base: tuple[float, ...], new: tuple[float, ...], tick: float, between: float) -> Pair:
    """What is tested of a case, from ln(median in ns) by trial, and of what the runs differ by without a change."""
    headline = case.timer == HEADLINE and case.cache is Cache.COLD
    family = f"{case.timer}-{case.cache}"
    return Pair(base=base, new=new, family=family, tick=tick, headline=headline, between=between)


def _change(row: Row, judged: Judgement | None, threshold: float, allowed: Apart, kernel: list[str]) -> CaseChange:
    least = allowed.least
    ratio, p = (judged.ratio, judged.p) if judged else (None, None)
    said, reason = row.change, row.reason
    if said is None and ratio is not None:
        said = word(ratio, p, threshold, least)
        reason = _doubt(row, ratio, p, threshold, least) if said is Change.AMBIGUOUS else None
    base, new = row.base_side, row.new_side
    device = device_notes(row.base, row.new) if row.base and row.new and ratio else []
    return CaseChange(
        case=row.case,
        change=said or Change.NOT_COMPARABLE,
        threshold=threshold,
        least=max(threshold, least),
        reason=reason,
        base_ns=base.centre_ns if base else None,
        new_ns=new.centre_ns if new else None,
        base_trials=len(base.logs) if base else 0,
        new_trials=len(new.logs) if new else 0,
        ratio=ratio,
        p=p,
        marks=tuple(note.partition(":")[0] for note in device),
        notes=(*device, *_notes(row, ratio, threshold, kernel)),
    )


def _doubt(row: Row, ratio: Interval, p: float | None, threshold: float, least: float) -> str:
    """Why a case is ambiguous."""
    if ratio.low is None or ratio.high is None or p is None:
        few = any(side is not None and len(side.logs) == 1 for side in (row.base_side, row.new_side))
        return "one trial on a side gives no interval" if few else "trials that do not scatter at all give no interval"
    if p <= SIGNIFICANCE and not 1 / (1 + threshold) <= ratio.estimate <= 1 + threshold:
        return f"changed by less than two boards of one model may differ, {100 * least:g} %"
    if p <= SIGNIFICANCE:
        return "changed, but perhaps by less than the threshold"
    if ratio.low > 1 + threshold or ratio.high < 1 / (1 + threshold):
        return "beyond the threshold, but not significant over the whole table"
    if ratio.low > 1 or ratio.high < 1:
        return "perhaps changed, by about the threshold"
    return "the interval reaches beyond the threshold"


def _notes(row: Row, ratio: Interval | None, threshold: float, kernel: list[str]) -> list[str]:
    """Of cases that both runs have; of states and drift where they were compared."""
    if row.base is None or row.new is None:
        return []
    made = [*kernel, *variant_notes(row.base, row.new), *device_kernel_notes(row.base, row.new)]
    if row.base_side and row.new_side and ratio:
        made += state_notes(row.base_side, row.new_side, threshold)
        made += drift_notes(row.base, row.new, ratio, threshold)
        made += trial_notes(row.base_side, row.new_side)
    return made


__all__ = [
    "COMPARED",
    "SIGNIFICANCE",
    "THRESHOLD",
    "CaseChange",
    "Change",
    "Comparison",
    "EnvironmentDifference",
    "compare",
    "word",
]
