"""CUDA graph of many launches: device time with no host in it, the headline.

A graph of L launches is replayed between two events, all queued behind a delay on the device that is longer than the
enqueueing, so that nothing of the host's time comes in. A sample is the replay's time over L; the events' own cost is
spread over L launches. Cold: the launches rotate over all operand sets. Hot: every set has a graph of its own, and a
sample is the mean over them, since where the operands lie alone moves a time by percents.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from harness.capture import capture, kernel_nodes
from harness.device.sm_clock import NO_CLOCK, NoClock, SmClock, open_clock
from harness.launched import launched
from harness.model import Cache, Launch
from harness.timing import (
    MAX_SAMPLES,
    NotMeasurable,
    Sample,
    Timer,
    Timing,
    collector_off,
    draw_samples,
    settle,
    with_clocks,
)
from harness.timing.delay import Delay

REPLAY_NS = 2_000_000
"""A replay lasts at least this long: the events' own 2 to 3 µs are then about 0.1 % of it."""

ESTIMATES = 4
ENOUGH = 1.25
"""Times that the length is estimated, and what it may lack before that is done again. The first estimate is from one
round: of one short launch it is too high by the events' own time, and a launch of milliseconds needs no more."""

SETTLING_REPLAYS = 3
"""Of the last so many, the median must be near that of as many before; six of them also are long enough for clocks to
rise from idle, which takes about 2 ms."""

SETTLED_WITHIN = 0.003
"""How near."""


def measure_graph(launches: Sequence[Launch], cache: Cache, device: str, max_time_s: float) -> Timing:
    """A sample: one replay of the graph over its launches."""
    return measure_replays(launches, cache, device, max_time_s, times=1)


def measure_replays(launches: Sequence[Launch], cache: Cache, device: str, max_time_s: float, *, times: int) -> Timing:
    """As `measure_graph`, with so many times the launches a sample."""
    import torch

    with torch.cuda.device(device), collector_off():
        replay = replay_lasting(launches, cache, REPLAY_NS, times)
        settled = replay.settle()
        samples, unknown, stopped = replay.draw(max_time_s)
        device_kernels, unnamed = launched(capture(launches[:1], 1))
    return Timing(
        samples=samples,
        launches_per_sample=replay.launches,
        kernels_per_launch=replay.kernels_per_launch,
        stopped=stopped,
        rerun=replay.run,
        settled=settled,
        placements_ns=replay.placements_ns(),
        device_kernels=device_kernels,
        unknown=unknown | unnamed,
    )


def replay_lasting(launches: Sequence[Launch], cache: Cache, replay_ns: float, times: int = 1) -> Replay:
    """A replay over `launches` whose every graph takes at least `replay_ns`, or so many times the rounds of that."""
    groups = [[launch] for launch in launches] if cache is Cache.HOT else [list(launches)]
    per_launch = kernel_nodes(capture(launches[:1], 1))
    if per_launch == 0:
        raise NotMeasurable("a captured launch holds no kernel: it ran on another stream or does nothing")
    rounds = 1
    for _ in range(ESTIMATES):  # clocks may have been low when the first estimate was made
        estimate_ns = Replay(groups[:1], rounds, per_launch).estimate()
        wanted = max(rounds, math.ceil(replay_ns / (estimate_ns * len(groups[0]))))
        if wanted <= ENOUGH * rounds:
            break
        rounds = wanted
    return Replay(groups, rounds * times, per_launch)


class Replay:
    """Graphs of `rounds` rounds, one over each group of launches, ready to be timed one after the other."""

    def __init__(self, groups: Sequence[Sequence[Launch]], rounds: int, kernels_per_launch: int) -> None:
        import torch

        self.kernels_per_launch = kernels_per_launch
        self.launches = rounds * sum(len(group) for group in groups)
        self._primes = [group[0] if len(groups) > 1 else None for group in groups]
        self._graphs = [capture(group, rounds) for group in groups]
        for graph, group in zip(self._graphs, groups, strict=True):
            found, wanted = kernel_nodes(graph), rounds * len(group) * kernels_per_launch
            if found != wanted:
                raise NotMeasurable(f"the graph of {rounds * len(group)} launches holds {found} kernels, not {wanted}")
            graph.instantiate()
        self._delay = Delay("the graph", doublings=11)
        self._events = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in groups]
        self._times_ns: list[list[float]] = []
        self._clock: SmClock | NoClock = NO_CLOCK

    def run(self) -> None:
        """One replay, waited for."""
        import torch

        self.queue()
        torch.cuda.synchronize()

    def queue(self) -> None:
        """One replay, which nobody waits for."""
        for graph in self._graphs:
            graph.replay()

    def sample(self) -> Sample | None:
        """Time of one replay in ns per launch; None if the host was too slow to hide and so would be in the figure."""
        import torch

        self._delay.queue()
        self._clock.begin(len(self._times_ns))
        for prime, graph, (start, end) in zip(self._primes, self._graphs, self._events, strict=True):
            if prime is not None:
                prime()  # the graphs before this one may have put its operands out of the cache
            start.record()
            graph.replay()
            end.record()
        hidden = not self._events[0][0].query()
        self._clock.end(len(self._times_ns))
        torch.cuda.current_stream().synchronize()
        if hidden:
            self._times_ns.append([float(start.elapsed_time(end)) * 1e6 for start, end in self._events])
            return Sample(ns=sum(self._times_ns[-1]) / self.launches)
        self._delay.double()
        return None

    def estimate(self) -> float:
        """Time of the last of three replays, ns per launch."""
        taken: list[Sample] = []
        while len(taken) < 3:
            if (sample := self.sample()) is not None:
                taken.append(sample)
        return taken[-1].ns

    def settle(self) -> bool | None:
        """Replay until times are steady; whether they are, if that can be told. Those times are forgotten."""
        settled = settle(self.sample, window=SETTLING_REPLAYS, within=SETTLED_WITHIN)
        self._times_ns.clear()
        return settled

    def draw(self, max_time_s: float) -> tuple[tuple[Sample, ...], dict[str, str], str]:
        """Samples with the SM clock during each, what is not known of them, and why no more were drawn."""
        self._clock = open_clock(MAX_SAMPLES)
        samples, stopped = draw_samples(self.sample, max_time_s)
        return (*with_clocks(samples, self._clock), stopped)

    def placements_ns(self) -> tuple[float, ...]:
        """Median time at each placement, ns per launch; empty if all are in one graph."""
        if len(self._graphs) == 1:
            return ()
        each = self.launches / len(self._graphs)
        return tuple(statistics.median(times) / each for times in zip(*self._times_ns, strict=True))


TIMERS = (
    Timer(
        name="graph",
        summary="one replay of a CUDA graph of many launches between two events, over the launches",
        clock="device",
        devices=("cuda",),
        measure=measure_graph,
    ),
)
