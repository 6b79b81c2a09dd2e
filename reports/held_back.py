"""What held the clocks back while a case was timed: in words, by sample, and in ns by the driver's counters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from harness.model import DeviceState, TrialResult
from harness.throttling import SM_CLOCK, throttled
from reports import format as fmt
from reports.figures import Row

HARMLESS_REASONS = {"gpu_idle"}
"""Clock-event reasons that hold nothing back while a kernel runs."""

REASONS_IN_WORDS = {
    "applications_clocks_setting": "the clocks set for applications",
    "sw_power_cap": "the power limit (software power cap)",
    "hw_slowdown": "the hardware's own slowdown",
    "sync_boost": "the clock of another GPU in its group",
    "thermal": "the temperature limit",
    "sw_thermal_slowdown": "the temperature limit (software)",
    "hw_thermal_slowdown": "the temperature limit (hardware)",
    "hw_power_brake_slowdown": "the power supply's brake signal",
    "display_clock_setting": "the display's clock setting",
    "board_limit": "the board's limit",
    "reliability": "the voltage's reliability limit",
}
"""What holds the clocks back, in plain words, by NVML's name."""


def reason_in_words(name: str) -> str:
    """NVML's name of a clock-event reason in plain words, or as it is."""
    return REASONS_IN_WORDS.get(name, fmt.name(name))


@dataclass(frozen=True, kw_only=True)
class MarkedCase:
    """A case's samples with what held the clocks back during each."""

    row: Row
    why: tuple[tuple[str, ...], ...]
    """For each sample the limits' names; `SM_CLOCK` alone where the clock was low and no counted limit says why."""
    clocks_mhz: tuple[float | None, ...]
    """For each sample."""

    @property
    def always(self) -> bool:
        """Not a single sample is free of marks."""
        return bool(self.why) and all(self.why)

    @property
    def reasons(self) -> tuple[str, ...]:
        """All that marks a sample, each once."""
        return tuple(sorted({name for names in self.why for name in names}))

    def held(self, reason: str) -> int:
        """How many samples `reason` marks."""
        return sum(reason in names for names in self.why)

    def clocks(self, reasons: Iterable[str]) -> str:
        """SM clocks of the samples that one of `reasons` marks, with their unit; "" where they were not read."""
        wanted = set(reasons)
        pairs = zip(self.why, self.clocks_mhz, strict=True)
        known = [mhz for names, mhz in pairs if mhz is not None and wanted.intersection(names)]
        return f"SM clock {value_range(known)}{fmt.NBSP}MHz" if known else ""


def marked_case(row: Row, reference_mhz: float | None) -> MarkedCase:
    """The samples of a case with their marks.

    Args:
        row: with or without figures.
        reference_mhz: from `harness.throttling.reference_clock_mhz` over the run.
    """
    why: list[tuple[str, ...]] = []
    clocks: list[float | None] = []
    for trial in row.measurement.trials:
        for mark in throttled(trial, reference_mhz):
            names = tuple(mark.split(", ")) if mark else ()
            why.append(tuple(name for name in names if name != SM_CLOCK) or names)
        clocks += trial.sample_clocks_mhz or (None,) * len(trial.samples_ns)
    return MarkedCase(row=row, why=tuple(why), clocks_mhz=tuple(clocks))


def counted_limits(trial: TrialResult) -> frozenset[str]:
    """Limits that counters tell of in this trial: their moments say nothing more. None where no sample has a time."""
    return frozenset(_held_in(trial)) if any(trial.sample_times_unix_s) else frozenset()


def held_ns(rows: Iterable[Row]) -> dict[str, int]:
    """By limit that was counted: ns that it held the clocks back between the readings of a trial, over all trials."""
    total: dict[str, int] = {}
    for row in rows:
        for trial in row.measurement.trials:
            for name, ns in _held_in(trial).items():
                total[name] = total.get(name, 0) + ns
    return total


def watched_s(rows: Iterable[Row]) -> float:
    """Seconds that `held_ns` is about: between the first and the last reading of counters of each trial."""
    trials = (trial for row in rows for trial in row.measurement.trials)
    times = ([s.time_unix_s for s in trial.states if s.limited_ns] for trial in trials)
    return sum(max(each) - min(each) for each in times if each)


def growth_times_unix_s(rows: Iterable[Row]) -> frozenset[float]:
    """Times of the readings by which a counter had grown since the reading before it, of the same trial."""
    trials = (trial for row in rows for trial in row.measurement.trials)
    steps = (step for trial in trials for step in _steps(trial.states))
    return frozenset(time_unix_s for _, time_unix_s, ns in steps if ns > 0)


def value_range(values: Sequence[float]) -> str:
    """The lowest and the highest in whole numbers: `1905–1980`; one figure where they are the same."""
    low, high = f"{min(values):.0f}", f"{max(values):.0f}"
    return low if low == high else f"{low}–{high}"


def _held_in(trial: TrialResult) -> dict[str, int]:
    total: dict[str, int] = {}
    for name, _, ns in _steps(trial.states):
        total[name] = total.get(name, 0) + ns
    return total


def _steps(states: Iterable[DeviceState]) -> Iterator[tuple[str, float, int]]:
    """(limit, time of the reading, ns by which its counter grew) for each two readings that follow each other.

    A counter that went back was reset with its driver: 0.
    """
    counted = sorted((s for s in states if s.limited_ns), key=lambda s: s.time_unix_s)
    for before, after in pairwise(counted):
        first, then = before.limited_ns or {}, after.limited_ns or {}
        for name in sorted(first.keys() & then.keys()):
            yield name, after.time_unix_s, max(0, then[name] - first[name])
