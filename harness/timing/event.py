"""One launch between two CUDA events: what a single call costs the device.

The events, and the launch between them, are queued behind a delay on the device that hides the enqueueing. The events
cost about 2 µs of their own, which the empty kernel shows. Cold: each launch takes the next operand set, and the sets
exceed the cache together; so their data is cold and the kernel's code is not, as in a program that runs. Hot: a launch
on the same set comes just before.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from harness.device import last_level_cache_bytes
from harness.device.sm_clock import NO_CLOCK, NoClock, SmClock, open_clock
from harness.model import Cache, Launch
from harness.problems import COLD_FACTOR
from harness.timing import (
    LEAST_SINGLES,
    MAX_SAMPLES,
    Sample,
    Timer,
    Timing,
    collector_off,
    draw_samples,
    run_each,
    settle,
    with_clocks,
)
from harness.timing.delay import Delay

if TYPE_CHECKING:
    from torch import Tensor

SETTLING_SAMPLES = 20
SETTLED_WITHIN = 0.03
"""Of the medians of two neighbouring windows of so many samples."""

Flush = Callable[[], None]
"""Queues something that fills the cache."""


def measure_event(launches: Sequence[Launch], cache: Cache, device: str, max_time_s: float) -> Timing:
    """A sample: one launch between two events."""
    return measure_single(launches, cache, device, max_time_s, flush=None)


def measure_single(
    launches: Sequence[Launch], cache: Cache, device: str, max_time_s: float, *, flush: Flush | None
) -> Timing:
    """As `measure_event`, with `flush` queued before each launch."""
    import torch

    with torch.cuda.device(device), collector_off():
        read_all = reading_flush(device)
        single = Single(launches, cache, flush)
        read_all()  # what filled the operands left them in the cache, in lines still to be written back
        settled = settle(single.sample, window=SETTLING_SAMPLES, within=SETTLED_WITHIN)
        single.clock = open_clock(MAX_SAMPLES)
        drawn, stopped = draw_samples(single.sample, max_time_s, least=LEAST_SINGLES)
        samples, unknown = with_clocks(drawn, single.clock)
    return Timing(
        samples=samples,
        launches_per_sample=1,
        kernels_per_launch=None,
        stopped=stopped,
        rerun=run_each(launches, device),
        settled=settled,
        unknown=unknown,
    )


class Single:
    """Times one launch at a time, set after set."""

    def __init__(self, launches: Sequence[Launch], cache: Cache, flush: Flush | None) -> None:
        import torch

        self._rotation = itertools.cycle(launches)
        self._hot, self._flush = cache is Cache.HOT, flush
        self._delay = Delay("one launch", doublings=8)
        self._start, self._end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        self._counted = 0
        self.clock: SmClock | NoClock = NO_CLOCK

    def sample(self) -> Sample | None:
        """Time of the next launch in ns; None if the host was too slow to hide and so would be in the figure."""
        import torch

        launch = next(self._rotation)
        if self._hot:
            launch()
        place = self._counted if self.clock is not NO_CLOCK else 0
        self.clock.begin(place)  # the delay is in it: a launch of 3 µs is too short for the device's clock
        self._delay.queue()
        if self._flush is not None:
            self._flush()
        self._start.record()
        launch()
        self._end.record()
        hidden = not self._start.query()
        self.clock.end(place)
        torch.cuda.current_stream().synchronize()
        if hidden:
            self._counted += self.clock is not NO_CLOCK
            return Sample(ns=float(self._start.elapsed_time(self._end)) * 1e6)
        self._delay.double()
        return None


def reading_flush(device: str) -> Flush:
    """Fills the cache by reading: no line is left that must be written back."""
    import torch

    buffer = _larger_than_cache(device)
    out = torch.empty((), device=device)

    def flush() -> None:
        torch.sum(buffer, dim=0, out=out)

    return flush


def writing_flush(device: str) -> Flush:
    """Fills the cache by writing zeros, as NVBench and Triton's do_bench do: the timed kernel pays for writing back."""
    buffer = _larger_than_cache(device)

    def flush() -> None:
        buffer.zero_()

    return flush


def _larger_than_cache(device: str) -> Tensor:
    import torch

    return torch.zeros(COLD_FACTOR * last_level_cache_bytes(device) // 4, device=device)


TIMERS = (
    Timer(
        name="event",
        summary="one launch between two CUDA events, queued behind a delay that hides the enqueueing",
        clock="device",
        devices=("cuda",),
        measure=measure_event,
    ),
)
