"""CUDA graph of many launches: device time with no host in it, the headline.

A graph of L launches that rotate over S operand sets is replayed between two events, all queued behind a delay on the
device that is longer than the enqueueing, so that nothing of the host's time comes in. A sample is the replay's time
over L; the events' own cost is spread over L launches.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING

from harness.errors import first_line
from harness.model import Launch
from harness.timing import NotMeasurable, Timer, Timing, collector_off, draw_samples

if TYPE_CHECKING:
    import torch

REPLAY_NS = 2_000_000
"""A replay lasts at least this long: the events' own 2 to 3 µs are then about 0.1 % of it."""

FIRST_LAUNCHES = 20
"""At least, in the graph that the length of the final one is estimated from."""

WARM_UP_NS = 10_000_000
"""Replays before the first sample: clocks rise from idle within about 2 ms."""

FIRST_DELAY_CYCLES = 200_000
"""About 0.1 ms; doubled until it hides the enqueueing."""

MOST_DELAY_CYCLES = FIRST_DELAY_CYCLES << 11
"""About 0.2 s."""

KERNEL_NODE = 0
"""CU_GRAPH_NODE_TYPE_KERNEL of cuda.h."""


def measure_graph(launches: Sequence[Launch], device: str, max_time_s: float) -> Timing:
    """A sample: one replay of the graph over its launches."""
    import torch

    with torch.cuda.device(device), collector_off():
        per_launch = kernel_nodes(_capture(launches[:1], 1))
        if per_launch == 0:
            raise NotMeasurable("a captured launch holds no kernel: it ran on another stream or does nothing")
        once = math.ceil(FIRST_LAUNCHES / len(launches))
        replay = Replay(launches, once, per_launch)
        estimate_ns = replay.warm_up(0)
        rounds = math.ceil(REPLAY_NS / (estimate_ns * len(launches)))
        if rounds > once:
            replay = Replay(launches, rounds, per_launch)
        replay.warm_up(WARM_UP_NS)
        samples, stopped = draw_samples(replay.sample, max_time_s)
    return Timing(
        samples_ns=samples,
        launches_per_sample=replay.launches,
        kernels_per_launch=per_launch,
        stopped=stopped,
        rerun=replay.run,
    )


class Replay:
    """A graph of `rounds` rounds over `launches`, ready to be timed."""

    def __init__(self, launches: Sequence[Launch], rounds: int, kernels_per_launch: int) -> None:
        import torch

        self.launches = rounds * len(launches)
        self._graph = _capture(launches, rounds)
        found, wanted = kernel_nodes(self._graph), self.launches * kernels_per_launch
        if found != wanted:
            raise NotMeasurable(f"the graph of {self.launches} launches holds {found} kernels, wanted {wanted}")
        self._graph.instantiate()
        self._delay_cycles = FIRST_DELAY_CYCLES
        self._start = torch.cuda.Event(enable_timing=True)
        self._end = torch.cuda.Event(enable_timing=True)

    def run(self) -> None:
        """One replay, waited for."""
        import torch

        self._graph.replay()
        torch.cuda.synchronize()

    def sample(self) -> float | None:
        """Time of one replay in ns per launch; None if the host was too slow to hide and so would be in the figure."""
        import torch

        torch.cuda._sleep(self._delay_cycles)  # noqa: SLF001 - the only device-side delay that torch ships
        self._start.record()
        self._graph.replay()
        self._end.record()
        hidden = not self._start.query()
        self._end.synchronize()
        if hidden:
            return float(self._start.elapsed_time(self._end)) * 1e6 / self.launches
        self._delay_cycles *= 2
        if self._delay_cycles > MOST_DELAY_CYCLES:
            raise NotMeasurable("no delay on the device was long enough to hide the enqueueing of the graph")
        return None

    def warm_up(self, least_ns: float) -> float:
        """Replay at least three times and for `least_ns`; the last sample, ns per launch."""
        spent_ns, replays, last_ns = 0.0, 0, 0.0
        while spent_ns < least_ns or replays < 3:
            sample = self.sample()
            if sample is not None:
                last_ns = sample
                spent_ns += sample * self.launches
                replays += 1
        return last_ns


def stray_launch(launch: Launch) -> str | None:
    """How a launch escapes the caller's current stream, or None: a captured launch must hold a kernel."""
    import torch

    try:
        kernels = kernel_nodes(_capture([launch], 1))
    except RuntimeError as error:
        torch.cuda.synchronize()
        return f"cannot be captured on the current stream: {first_line(error)}"
    return None if kernels else "launches no kernel on the current stream"


def _capture(launches: Sequence[Launch], rounds: int) -> torch.cuda.CUDAGraph:
    """A graph of `rounds` rounds over `launches`, not yet instantiated."""
    import torch

    stream = _capture_stream(torch.cuda.current_device())
    stream.wait_stream(torch.cuda.current_stream())
    graph = torch.cuda.CUDAGraph(keep_graph=True)
    with torch.cuda.stream(stream):
        launches[0]()  # what a first call sets up must not be captured
        stream.synchronize()
        graph.capture_begin()
        try:
            for _ in range(rounds):
                for launch in launches:
                    launch()
        except BaseException:
            with suppress(RuntimeError):  # an invalidated capture cannot be ended without this complaint
                graph.capture_end()
            raise
        graph.capture_end()
    return graph


@cache
def _capture_stream(device_index: int) -> torch.cuda.Stream:
    """One stream a device for all captures: cuBLAS keeps a workspace for every stream it has seen."""
    import torch

    return torch.cuda.Stream(device_index)


def kernel_nodes(graph: torch.cuda.CUDAGraph) -> int:
    """Kernel nodes of a captured graph, asked of the driver (cuGraphGetNodes)."""
    driver = ctypes.CDLL("libcuda.so.1")
    handle = ctypes.c_void_p(graph.raw_cuda_graph())
    count = ctypes.c_size_t()
    _driver_call(driver, "cuGraphGetNodes", handle, None, ctypes.byref(count))
    nodes = (ctypes.c_void_p * count.value)()
    if count.value:
        _driver_call(driver, "cuGraphGetNodes", handle, nodes, ctypes.byref(count))
    kind = ctypes.c_int()
    kernels = 0
    for node in nodes:
        _driver_call(driver, "cuGraphNodeGetType", ctypes.c_void_p(node), ctypes.byref(kind))
        kernels += kind.value == KERNEL_NODE
    return kernels


def _driver_call(driver: ctypes.CDLL, name: str, *arguments: object) -> None:
    status = getattr(driver, name)(*arguments)
    if status != 0:
        raise RuntimeError(f"{name}: CUDA driver error {status}")


TIMERS = (
    Timer(
        name="graph",
        summary="one replay of a CUDA graph of many launches between two events, over the launches",
        clock="device",
        devices=("cuda",),
        measure=measure_graph,
    ),
)
