"""Ways to time a launch: one module each, found by looking into this folder.

A timer module holds `TIMERS`, a tuple of `Timer`. To add a timer, add a module.
"""

from __future__ import annotations

import gc
import importlib
import math
import pkgutil
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import StrEnum

from harness.device.sm_clock import NoClock, SmClock
from harness.model import Cache, DeviceKernel, Energy, Launch, Role

HEADLINE = "graph"
"""The timer whose figures stand first, where the device has it."""

MIN_SAMPLES = 10
"""Fewest samples, even when the time budget is spent."""

FEWEST_DRAWS = 5
"""Before it is said that none counts: the first may not, and one of a long kernel can take all of a short budget."""

MAX_SAMPLES = 200
"""Most samples a case and trial."""

LEAST_SINGLES = 100
"""Fewest samples of a timer that times one launch: each is one draw of luck, and a clock's ticks make equal ones."""

CHECK_TRIALS = 3
"""Enough for a timer that another is held against."""

WANTED_ERROR = 0.0005
"""Half-width of the median's 95 % interval, as a fraction, at which sampling stops."""

MOST_SETTLING_S = 0.3
"""Times that have not settled by then are taken as they come, and said to be unsettled."""


class NotMeasurable(Exception):  # noqa: N818 - it is a reason, not an error of the harness
    """A timer refuses a case; the message is the reason."""


class Purpose(StrEnum):
    """What a timer is for."""

    BENCH = "bench"
    """Its figures are on the page; offered by --timer."""
    CHECK = "selfcheck"
    """Times as another does but for one thing, to see whether that matters."""
    SUITE = "suite"
    """Only where a suite or --timer names it."""
    PEER = "peers"
    """Another project's way, to be set beside ours."""


class Crew(StrEnum):
    """Which workers a timer is run in. A bench goes through them in this order."""

    EVERY = "every trial's"
    """One a trial, side by side."""
    LAST_ONE = "the first trial's, the others ended"
    """Nothing else of ours has a context on the device."""
    FRESH = "its own"
    """Started when all others have ended, since the timer leaves its process slower than it was."""


@dataclass(frozen=True, kw_only=True)
class Sample:
    """One measured duration."""

    ns: float
    """Per launch."""
    sm_clock_mhz: float | None = None
    """Mean SM clock while it was taken, by the device's own counters; None: not read."""
    time_unix_s: float | None = None
    """When it began; `draw_samples` writes it; None: not known."""


@dataclass(frozen=True, kw_only=True)
class Timing:
    """What a timer measured."""

    samples: tuple[Sample, ...]
    """In order; each finite and above 0."""
    launches_per_sample: int
    """Launches that a sample averages over."""
    kernels_per_launch: int | None
    """Device kernels a launch starts; None where the timer cannot tell."""
    stopped: str
    """`precise`, `time` or `count`, as `draw_samples` says."""
    rerun: Launch
    """Runs every launch that was timed at least once more and waits for the device."""
    settled: bool | None = None
    """Whether times had become steady before the first sample; None: the timer does not look."""
    placements_ns: tuple[float, ...] = ()
    """Median ns per launch by operand set, where the timer times the sets one by one."""
    device_kernels: tuple[DeviceKernel, ...] = ()
    """What one launch started on the device, where the timer can tell."""
    energy: Energy | None = None
    """What the board took meanwhile, where the timer reads it."""
    unknown: dict[str, str] = field(default_factory=dict)
    """Why something that could be known of the samples is not, by the field of `TrialResult`."""

    @property
    def samples_ns(self) -> tuple[float, ...]:
        """The durations alone."""
        return tuple(sample.ns for sample in self.samples)


Measure = Callable[[Sequence[Launch], Cache, str, float], Timing]
"""(launches, cache, device, max_time_s) → Timing.

`launches` has one entry per operand set, each to be used as often as any other. Cold: launches rotate over the sets,
which together exceed the cache. Hot: each launch follows one on the same set; several sets are several placements.
Raises NotMeasurable with the reason for a launch that it cannot time.
"""


@dataclass(frozen=True, kw_only=True)
class Timer:
    """A way to time a launch."""

    name: str
    """Stands in every table."""
    summary: str
    """What a sample is, in one line."""
    clock: str
    """"device" or "host": whose time it reads, and so what a spread between trials speaks of."""
    devices: tuple[str, ...]
    """Device types it works on."""
    measure: Measure
    """Takes the samples."""
    caches: tuple[Cache, ...] = (Cache.COLD, Cache.HOT)
    """States of the cache it is asked for."""
    roles: tuple[Role, ...] = tuple(Role)
    """Roles of the kernels that it is asked to time."""
    purpose: Purpose = Purpose.BENCH
    """What it is for."""
    crew: Crew = Crew.EVERY
    """Which workers it is run in."""
    watched: bool = True
    """Whether the device is read through NVML meanwhile."""
    most_trials: int | None = None
    """Trials that are enough for it; None: as many as are asked for."""
    one_set: bool = False
    """Whether it launches on one operand set over and over, which is as hot as it then is, however large."""
    one_case_a_process: bool = False
    """Whether its worker is of no use after one case."""
    module: str | None = None
    """What it imports that is not this project's own; None: nothing."""
    package: str | None = None
    """Of PyPI, that has the module."""

    def trials(self, wanted: int) -> int:
        """Trials that it is measured in, of those wanted."""
        return wanted if self.most_trials is None else min(wanted, self.most_trials)


