"""What a bench measures, in which order, in which workers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from harness.model import Cache, Case, Kernel, Problem, Role
from harness.timing import Crew, Timer, timers

FLOOR_PROBLEM = Problem(m=1, k=1)
"""What kernels with the role `floor` are measured on: they do not look at it."""

ALWAYS = (Role.LIMIT, Role.FLOOR)
"""Roles that are measured whatever kernels are asked for: a figure alone says little."""

EVERY_WORKER = (Crew.EVERY, "")
"""The stage that a bench begins with."""


def cases_for(
    kernels: Iterable[Kernel],
    problems: Iterable[Problem],
    timer_names: Sequence[str],
    caches: Sequence[Cache],
    device_type: str,
) -> list[Case]:
    """Every case in the order of measuring: by crew, the floor first, then by problem, cache and timer.

    A timer of the selfcheck comes right behind the one that it is held against, since clocks drift.

    On a GPU, kernels for the CPU alone are left out; on a CPU, those for CUDA stay and will say what they need.
    """
    usable = [timer for name, timer in timers().items() if name in timer_names and device_type in timer.devices]
    shown = [kernel for kernel in kernels if device_type in kernel.devices or device_type == "cpu"]
    floors = [kernel for kernel in shown if kernel.role is Role.FLOOR]
    others = [kernel for kernel in shown if kernel.role is not Role.FLOOR]
    grid = [(FLOOR_PROBLEM, floors), *((problem, others) for problem in problems)]
    stages = dict.fromkeys(sorted((stage_of(timer) for timer in usable), key=lambda stage: list(Crew).index(stage[0])))
    return [
        Case(kernel=kernel.name, role=kernel.role, problem=problem, timer=timer.name, cache=cache)
        for stage in stages
        for problem, group in grid
        for cache in caches
        for timer in sorted(usable, key=_family)
        if stage_of(timer) == stage and cache in timer.caches
        for kernel in group
        if kernel.role in timer.roles
    ]


def picked_among(kernels: Iterable[Kernel]) -> tuple[str, ...]:
    """The names of those that another may pick: measured by name only, or named by its rule."""
    kernels = tuple(kernels)
    picks = {name for kernel in kernels for name in kernel.picks}
    return tuple(kernel.name for kernel in kernels if kernel.by_name_only or kernel.name in picks)


def _family(timer: Timer) -> int:
    """Place of the timer that this one is, or differs from in one thing: `graph` for `graph-double`."""
    names = list(timers())
    base = timer.name.partition("-")[0]
    return names.index(base if base in names else timer.name)


def stage_of(timer: Timer) -> tuple[Crew, str]:
    """What runs in the same workers: a timer that has workers of its own shares them with no other."""
    return timer.crew, timer.name if timer.crew is Crew.FRESH else ""
