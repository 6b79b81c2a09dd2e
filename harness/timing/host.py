"""Host clock around launches: what most published kernel times are.

`async` reads a rate of launches. On a short kernel it is the host's cost of a launch, not the device's time.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Sequence

from harness.model import Launch
from harness.timing import Timer, Timing, collector_off, draw_samples

WARM_UP_CALLS = 10
CALLS = 200
"""Back-to-back calls a sample, after the warm-up: the protocol of the reference figures."""

SAMPLES_WANTED = 10
"""Calls a sample shrink until this many samples fit the budget."""


def measure_async(launches: Sequence[Launch], device: str, max_time_s: float) -> Timing:
    """A sample: `CALLS` calls in a row, one synchronization at each end, host clock, over the calls."""
    wait = waiter(device)
    rotation = itertools.cycle(launches)

    def calls_ns(calls: int) -> float:
        wait()
        started = time.perf_counter_ns()
        for launch in itertools.islice(rotation, calls):
            launch()
        wait()
        return (time.perf_counter_ns() - started) / calls

    def rerun() -> None:
        for launch in launches:
            launch()
        wait()

    with collector_off():
        estimate_ns = calls_ns(1)
        warm_up = WARM_UP_CALLS if estimate_ns * WARM_UP_CALLS < max_time_s * 1e9 else 1
        estimate_ns = calls_ns(warm_up)
        calls = max(1, min(CALLS, int(max_time_s * 1e9 / SAMPLES_WANTED / estimate_ns)))
        samples, stopped = draw_samples(lambda: calls_ns(calls), max_time_s)
    return Timing(samples_ns=samples, launches_per_sample=calls, kernels_per_launch=None, stopped=stopped, rerun=rerun)


def waiter(device: str) -> Callable[[], None]:
    """What waits for all work on `device`; on a CPU there is nothing to wait for."""
    if not device.startswith("cuda"):
        return lambda: None
    import torch

    return torch.cuda.synchronize


TIMERS = (
    Timer(
        name="async",
        summary=f"host clock over up to {CALLS} back-to-back calls, one synchronization at each end",
        clock="host",
        devices=("cuda", "cpu"),
        measure=measure_async,
    ),
)
