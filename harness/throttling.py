"""Which samples were taken while something held the clocks back, by the device's counters and clocks.

Marks are for whoever reads the figures: no sample is dropped for one, and every figure is over all samples.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from harness.model import DeviceState, Measurement, TrialResult

CLOCK_OFF = 0.03
"""A sample's SM clock that is further below the run's reference is marked, as a fraction of the reference."""

SM_CLOCK = "sm_clock"
"""The mark for such a clock; every other mark is the name of a limit in `DeviceState.limited_ns`."""


NO_LIMITS = {"reliability"}
"""Counters that grow at full boost too, where the voltage alone ends it: data, and no mark."""


SLACK_NS = 5_000_000
"""How much more a counter may grow than time passes between two readings: each takes milliseconds."""


@dataclass(frozen=True, kw_only=True)
class _Counter:
    """One limit's counter over a trial."""

    times_unix_s: Sequence[float]
    """When each reading began, ascending, in seconds since 1970."""
    held_ns: Sequence[int]
    """What it read: ns that the limit has held the clocks back since the driver was loaded."""

    def windows(self) -> list[tuple[float, float]]:
        """Between which readings it is known to have grown, in seconds since 1970.

        A counter moves in steps, of 100 ms on an H200, so what it grows by may have been before the reading that came
        before. The window goes back until the growth fits into it; where the readings do not go back so far, nothing
        is known. A counter that went back was reset with its driver and tells nothing either.
        """
        times, found = self.times_unix_s, []
        for after in range(1, len(times)):
            grown_ns, before = self.held_ns[after] - self.held_ns[after - 1], after - 1
            while before > 0 and (times[after] - times[before]) * 1e9 + SLACK_NS < grown_ns:
                before -= 1
            if 0 < grown_ns <= (times[after] - times[before]) * 1e9 + SLACK_NS:
                found.append((times[before], times[after]))
        return found


def reference_clock_mhz(measurements: Iterable[Measurement]) -> float | None:
    """The SM clock that a run could have, in MHz: the highest of its trials' median clocks; None if none was read."""
    trials = (trial for measurement in measurements for trial in measurement.trials)
    clocks = ([mhz for mhz in trial.sample_clocks_mhz if mhz is not None] for trial in trials)
    return max((statistics.median(known) for known in clocks if known), default=None)


def throttled(trial: TrialResult, reference_mhz: float | None) -> tuple[str | None, ...]:
    """For each sample why it is marked, e.g. `sw_power_cap, sm_clock`, or None.

    A limit is named if its counter is known to have grown between two readings that the sample lies in, whole or in
    part. Readings are coarser than samples, so a moment may mark its neighbours too; what no reading encloses is not
    marked.

    Args:
        trial: samples, when each began, their SM clocks and the readings of the device; only samples are needed.
        reference_mhz: from `reference_clock_mhz` over the run; None: clocks tell nothing.
    """
    clocks = trial.sample_clocks_mhz or (None,) * len(trial.samples_ns)
    limits = _limits(trial)
    return tuple(
        ", ".join([*names, *([SM_CLOCK] if _is_low(mhz, reference_mhz) else [])]) or None
        for names, mhz in zip(limits, clocks, strict=True)
    )


def throttled_share(measurement: Measurement, reference_mhz: float | None) -> tuple[int, int]:
    """Samples of all trials that are marked, and all samples.

    Args:
        measurement: of any verdict; trials without samples add nothing.
        reference_mhz: from `reference_clock_mhz` over the run.
    """
    marks = [mark for trial in measurement.trials for mark in throttled(trial, reference_mhz)]
    return sum(mark is not None for mark in marks), len(marks)


def _is_low(mhz: float | None, reference_mhz: float | None) -> bool:
    return mhz is not None and reference_mhz is not None and mhz < (1 - CLOCK_OFF) * reference_mhz


def _limits(trial: TrialResult) -> list[list[str]]:
    """The limits that held each sample back."""
    if not trial.sample_times_unix_s:
        return [[] for _ in trial.samples_ns]
    counters = _counters(trial.states)
    windows = {name: counter.windows() for name, counter in counters.items()}
    spans = zip(trial.sample_times_unix_s, _ends_unix_s(trial), strict=True)
    return [
        [
            name
            for name, counter in counters.items()
            if counter.times_unix_s[0] <= start
            and end <= counter.times_unix_s[-1]
            and any(first < end and start < last for first, last in windows[name])
        ]
        for start, end in spans
    ]


def _ends_unix_s(trial: TrialResult) -> tuple[float, ...]:
    """When each sample had ended, in seconds since 1970: when the next began; the last one after its own duration.

    More passes between two samples than the timed launches, so the last one's end is the earliest that it can be.
    """
    last_s = trial.samples_ns[-1] * (trial.launches_per_sample or 1) / 1e9
    return (*trial.sample_times_unix_s[1:], trial.sample_times_unix_s[-1] + last_s)


def _counters(states: Iterable[DeviceState]) -> dict[str, _Counter]:
    """Each limit's counter, from the readings that tell of it."""
    told: dict[str, list[tuple[float, int]]] = {}
    for state in sorted(states, key=lambda state: state.time_unix_s):
        for name, held_ns in (state.limited_ns or {}).items():
            if name in NO_LIMITS:
                continue
            told.setdefault(name, []).append((state.time_unix_s, held_ns))
    return {
        name: _Counter(times_unix_s=[time for time, _ in readings], held_ns=[ns for _, ns in readings])
        for name, readings in told.items()
    }
