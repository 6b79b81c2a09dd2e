"""A registry whose workers, and the test that plants them, have more timers for the CPU: of each crew, and of each way.

`plant` puts them among the timers of a process; `load` does so in every worker.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass

from harness.model import Cache, Kernel, Launch, Operands, Role
from harness.timing import Crew, Measure, Sample, Timer, Timing, host
from tests import planted_kernels

NAP_S = 0.2
"""What a sample of `naps` takes: several readings of the device."""


@dataclass(frozen=True)
class Way:
    """A launch that a timer can tell from another."""

    name: str
    operands: Operands

    def __call__(self) -> None:
        """A right kernel."""
        planted_kernels.right(self.operands)


def kernels() -> dict[str, Kernel]:
    """The planted ones, and one with two ways to compute."""
    ways = tuple(_way(name) for name in ("one", "other"))
    both = Kernel(name="two_ways", role=Role.GEMV, summary="", bind=ways[0].bind, devices=("cpu",), variants=ways)
    return {**planted_kernels.kernels(), both.name: both}


prepare = planted_kernels.prepare


def load(_device_type: str) -> None:
    """In a worker: its own copy of the timers gets more."""
    host.TIMERS = planted()


def planted() -> tuple[Timer, ...]:
    """In place of `host.TIMERS`."""
    return (*host.TIMERS, *TIMERS)


def _way(name: str) -> Kernel:
    return Kernel(name=name, role=Role.GEMV, summary="", bind=lambda operands: Way(name, operands), devices=("cpu",))


def _timing(samples: Sequence[Sample], launches: Sequence[Launch]) -> Timing:
    def run_all() -> None:
        for launch in launches:
            launch()

    return Timing(
        samples=tuple(samples), launches_per_sample=1, kernels_per_launch=None, stopped="count", rerun=run_all
    )


def measure_pid(launches: Sequence[Launch], _cache: Cache, _device: str, _max_time_s: float) -> Timing:
    """Its process, in ns."""
    return _timing([Sample(ns=float(os.getpid()))], launches)


def measure_nap(launches: Sequence[Launch], _cache: Cache, _device: str, _max_time_s: float) -> Timing:
    """One sample that takes a while, and knows when it ended: the second began then."""
    began = time.time()
    time.sleep(NAP_S)
    return _timing([Sample(ns=1.0, time_unix_s=began), Sample(ns=1.0, time_unix_s=time.time())], launches)


def liking(name: str) -> Measure:
    """Finds this way the faster one."""

    def measure(launches: Sequence[Launch], _cache: Cache, _device: str, _max_time_s: float) -> Timing:
        return _timing([Sample(ns=1.0 if getattr(launches[0], "name", None) == name else 2.0)], launches)

    return measure


def _timer(
    name: str, measure: Measure, crew: Crew = Crew.EVERY, *, most_trials: int | None = None, watched: bool = True
) -> Timer:
    return Timer(
        name=name,
        summary="planted",
        clock="host",
        devices=("cpu",),
        measure=measure,
        crew=crew,
        most_trials=most_trials,
        watched=watched,
    )


TIMERS = (
    _timer("every", measure_pid),
    _timer("alone", measure_pid, Crew.LAST_ONE, most_trials=1),
    _timer("fresh", measure_pid, Crew.FRESH, most_trials=1),
    _timer("two fresh", measure_pid, Crew.FRESH, most_trials=2),
    _timer("naps", measure_nap),
    _timer("naps unwatched", measure_nap, watched=False),
    _timer("likes one", liking("one")),
    _timer("likes other", liking("other")),
    _timer("likes other, fresh", liking("other"), Crew.FRESH, most_trials=1),
)
