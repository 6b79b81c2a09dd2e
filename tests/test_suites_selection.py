"""--suite, --dtype and the names that a suite's grids are cut down to."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harness.errors import CommandError, Exit
from harness.model import Cache, Case, Problem
from harness.problems import parse_shape
from suites import options, suite
from suites.test_roofline import CPU_NOTE
from tests.running_suites import selection, suites


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cases are selected as for a GPU."""
    monkeypatch.setattr(options, "device_of", lambda _: ("cuda:0", None))


def cases(**asked: object) -> list[Case]:
    """The cases of all suites, without the floor's."""
    found = selection(**asked).cases()
    return [case for own in found.values() for case in own if case.kernel != "empty"]


def test_a_clock_is_locked_where_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """In MHz, on a GPU, which may be asked for by its UUID."""
    monkeypatch.setattr(options, "device_of", lambda _: ("cuda:0", "GPU-1"))
    assert selection().options.lock_clocks_mhz is None
    found = selection(lock_clocks="1410").options
    assert (found.lock_clocks_mhz, found.uuid, found.device) == (1410, "GPU-1", "cuda:0")
    for typed in ("0", "1410.5", "base", "10001"):
        with pytest.raises(CommandError, match=rf"^--lock-clocks: found '{typed}', wanted a whole number from 1 to 10"):
            selection(lock_clocks=typed)


@pytest.mark.parametrize(("typed", "code"), [("cpu", Exit.USAGE), (None, Exit.INFRASTRUCTURE)])
def test_a_cpu_has_no_clock_to_lock(monkeypatch: pytest.MonkeyPatch, typed: str | None, code: Exit) -> None:
    """Wrong usage where the CPU was asked for, else what the machine lacks."""
    monkeypatch.setattr(options, "device_of", lambda _: ("cpu", None))
    monkeypatch.setattr(options, "why_no_gpu", lambda: "none is here")
    with pytest.raises(CommandError, match=r"^--lock-clocks: needs a GPU, and this would run on the CPU: ") as caught:
        selection(device=typed, lock_clocks="1410")
    assert caught.value.code is code


def test_suites_are_found_by_their_files() -> None:
    """The default first."""
    assert suite.names() == ["sgemv", "roofline"]
    assert suite.name_of(suite.FOLDER / "test_sgemv.py") == "sgemv"
    assert suite.name_of(suite.FOLDER / "options.py") is None
    assert suite.name_of(Path("/elsewhere/test_sgemv.py")) is None


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({}, ["sgemv"]),
        ({"suite": ["roofline"]}, ["roofline"]),
        ({"suite": ["roofline", "sgemv", "roofline"]}, ["roofline", "sgemv"]),
        ({"file_or_dir": ["suites"]}, ["sgemv"]),
        ({"file_or_dir": [f"{suite.FOLDER}/test_roofline.py::test_roofline[x]"]}, ["roofline"]),
        ({"suite": ["roofline"], "file_or_dir": [f"{suite.FOLDER}/test_roofline.py"]}, ["roofline"]),
    ],
)
def test_which_suites_are_measured(asked: dict[str, list[str]], found: list[str]) -> None:
    """As named, else by the files that pytest is given, else the default; the run says so."""
    chosen = selection(**asked)
    assert list(chosen.cases()) == found
    assert chosen.options.suites == tuple(found)


@pytest.mark.parametrize(
    ("asked", "wanted"),
    [
        ({"suite": ["roofline"]}, (3, 0.02)),
        ({"suite": ["roofline"], "trials": "7", "max_time": "0.5"}, (7, 0.5)),
        ({"suite": ["roofline", "sgemv"]}, (5, 0.15)),
        ({"suite": ["roofline"], "quick": True}, (3, 0.02)),
        ({"suite": ["sgemv"], "quick": True}, (3, 0.03)),
    ],
)
def test_a_suites_own_trials_and_time(asked: dict[str, object], wanted: tuple[int, float]) -> None:
    """Unless the command says otherwise; of several, the most that one asks for; no more in a coarse look."""
    found = selection(**asked).options
    assert (found.trials, found.max_time_s) == wanted


