"""harness.case_filter: which cases a command is asked to show, and what is said of a name that none has."""

from __future__ import annotations

import argparse
from dataclasses import replace

import pytest

from harness.case_filter import CaseFilter, add_arguments
from harness.errors import CommandError, Exit
from harness.model import Cache, Case, Layout, Problem, Role


def case(kernel: str, m: int = 64, timer: str = "graph") -> Case:
    return Case(kernel=kernel, role=Role.GEMV, problem=Problem(m=m, k=64), timer=timer, cache=Cache.COLD)


ALL = [case("a"), case("a", 128), case("b"), case("b", timer="async")]


def asked(*arguments: str) -> CaseFilter:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return CaseFilter.of(parser.parse_args(arguments))


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        ([], ALL),
        (["--kernel", "a"], ALL[:2]),
        (["--kernel", "a", "--kernel", "b"], ALL),
        (["--shape", "64x64"], [ALL[0], *ALL[2:]]),
        (["--kernel", "b", "--timer", "async"], ALL[3:]),
    ],
)
def test_what_is_wanted(arguments: list[str], wanted: list[Case]) -> None:
    """Any of an option's values, and all of the options."""
    shown = asked(*arguments)
    assert [each for each in ALL if shown.wants(each)] == wanted
    shown.check(ALL)


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--kernel", "c"], "--kernel: found 'c', wanted one of: a, b"),
        (["--timer", "grpah"], "--timer: found 'grpah', wanted one of: graph, async"),
        (["--kernel", "a", "--timer", "async"], "--kernel a --timer async: none of the 4 cases in these runs"),
        (["--shape", "9x9"], "--shape 9x9: none of the 4 cases in these runs"),
    ],
)
def test_what_no_case_has(arguments: list[str], line: str) -> None:
    """A slip, in one line with what there is; of no cases at all nothing can be asked."""
    with pytest.raises(CommandError) as error:
        asked(*arguments).check(ALL)
    assert (str(error.value), error.value.code) == (line, Exit.USAGE)
    asked(*arguments).check([])


def test_of_many_names_the_nearest_is_told() -> None:
    """A line of fifty names is not read."""
    many = [replace(ALL[0], kernel=f"hgemv_tiles_{warps}") for warps in range(50)]
    wanted = "--kernel: found 'hgemv_tile_7', wanted one of 50 names; did you mean hgemv_tiles_7"
    with pytest.raises(CommandError, match=f"^{wanted}") as error:
        asked("--kernel", "hgemv_tile_7").check(many)
    assert error.value.code == Exit.USAGE


VIEWS = [
    Case(kernel="a", role=Role.GEMV, problem=Problem(m=64, k=64, layout=layout), timer="graph", cache=Cache.COLD)
    for layout in (Layout(), Layout(order="col"), Layout(first_element=1), Layout(row_stride=70))
]


@pytest.mark.parametrize(
    ("shapes", "wanted"),
    [
        (["64x64"], VIEWS[:1]),
        (["64x64:col"], VIEWS[1:2]),
        (["64x64:first=1", "64x64:row_stride=70"], VIEWS[2:]),
        (["64x64:row_stride=64"], VIEWS[:1]),
    ],
)
def test_another_layout_is_another_problem(shapes: list[str], wanted: list[Case]) -> None:
    """The same words as a bench is asked with."""
    shown = asked(*(word for shape in shapes for word in ("--shape", shape)))
    assert [each for each in VIEWS if shown.wants(each)] == wanted
    shown.check(VIEWS)


BATCHED = [
    Case(kernel="a", role=Role.GEMV, problem=problem, timer="graph", cache=Cache.COLD)
    for problem in (Problem(m=64, k=64), Problem(m=64, k=64, n=4), Problem(m=64, k=64, n=4, dtype="float16"))
]


@pytest.mark.parametrize(
    ("shape", "place"), [("64x64", 0), ("64x64x1:float32", 0), ("64x64x4", 1), ("64x64x4:float16", 2)]
)
def test_other_tokens_or_another_dtype_are_another_problem(shape: str, place: int) -> None:
    """None stands for all of them."""
    assert [each for each in BATCHED if asked("--shape", shape).wants(each)] == [BATCHED[place]]


def test_a_layout_that_no_case_has() -> None:
    """Though there are cases of its sizes."""
    with pytest.raises(CommandError, match="--shape 64x64:first=2: none of the 4 cases in these runs"):
        asked("--shape", "64x64:first=2").check(VIEWS)


def test_a_shape_that_is_none() -> None:
    """Before anything is read."""
    with pytest.raises(CommandError, match="--shape: found '9'"):
        asked("--shape", "9")
