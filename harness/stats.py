"""Summaries of a measurement over its trials. The trial is the unit: samples within one share its luck.

Intervals are Student's t on the logarithms of the trials' medians. Resampling needs more trials than a bench has.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from scipy.special import stdtrit

from harness.model import Measurement

CONFIDENCE = 0.95
"""Of every interval."""

CENTRE = "geometric mean of the medians"
"""What a case's figure is, for readers: «of the trials» follows, or how many. A median is a trial's alone."""


@dataclass(frozen=True, kw_only=True)
class Interval:
    """An estimate with its two-sided `CONFIDENCE` interval; the ends are None where one trial cannot give them."""

    estimate: float
    low: float | None
    high: float | None

    @property
    def half_width(self) -> float | None:
        """Half the interval over the estimate, as a fraction; None without an interval."""
        if self.low is None or self.high is None:
            return None
        return (self.high - self.low) / 2 / self.estimate


@dataclass(frozen=True, kw_only=True)
class Summary:
    """A passed measurement in a few figures."""

    median_ns: Interval
    """Geometric mean of the trials' medians, ns per launch."""
    trial_medians_ns: tuple[float, ...]
    """By trial."""
    spread: float
    """(max − min) / median of the trials' medians, as a fraction; 0 for one trial."""
    samples: int
    """All trials together."""


def log_t_interval(logs: Sequence[float]) -> Interval:
    """Exponential of the mean of `logs` with its t interval; needs at least one value."""
    centre = statistics.fmean(logs)
    if len(logs) < 2:
        return Interval(estimate=math.exp(centre), low=None, high=None)
    error = statistics.stdev(logs) / math.sqrt(len(logs))
    reach = float(stdtrit(len(logs) - 1, (1 + CONFIDENCE) / 2)) * error
    return Interval(estimate=math.exp(centre), low=math.exp(centre - reach), high=math.exp(centre + reach))


def trial_medians_ns(measurement: Measurement) -> dict[int, float]:
    """Median sample by trial number, in ns; empty unless every trial passed."""
    if not measurement.samples_ns:
        return {}
    return {t.trial: statistics.median(t.samples_ns) for t in measurement.trials if t.samples_ns}


def summarize(measurement: Measurement) -> Summary | None:
    """The figures of a measurement; None unless every trial passed and has samples."""
    medians = trial_medians_ns(measurement)
    if not medians:
        return None
    values = tuple(medians.values())
    return Summary(
        median_ns=log_t_interval([math.log(ns) for ns in values]),
        trial_medians_ns=values,
        spread=(max(values) - min(values)) / statistics.median(values),
        samples=len(measurement.samples_ns),
    )


def speedup(kernel: Measurement, baseline: Measurement) -> Interval | None:
    """How many times faster `kernel` is than `baseline`, paired by trial (2 means half the time).

    Both ran in the same worker of each trial as neighbours, so what a process adds cancels in the ratio.
    None unless both passed and share a trial.
    """
    own, other = trial_medians_ns(kernel), trial_medians_ns(baseline)
    logs = [math.log(other[trial] / own[trial]) for trial in own if trial in other]
    return log_t_interval(logs) if logs else None