def test_several_suites_are_one_run() -> None:
    """What both have is measured once, as the first one's, and all lies in one order."""
    chosen = selection(suite=["sgemv", "roofline"])
    found = chosen.cases()
    both = [*found["sgemv"], *found["roofline"]]
    assert len(set(both)) == len(both)
    order = chosen.order()
    assert sorted(order, key=order.__getitem__) == list(order)
    assert set(order) == set(both)
    square = [case for case in order if case.problem == Problem(m=4096, k=4096) and case.cache is Cache.COLD]
    assert {"F.linear", "torch.mv", "sgemv_cpu_f32"} <= {case.kernel for case in square}
    places = [order[case] for case in square]
    assert places == list(range(places[0], places[0] + len(places))), "another problem lies between"


@pytest.mark.usefixtures("gpu")
def test_dtypes_keep_what_a_suite_has_of_them() -> None:
    """--dtype, repeatable."""
    found = cases(suite=["roofline"], dtype=["bfloat16", "int8"])
    assert {case.problem.dtype for case in found} == {"bfloat16", "int8"}
    assert {case.kernel for case in found} == {"torch.matmul", "F.linear", "bgemv", "gemv_w8", "read"}


@pytest.mark.usefixtures("gpu")
def test_dtypes_of_typed_shapes() -> None:
    """Each shape in each dtype, unless it says one of them itself."""
    both = selection(shape=["64x64", "8x8x4:col"], dtype=["float16", "bfloat16"])
    assert both.problems == tuple(
        parse_shape(text) for text in ("64x64:float16", "64x64:bfloat16", "8x8x4:float16:col", "8x8x4:bfloat16:col")
    )
    assert selection(shape=["8x8:int8", "64x64"]).problems == (parse_shape("8x8:int8"), parse_shape("64x64"))
    assert selection(shape=["8x8:int8", "8x8"], dtype=["int8"]).problems == (parse_shape("8x8:int8"),)


@pytest.mark.usefixtures("gpu")
def test_a_typed_shape_by_the_kernels_of_a_suite() -> None:
    """In place of its problems: neither ceilings nor energy, which are about problems of their own."""
    found = cases(suite=["roofline"], shape=["512x512x2:float16"])
    assert {case.problem for case in found} == {parse_shape("512x512x2:float16")}
    assert {case.timer for case in found} == {"graph", "sync"}
    assert {case.kernel for case in found} == {"torch.matmul", "F.linear", "torch.mv", "hgemv", "read"}
    named = cases(suite=["roofline"], shape=["512x512:float16"], timer=["energy"], kernel=["hgemv"])
    assert {(case.kernel, case.timer) for case in named} == {("torch.matmul", "energy"), ("hgemv", "energy")}


@pytest.mark.usefixtures("gpu")
def test_names_cut_a_suite_down() -> None:
    """A kernel beside what it is judged by, where the suite has it; a timer; a state of the cache."""
    by_kernel = cases(suite=["roofline"], kernel=["hgemv"])
    assert {case.kernel for case in by_kernel} == {"hgemv", "torch.matmul", "read"}
    assert {case.timer for case in cases(suite=["roofline"], timer=["energy"])} == {"energy"}
    assert {case.timer for case in cases(suite=["roofline"], cache=["hot"])} == {"sync-50", "async", "graph"}
    assert {case.timer for case in cases(suite=["roofline"], quick=True)} == {"graph"}


def test_a_suites_timer_for_another_suite() -> None:
    """Where it is named; unnamed, those of a bench alone."""
    assert {case.timer for case in cases(timer=["sync-50"])} == {"sync-50"}
    assert {case.timer for case in cases()} == {"async", "sync"}


