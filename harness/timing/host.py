"""Host clock around launches: what most published kernel times are.

`async` reads a rate of launches. On a short kernel it is the host's cost of a launch, not the device's time.
`sync` reads a latency: a call and the wait for its end, as a program sees it that needs the result at once.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Sequence

from harness.model import Cache, Launch
from harness.timing import LEAST_SINGLES, Sample, Timer, Timing, collector_off, draw_samples, run_each, waiter

WARM_UP_CALLS = 10
CALLS = 200
"""Back-to-back calls a sample, after the warm-up: the protocol of the reference figures."""

SAMPLES_WANTED = 10
"""Calls a sample shrink until this many samples fit the budget."""

NOT_READ = {"sample_clocks_mhz": "a host timer queues nothing on the device but the launches"}


def measure_async(launches: Sequence[Launch], cache: Cache, device: str, max_time_s: float) -> Timing:
    """A sample: `CALLS` calls in a row, one synchronization at each end, host clock, over the calls."""
    calls_ns = _call_timer(launches, cache, device)
    with collector_off():
        estimate_ns = calls_ns(1)
        warm_up = WARM_UP_CALLS if estimate_ns * WARM_UP_CALLS < max_time_s * 1e9 else 1
        estimate_ns = calls_ns(warm_up)
        calls = max(1, min(CALLS, int(max_time_s * 1e9 / SAMPLES_WANTED / estimate_ns)))
        samples, stopped = draw_samples(lambda: Sample(ns=calls_ns(calls)), max_time_s)
    return _timing(samples, stopped, calls, launches, device)


def measure_sync(launches: Sequence[Launch], cache: Cache, device: str, max_time_s: float) -> Timing:
    """A sample: one call and the wait for its end, host clock."""
    calls_ns = _call_timer(launches, cache, device)
    with collector_off():
        if calls_ns(1) * WARM_UP_CALLS < max_time_s * 1e9:
            calls_ns(WARM_UP_CALLS)
        samples, stopped = draw_samples(lambda: Sample(ns=calls_ns(1)), max_time_s, least=LEAST_SINGLES)
    return _timing(samples, stopped, 1, launches, device)


def _call_timer(launches: Sequence[Launch], cache: Cache, device: str) -> Callable[[int], float]:
    """Times so many calls with one synchronization at each end, in ns a call.

    Cold: on through all sets. Hot: one set, which a call before the first has read; the next sample takes the next.
    """
    wait = waiter(device)
    rotation = itertools.cycle(launches)

    def calls_ns(calls: int) -> float:
        batch: Iterator[Launch] = rotation
        if cache is Cache.HOT:
            batch = itertools.repeat(next(rotation))
            next(batch)()
        wait()
        started = time.perf_counter_ns()
        for launch in itertools.islice(batch, calls):
            launch()
        wait()
        return (time.perf_counter_ns() - started) / calls

    return calls_ns


def _timing(samples: tuple[Sample, ...], stopped: str, calls: int, launches: Sequence[Launch], device: str) -> Timing:
    return Timing(
        samples=samples,
        launches_per_sample=calls,
        kernels_per_launch=None,
        stopped=stopped,
        rerun=run_each(launches, device),
        unknown=NOT_READ,
    )


TIMERS = (
    Timer(
        name="async",
        summary=f"host clock over up to {CALLS} back-to-back calls, one synchronization at each end",
        clock="host",
        devices=("cuda", "cpu"),
        measure=measure_async,
    ),
    Timer(
        name="sync",
        summary="host clock over one call and the wait for its end",
        clock="host",
        devices=("cuda", "cpu"),
        measure=measure_sync,
    ),
)
