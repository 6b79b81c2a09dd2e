"""What measuring gave: verdicts, samples, readings of the device, checks."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from harness.model.case import Case, Problem
from harness.model.record import Record


class Word(StrEnum):
    """The gate's word on a kernel's output."""

    PASSED = "passed"
    """Every output was right, before and after timing. Only then are there samples."""
    WRONG = "wrong"
    """An output was not, or the kernel touched what it must not."""
    CRASHED = "crashed"
    """The kernel raised an error, ended its process or did not come back."""
    UNSUPPORTED = "unsupported"
    """The problem, the device or the cache state is outside what the kernel or the timer is made for."""
    NOT_MEASURED = "not measured"
    """It could have been measured, and was not: the reason says what stood in the way."""


@dataclass(frozen=True, kw_only=True)
class Verdict(Record):
    """The gate's word, with the reason for anything but `passed`."""

    word: Word
    """What came of it."""
    reason: str | None = None
    """Why, in one line; None only for `passed`."""
    max_error: float | None = None
    """Largest |y − ref| over its row's bound on random operands (1 is the bound); None where it was not computed."""


@dataclass(frozen=True, kw_only=True)
class DeviceState(Record):
    """One reading of the device while a case was measured."""

    time_unix_s: float
    """When it was read, in seconds since 1970."""
    sm_clock_mhz: int | None = None
    """SM clock."""
    memory_clock_mhz: int | None = None
    """Memory clock."""
    temperature_c: int | None = None
    """GPU core temperature."""
    power_mw: int | None = None
    """Board power; instantaneous where the device offers it."""
    power_is_instant: bool | None = None
    """True: instantaneous; False: NVML's average over about a second."""
    clock_event_reasons: tuple[str, ...] | None = None
    """What holds the clocks back at this moment, e.g. `sw_power_cap`; empty: nothing; None: not known."""
    limited_ns: dict[str, int] | None = None
    """By limit, e.g. `sw_power_cap`: ns that it has held the clocks back since the driver was loaded. Only differences
    of two readings mean anything. A limit that the device does not count is absent; None: it counts none."""
    unknown: dict[str, str] = field(default_factory=dict)
    """Why a field above is None."""


@dataclass(frozen=True, kw_only=True)
class DeviceKernel(Record):
    """A kernel that the device ran for one launch, as its profiler saw it or as a captured graph holds it."""

    name: str
    """Demangled, with its template arguments."""
    grid: tuple[int, int, int]
    """Blocks."""
    block: tuple[int, int, int]
    """Threads."""
    registers: int | None
    """A thread; None where the profiler does not say."""
    shared_bytes: int | None
    """A block, static and dynamic; None where the profiler does not say."""
    duration_ns: float | None
    """Median over the launches profiled, from its start to its end; None where only its name was asked for."""


@dataclass(frozen=True, kw_only=True)
class Energy(Record):
    """What the board took while a case was replayed for some seconds."""

    seconds: float
    """From the first reading to the last."""
    launches: int
    """Within that time."""
    millijoules: float
    """Of the whole board within that time, idle power included."""
    source: str
    """`counter`: NVML's energy counter; `power`: instant power, integrated over time."""
    idle_mw: float | None
    """Mean board power before, with the process there and nothing to do; None: not known."""

    @property
    def mj_per_launch(self) -> float:
        """Energy of one launch, in mJ."""
        return self.millijoules / self.launches

    @property
    def watts(self) -> float:
        """Mean board power."""
        return self.millijoules / 1000 / self.seconds


@dataclass(frozen=True, kw_only=True)
class Digest(Record):
    """What run.json says of a trial's samples, which are in samples.parquet: enough for a history of many runs."""

    count: int
    """Samples; at least one."""
    median_ns: float
    """Their median, ns per launch."""
    throttled: int
    """Of them, those during which a limit held the clocks back."""