def timers() -> dict[str, Timer]:
    """All timers by name, the headline first."""
    modules = [importlib.import_module(f"{__name__}.{info.name}") for info in pkgutil.iter_modules(__path__)]
    found = [timer for module in modules for timer in getattr(module, "TIMERS", ())]
    found.sort(key=_place)
    by_name = {timer.name: timer for timer in found}
    if len(by_name) < len(found):
        twice = sorted({timer.name for timer in found if found.count(timer) > 1 or by_name[timer.name] is not timer})
        raise ValueError(f"timers: used by two: {', '.join(twice)}; rename one")
    return by_name


def not_benched() -> frozenset[str]:
    """Names of the timers that no runs are compared by: checks, peers, a suite's; a name not here was of a bench."""
    return frozenset(name for name, timer in timers().items() if timer.purpose is not Purpose.BENCH)


def _place(timer: Timer) -> tuple[bool, int, int, str]:
    """The headline, then ours before others', in the order of measuring, the device's clock before the host's."""
    return timer.name != HEADLINE, list(Purpose).index(timer.purpose), list(Crew).index(timer.crew), timer.clock


def draw_samples(
    draw: Callable[[], Sample | None], max_time_s: float, *, least: int = MIN_SAMPLES
) -> tuple[tuple[Sample, ...], str]:
    """Call `draw` until the median is known to `WANTED_ERROR` or the time is spent.

    Args:
        draw: measures one sample; None if it must not count.
        max_time_s: wall-clock budget; `least` are drawn all the same, within ten budgets.
        least: fewest samples.

    Returns:
        The samples in order with their times, and why it stopped: `precise`, `time`, or `count` for `MAX_SAMPLES`.

    Raises:
        NotMeasurable: samples that are not finite and positive, or none that counts.
    """
    samples: list[Sample] = []
    drawn = 0
    started = time.perf_counter()
    while len(samples) < MAX_SAMPLES:
        began_unix_s = time.time()
        sample = draw()
        spent = time.perf_counter() - started
        if sample is not None:
            refuse_no_time(sample)
            samples.append(replace(sample, time_unix_s=began_unix_s))
        if spent > max_time_s and len(samples) >= least:
            return tuple(samples), "time"
        drawn += 1
        if spent > 10 * max_time_s and samples:
            return tuple(samples), "time"
        if spent > 10 * max_time_s and drawn >= FEWEST_DRAWS:
            raise NotMeasurable(f"no sample counted within {10 * max_time_s:g} s")
        if len(samples) >= least and len(samples) % 5 == 0 and _precise(samples):
            return tuple(samples), "precise"
    return tuple(samples), "count"


def refuse_no_time(sample: Sample) -> None:
    """Raise NotMeasurable unless the sample is finite and above 0: it would come up as a logarithm much later."""
    if not (math.isfinite(sample.ns) and sample.ns > 0):
        raise NotMeasurable(f"a sample of {sample.ns} ns: wanted a finite time above 0")


def run_each(launches: Sequence[Launch], device: str) -> Launch:
    """Runs every launch once and waits for `device`: the `rerun` of a timer that calls them one by one."""

    def run() -> None:
        for launch in launches:
            launch()
        waiter(device)()

    return run


def waiter(device: str) -> Callable[[], None]:
    """What waits for all work on `device`; on a CPU there is nothing to wait for."""
    if not device.startswith("cuda"):
        return lambda: None
    import torch

    return torch.cuda.synchronize


def settle(draw: Callable[[], Sample | None], *, window: int, within: float) -> bool | None:
    """Draw until times are steady: the median of the last `window` samples is `within` that of the window before.

    Returns:
        Whether they became so in `MOST_SETTLING_S`, None if that is too short to tell; the samples are for nobody.
    """
    started = time.perf_counter()
    times_ns: list[float] = []
    compared = False
    while time.perf_counter() - started < MOST_SETTLING_S:
        if (sample := draw()) is not None:
            times_ns.append(sample.ns)
        last, before = times_ns[-window:], times_ns[-2 * window : -window]
        compared = len(before) == window
        if compared and abs(statistics.median(last) / statistics.median(before) - 1) <= within:
            return True
    return False if compared else None


def with_clocks(samples: Sequence[Sample], clock: SmClock | NoClock) -> tuple[tuple[Sample, ...], dict[str, str]]:
    """The samples with the SM clock during each, and why it is not known by the name of the field."""
    if isinstance(clock, NoClock):
        return tuple(samples), {"sample_clocks_mhz": clock.reason}
    clocks = clock.mhz(len(samples))
    return tuple(replace(sample, sm_clock_mhz=mhz) for sample, mhz in zip(samples, clocks, strict=True)), {}


def _precise(samples: Sequence[Sample]) -> bool:
    return median_error([sample.ns for sample in samples]) <= WANTED_ERROR


def median_error(samples: Sequence[float]) -> float:
    """Half-width of the median's distribution-free 95 % interval over the median, from order statistics."""
    ordered = sorted(samples)
    n = len(ordered)
    reach = 0.98 * math.sqrt(n)
    low = ordered[max(0, math.floor(n / 2 - reach))]
    high = ordered[min(n - 1, math.ceil(n / 2 + reach))]
    return (high - low) / 2 / ordered[n // 2]


@contextmanager
def collector_off() -> Iterator[None]:
    """No garbage collection inside: a pause of the interpreter would be read as time of the kernel."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
