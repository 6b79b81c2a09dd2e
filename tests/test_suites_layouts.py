"""suites/ on views of a larger matrix: which problems the options and the shapes mean, and a run of them on the CPU."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.errors import CommandError, Exit
from harness.model import Layout, Problem, Word
from harness.problems import parse_shape
from harness.store import Store, load
from suites import options
from suites.test_sgemv import PROBLEMS
from tests.running_suites import benchmarks, selection, suites


def measured(**asked: object) -> list[Problem]:
    """The problems of the cases that these options select, but the floor's."""
    cases = selection(**asked).cases()["sgemv"]
    return [problem for problem in dict.fromkeys(case.problem for case in cases) if problem != Problem(m=1, k=1)]


@pytest.mark.parametrize(
    ("asked", "layout"),
    [
        ({"layout": "col"}, Layout(order="col")),
        ({"layout": "row"}, Layout()),
        ({"first_element": "1"}, Layout(first_element=1)),
        ({"row_stride": "40000"}, Layout(row_stride=40000)),
        ({"layout": "col", "row_stride": "40000", "first_element": "0"}, Layout(order="col", row_stride=40000)),
    ],
)
def test_the_options_are_for_every_problem(asked: dict[str, str], layout: Layout) -> None:
    """The suite's own and those of --shape; never the floor's."""
    assert measured(**asked) == [Problem(m=each.m, k=each.k, layout=layout) for each in PROBLEMS]
    assert measured(shape=["64x48", "8x16"], **asked) == [
        Problem(m=64, k=48, layout=layout),
        Problem(m=8, k=16, layout=layout),
    ]
    assert selection(**asked).cases()["sgemv"][0].problem == Problem(m=1, k=1)


def test_peers_are_given_views_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their two problems; they time launches, whatever those read."""
    monkeypatch.setattr(options, "device_of", lambda _: ("cuda:0", None))
    monkeypatch.setattr(options, "is_installed", lambda _: True)
    layout = Layout(order="col", first_element=1)
    assert selection(peers=True, layout="col", first_element="1").problems == tuple(
        Problem(m=each.m, k=each.k, layout=layout) for each in options.PEER_PROBLEMS
    )


def test_shapes_that_say_their_own_layout() -> None:
    """Beside packed ones in one run; the options add to them, and what becomes the same is measured once."""
    shapes = ["64x48", "64x48:col", "64x48:row_stride=50:first=1", "64x48:col:row_stride=64"]
    assert measured(shape=shapes) == [parse_shape(shape) for shape in shapes[:3]]
    assert measured(shape=["64x48", "64x48:col"], layout="col") == [parse_shape("64x48:col")]
    assert measured(shape=["64x48", "64x48:col"], first_element="2") == [
        parse_shape("64x48:first=2"),
        parse_shape("64x48:col:first=2"),
    ]


@pytest.mark.parametrize(
    ("asked", "line"),
    [
        ({"layout": "diagonal"}, "--layout: found 'diagonal', wanted one of: row, col"),
        ({"row_stride": "wide"}, "--row-stride: found 'wide', wanted a whole number from 1 to 1e+12"),
        ({"row_stride": "0"}, "--row-stride: found '0', wanted a whole number from 1 to 1e+12"),
        ({"row_stride": "-64"}, "--row-stride: found '-64', wanted a whole number from 1 to 1e+12"),
        ({"first_element": "-1"}, "--first-element: found '-1', wanted a whole number from 0 to 1e+12"),
        ({"first_element": "0.5"}, "--first-element: found '0.5', wanted a whole number from 0 to 1e+12"),
        (
            {"shape": ["8x8", "8x64"], "row_stride": "63"},
            "8x64:row_stride=63: found 63 elements from one row of A to the next, wanted 64 or more",
        ),
        (
            {"row_stride": "1023", "layout": "col"},
            "1024x16:col:row_stride=1023: found 1023 elements from one column of A to the next, wanted 1024 or more",
        ),
        (
            {"shape": ["8x8:col"], "layout": "row"},
            "8x8:col: says its own order, and row was asked for all; leave one of them out",
        ),
    ],
    ids=lambda value: " ".join(map(str, value.values())) if isinstance(value, dict) else "",
)  # fmt: skip
def test_what_no_problem_can_have(asked: dict[str, object], line: str) -> None:
    """One line, wrong usage; the suite's own problems are known when they are collected."""
    with pytest.raises(CommandError) as caught:
        measured(**asked)
    assert (str(caught.value), caught.value.code) == (line, Exit.USAGE)


@pytest.mark.parametrize("arguments", [["--shape", "8x8"], []], ids=["a shape", "the suite's own"])
def test_a_stride_that_is_too_short_ends_the_session(tmp_path: Path, arguments: list[str]) -> None:
    """Code 2 and no traceback; nothing is built, measured or made."""
    done = suites("-q", "--device", "cpu", "--row-stride", "7", *arguments, "--store", tmp_path / "store")
    said = done.stdout + done.stderr
    assert done.returncode == 2, said
    assert said.count("found 7 elements from one row of A to the next") == 1
    assert "Traceback" not in said
    assert "ERROR" not in said
    assert not (tmp_path / "store").exists()


def test_a_run_of_views(tmp_path: Path) -> None:
    """Packed, transposed and off the boundary in one run: torch is measured on each, and nothing merges them."""
    shapes = [word for shape in ("16x8", "16x8:col", "16x8:row_stride=9") for word in ("--shape", shape)]
    few = ("--timer", "async", "--cache", "hot", "--trials", "1", "--max-time", "0.005", "-k", "matmul or empty")
    done = suites("--device", "cpu", *shapes, "--first-element", "1", *few, "--store", tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    run = load(Store(tmp_path).resolve("latest"))
    layouts = [Layout(first_element=1), Layout(order="col", first_element=1), Layout(row_stride=9, first_element=1)]
    assert [m.case.problem for m in run.measurements] == [
        Problem(m=1, k=1),
        *(Problem(m=16, k=8, layout=layout) for layout in layouts),
    ]
    assert [m.verdict.word for m in run.measurements] == [Word.PASSED] * 4
    assert len({m.case.id for m in run.measurements}) == 4
    records = benchmarks(tmp_path / run.id / "pytest-benchmark.json").values()
    assert {record["group"] for record in records} == {
        *("1x1 async hot", "16x8:first=1 async hot", "16x8:col:first=1 async hot"),
        "16x8:row_stride=9:first=1 async hot",
    }
    assert " 16x8:col:first=1  async" in done.stdout


def test_one_layout_for_the_suites_own_problems(tmp_path: Path) -> None:
    """Collected as a view each, under ids that tell them from the packed ones."""
    done = suites(
        *("--collect-only", "-q", "--device", "cpu", "--cache", "hot", "--layout", "col", "--timer", "sync"),
        *("-k", "matmul", "--store", tmp_path / "store"),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    names = [line for line in done.stdout.splitlines() if "::" in line]
    assert len(names) == len(PROBLEMS)
    assert not [name for name in names if "torch.matmul-1024x128-sync" in name]
