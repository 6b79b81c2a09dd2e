"""What one run has of a case: usable figures, or why there are none."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

from harness.model import Measurement, Word
from harness.stats import Interval, log_t_interval, trial_medians_ns

SHORTEST_NS, LONGEST_NS = 1e-6, 1e18
"""Times outside are damage, not measurements; inside, no interval of their logarithms leaves the floats."""

FAILED = frozenset({Word.WRONG, Word.CRASHED})
"""Verdicts that fail a case."""

MANY_SAMPLES = 20
"""Fewer do not show a timer's tick."""


@dataclass(frozen=True, kw_only=True)
class Side:
    """A case in one run."""

    word: Word
    """The gate's."""
    fault: str | None = None
    """Why there are no figures, in a few words; None: there are."""
    logs: tuple[float, ...] = ()
    """ln(median in ns) by trial; empty with a fault."""
    tick: float = 0.0
    """The smallest step between samples over their median where they show one, as a fraction; else 0."""

    @property
    def centre_ns(self) -> Interval | None:
        """Geometric mean of the trials' medians with its interval; None with a fault."""
        return log_t_interval(self.logs) if self.logs else None


def side(measurement: Measurement) -> Side:
    """The figures of a case, checked: a record may come from anywhere."""
    if not measurement.trials:
        return Side(word=Word.NOT_MEASURED, fault="no trials")
    verdict = measurement.verdict
    if verdict.word is not Word.PASSED:
        return Side(word=verdict.word, fault=f"{verdict.word}: {verdict.reason or 'no reason kept'}")
    samples = measurement.samples_ns
    if not samples:
        return Side(word=verdict.word, fault="passed, but without samples")
    unfit = next((ns for ns in samples if not SHORTEST_NS <= ns <= LONGEST_NS), None)  # NaN is not in any range
    if unfit is not None:
        return Side(word=verdict.word, fault=f"a sample of {unfit:g} ns: wanted {SHORTEST_NS:g} to {LONGEST_NS:g} ns")
    logs = tuple(math.log(ns) for ns in trial_medians_ns(measurement).values())
    return Side(word=verdict.word, logs=logs, tick=_tick(samples))


def _tick(samples_ns: tuple[float, ...]) -> float:
    """The smallest step between distinct samples, if most samples repeat another: a clock that counts in ticks."""
    distinct = sorted(set(samples_ns))
    if len(samples_ns) < MANY_SAMPLES or not 1 < len(distinct) <= len(samples_ns) / 2:
        return 0.0
    step = min(later - earlier for earlier, later in pairwise(distinct))
    return step / distinct[len(distinct) // 2]