@pytest.mark.parametrize(
    ("asked", "line"),
    [
        ({"suite": ["sgemm"]}, "--suite: found 'sgemm', wanted one of: sgemv, roofline"),
        (
            {"suite": ["sgemv"], "file_or_dir": [f"{suite.FOLDER}/test_roofline.py"]},
            "suites/test_roofline.py is no file of --suite sgemv; leave one out",
        ),
        ({"dtype": ["half"]}, "--dtype: found 'half', wanted one of: float32, tf32, float16, bfloat16, int8"),
        (
            {"dtype": ["float16"]},
            "--dtype: no problem of suite sgemv is float16, wanted one of: float32; or name problems by --shape",
        ),
        (
            {"shape": ["8x8:int8"], "dtype": ["float16"]},
            "8x8:int8: says its own dtype, and float16 was asked for all; leave one of them out",
        ),
        (
            {"kernel": ["hgemv"]},
            "--kernel: hgemv is made for float16, and no problem of suite sgemv is of that; name one, as --shape 4096x",
        ),
        (
            {"kernel": ["gemv_w8"], "shape": ["8x8:float16"]},
            "--kernel: gemv_w8 is made for int8, and no problem of --shape is of that; name one, as --shape 4096x4096:",
        ),
        (
            {"kernel": ["sgemv_tiles"], "suite": ["roofline"]},
            "--kernel: suite roofline has no case of sgemv_tiles with these options",
        ),
        ({"timer": ["sync-50"], "cache": ["cold"]}, "--timer: suite sgemv has no case by sync-50 with these options"),
        ({"timer": ["energy"]}, "--timer: energy does not work on cpu, wanted one of: async, sync"),
        *(
            ({name: True, "suite": ["roofline"]}, f"--{name}: is for suite sgemv alone; leave it or roofline out")
            for name in ("regimes", "variants", "selfcheck", "peers")
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, dict) else "",
)
def test_what_measures_nothing_is_one_line(asked: dict[str, object], line: str) -> None:
    """Where, what was found, what to do."""
    with pytest.raises(CommandError) as caught:
        cases(**asked)
    assert str(caught.value).startswith(line)
    assert caught.value.code is Exit.USAGE


@pytest.mark.parametrize(("typed", "code"), [("cpu", Exit.USAGE), (None, Exit.INFRASTRUCTURE)])
def test_what_a_suite_has_on_a_gpu_alone_needs_one(
    monkeypatch: pytest.MonkeyPatch, typed: str | None, code: Exit
) -> None:
    """A dtype or a kernel of the roofline suite; not what it has nowhere, nor what is typed as a problem."""
    monkeypatch.setattr(options, "device_of", lambda _: ("cpu", None))
    monkeypatch.setattr(options, "why_no_gpu", lambda: "none is here")
    why = "--device cpu" if typed else "none is here"
    for asked, named in (
        ({"dtype": ["float16"], "kernel": ["hgemv"]}, "--dtype float16"),
        ({"kernel": ["hgemv"]}, "--kernel hgemv"),
    ):
        with pytest.raises(CommandError) as caught:
            cases(device=typed, suite=["roofline"], **asked)
        said = f"{named}: needs a GPU in suite roofline, and this would run on the CPU: {why}"
        assert (str(caught.value), caught.value.code) == (said, code)
    with pytest.raises(CommandError, match=r"^--kernel: suite roofline has no case of read with") as caught:
        cases(device=typed, suite=["roofline"], kernel=["read"], cache=["hot"])
    assert caught.value.code is Exit.USAGE
    assert {case.kernel for case in cases(device=typed, suite=["roofline"], kernel=["hgemv"], shape=["8x8:float16"])}


def test_other_suites_are_not_even_imported(tmp_path: Path) -> None:
    """One that cannot be imported is no trouble to the others; what a CPU leaves out is among the notes."""
    (tmp_path / "tells.py").write_text(
        "import sys\n"
        "def pytest_collection_finish(session):\n"
        "    print('imported', [name for name in sys.modules if name.startswith('suites.test_')])\n"
    )
    path = f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    for name, other in (("roofline", "sgemv"), ("sgemv", "roofline")):
        done = suites(
            *("--collect-only", "-q", "-s", "--device", "cpu", "--suite", name, "-p", "tells", "--store", tmp_path),
            PYTHONPATH=path,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert f"suites/test_{name}.py::test_{name}[torch.matmul-4096x4096-async-cold]" in done.stdout
        (imported,) = (line for line in done.stdout.splitlines() if line.startswith("imported"))
        assert f"test_{name}'" in imported
        assert other not in imported
    assert CPU_NOTE in selection(suite=["roofline"]).notes
    assert selection().notes == ()
