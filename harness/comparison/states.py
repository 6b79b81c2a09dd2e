"""Two states between trials: levels that a case takes by luck, such as where its operands lie."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

GAP = 3.0
"""The gap between two states is more than this many times the wider of the two."""

MOST_TICKS = 2.0
"""Levels that are no further apart are the clock's."""

FEWEST_IN_STATE = 2
"""Of a run's own trials, for it to be in that state; one alone is an outlier, wherever the other run's trials lie."""


@dataclass(frozen=True, kw_only=True)
class States:
    """Two levels, both of which one run took."""

    step: float
    """How far they are apart, as a difference of logarithms."""
    in_base: bool
    """The base run took both."""
    in_new: bool
    """The new run took both."""


def find_states(base: Sequence[float], new: Sequence[float], tick: float = 0.0) -> States | None:
    """The states of a case, from ln(median) by trial; None where neither run has two, which takes four trials of it.

    Both runs together tell where the levels lie, each run's own trials whether it took both: levels that are the two
    runs themselves may be a change and are none. Neither are neighbouring ticks of a clock.

    Args:
        base: of the base run.
        new: of the new run.
        tick: the timer's resolution over the time, as a fraction.
    """
    logs = sorted([*base, *new])
    gaps = [later - earlier for earlier, later in pairwise(logs)]
    widest = max(gaps, default=0.0)
    if widest <= MOST_TICKS * tick:
        return None
    cut = gaps.index(widest) + 1
    low, high = logs[:cut], logs[cut:]
    if widest <= GAP * max(low[-1] - low[0], high[-1] - high[0]):
        return None
    in_base, in_new = (_took_both(side, low[-1]) for side in (base, new))
    if not in_base and not in_new:
        return None
    return States(step=statistics.fmean(high) - statistics.fmean(low), in_base=in_base, in_new=in_new)


def _took_both(logs: Sequence[float], highest_low: float) -> bool:
    """Whether enough of a run's trials lie in the lower level, which ends at `highest_low`, and enough above it."""
    lower = sum(log <= highest_low for log in logs)
    return min(lower, len(logs) - lower) >= FEWEST_IN_STATE
