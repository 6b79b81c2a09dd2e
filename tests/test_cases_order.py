"""harness.cases: in which order cases are measured, and in whose workers."""

from __future__ import annotations

import pytest

from harness.cases import FLOOR_PROBLEM, Grid, cases_for, stage_of
from harness.model import Cache, Case, Kernel, Problem, Role
from harness.timing import HEADLINE, Crew, timers
from tests.timers_by_purpose import OF_CHECKS, OF_PEERS

COLD, HOT = Cache.COLD, Cache.HOT

ROLES = {"mine": Role.GEMV, "empty": Role.FLOOR, "read": Role.LIMIT}
KERNELS = [
    Kernel(name=name, role=role, summary="", bind=lambda _: lambda: None, devices=("cuda",))
    for name, role in ROLES.items()
]
PROBLEMS = (Problem(m=64, k=64), Problem(m=8, k=8))


def cases(*names: str, caches: tuple[Cache, ...] = (COLD, HOT), device_type: str = "cuda") -> list[Case]:
    return cases_for(KERNELS, [Grid(problems=PROBLEMS, timers=names or None, caches=caches)], device_type)


def told(found: list[Case]) -> list[tuple[str, str, str, str]]:
    return [(case.problem.label, case.timer, str(case.cache), case.kernel) for case in found]


def test_cases_by_crew_problem_cache_timer_and_kernel() -> None:
    """Written out: those that share workers first, in which the empty kernel comes first, on its own problem."""
    found = cases("graph-alone", "event-pair", "graph", "async")
    every = [
        ("1x1", "graph", "cold", "empty"),
        ("1x1", "event-pair", "cold", "empty"),
        ("1x1", "async", "cold", "empty"),
        ("1x1", "graph", "hot", "empty"),
        ("1x1", "async", "hot", "empty"),
        *(
            (problem, timer, cache, kernel)
            for problem in ("64x64", "8x8")
            for cache in ("cold", "hot")
            for timer in ("graph", "async")
            for kernel in ("mine", "read")
        ),
    ]
    alone = [
        ("1x1", "graph-alone", "cold", "empty"),
        *((problem, "graph-alone", "cold", kernel) for problem in ("64x64", "8x8") for kernel in ("mine", "read")),
    ]
    assert told(found) == [*every, *alone]


def test_a_check_follows_what_it_is_held_against() -> None:
    """Clocks drift: nothing of another family lies between them."""
    found = [case.timer for case in cases() if (case.problem.label, case.kernel, case.cache) == ("8x8", "mine", COLD)]
    graphs, events = ["graph", "graph-unwatched", "graph-double"], ["event", "event-read", "event-memset"]
    assert found[:8] == [*graphs, *events, "async", "sync"]
    floor = [case.timer for case in cases() if (case.kernel, case.cache) == ("empty", COLD)]
    assert floor[:7] == [*graphs, "event", "event-pair", "event-read", "event-memset"]


def test_the_crews_follow_each_other() -> None:
    """A worker's death is no trouble, a worker that was disturbed would be: those come last, each by itself."""
    stages = [stage_of(timers()[case.timer]) for case in cases()]
    runs = [stage for i, stage in enumerate(stages) if i == 0 or stage != stages[i - 1]]
    assert len(set(runs)) == len(runs), "a crew is gone back to"
    fresh = [(Crew.FRESH, name) for name in ("profiler", "graph-two-streams", "energy", "do_bench", "nvbench")]
    assert runs == [(Crew.EVERY, ""), (Crew.LAST_ONE, ""), *fresh]


def test_a_timer_with_a_worker_of_its_own_goes_through_all_problems_in_it() -> None:
    """The floor first there too."""
    found = [case for case in cases("profiler", "graph-two-streams") if case.timer == "profiler"]
    assert told(found)[:3] == [
        ("1x1", "profiler", "cold", "empty"),
        ("1x1", "profiler", "hot", "empty"),
        ("64x64", "profiler", "cold", "mine"),
    ]
    assert found == cases("profiler")


def test_roles_are_respected() -> None:
    """A second empty kernel is asked for alone."""
    assert {case.kernel for case in cases("event-pair")} == {"empty"}
    assert {case.problem for case in cases("event-pair")} == {FLOOR_PROBLEM}
    without_floor = [kernel for kernel in KERNELS if kernel.role is not Role.FLOOR]
    assert cases_for(without_floor, [Grid(problems=PROBLEMS, timers=("event-pair",))], "cuda") == []


@pytest.mark.parametrize("name", [*OF_CHECKS, *OF_PEERS])
def test_what_knows_no_hot_operands_is_not_asked_for_them(name: str) -> None:
    """Nor is anything of it measured on a CPU."""
    assert {case.cache for case in cases(name)} == {COLD}
    assert cases(name, caches=(HOT,)) == []
    assert cases(name, device_type="cpu") == []


def test_every_case_is_measured_once() -> None:
    """Ids are unique over all timers, and the headline is there."""
    found = cases()
    assert len({case.id for case in found}) == len(found)
    assert found[0].timer == HEADLINE
