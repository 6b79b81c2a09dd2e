"""harness.case_filter: which cases a command is asked to show, and what is said of a name that none has."""

from __future__ import annotations

import argparse

import pytest

from harness.case_filter import CaseFilter, add_arguments
from harness.errors import CommandError, Exit
from harness.model import Cache, Case, Problem, Role


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
        (["--kernel", "c"], "--kernel: found 'c', wanted one of a, b"),
        (["--timer", "grpah"], "--timer: found 'grpah', wanted one of graph, async"),
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


def test_a_shape_that_is_none() -> None:
    """Before anything is read."""
    with pytest.raises(CommandError, match="--shape: found '9'"):
        asked("--shape", "9")