@dataclass(frozen=True, kw_only=True)
class TrialResult(Record):
    """What one worker process measured of a case."""

    trial: int
    """0-based number of the worker process."""
    verdict: Verdict
    """The gate's word in this trial."""
    samples_ns: tuple[float, ...] = ()
    """Measured durations, ns per launch, in order; empty unless the verdict is `passed`."""
    sample_times_unix_s: tuple[float, ...] = ()
    """When each sample began, in seconds since 1970."""
    sample_clocks_mhz: tuple[float | None, ...] = ()
    """Mean SM clock during each sample, from the device's own counters; None where it was not read; empty: in none."""
    launches_per_sample: int | None = None
    """Launches that one sample averages over."""
    operand_sets: int | None = None
    """Distinct operand sets: rotated over from cold ones, timed one by one from hot ones."""
    kernels_per_launch: int | None = None
    """Device kernels that one launch starts; None where the timer cannot tell."""
    variant: str | None = None
    """Which of the kernel's variants is measured here: the fastest, or the one that it chose; None: it has none."""
    variant_reason: str | None = None
    """Why the kernel chose that one, by a rule of its own, in one line; None: it has no such rule."""
    stopped: str | None = None
    """Why sampling ended: `precise` (median known to the wanted error), `time` (budget spent) or `count` (enough)."""
    settled: bool | None = None
    """Whether times had become steady before the first sample; None where the timer does not look."""
    seconds: float | None = None
    """Wall-clock time that the timer took, warm-up included."""
    placements_ns: tuple[float, ...] = ()
    """Median ns per launch at each placement of the operands, where the timer times them one by one."""
    printed: str | None = None
    """Of a user's own kernel: the beginning of what was written to standard output and error meanwhile; None: nothing
    was, or it was not kept, as of the project's kernels."""
    device_kernels: tuple[DeviceKernel, ...] = ()
    """What one launch starts on the device, in order; with durations of the profiler only."""
    energy: Energy | None = None
    """What the board took meanwhile; of the energy timer only."""
    digest: Digest | None = None
    """In run.json, of the samples that are not in it; None beside samples, or where there are none."""
    unknown: dict[str, str] = field(default_factory=dict)
    """Why a field above is empty or holds None, by its name."""
    states: tuple[DeviceState, ...] = ()
    """Readings of the device while it was timed."""


@dataclass(frozen=True, kw_only=True)
class Measurement(Record):
    """A case and what every trial said of it."""

    case: Case
    """What was measured."""
    trials: tuple[TrialResult, ...]
    """In order of trial."""

    @property
    def verdict(self) -> Verdict:
        """The worst of the trials' verdicts: one wrong output is a wrong kernel."""
        order = [Word.PASSED, Word.NOT_MEASURED, Word.UNSUPPORTED, Word.CRASHED, Word.WRONG]
        return max((t.verdict for t in self.trials), key=lambda verdict: order.index(verdict.word))

    @property
    def sample_clocks_mhz(self) -> tuple[float, ...]:
        """SM clocks of all trials' samples, where they were read."""
        return tuple(mhz for trial in self.trials for mhz in trial.sample_clocks_mhz if mhz is not None)

    @property
    def samples_ns(self) -> tuple[float, ...]:
        """All trials' samples in order; empty unless every trial passed."""
        if self.verdict.word is not Word.PASSED:
            return ()
        return tuple(ns for t in self.trials for ns in t.samples_ns)


@dataclass(frozen=True, kw_only=True)
class Check(Record):
    """One line of the selfcheck: one kernel on one problem, timed in two ways that must agree."""

    name: str
    """Which check, as `harness.selfcheck.CHECKS` names it."""
    kernel: str
    """The kernel's name."""
    problem: Problem
    """What it computed."""
    found_ns: float | None = None
    """What the check looks at, ns per launch."""
    wanted_ns: float | None = None
    """What it is held against, ns per launch."""
    bound_ns: float | None = None
    """How far apart the two may be; for a difference that must be there, how large it must be at least."""
    passed: bool | None = None
    """None: it could not be judged."""
    reason: str | None = None
    """Why it could not be judged; None if it was."""
