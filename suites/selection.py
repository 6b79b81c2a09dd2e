"""What a command asks for, held against what its suites say that they measure: the cases of a session."""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from harness.cases import Grid, cases_for
from harness.errors import CommandError, Exit
from harness.model import Cache, Case, Kernel, Options, Problem
from harness.store import Store
from suites.suite import Suite

BASELINE = "torch.matmul"
"""Measured whatever kernels are asked for: every speed on the page is against it."""


def without_device(kernels: Iterable[Kernel], device: str) -> list[str]:
    """A line for each file with kernels for CUDA alone, where there is none: it would pass unseen that they are bad."""
    left_out: dict[str, list[str]] = {}
    for kernel in kernels:
        if kernel.file is not None and device == "cpu" and device not in kernel.devices:
            left_out.setdefault(kernel.file, []).append(kernel.name)
    return [
        f"{', '.join(names)}: neither built nor measured, for want of a CUDA device; "
        f"nox -s build -- --kernels {shlex.quote(file)} compiles CUDA C++ without one"
        for file, names in left_out.items()
    ]


@dataclass(frozen=True, kw_only=True)
class Named:
    """What was typed of each option; empty: nothing."""

    kernels: tuple[str, ...] = ()
    timers: tuple[str, ...] = ()
    caches: tuple[Cache, ...] = ()
    dtypes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class NoGpu:
    """Why this session measures on the CPU, and what that makes of a wish that needs a GPU."""

    why: Callable[[], str]
    """Asked where something is refused alone: it takes a look at the machine."""
    code: Exit

    def refuses(self, typed: str, where: str = "") -> CommandError:
        """The error of what was typed; `where` it needs one."""
        return CommandError(f"{typed}: needs a GPU{where}, and this would run on the CPU: {self.why()}", self.code)


