"""Timers of the selfcheck alone: each differs from a timer of the bench in one thing, to see whether it matters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness.model import Cache, Launch, Role
from harness.timing import CHECK_TRIALS, Crew, Measure, Purpose, Timer, Timing
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


def _check(name: str, summary: str, measure: Measure, **differently: Any) -> Timer:
    """A timer of the selfcheck: of the device's time, cold, in a few trials of every worker unless said otherwise."""
    usual: dict[str, Any] = {
        "clock": "device",
        "devices": ("cuda",),
        "caches": (Cache.COLD,),
        "purpose": Purpose.CHECK,
        "most_trials": CHECK_TRIALS,
    }
    return Timer(name=name, summary=summary, measure=measure, **(usual | differently))


TIMERS = (
    _check("graph-unwatched", "as graph, while nobody reads the device through NVML", measure_graph, watched=False),
    _check("graph-double", "as graph, with twice the launches a sample", measure_double),
    _check("event-pair", "as event, with two launches between the events", measure_event_pair, roles=(Role.FLOOR,)),
    _check("event-read", "as event, the cache filled by reading before each launch", measure_event_read),
    _check("event-memset", "as event-read, the cache filled by writing zeros", measure_event_memset),
    _check(
        "graph-alone",
        "as graph, in the first trial's worker after the others have ended",
        measure_graph,
        crew=Crew.LAST_ONE,
        most_trials=1,
    ),
    _check(
        "graph-two-streams",
        "as graph, in a process that has used a second stream",
        measure_two_streams,
        crew=Crew.FRESH,
    ),
)
