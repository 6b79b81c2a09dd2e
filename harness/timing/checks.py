"""Timers of the selfcheck alone: each differs from a timer of the bench in one thing, to see whether it matters."""

from __future__ import annotations

from collections.abc import Sequence

from harness.model import Cache, Launch, Role
from harness.timing import CHECK_TRIALS, Crew, Purpose, Timer, Timing
from harness.timing.event import measure_single, reading_flush, writing_flush
from harness.timing.graph import measure_graph, measure_replays

OTHER_STREAM_LAUNCHES = 32
"""On an H200 about seven are enough."""


def measure_double(launches: Sequence[Launch], cache: Cache, device: str, max_time_s: float) -> Timing:
    """As `graph`, with twice the launches a sample."""
    return measure_replays(launches, cache, device, max_time_s, times=2)


def measure_event_read(launches: Sequence[Launch], cache: Cache, device: str, max_time_s: float) -> Timing:
    """As `event`, with the cache filled by reading before each launch, which evicts the kernel's code too."""
    return measure_single(launches, cache, device, max_time_s, flush=reading_flush(device))


def measure_event_memset(launches: Sequence[Launch], cache: Cache, device: str, max_time_s: float) -> Timing:
    """As `event-read`, but by writing zeros."""
    return measure_single(launches, cache, device, max_time_s, flush=writing_flush(device))


def measure_event_pair(launches: Sequence[Launch], cache: Cache, device: str, max_time_s: float) -> Timing:
    """As `event`, with two launches between the events: what a stream adds between one kernel and the next."""

    def twice(launch: Launch) -> Launch:
        def pair() -> None:
            launch()
            launch()

        return pair

    return measure_single([twice(launch) for launch in launches], cache, device, max_time_s, flush=None)


def measure_two_streams(launches: Sequence[Launch], cache: Cache, device: str, max_time_s: float) -> Timing:
    """As `graph`, in a process that has used a second stream."""
    import torch

    with torch.cuda.device(device), torch.cuda.stream(torch.cuda.Stream()):
        for _ in range(OTHER_STREAM_LAUNCHES):
            torch.zeros(1, device=device)
        torch.cuda.synchronize()
    return measure_graph(launches, cache, device, max_time_s)


COLD = (Cache.COLD,)

TIMERS = (
    Timer(
        name="graph-unwatched",
        summary="as graph, while nobody reads the device through NVML",
        clock="device",
        devices=("cuda",),
        measure=measure_graph,
        caches=COLD,
        purpose=Purpose.CHECK,
        most_trials=CHECK_TRIALS,
        watched=False,
    ),
    Timer(
        name="graph-double",
        summary="as graph, with twice the launches a sample",
        clock="device",
        devices=("cuda",),
        measure=measure_double,
        caches=COLD,
        purpose=Purpose.CHECK,
        most_trials=CHECK_TRIALS,
    ),
    Timer(
        name="event-pair",
        summary="as event, with two launches between the events",
        clock="device",
        devices=("cuda",),
        measure=measure_event_pair,
        caches=COLD,
        roles=(Role.FLOOR,),
        purpose=Purpose.CHECK,
        most_trials=CHECK_TRIALS,
    ),
    Timer(
        name="event-read",
        summary="as event, the cache filled by reading before each launch",
        clock="device",
        devices=("cuda",),
        measure=measure_event_read,
        caches=COLD,
        purpose=Purpose.CHECK,
        most_trials=CHECK_TRIALS,
    ),
    Timer(
        name="event-memset",
        summary="as event-read, the cache filled by writing zeros",
        clock="device",
        devices=("cuda",),
        measure=measure_event_memset,
        caches=COLD,
        purpose=Purpose.CHECK,
        most_trials=CHECK_TRIALS,
    ),
    Timer(
        name="graph-alone",
        summary="as graph, in the first trial's worker after the others have ended",
        clock="device",
        devices=("cuda",),
        measure=measure_graph,
        caches=COLD,
        purpose=Purpose.CHECK,
        most_trials=1,
        crew=Crew.LAST_ONE,
    ),
    Timer(
        name="graph-two-streams",
        summary="as graph, in a process that has used a second stream",
        clock="device",
        devices=("cuda",),
        measure=measure_two_streams,
        caches=COLD,
        purpose=Purpose.CHECK,
        most_trials=CHECK_TRIALS,
        crew=Crew.FRESH,
    ),
)
