"""Users' kernels in a bench on the CPU: whatever one does costs its own cases, and no other."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from harness.bench import Bench
from harness.model import Cache, Case, Measurement, Options, Problem, Role, Word
from harness.store import Store, load, verify
from kernels.own.registry import Own, of_files
from tests.built import library, shared_cache

FOLDER = Path(__file__).parent / "own_kernels"
FAULTS = FOLDER / "faults.py"
PROBLEM = Problem(m=6, k=11)


def line(text: str) -> int:
    """Of the file of faults, where the text stands."""
    return next(n for n, each in enumerate(FAULTS.read_text().splitlines(), 1) if text in each)


OUTCOMES = {
    "raises": (Word.CRASHED, f"faults.py:{line('raise ValueError')}: ValueError: first line"),
    "calls_torch_wrongly": (
        Word.CRASHED,
        f"faults.py:{line('torch.ones(2) +')}: RuntimeError: The size of tensor a (2) must match",
    ),
    "exits": (Word.CRASHED, "exited with code 1 while its results were checked: words of its own"),
    "prints": (Word.PASSED, None),
    "prints_by_c": (Word.PASSED, None),
    "asks_for_input": (Word.CRASHED, f"faults.py:{line('a request')}: EOFError: EOF when reading a line"),
    "closes_standard_streams": (Word.PASSED, None),
    "comes_back_twice": (Word.PASSED, None),
    "dies_beside_its_child": (Word.CRASHED, "exited with code 7 while its results were checked"),
    "sets_the_default_dtype": (Word.PASSED, None),
    "asks_for_tf32": (Word.PASSED, None),
    "changes_folder": (Word.PASSED, None),
    "binds_nothing": (
        Word.CRASHED,
        f"faults.py:{line('binds_nothing')}: TypeError: bind of 'binds_nothing' returned None, wanted a function: ",
    ),
    "returns_what_it_computed": (
        Word.CRASHED,
        f"faults.py:{line('returns_what')}: TypeError: bind of 'returns_what_it_computed' returned a value of ",
    ),
    "takes_no_operands": (Word.CRASHED, f"faults.py:{line('takes_no')}: TypeError: takes_no_operands() takes 0 "),
    "launch_wants_more": (Word.CRASHED, f"faults.py:{line('launch_wants')}: TypeError: launch_wants_more.<locals>."),
    "writes_nothing": (Word.WRONG, "integers: 6 of 6 y not written"),
    "fails_to_bind": (
        Word.CRASHED,
        f"faults.py:{line('1 // 0')}: ZeroDivisionError: integer division or modulo by zero",
    ),
    "says_yes": (
        Word.CRASHED,
        f"faults.py:{line('says_yes')}: TypeError: unsupported of 'says_yes' returned a value of type bool, wanted a ",
    ),
    "takes_even_k": (Word.UNSUPPORTED, "K=11 is odd"),
    "cannot_tell": (
        Word.CRASHED,
        f"faults.py:{line('problem.depth')}: AttributeError: 'Problem' object has no attribute 'depth'",
    ),
    "drops_the_last_element": (Word.WRONG, "integers: 6 of 6 wrong"),
}


def case(kernel: str, problem: Problem = PROBLEM) -> Case:
    return Case(kernel=kernel, role=Role.GEMV, problem=problem, timer="async", cache=Cache.HOT)


def options() -> Options:
    return Options(trials=1, max_time_s=0.002, quick=False, device="cpu", command=("a", "test"))


class Measured:
    """Each faulty kernel, and behind it a right one."""

    def __init__(self, root: Path) -> None:
        library("cpu")
        self.by_kernel: dict[str, Measurement] = {}
        self.behind: dict[str, Measurement] = {}
        self.registry = of_files([FAULTS])
        bench = Bench(registry=self.registry, store=Store(root), options=options())
        with bench as started:
            for kernel in OUTCOMES:
                self.by_kernel[kernel] = started.measure(case(kernel))
                self.behind[kernel] = started.measure(case("torch.matmul"))
            published = started.publish()
        assert published is not None
        self.folder = published


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Measured:
    """Shared; nothing may write to it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SGEMV_CACHE", str(shared_cache()))
        return Measured(tmp_path_factory.mktemp("own"))


