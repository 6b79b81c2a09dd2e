"""The device's own timestamps of every kernel, through CUPTI (torch.profiler): evidence, and a cross-check.

One replay of a graph is profiled, so that the kernels follow each other as in the headline. A sample is the span of one
launch, from the start of its first kernel to the end of its last. Profiling makes every kernel and every call of its
process slower for good, so this timer has workers of its own, after all others.
"""

from __future__ import annotations

import json
import statistics
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.model import Cache, DeviceKernel, Launch
from harness.timing import CHECK_TRIALS, MAX_SAMPLES, Crew, NotMeasurable, Sample, Timer, Timing, collector_off
from harness.timing.graph import replay_lasting

ON_DEVICE = {"kernel", "gpu_memset", "gpu_memcpy"}
"""Categories of the trace's events that took time on the device."""

PROFILED_NS = 300_000
"""A replay lasts at least this long: 100 launches of a 3 µs kernel."""

Event = Mapping[str, Any]


def measure_profiler(
    launches: Sequence[Launch],
    cache: Cache,
    device: str,
    max_time_s: float,  # noqa: ARG001 - one replay, however long
) -> Timing:
    """A sample: the span of one launch by the device's timestamps."""
    import torch

    with torch.cuda.device(device), collector_off():
        replay = replay_lasting(launches, cache, PROFILED_NS)
        replay.run()
        events = device_events(_trace(replay.run))
        by_launch = split_launches(events, replay.launches)
    return Timing(
        samples=tuple(Sample(ns=span_ns(each)) for each in thinned(by_launch, MAX_SAMPLES)),
        launches_per_sample=1,
        kernels_per_launch=replay.kernels_per_launch,
        stopped="count",
        rerun=replay.run,
        device_kernels=device_kernels(by_launch),
        unknown={
            "sample_times_unix_s": "the trace has a clock of its own",
            "sample_clocks_mhz": "its own counters would be among the kernels",
        },
    )


def _trace(run: Launch) -> Mapping[str, Any]:
    """What torch's profiler writes of `run`, in the form of Chrome's traces."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA]) as profiler:
        run()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        profiler.export_chrome_trace(str(path))
        trace: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return trace


def device_events(trace: Mapping[str, Any]) -> list[Event]:
    """The trace's events on the device, in order of their start."""
    return sorted((e for e in trace["traceEvents"] if e.get("cat") in ON_DEVICE), key=lambda event: float(event["ts"]))


def split_launches(events: Sequence[Event], launches: int) -> list[Sequence[Event]]:
    """The events of each launch.

    Raises:
        NotMeasurable: there are none (CUPTI is kept from tracing), or not as many for each launch.
    """
    if not events:
        raise NotMeasurable("the profiler saw no kernel: CUPTI cannot trace here (another profiler, or no permission)")
    each, left = divmod(len(events), launches)
    if left:
        raise NotMeasurable(f"the profiler saw {len(events)} kernels of {launches} launches: not as many for each")
    return [events[start : start + each] for start in range(0, len(events), each)]


def span_ns(events: Sequence[Event]) -> float:
    """From the start of the first to the end of the last, in ns; the trace is in µs."""
    start = float(events[0]["ts"])
    return max(float(e["ts"]) - start + float(e["dur"]) for e in events) * 1e3


def device_kernels(by_launch: Sequence[Sequence[Event]]) -> tuple[DeviceKernel, ...]:
    """What a launch starts, by its place in the launch; the name is that of the first launch."""
    return tuple(_device_kernel(same_place) for same_place in zip(*by_launch, strict=True))


def _device_kernel(events: Sequence[Event]) -> DeviceKernel:
    first = events[0]
    known = first.get("args", {})
    grid, block = (tuple(int(n) for n in known.get(key, (1, 1, 1))) for key in ("grid", "block"))
    return DeviceKernel(
        name=str(first["name"]),
        grid=(grid[0], grid[1], grid[2]),
        block=(block[0], block[1], block[2]),
        registers=known.get("registers per thread"),
        shared_bytes=known.get("shared memory"),
        duration_ns=statistics.median(float(event["dur"]) for event in events) * 1e3,
    )


def thinned(by_launch: Sequence[Sequence[Event]], most: int) -> Sequence[Sequence[Event]]:
    """At most `most` of the launches, evenly spread."""
    return by_launch[:: -(-len(by_launch) // most)]


TIMERS = (
    Timer(
        name="profiler",
        summary="span of one launch by the device's timestamps (CUPTI), in a profiled replay of a graph",
        clock="device",
        devices=("cuda",),
        measure=measure_profiler,
        crew=Crew.FRESH,
        most_trials=CHECK_TRIALS,
    ),
)
