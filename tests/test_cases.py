"""harness.cases: grids, what they leave out, and the order of what they share."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.cases import FLOOR_PROBLEM, Grid, candidates, cases_for, picked_among
from harness.errors import CommandError, Exit
from harness.model import Cache, Case, Choice, Kernel, Problem, Role
from harness.timing import Crew, timers

COLD = (Cache.COLD,)
HALVES = ("float16", "bfloat16")


def kernel(name: str, role: Role = Role.GEMV, dtypes: tuple[str, ...] = ("float32",)) -> Kernel:
    return Kernel(name=name, role=role, summary="", bind=lambda _: lambda: None, devices=("cuda",), dtypes=dtypes)


KERNELS = [
    kernel("base", dtypes=("float32", *HALVES)),
    kernel("half", dtypes=HALVES[:1]),
    kernel("whole"),
    kernel("read", Role.LIMIT, ("float32", *HALVES)),
    kernel("empty", Role.FLOOR),
]
ONE, OTHER = Problem(m=64, k=64), Problem(m=8, k=8)
HALF = Problem(m=64, k=64, n=4, dtype="float16")


def told(*grids: Grid, timer: str = "graph") -> list[tuple[str, str]]:
    """Kernel and problem of every case by a timer, in order."""
    found = cases_for(KERNELS, grids, "cuda")
    return [(case.kernel, f"{case.problem.label} {case.problem.dtype}") for case in found if case.timer == timer]


def test_kernels_of_several_grids_are_neighbours() -> None:
    """By problem, in the order of the grids; then by kernel, in the order of the registry. The floor is there once."""
    grids = (
        Grid(problems=(ONE, OTHER), kernels=("read",), timers=("graph",), caches=COLD),
        Grid(problems=(OTHER, HALF), kernels=("base", "half"), timers=("graph",), caches=COLD),
        Grid(problems=(ONE,), kernels=("whole",), timers=("graph", "sync"), caches=COLD),
    )
    assert told(*grids) == [
        ("empty", "1x1 float32"),
        ("whole", "64x64 float32"),
        ("read", "64x64 float32"),
        ("base", "8x8 float32"),
        ("read", "8x8 float32"),
        ("base", "64x64x4 float16"),
        ("half", "64x64x4 float16"),
    ]
    assert told(*grids, timer="sync") == [("empty", "1x1 float32"), ("whole", "64x64 float32")]


def test_what_two_grids_share_is_measured_once() -> None:
    """Also where one names what the other leaves open."""
    open_grid = Grid(problems=(ONE, HALF))
    named = Grid(problems=(HALF, OTHER, ONE), kernels=("base", "read"), timers=("graph",), caches=COLD)
    found = cases_for(KERNELS, [open_grid, named], "cuda")
    assert len(set(found)) == len(found)
    extra = set(found) - set(cases_for(KERNELS, [open_grid], "cuda"))
    assert {(case.kernel, case.problem) for case in extra} == {("base", OTHER), ("read", OTHER)}


def test_a_dtype_that_a_kernel_is_not_made_for_is_no_case() -> None:
    """Not a row that says so; the floor looks at no problem and has its own."""
    found = told(Grid(problems=(HALF, replace(HALF, dtype="bfloat16")), caches=COLD))
    assert found == [
        ("empty", "1x1 float32"),
        *((name, "64x64x4 float16") for name in ("base", "half", "read")),
        *((name, "64x64x4 bfloat16") for name in ("base", "read")),
    ]


def test_a_grid_left_open_has_every_timer_of_the_device() -> None:
    """In every state of the cache that a timer knows."""
    found = cases_for(KERNELS, [Grid(problems=(ONE,), kernels=("base",))], "cuda")
    usable = {
        (timer.name, cache)
        for timer in timers().values()
        for cache in timer.caches
        if "cuda" in timer.devices and Role.GEMV in timer.roles
    }
    assert {(case.timer, case.cache) for case in found if case.kernel == "base"} == usable


def test_workers_are_changed_once_a_stage() -> None:
    """Whatever grids a timer comes from: those with workers of their own come last."""
    grids = [
        Grid(problems=(ONE,), timers=("profiler",)),
        Grid(problems=(OTHER,), timers=("graph",)),
        Grid(problems=(HALF,), timers=("profiler", "graph")),
    ]
    found = cases_for(KERNELS, grids, "cuda")
    crews = [timers()[case.timer].crew for case in found]
    assert crews == sorted(crews, key=list(Crew).index)
    assert found[0].problem == FLOOR_PROBLEM
    assert [case.timer for case in found] == sorted(case.timer for case in found)


@pytest.mark.parametrize(
    ("grid", "line"),
    [
        (
            Grid(problems=(ONE,), kernels=("hlaf",)),
            "a suite's kernel: found 'hlaf', wanted one of: base, half, whole, read, empty",
        ),
        (Grid(problems=(ONE,), timers=("grpah",)), "a suite's timer: found 'grpah', wanted one of: graph, "),
    ],
)
def test_a_grid_that_names_what_there_is_not(grid: Grid, line: str) -> None:
    """A slip in a suite would be measured by nobody."""
    with pytest.raises(CommandError) as caught:
        cases_for(KERNELS, [grid], "cuda")
    assert str(caught.value).startswith(line)
    assert caught.value.code is Exit.USAGE


def test_without_grids_nothing_is_measured() -> None:
    """Not even the floor."""
    nothing: list[Case] = []
    assert cases_for(KERNELS, [], "cuda") == nothing


def test_candidates_are_those_of_a_rules_own_dtype() -> None:
    """Declared so, or named by the rule; what torch has is neither."""

    def rule(name: str, dtype: str, picks: tuple[str, ...] = ()) -> Kernel:
        return replace(kernel(name, dtypes=(dtype,)), choose=lambda _: Choice(kernel="x", reason=""), picks=picks)

    found = [
        kernel("base", dtypes=("float32", *HALVES)),
        rule("whole", "float32", picks=("fixed",)),
        rule("half", "float16"),
        kernel("fixed"),
        replace(kernel("tiles"), candidate=True),
        replace(kernel("half_tiles", dtypes=("float16",)), candidate=True),
    ]
    assert picked_among(found) == ("fixed", "tiles", "half_tiles")
    assert candidates(found) == {"whole": ("fixed", "tiles"), "half": ("half_tiles",)}