@pytest.mark.parametrize("kernel", OUTCOMES)
def test_whatever_a_kernel_does_is_its_own_verdict(measured: Measured, kernel: str) -> None:
    """With the line of the user's file where it raised, in one line."""
    verdict = measured.by_kernel[kernel].verdict
    word, reason = OUTCOMES[kernel]
    assert verdict.word is word, verdict.reason
    if reason is None:
        assert measured.by_kernel[kernel].samples_ns
    else:
        assert verdict.reason is not None
        assert verdict.reason.startswith(reason)
        assert "\n" not in verdict.reason


@pytest.mark.parametrize("kernel", OUTCOMES)
def test_it_costs_no_other_case(measured: Measured, kernel: str) -> None:
    """The right kernel behind it is right, and measured."""
    assert measured.behind[kernel].verdict.word is Word.PASSED, measured.behind[kernel].verdict.reason
    assert measured.behind[kernel].samples_ns


def test_what_it_printed_is_kept(measured: Measured) -> None:
    """Its beginning, with what a library of C printed, and of no other kernel; also where it then ended its process."""
    printed = {name: each.trials[0].printed for name, each in measured.by_kernel.items()}
    assert (printed["prints"] or "").startswith('{"result": "mine", "lost": null}\n')
    assert len(printed["prints"] or "") == 4000
    assert printed["prints_by_c"] == "from C, no newline"
    assert printed["exits"] == "words of its own"
    assert printed["changes_folder"] is None
    assert measured.behind["prints"].trials[0].printed is None
    there = {each.case.kernel: each.trials[0].printed for each in load(measured.folder).measurements}
    assert there["prints"] == printed["prints"]


def test_the_run_keeps_the_file(measured: Measured) -> None:
    """As it was, with its hash, for whoever looks at a figure of its kernels later."""
    verify(measured.folder)
    (build,) = (each for each in load(measured.folder).builds if each.target == "own/faults")
    assert list(build.sources_sha256) == ["faults.py"]
    assert build.sources_by_kernel["right"] == ("faults.py",)
    assert (measured.folder / "build/own/faults/sources/faults.py").read_bytes() == FAULTS.read_bytes()
    assert load(measured.folder).kernels["right"] == "torch.matmul."
    assert str(FOLDER) not in (measured.folder / "run.json").read_text()


def test_a_file_that_is_edited_meanwhile_is_not_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The record has the hash of what was there when the bench began; every other kernel is measured."""
    monkeypatch.setenv("SGEMV_CACHE", str(shared_cache()))
    library("cpu")
    file = tmp_path / "edited.py"
    file.write_bytes(FAULTS.read_bytes())
    with Bench(registry=of_files([file]), store=Store(tmp_path / "store"), options=options()) as started:
        file.write_text(f"{FAULTS.read_text()}\n# another thought\n")
        found = started.measure(case("right")).verdict
        assert (found.word, found.reason) == (
            Word.CRASHED,
            "edited.py: was changed since the bench began; start it again",
        )
        assert started.measure(case("torch.matmul")).verdict.word is Word.PASSED


def test_a_traceback_is_shown_where_it_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a kernel's own error, while the bench goes on; the run keeps it too."""
    monkeypatch.setenv("SGEMV_CACHE", str(shared_cache()))
    monkeypatch.setenv("SGEMV_TRACEBACK", "1")
    library("cpu")
    told: list[str] = []
    with Bench(registry=of_files([FAULTS]), store=Store(tmp_path), options=options(), say=told.append) as started:
        found = started.measure(case("raises")).trials[0]
    (shown,) = (each for each in told if "Traceback" in each)
    assert f'File "{FAULTS}", line {line("raise ValueError")}, in raises' in shown
    assert found.printed == shown


def test_no_code_of_a_user_runs_here(measured: Measured) -> None:
    """Listing, building and asking what a kernel takes leave it to other processes."""
    assert isinstance(measured.registry, Own)
    kernel = measured.registry.kernels()["takes_even_k"]
    assert kernel.unsupported(PROBLEM) is None
    assert kernel.unsupported(Problem(m=6, k=11, dtype="float16")) == "dtype is float16, wanted float32"
    assert "own_faults" not in sys.modules
