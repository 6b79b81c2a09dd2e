"""harness.reproduce.request: what is taken of a recorded command line, and what is left out or refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from harness.errors import CommandError
from harness.model import Run
from harness.reproduce.request import request_of
from tests.sample_run import HOSTILE, cuda_build, gpu_run


def asked(*words: str, on: str = "cuda:0") -> Run:
    run = gpu_run(shapes=((64, 64),), kernels={}, trials=1)
    return replace(run, options=replace(run.options, command=words, device=on))


BENCH = ("nox", "-s", "bench", "--")


@pytest.mark.parametrize(
    ("words", "arguments", "left_out"),
    [
        (("nox", "-s", "bench"), "suites --device=cuda:0", ""),
        (("nox", "-s", "selfcheck", "--", "--store", "/x"), "suites --selfcheck --device=cuda:0", ""),
        ((*BENCH, "--timer", "graph", "--trials=9", "--ref=b"), "suites --timer=graph --trials=9 --device=cuda:0", ""),
        (
            ("nox", "-s", "peers", "--", "--kernel", "a", "--kernel=b", "-k", "not read", "--max-time", "0.1"),
            "suites --kernel=a --kernel=b --max-time=0.1 -k|not read --peers --device=cuda:0", "",
        ),
        (
            ("python", "-m", "pytest", "suites/test_sgemv.py", "-x", "--device", "cuda:3", "--path-file=x"),
            "suites/test_sgemv.py --device=cuda:0", "-x",
        ),
        ((*BENCH, "-p", "evil", "--rootdir=/x", "/etc/x.py", "suites/../x.py"), "suites --device=cuda:0",
         "-p evil --rootdir=/x /etc/x.py suites/../x.py"),
        ((*BENCH, "--first-element=1", "--layout", "col", "--row-stride", "70", "--shape", "8x8:col"),
         "suites --shape=8x8:col --layout=col --row-stride=70 --first-element=1 --device=cuda:0", ""),
        ((*BENCH, "--shape", "8x8", "-q", "--benchmark-json=/etc/passwd"), "suites --shape=8x8 --device=cuda:0",
         "-q --benchmark-json=/etc/passwd"),
        ((*BENCH, "--regimes"), "suites --regimes --device=cuda:0", ""),
        (("nox", "-s", "tune", "--", "--trials=9", "--shape=8x8"),
         "suites --shape=8x8 --timer=graph --cache=cold --trials=9 --variants --device=cuda:0", ""),
        (("nox", "-s", "roofline", "--", "--dtype", "float16", "--dtype=int8"),
         "suites --suite=roofline --dtype=float16 --dtype=int8 --device=cuda:0", ""),
    ],
    ids=["all", "selfcheck", "one timer", "peers", "pytest", "hostile", "a view", "files", "regimes", "tune",
         "roofline"],
)  # fmt: skip
def test_only_options_that_say_what_is_measured_are_taken(
    words: tuple[str, ...], arguments: str, left_out: str
) -> None:
    """In the words of the suites, on the device that the run had; what is left out is told."""
    found = request_of(asked(*words), Path())
    wanted = [part.replace("|", " ") for part in arguments.split(" ")] if "|" not in arguments else None
    assert " ".join(found.arguments) == arguments.replace("|", " ")
    assert wanted is None or list(found.arguments) == wanted
    assert " ".join(found.left_out) == left_out


@pytest.mark.parametrize(
    ("run", "line"),
    [
        (
            asked("rm", "-rf", "/"),
            "the run's command line is 'rm -rf /', wanted nox -s bench or python -m pytest suites",
        ),
        (
            asked("nox", "-s", "lint"),
            "the run's command line is 'nox -s lint', wanted nox -s bench or python -m pytest",
        ),
        (asked(*BENCH, "--trials"), "the run's command line: pytest: argument --trials: expected one argument"),
        (asked("nox", "-s", "bench", on="cuda;x"), "the run's device is 'cuda;x', wanted cpu, cuda or cuda:N"),
        (asked(HOSTILE), "the run's command line is "),
    ],
)
def test_a_command_line_that_measures_nothing(run: Run, line: str) -> None:
    with pytest.raises(CommandError) as error:
        request_of(run, Path())
    assert str(error.value).startswith(f"cannot be tried: {line}")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("target", ["own/x", "own/../../elsewhere", "own/../own2/x", "own"])
def test_own_kernels_are_those_that_the_run_keeps(target: str, tmp_path: Path) -> None:
    """Whatever the file of the command line has become; nothing outside of the run is taken for one."""
    build = replace(cuda_build(), target=target, library="x.py")
    for name in ("run/build/own/x", "elsewhere", "run/build/own2/x"):
        (tmp_path / name / "sources").mkdir(parents=True)
        (tmp_path / name / "sources" / "x.py").write_text("")
    run = replace(asked(*BENCH, "--kernels", "/etc/evil.py"), builds=(cuda_build(), build))
    folder = tmp_path / "run"
    if target == "own/x":
        kept = folder.resolve() / "build/own/x/sources/x.py"
        assert request_of(run, folder).arguments == ("suites", f"--kernels={kept}", "--device=cuda:0")
    else:
        with pytest.raises(CommandError, match=r"^cannot be tried: the run's own kernels: .*x\.py is no file of "):
            request_of(run, folder)


def test_own_kernels_that_are_not_kept() -> None:
    """As of a run whose record was cut down."""
    with pytest.raises(CommandError, match=r"^cannot be tried: the run keeps no file of --kernels$"):
        request_of(asked(*BENCH, "--kernels", "x.py"), Path())


def test_problems_of_a_file_are_those_that_were_measured() -> None:
    """In every word that says one; the file may be another by now."""
    options = (*BENCH, "--shapes", "s.csv", "--dtype", "float32", "--shape", "9x9", "--layout=col")
    run = gpu_run(shapes=((64, 64), (8, 16)), trials=1)
    run = replace(run, options=replace(run.options, command=options, device="cuda:0"))
    assert request_of(run, Path()).arguments == ("suites", "--shape=64x64", "--shape=8x16", "--device=cuda:0")
