"""Ways to time a launch: one module each, found by looking into this folder.

A timer module holds `TIMERS`, a tuple of `Timer`. To add a timer, add a module.
"""

from __future__ import annotations

import gc
import importlib
import math
import pkgutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from harness.model import Launch

HEADLINE = "graph"
"""The timer whose figures stand first, where the device has it."""

MIN_SAMPLES = 10
"""Fewest samples, even when the time budget is spent."""

MAX_SAMPLES = 400
"""Most samples a case and trial."""

WANTED_ERROR = 0.0005
"""Half-width of the median's 95 % interval, as a fraction, at which sampling stops."""


class NotMeasurable(Exception):  # noqa: N818 - it is a reason, not an error of the harness
    """A timer refuses a case; the message is the reason."""


@dataclass(frozen=True, kw_only=True)
class Timing:
    """What a timer measured."""

    samples_ns: tuple[float, ...]
    """ns per launch, each finite and above 0."""
    launches_per_sample: int
    """Launches that a sample averages over."""
    kernels_per_launch: int | None
    """Device kernels a launch starts; None where the timer cannot tell."""
    stopped: str
    """`precise`, `time` or `count`, as `draw_samples` says."""
    rerun: Launch
    """Runs every launch that was timed at least once more and waits for the device."""


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
    measure: Callable[[Sequence[Launch], str, float], Timing]
    """(launches, device, max_time_s) → Timing. `launches` has one entry per operand set, each set to be used as
    often as any other. Raises NotMeasurable with the reason for a launch that it cannot time."""


def timers() -> dict[str, Timer]:
    """All timers by name, the headline first."""
    modules = [importlib.import_module(f"{__name__}.{info.name}") for info in pkgutil.iter_modules(__path__)]
    found = [timer for module in modules for timer in module.TIMERS]
    found.sort(key=lambda timer: timer.name != HEADLINE)
    by_name = {timer.name: timer for timer in found}
    if len(by_name) < len(found):
        raise ValueError(f"timers: a name is used twice in {[timer.name for timer in found]}")
    return by_name


def draw_samples(draw: Callable[[], float | None], max_time_s: float) -> tuple[tuple[float, ...], str]:
    """Call `draw` until the median is known to `WANTED_ERROR` or the time is spent.

    Args:
        draw: measures one sample in ns; None if the sample must not count.
        max_time_s: wall-clock budget; MIN_SAMPLES are drawn all the same, within ten budgets.

    Returns:
        The samples in order, and why it stopped: `precise`, `time`, or `count` for `MAX_SAMPLES`.

    Raises:
        NotMeasurable: samples that are not finite and positive, or none that counts.
    """
    samples: list[float] = []
    started = time.perf_counter()
    while len(samples) < MAX_SAMPLES:
        sample = draw()
        spent = time.perf_counter() - started
        if sample is not None:
            if not (math.isfinite(sample) and sample > 0):
                raise NotMeasurable(f"a sample of {sample} ns: wanted a finite time above 0")
            samples.append(sample)
        if spent > max_time_s and len(samples) >= MIN_SAMPLES:
            return tuple(samples), "time"
        if spent > 10 * max_time_s:
            if not samples:
                raise NotMeasurable(f"no sample counted within {10 * max_time_s:g} s")
            return tuple(samples), "time"
        if len(samples) >= MIN_SAMPLES and len(samples) % 5 == 0 and median_error(samples) <= WANTED_ERROR:
            return tuple(samples), "precise"
    return tuple(samples), "count"


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
