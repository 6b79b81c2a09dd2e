"""Energy: what the board takes while a graph of launches is replayed for seconds, and how long a launch then takes.

Replays are queued so far ahead that the device never waits for the host, and begin long before the window that counts,
so that power is steady in it. NVML's counter of energy moves in ticks: the window begins on one and ends on one. A
sensor that looks at a part of the time only, as some do, sees the same in every part of a load that repeats itself
each few ms (Yang, Adamek, Armour: «Part-time Power Measurements», arXiv:2312.02741).

It is the whole board's energy, whoever uses it: memory, idle power and other processes' work are in it. And clocks are
those of a board that has become warm, or has reached its power limit: a launch may take longer than by `graph`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from harness.answers import Unknown
from harness.device.sm_clock import open_clock
from harness.model import Cache, Energy, Launch, Role
from harness.timing import Crew, NotMeasurable, Purpose, Sample, Timer, Timing, collector_off, with_clocks
from harness.timing.graph import REPLAY_NS, Replay, replay_lasting
from harness.timing.meter import (
    LEAST_REPLAYS,
    WINDOW_S,
    Reading,
    Source,
    Window,
    board_of,
    energy_source,
    idle_of_process,
)

if TYPE_CHECKING:
    import torch

WARM_UP_S = 0.5
"""Of replays before the window: power and clocks have become steady by then."""

MOST_WINDOW_S = 10.0
"""A window that is not complete by then never will be."""

QUEUED_NS = 150_000_000
"""Work that is queued ahead: ten times what a reading of NVML takes."""

POLL_S = 0.002
"""Between two readings, which take up to 14 ms themselves: how late a tick may be seen."""


def measure_energy(
    launches: Sequence[Launch],
    cache: Cache,
    device: str,
    max_time_s: float,  # noqa: ARG001 - a window has a length of its own
) -> Timing:
    """The one sample: ns per launch over the window, by events in it; with the energy that the window took."""
    import torch

    idle = idle_of_process(device)  # before anything runs here
    source = energy_source(board_of(device))
    with torch.cuda.device(device), collector_off():
        replay = replay_lasting(launches, cache, REPLAY_NS)
        window, samples, unknown = metered_replays(replay, source)
    energy = Energy(
        seconds=window.seconds,
        launches=round(window.seconds * 1e9 / samples[0].ns),
        millijoules=window.millijoules,
        source=source.name,
        idle_mw=None if isinstance(idle, Unknown) else idle,
    )
    return Timing(
        samples=samples,
        launches_per_sample=energy.launches,
        kernels_per_launch=replay.kernels_per_launch,
        stopped="count",
        rerun=replay.run,
        energy=energy,
        unknown=unknown | ({"energy": f"idle power: {idle.reason}"} if isinstance(idle, Unknown) else {}),
    )


def metered_replays(replay: Replay, source: Source) -> tuple[Window, tuple[Sample, ...], dict[str, str]]:
    """The window, the one sample with its clock, and what is not known of it."""
    import torch

    clock = open_clock(1)  # what it allocates and loads may wait for the device, which must not run dry for it
    feed = Feed(replay.queue, replay.estimate() * replay.launches)
    feed.keep_up(WARM_UP_S)
    clock.begin(0)  # both readings of the clock are as far behind the window's ends as work is queued ahead
    window = metered(source, feed)
    clock.end(0)
    began_unix_s = time.time() - (time.perf_counter() - window.first.at_s)
    torch.cuda.synchronize()
    sample = Sample(ns=feed.replay_ns(window) / replay.launches, time_unix_s=began_unix_s)
    return window, *with_clocks([sample], clock)


class Feed:
    """Keeps replays queued ahead of the device."""

    def __init__(self, queue: Launch, replay_ns: float) -> None:
        """Queue nothing yet.

        Args:
            queue: queues one replay on the current stream and waits for nothing.
            replay_ns: about what it takes.
        """
        self._queue = queue
        self._ahead = max(2, math.ceil(QUEUED_NS / replay_ns))
        self._ends: list[torch.cuda.Event] = []
        self.done = 0
        self.ran_dry = False
        """Whether the device had finished everything before more came."""

    def __call__(self) -> None:
        """Count the replays that have ended, and queue as many anew."""
        import torch

        while self.done < len(self._ends) and self._ends[self.done].query():
            self.done += 1
        self.ran_dry = self.ran_dry or 0 < self.done == len(self._ends)
        while len(self._ends) - self.done < self._ahead:
            self._queue()
            self._ends.append(torch.cuda.Event(enable_timing=True))
            self._ends[-1].record()

    def keep_up(self, seconds: float) -> None:
        """Let replays run for so long; the device may run dry meanwhile."""
        until = time.perf_counter() + seconds
        while time.perf_counter() < until:
            self()
            time.sleep(POLL_S)
        self()
        self.ran_dry = False

    def replay_ns(self, window: Window) -> float:
        """Mean time of the replays that ended within the window, from the end of its first to the end of its last."""
        first, last = window.first.done, window.last.done - 1
        return float(self._ends[first].elapsed_time(self._ends[last])) * 1e6 / (last - first)


def metered(source: Source, feed: Feed) -> Window:
    """Read the source until its window is complete, replays running.

    Raises:
        NotMeasurable: that takes too long, a reading fails, or the device ran out of work.
    """
    readings: list[Reading] = []
    window = None
    started = time.perf_counter()
    while window is None:
        if time.perf_counter() - started > MOST_WINDOW_S:
            what = f"{source.name}: no window of {WINDOW_S:g} s and {LEAST_REPLAYS} replays"
            raise NotMeasurable(f"{what} was complete within {MOST_WINDOW_S:g} s")
        feed()
        before_s = time.perf_counter()
        value = source.read()
        if isinstance(value, Unknown):
            raise NotMeasurable(f"energy could not be read while replays ran: {value.reason}")
        readings.append(Reading(at_s=(before_s + time.perf_counter()) / 2, value=value, done=feed.done))
        window = source.window(readings)
        time.sleep(POLL_S)
    if feed.ran_dry:
        raise NotMeasurable("the device ran out of replays: the host queues them more slowly than it runs them")
    return window


TIMERS = (
    Timer(
        name="energy",
        summary=f"replays of a CUDA graph for at least {WINDOW_S:g} s, over the launches; with the energy they took",
        clock="device",
        devices=("cuda",),
        measure=measure_energy,
        caches=(Cache.COLD,),
        roles=(Role.GEMV,),
        purpose=Purpose.SUITE,
        crew=Crew.FRESH,
        most_trials=2,
    ),
)
