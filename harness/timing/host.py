"""Host clock around launches: what most published kernel times are.

`async` reads a rate of launches. On a short kernel it is the host's cost of a launch, not the device's time.
`sync` reads a latency: a call and the wait for its end, as a program sees it that needs the result at once.
`sync-50` is `sync` by the protocol of published batch figures: 50 calls on the same operands, and their median.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Sequence

from harness.model import Cache, Launch
from harness.timing import (
    LEAST_SINGLES,
    NotMeasurable,
    Purpose,
    Sample,
    Timer,
    Timing,
    collector_off,
    draw_samples,
    run_each,
    waiter,
)

WARM_UP_CALLS = 10
CALLS = 200
"""Back-to-back calls a sample, after the warm-up: the protocol of the reference figures."""

SAMPLES_WANTED = 10
"""Calls a sample shrink until this many samples fit the budget."""

SYNC_50_CALLS = 50
"""Of `sync-50`: no more and no fewer, after the warm-up."""

MOST_SYNC_50_S = 60.0
"""Longer than this for all of its calls, and they are not begun: the worker would be taken for hung."""

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


def measure_sync_50(
    launches: Sequence[Launch],
    cache: Cache,  # noqa: ARG001 - one set over and over is hot
    device: str,
    max_time_s: float,  # noqa: ARG001 - the protocol says how many calls
) -> Timing:
    """A sample: one call and the wait for its end, host clock; 50 of them, all on the first operand set."""
    wait = waiter(device)

    def call() -> Sample:
        began_unix_s, started = time.time(), time.perf_counter_ns()
        launches[0]()
        wait()
        return Sample(ns=time.perf_counter_ns() - started, time_unix_s=began_unix_s)

    wait()
    with collector_off():
        first_s = call().ns / 1e9
        if (calls := WARM_UP_CALLS + SYNC_50_CALLS) * first_s > MOST_SYNC_50_S:
            raise NotMeasurable(f"{calls} calls of {first_s:.1f} s each take more than {MOST_SYNC_50_S:g} s")
        for _ in range(WARM_UP_CALLS - 1):
            call()
        samples = tuple(call() for _ in range(SYNC_50_CALLS))
    return _timing(samples, "count", 1, launches, device)


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
    Timer(
        name="sync-50",
        summary=f"as sync, {SYNC_50_CALLS} calls on one operand set after {WARM_UP_CALLS}; their median is the figure",
        clock="host",
        devices=("cuda", "cpu"),
        measure=measure_sync_50,
        caches=(Cache.HOT,),
        purpose=Purpose.SUITE,
        one_set=True,
    ),
)