@dataclass(frozen=True, kw_only=True)
class Selection:
    """What this session was asked to measure, and where to."""

    suites: Mapping[str, Suite]
    registry: tuple[Kernel, ...]
    """Every kernel: a grid may name any."""
    kernels: tuple[Kernel, ...]
    """For the grids that name none."""
    problems: tuple[Problem, ...] | None
    """None: the suites' own."""
    lay_out: Callable[[Problem], Problem]
    """Gives a problem the layout that was asked for all; CommandError where it cannot have it."""
    timers: tuple[str, ...]
    """For the grids that name none."""
    caches: tuple[Cache, ...]
    """For the grids that name none."""
    named: Named
    """What grids that name their own are cut down to."""
    regimes: bool
    """The suites' grids for --regimes, instead of their usual ones."""
    options: Options
    no_gpu: NoGpu | None
    """None: it measures on a GPU."""
    store: Store
    ref: str | None
    path_file: Path | None
    notes: tuple[str, ...] = ()
    """What was asked for and will not be measured, a line each."""

    def cases(self) -> dict[str, list[Case]]:
        """The selected cases by suite, each in the order of measuring; one of several suites is the first one's.

        Raises:
            CommandError: a problem cannot lie as asked, or nothing is to be measured of what was named (USAGE), for
                want of a GPU where the suites have it on one (as `NoGpu` says).
        """
        grids = {name: self._grids(suite) for name, suite in self.suites.items()}
        left = self._cases(itertools.chain.from_iterable(grids.values()))
        self._refuse_what_has_none(left)
        found: dict[str, list[Case]] = {}
        for name, own in grids.items():
            wanted = set(self._cases(own))
            found[name] = [case for case in left if case in wanted]
            left = [case for case in left if case not in wanted]
        return found

    def order(self) -> dict[Case, int]:
        """The place of every case, of all suites together, in the order of measuring."""
        grids = itertools.chain.from_iterable(map(self._grids, self.suites.values()))
        return {case: place for place, case in enumerate(self._cases(grids))}

    def _cases(self, grids: Iterable[Grid]) -> list[Case]:
        return cases_for(self.registry, grids, self.options.device_type)

    def _own_grids(self, suite: Suite) -> tuple[Grid, ...]:
        return suite.regimes if self.regimes else suite.grids_on(self.options.device_type)

    def _grids(self, suite: Suite) -> list[Grid]:
        """The suite's, cut down to what was named, on the problems that were named."""
        own = self._own_grids(suite)
        return [grid for each in own if not (self.problems and each.own_problems) if (grid := self._cut(each)).problems]

    def _cut(self, grid: Grid) -> Grid:
        """What a grid names of what was typed. On problems that were typed too, all that was typed holds as it is."""
        typed = self.problems is not None

        def cut(own: tuple[Any, ...] | None, asked: Sequence[Any], *, named: bool) -> tuple[Any, ...]:
            if own is None or (named and typed):
                return tuple(asked)
            return tuple(each for each in own if each in asked) if named else own

        measured = [kernel.name for kernel in self.kernels]
        kernels = cut(grid.kernels, measured, named=bool(self.named.kernels))
        beside = self._own if BASELINE in kernels and not grid.own_problems else ()
        return replace(
            grid,
            problems=self.problems or self._laid_out(grid.problems),
            kernels=tuple(dict.fromkeys([*kernels, *beside])),
            timers=cut(grid.timers, self.timers, named=bool(self.named.timers)),
            caches=cut(grid.caches, self.caches, named=bool(self.named.caches)),
        )

    @property
    def _own(self) -> tuple[str, ...]:
        """Those of users' files, which are measured wherever the baseline is."""
        return tuple(kernel.name for kernel in self.kernels if kernel.file is not None)

    def _laid_out(self, problems: Iterable[Problem]) -> tuple[Problem, ...]:
        """Of the dtypes that were named, in the layout that was."""
        wanted = self.named.dtypes
        kept = (problem for problem in problems if not wanted or problem.dtype in wanted)
        return tuple(dict.fromkeys(map(self.lay_out, kept)))

    def _refuse_of_a_gpu(self, name: str, typed: str, where: str) -> None:
        """Raise CommandError for a dtype or a kernel that the suites have, but on a GPU alone."""
        if self.no_gpu is None or self.problems is not None:
            return
        on_gpu = [grid for suite in self.suites.values() for grid in suite.grids]
        here = [grid for suite in self.suites.values() for grid in self._own_grids(suite)]
        if name in _names(on_gpu) - _names(here):
            raise self.no_gpu.refuses(typed, f" in {where}")

    def _refuse_what_has_none(self, cases: Sequence[Case]) -> None:
        """Raise CommandError, as `cases` does, for a name that was typed and that no case has."""
        own = [grid for suite in self.suites.values() for grid in self._own_grids(suite)]
        problems = self.problems or tuple(problem for grid in own for problem in grid.problems)
        where = f"suite {' and '.join(self.suites)}" if self.problems is None else "--shape"
        dtypes = dict.fromkeys(problem.dtype for problem in problems)
        for dtype in self.named.dtypes:
            if dtype not in dtypes:
                self._refuse_of_a_gpu(dtype, f"--dtype {dtype}", where)
                what = f"--dtype: no problem of {where} is {dtype}, wanted one of: {', '.join(dtypes)}"
                raise CommandError(f"{what}; or name problems by --shape", Exit.USAGE)
        made_for = {kernel.name: kernel.dtypes for kernel in self.registry}
        measured = {case.kernel for case in cases}
        asked = {**dict.fromkeys(self._own, "--kernels"), **dict.fromkeys(self.named.kernels, "--kernel")}
        for name, option in asked.items():
            if name in measured:
                continue
            self._refuse_of_a_gpu(name, f"{option} {name}", where)
            if not set(made_for[name]) & set(self.named.dtypes or dtypes):
                what = f"{name} is made for {', '.join(made_for[name])}, and no problem of {where} is of that"
                raise CommandError(f"{option}: {what}; name one, as --shape 4096x4096:{made_for[name][0]}", Exit.USAGE)
            raise CommandError(f"{option}: {where} has no case of {name} with these options", Exit.USAGE)
        timers = {case.timer for case in cases}
        for name in (name for name in self.named.timers if name not in timers):
            raise CommandError(f"--timer: {where} has no case by {name} with these options", Exit.USAGE)


def _names(grids: Iterable[Grid]) -> set[str]:
    """Of all dtypes and kernels that the grids name."""
    return {name for grid in grids for name in (*(each.dtype for each in grid.problems), *(grid.kernels or ()))}
