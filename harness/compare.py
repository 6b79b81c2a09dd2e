"""Two runs held against each other: what differs in the environment, and what became of each case.

A pure function of two records. The ratio is time in the new run over time in the base run: 1.03 is 3 % slower. The
test is `comparison.moderated`, the words are design.md's.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from harness.comparison.attribution import attribution, differences, obstacles
from harness.comparison.moderated import Judgement, Pair, judge
from harness.comparison.notes import (
    device_notes,
    drift_notes,
    kernel_notes,
    state_notes,
    trial_notes,
    variant_notes,
)
from harness.comparison.records import COMPARED, CaseChange, Change, Comparison, EnvironmentDifference
from harness.comparison.rows import Row, rows
from harness.comparison.sides import Side
from harness.errors import CommandError, Exit
from harness.model import Run
from harness.stats import Interval

THRESHOLD = 0.01
"""A smaller change is nobody's concern, as a fraction."""

SIGNIFICANCE = 0.01
"""Chance of any wrong `slower` or `faster` in a table, so that two runs of the same code have a `slower` in at most 1
table of 200."""


def compare(
    base: Run, new: Run, *, threshold: float = THRESHOLD, thresholds: Mapping[str, float] | None = None
) -> Comparison:
    """What changed from `base` to `new`.

    A case is `slower` or `faster` if its ratio is significant at `SIGNIFICANCE` after Holm's correction and its
    estimate lies beyond 1 ± threshold; `same` if its whole interval lies within; else `ambiguous`.

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
    judged = dict(zip(open_rows, judge([_pair(table[place]) for place in open_rows]), strict=True))
    noted = {kernel: kernel_notes(kernel, base, new) for kernel in {row.case.kernel for row in table}}
    return Comparison(
        base_id=base.id,
        new_id=new.id,
        threshold=default,
        environment=found,
        attribution=attribution(found),
        not_comparable=forbidden,
        cases=tuple(
            _change(row, judged.get(place), own.get(row.case.kernel, default), noted[row.case.kernel])
            for place, row in enumerate(table)
        ),
    )


def word(ratio: Interval, p: float | None, threshold: float) -> Change:
    """The word on a case that was compared.

    Args:
        ratio: new over base, in time.
        p: after correction; None: one trial a side.
        threshold: as a fraction.
    """
    if ratio.low is None or ratio.high is None or p is None:
        return Change.AMBIGUOUS
    if p <= SIGNIFICANCE and ratio.estimate > 1 + threshold:
        return Change.SLOWER
    if p <= SIGNIFICANCE and ratio.estimate < 1 - threshold:
        return Change.FASTER
    within = 1 - threshold <= ratio.low and ratio.high <= 1 + threshold
    return Change.SAME if within else Change.AMBIGUOUS


def _checked(threshold: float, name: str) -> float:
    if not (math.isfinite(threshold) and 0 <= threshold < 1):
        raise CommandError(f"{name}: found {threshold}, wanted a fraction from 0 to below 1", Exit.USAGE)
    return threshold


def _pair(row: Row) -> Pair:
    base, new = row.base_side or _no_side(row), row.new_side or _no_side(row)
    family = f"{row.case.timer}-{row.case.cache}"
    return Pair(base=base.logs, new=new.logs, family=family, tick=max(base.tick, new.tick))


def _no_side(row: Row) -> Side:
    raise ValueError(f"{row.case.id}: compared, but not in both runs")


def _change(row: Row, judged: Judgement | None, threshold: float, kernel: list[str]) -> CaseChange:
    ratio, p = (judged.ratio, judged.p) if judged else (None, None)
    said, reason = row.change, row.reason
    if said is None and ratio is not None:
        said = word(ratio, p, threshold)
        reason = _doubt(ratio, p, threshold) if said is Change.AMBIGUOUS else None
    base, new = row.base_side, row.new_side
    device = device_notes(row.base, row.new) if row.base and row.new and ratio else []
    return CaseChange(
        case=row.case,
        change=said or Change.NOT_COMPARABLE,
        threshold=threshold,
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


def _doubt(ratio: Interval, p: float | None, threshold: float) -> str:
    """Why a case is ambiguous."""
    if ratio.low is None or ratio.high is None or p is None:
        return "one trial a side gives no interval"
    if p <= SIGNIFICANCE:
        return "changed, but perhaps by less than the threshold"
    if ratio.low > 1 + threshold or ratio.high < 1 - threshold:
        return "beyond the threshold, but not significant over the whole table"
    if ratio.low > 1 or ratio.high < 1:
        return "perhaps changed, by about the threshold"
    return "the interval reaches beyond the threshold"


def _notes(row: Row, ratio: Interval | None, threshold: float, kernel: list[str]) -> list[str]:
    """Of cases that both runs have; of states and drift where they were compared."""
    if row.base is None or row.new is None:
        return []
    made = [*kernel, *variant_notes(row.base, row.new)]
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
