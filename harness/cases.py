"""What a bench measures, in which order, in which workers."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from harness.errors import CommandError, Exit
from harness.model import Cache, Case, Kernel, Problem, Role
from harness.timing import Crew, Timer, timers

FLOOR_PROBLEM = Problem(m=1, k=1)
"""What kernels with the role `floor` are measured on: they do not look at it."""

ALWAYS = (Role.LIMIT, Role.FLOOR)
"""Roles that are measured whatever kernels a command asks for: a figure alone says little."""

EVERY_WORKER = (Crew.EVERY, "")
"""The stage that a bench begins with."""


@dataclass(frozen=True, kw_only=True)
class Grid:
    """Problems by kernels by timers by caches: what a suite says that it measures."""

    problems: tuple[Problem, ...]
    """Each kernel computes those whose dtype it is made for."""
    kernels: tuple[str, ...] | None = None
    """Names, beside the floor; None: whatever there is."""
    timers: tuple[str, ...] | None = None
    """Names, of which those are taken that the device and the kernel's role have; None: whatever there is."""
    caches: tuple[Cache, ...] | None = None
    """Of which each timer takes those that it knows; None: both."""
    own_problems: bool = False
    """Whether it is about just these problems, so that a command that names others leaves it out."""


def cases_for(kernels: Iterable[Kernel], grids: Iterable[Grid], device_type: str) -> list[Case]:
    """Every case of the grids, once, in the order of measuring: by crew, floor first, then by problem, cache, timer.

    Problems come in the order of the grids, kernels and timers in that of their registries, so that all kernels on one
    problem are neighbours, whatever grids they come from. A timer of the selfcheck comes right behind the one that it
    is held against, since clocks drift.

    On a GPU, kernels for the CPU alone are left out; on a CPU, those for CUDA stay and will say what they need.

    Raises:
        CommandError: a grid names a kernel or a timer that there is not (USAGE).
    """
    grids, shown = tuple(grids), {kernel.name: kernel for kernel in kernels}
    ways = timers()
    for grid in grids:
        _check("kernel", grid.kernels, shown)
        _check("timer", grid.timers, ways)
    problems = dict.fromkeys((FLOOR_PROBLEM, *(problem for grid in grids for problem in grid.problems)))
    places = [{each: place for place, each in enumerate(known)} for known in (problems, Cache, ways, shown)]

    def place(case: Case) -> tuple[object, ...]:
        by_problem, by_cache, by_timer, by_kernel = places
        crew, alone = stage_of(ways[case.timer])
        timer = by_timer[case.timer]
        stage = (list(Crew).index(crew), timer if alone else -1, case.role is not Role.FLOOR)
        within = (by_problem[case.problem], by_cache[case.cache], _family(ways[case.timer]), timer)
        return (*stage, *within, by_kernel[case.kernel])

    found = {case for grid in grids for case in _cases(grid, shown.values(), ways.values(), device_type)}
    return sorted(found, key=place)


def _cases(grid: Grid, kernels: Iterable[Kernel], ways: Iterable[Timer], device_type: str) -> Iterator[Case]:
    """Every case of one grid, in no order; the floor once."""
    usable = [way for way in ways if device_type in way.devices and (grid.timers is None or way.name in grid.timers)]
    for kernel in kernels:
        floor = kernel.role is Role.FLOOR
        named = floor or grid.kernels is None or kernel.name in grid.kernels
        if not named or (device_type not in kernel.devices and device_type != "cpu"):
            continue
        problems = (FLOOR_PROBLEM,) if floor else grid.problems
        for problem, timer in itertools.product((each for each in problems if each.dtype in kernel.dtypes), usable):
            if kernel.role in timer.roles:
                for cache in (each for each in timer.caches if grid.caches is None or each in grid.caches):
                    yield Case(kernel=kernel.name, role=kernel.role, problem=problem, timer=timer.name, cache=cache)


def _check(what: str, names: Iterable[str] | None, known: Iterable[str]) -> None:
    known = list(known)
    for name in names or ():
        if name not in known:
            raise CommandError(f"a suite's {what}: found {name!r}, wanted one of: {', '.join(known)}", Exit.USAGE)


def picked_among(kernels: Iterable[Kernel]) -> tuple[str, ...]:
    """The names of those that another may pick: declared so, or named by its rule."""
    kernels = tuple(kernels)
    picks = {name for kernel in kernels for name in kernel.picks}
    return tuple(kernel.name for kernel in kernels if kernel.candidate or kernel.name in picks)


def candidates(kernels: Iterable[Kernel]) -> dict[str, tuple[str, ...]]:
    """By the name of each kernel with a rule: those of `picked_among` that compute a dtype of its own."""
    by_name = {kernel.name: kernel for kernel in kernels}
    among = [by_name[name] for name in picked_among(by_name.values())]
    return {
        rule.name: tuple(each.name for each in among if set(each.dtypes) & set(rule.dtypes))
        for rule in by_name.values()
        if rule.choose is not None
    }


def _family(timer: Timer) -> int:
    """Place of the timer that this one is, or differs from in one thing: `graph` for `graph-double`."""
    names = list(timers())
    base = timer.name.partition("-")[0]
    return names.index(base if base in names else timer.name)


def stage_of(timer: Timer) -> tuple[Crew, str]:
    """What runs in the same workers: a timer that has workers of its own shares them with no other."""
    return timer.crew, timer.name if timer.crew is Crew.FRESH else ""
