"""--kernels and --shapes: files of users' kernels and problems, selected as a user types them, and measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.errors import CommandError
from harness.model import Case, Kernel, Problem, Role
from harness.problems import parse_shape
from harness.reproduce.request import request_of
from harness.store import Store, load
from kernels import registry
from kernels.own import registry as own_registry
from kernels.own.load import Listed, Listing
from suites import options
from suites.selection import without_device
from tests.running_suites import QUICKLY, selection, suites

MINE = """\
import torch
from kernels.own import kernel

@kernel("mine")
def bind(operands):
    return lambda: torch.matmul(operands.a, operands.x, out=operands.y)

@kernel("wrong")
def bind_wrong(operands):
    return lambda: operands.y.fill_(1.0)
"""


@pytest.fixture
def own(monkeypatch: pytest.MonkeyPatch) -> dict[str, Kernel]:
    """The registry with two kernels of a user's, one for float16 alone."""

    def listed(name: str, dtype: str) -> Listed:
        return Listed(name=name, line=1, summary="", dtypes=(dtype,), devices=("cuda", "cpu"))

    listing = Listing(kernels=(listed("mine", "float32"), listed("his", "float16")), sources={}, packages=())
    monkeypatch.setattr(own_registry, "listing", lambda _: listing)
    kernels = own_registry.of_files([Path("/x/mine.py")]).kernels()
    monkeypatch.setattr(registry, "kernels", lambda: kernels)
    return kernels


def measured(**asked: object) -> list[Case]:
    return [case for cases in selection(**asked).cases().values() for case in cases]


@pytest.mark.usefixtures("own")
def test_own_kernels_are_measured_because_their_file_is_named() -> None:
    """Beside what else is; --kernel names others, or of them those alone that it names."""
    two = ["8x8", "8x8:float16"]
    names = {case.kernel for case in measured(shape=two)}
    assert names == {*(each.kernel for each in measured(shape=two, kernel=["mine", "his"])), "sgemv_cpu_f32"} | {
        name for name in names if name in ("torch.mv", "sgemv", "hgemv") or name.startswith("sgemv_k")
    }
    assert {case.kernel for case in measured(shape=two, kernel=["torch.mv"])} == {
        "torch.matmul", "torch.mv", "mine", "his", "read", "empty",
    }  # fmt: skip
    assert {case.kernel for case in measured(shape=two, kernel=["mine"])} == {"torch.matmul", "mine", "read", "empty"}


@pytest.mark.usefixtures("own")
def test_an_own_kernel_without_a_problem_is_said() -> None:
    """Nobody looks for it on the page in vain."""
    with pytest.raises(CommandError) as caught:
        measured(shape=["8x8"])
    said = "--kernels: his is made for float16, and no problem of --shape is of that; name one, as --shape 4096x4096:"
    assert str(caught.value) == f"{said}float16"


@pytest.mark.usefixtures("own")
def test_own_kernels_are_where_the_baseline_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a suite whose grids name their kernels, but not where a grid is about its own problems."""
    monkeypatch.setattr(options, "device_of", lambda _: ("cuda:0", None))
    cases = measured(suite=["roofline"])
    beside = {(case.problem, case.timer, case.cache) for case in cases if case.kernel == "torch.matmul"}
    own = [case for case in cases if case.kernel == "his"]
    assert own
    assert {(case.problem, case.timer, case.cache) for case in own} <= beside
    assert {case.problem.dtype for case in own} == {"float16"}
    assert "energy" not in {case.timer for case in own}


@pytest.mark.usefixtures("own")
def test_a_wrong_name_may_be_of_an_own_kernel() -> None:
    """The nearest are told, and how one's own come by their names."""
    with pytest.raises(CommandError) as caught:
        measured(shape=["8x8"], kernel=["minne"])
    said = str(caught.value)
    assert said.endswith(" names (nox -s bench -- --help lists them; --kernels FILE adds your own); did you mean mine?")


def test_what_a_cpu_does_not_even_build_is_said() -> None:
    """Once a file; a GPU builds it."""
    here = {"role": Role.GEMV, "summary": "", "bind": print, "file": "/x y/mine.py"}
    kernels = [Kernel(name=name, devices=("cuda",), **here) for name in ("one", "two")]  # type: ignore[arg-type]
    kernels.append(Kernel(name="both", **here))  # type: ignore[arg-type]
    (line,) = without_device([*kernels, *registry.kernels().values()], "cpu")
    assert line.startswith(
        "one, two: neither built nor measured, for want of a CUDA device; nox -s build -- --kernels "
    )
    assert "'/x y/mine.py'" in line
    assert without_device(kernels, "cuda:0") == []


def test_shapes_of_a_file_are_measured_as_typed_ones(tmp_path: Path) -> None:
    """Behind --shape; in the dtypes and the layout that are asked for all."""
    path = tmp_path / "s.toml"
    path.write_text('shapes = ["16x16", "8x8"]')
    assert selection(shape=["8x8"], shapes=[str(path)]).problems == (Problem(m=8, k=8), Problem(m=16, k=16))
    asked = selection(shapes=[str(path)], dtype=["float16"], layout="col")
    assert asked.problems == (parse_shape("16x16:float16:col"), parse_shape("8x8:float16:col"))
    with pytest.raises(CommandError, match=r"^--regimes: has problems of its own; leave --shape, "):
        selection(shapes=[str(path)], regimes=True)


def test_a_bench_of_own_kernels(tmp_path: Path) -> None:
    """From another folder: measured, judged, kept, and named for who measures it again from what the run keeps."""
    (tmp_path / "mine.py").write_text(MINE)
    (tmp_path / "s.csv").write_text("m,k\n8,8\n16,8\n")
    done = suites(
        *QUICKLY[:2], *QUICKLY[4:], "--kernels=mine.py", "--shapes=s.csv", "--kernel", "torch.matmul",
        "--cache", "hot", "--store", tmp_path / "store", "--ref", "own", SGEMV_STANDING=str(tmp_path),
    )  # fmt: skip
    assert done.returncode == 5, done.stdout + done.stderr
    folder = Store(tmp_path / "store").resolve("own")
    run = load(folder)
    words = {(each.case.kernel, each.case.problem.m): str(each.verdict.word) for each in run.measurements}
    assert words == {
        ("empty", 1): "passed",
        **{(kernel, m): "passed" for kernel in ("torch.matmul", "mine", "read") for m in (8, 16)},
        **{("wrong", m): "wrong" for m in (8, 16)},
    }
    kept = folder / "build/own/mine/sources/mine.py"
    assert kept.read_text() == MINE
    again = request_of(run, folder).arguments
    assert {f"--kernels={kept.resolve()}", "--shape=8x8", "--shape=16x8"} < set(again)
    assert not any("s.csv" in word for word in again)


def test_an_error_in_the_file_is_one_line(tmp_path: Path) -> None:
    """Before anything is built or measured."""
    path = tmp_path / "bad.py"
    path.write_text("\n\nraise ValueError('of the user')\n")
    done = suites("-q", "--device", "cpu", f"--kernels={path}", "--store", tmp_path / "store")
    assert done.returncode == 2, done.stdout + done.stderr
    lines = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
    assert lines == [f"Exit: {path}:3: ValueError: of the user"]
    assert not (tmp_path / "store").exists()
