"""`python -m harness.sanitize`: what it asks compute-sanitizer, what it says of its reports, and each way to fail."""

from __future__ import annotations

import itertools
import json
import shutil
import sysconfig
from pathlib import Path
from typing import Any

import pytest
import torch

from harness.device import GpuStatus, Usability
from harness.errors import CommandError, Exit
from harness.sanitize import __main__ as sanitize
from harness.sanitize import target, tool
from kernels import registry
from tests import planted_cuda, planted_kernels
from tests.built import library, shared_cache
from tests.fake_sanitizer import (
    CLEAN,
    HAZARD,
    MANY_ERRORS,
    MANY_HAZARDS,
    NO_HAZARD,
    NOTHING,
    OVERRUN,
    fake,
    said,
)
from tests.fake_tool import calls, environment

OWN = """\
import torch
from kernels.own import kernel

@kernel("my.own")
def bind(operands):
    assert operands.a.numel() and operands.x.storage_offset() == 0
    assert operands.x.t().is_contiguous() and operands.y.t().is_contiguous()
    return lambda: torch.matmul(operands.a, operands.x, out=operands.y)

@kernel("my.bad", unsupported=lambda problem: "n > 1" if problem.n > 1 else None)
def bad(operands):
    return lambda: nothing
"""
ONE = {"kernel": "mine", "launches": 24, "faults": []}
WELL = said(target.STARTED, ONE, target.DONE)


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a machine with a GPU, and with nothing to build."""
    monkeypatch.setattr("harness.tool.gpu_status", lambda *_: GpuStatus(word=Usability.USABLE))
    monkeypatch.setattr(registry, "prepare", lambda _: ())
    monkeypatch.setattr(planted_kernels, "prepare", lambda _: (), raising=False)


def run(folder: Path, *arguments: str, registry: str = "kernels.registry") -> int:
    return sanitize.main(
        ["--registry", registry, "--sanitizer", str(folder / "compute-sanitizer"), "--reports", str(folder), *arguments]
    )


@pytest.mark.usefixtures("gpu")
def test_a_real_process_under_a_clean_tool(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It launches a right and a wrong kernel; the wrong one is told, though the tool finds nothing."""
    monkeypatch.setattr(sanitize, "DEVICE", "cpu")
    fake(tmp_path, {"runs": True, "log": CLEAN})
    wanted = ["--kernel", "right", "--kernel", "drops_the_last_element", "--tool", "memcheck"]
    assert run(tmp_path, *wanted, registry="tests.planted_kernels") == 5
    shown = capsys.readouterr()
    assert shown.out.startswith("memcheck: clean; 2 kernels, 98 launches, ")
    assert shown.out.endswith(f"; report: {tmp_path}/memcheck.txt\n")
    assert shown.err.startswith("memcheck: drops_the_last_element on 1x1: 1 of 1 wrong, first y[0]: found 0, wanted ")
    assert shown.err.endswith("; and on 45 more\n")
    assert shown.err.count("\n") == 1
    (arguments,) = calls(tmp_path)
    assert environment(tmp_path)["PYTORCH_NO_CUDA_MEMORY_CACHING"] == "1"
    assert arguments[arguments.index("--destroy-on-device-error") + 1] == "kernel"
    assert arguments[arguments.index("--report-api-errors") + 1] == "no"


@pytest.mark.usefixtures("gpu")
def test_every_tool_over_every_kernel(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A process and a line a tool; variants of `read` and kernels by name only too, but none of torch's."""
    stories = [{"log": NO_HAZARD if name == "racecheck" else CLEAN, "stdout": WELL} for name in tool.TOOLS]
    fake(tmp_path, *stories)
    assert run(tmp_path) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines] == ["memcheck", "racecheck", "initcheck", "synccheck"]
    assert all(": clean; 1 kernels, 24 launches, " in line for line in lines)
    for arguments in calls(tmp_path):
        names = {word for before, word in itertools.pairwise(arguments) if before == "--kernel"}
        assert {"empty", "read_stream_8", "sgemv_k16_f32"} <= names
        by_name_only = {name for name, kernel in registry.kernels().items() if kernel.by_name_only}
        assert names >= {name for name in by_name_only if "." not in name}
        assert not names & {"read", "torch.matmul", "torch.mv", "sgemv_cpu_f32", "read_cpu_thread"}


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize(
    ("report", "line"),
    [
        (
            OVERRUN,
            "2 errors, the first: Invalid __global__ read of size 16 bytes at sgemv::mine_kernel(sgemv::Args)+0x1a0",
        ),
        (
            HAZARD,
            "1 hazard displayed (0 errors, 1 warning), the first: Warning: Race reported between Read access at ",
        ),
        (
            MANY_HAZARDS,
            "100 hazards displayed (0 errors, 101 warnings), the first: Warning: Race reported between Write access at",
        ),
        (MANY_ERRORS, "120 errors, the first: Invalid __global__ read of size 16 bytes at sgemv::mine_kernel(sgemv::"),
    ],
)
def test_what_a_tool_finds(tmp_path: Path, capsys: pytest.CaptureFixture[str], report: str, line: str) -> None:
    """5, its own count and the first with its place; the other tools run all the same. A warning is no clean run."""
    fake(tmp_path, {"log": report, "stdout": WELL, "code": 1}, {"log": CLEAN, "stdout": WELL})
    assert run(tmp_path, "--tool", "racecheck", "--tool", "synccheck") == 5
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith(f"racecheck: {line}")
    assert second.startswith("synccheck: clean; ")
    assert (tmp_path / "racecheck.txt").read_text() == report


@pytest.mark.parametrize(
    ("play", "code", "words"),
    [
        (
            {"log": NOTHING, "stdout": "", "stderr": "a warning\n"},
            Exit.INFRASTRUCTURE,
            "failed, exit code 0: Error: Target application terminated before first instrumented API call",
        ),
        ({"stdout": "", "stderr": "no such option\n", "code": 2}, Exit.INFRASTRUCTURE, "failed, exit code 2: no such "),
        (
            {"log": "", "stdout": said(target.STARTED), "code": 9},
            Exit.INFRASTRUCTURE,
            "exit code 9: it said nothing",
        ),
        (
            {
                "log": CLEAN,
                "stdout": said(target.STARTED, ONE) + "noise\n",
                "stderr": "RuntimeError: x\n",
                "code": 1,
            },
            Exit.KERNEL,
            "memcheck: the process ended after mine: RuntimeError: x; report: ",
        ),
        (
            {"log": CLEAN, "stdout": WELL, "code": 245},
            Exit.KERNEL,
            "memcheck: the process ended after mine: exit code 245; report: ",
        ),
        (
            {"log": OVERRUN, "stdout": said(target.STARTED), "code": 1},
            Exit.KERNEL,
            "memcheck: the process ended in the first kernel: Invalid __global__ read of size 16 bytes at sgemv::mine_",
        ),
    ],
)
def test_each_failure_is_one_line(tmp_path: Path, play: dict[str, Any], code: Exit, words: str) -> None:
    """Whether a kernel or the tool is to blame decides the code."""
    with pytest.raises(CommandError) as caught:
        tool.check(fake(tmp_path, play), "memcheck", [], tmp_path / "report.txt")
    assert caught.value.code is code
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_old_report_is_not_taken_for_a_new_one(tmp_path: Path) -> None:
    """Where the tool wrote none."""
    (tmp_path / "report.txt").write_text(CLEAN)
    with pytest.raises(CommandError, match="failed, exit code 0: it said nothing"):
        tool.check(fake(tmp_path, {"stdout": WELL}), "memcheck", [], tmp_path / "report.txt")


def test_a_process_that_hangs_is_killed(tmp_path: Path) -> None:
    """With the tool."""
    found = fake(tmp_path, {"stdout": WELL, "log": CLEAN, "sleep_s": 60})
    with pytest.raises(CommandError, match=r"^synccheck: hung, killed after 0\.5 s under compute-sanitizer$") as caught:
        tool.check(found, "synccheck", [], tmp_path / "report.txt", timeout_s=0.5)
    assert caught.value.code is Exit.KERNEL


@pytest.mark.usefixtures("gpu")
def test_a_tool_that_fails_is_not_tried_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What keeps one from running keeps them all."""
    fake(tmp_path, {"stdout": "", "code": 1})
    assert run(tmp_path) == 6
    assert capsys.readouterr().err.count("\n") == 1
    assert len(calls(tmp_path)) == 1


def test_compute_sanitizer_is_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By --sanitizer, on PATH, in the CUDA toolkit, among PyPI's wheels; else what to install."""
    found = fake(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert tool.find(None) == found
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "cuda"))
    monkeypatch.setattr(sysconfig, "get_path", lambda _: str(tmp_path / "site"))
    assert tool.find(found) == found
    with pytest.raises(
        CommandError, match=r"no compute-sanitizer .*; .* pip install nvidia-cuda-sanitizer-api "
    ) as caught:
        tool.find(None)
    assert caught.value.code is Exit.INFRASTRUCTURE
    with pytest.raises(CommandError, match="--sanitizer: found '/no/such', which is no executable"):
        tool.find("/no/such")
    for folder in (tmp_path / "site" / "nvidia" / "cu13" / "bin", tmp_path / "cuda" / "bin"):
        folder.mkdir(parents=True)
        assert fake(folder) == tool.find(None)


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--kernel", "nope"), "--kernel: found 'nope', wanted one of "),
        (("--kernel", "sgemv_cpu_f32"), "--kernel: found 'sgemv_cpu_f32', wanted one of "),
        (("--kernels", "no.py"), "--kernels: found 'no.py', which is no such file (looked at "),
        (("--tool", "valgrind"), "harness.sanitize: argument --tool: invalid choice: 'valgrind'"),
    ],
)
def test_wrong_values_are_one_line(
    tmp_path: Path, arguments: tuple[str, ...], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before anything is built."""
    assert run(tmp_path, *arguments) == 2
    said_words = capsys.readouterr().err
    assert said_words.startswith(words)
    assert said_words.count("\n") == 1


def test_without_a_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """It says why, in a line."""
    none = GpuStatus(word=Usability.NONE, reason="no NVIDIA GPU found")
    monkeypatch.setattr("harness.tool.gpu_status", lambda *_: none)
    assert run(tmp_path) == 6
    assert capsys.readouterr().err == "sanitize needs an NVIDIA GPU: no NVIDIA GPU found\n"


@pytest.mark.usefixtures("gpu")
def test_a_limit_by_its_name_is_its_variants(tmp_path: Path) -> None:
    """Each is a kernel of its own."""
    fake(tmp_path, {"log": CLEAN, "stdout": WELL})
    assert run(tmp_path, "--kernel", "read", "--tool", "memcheck") == 0
    arguments = calls(tmp_path)[0]
    names = [word for before, word in itertools.pairwise(arguments) if before == "--kernel"]
    assert names == [each.name for each in registry.kernels()["read"].variants if "cuda" in each.devices]


@pytest.mark.usefixtures("gpu")
def test_kernels_of_a_users_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """These alone, unless others are named, on what a bench may give them; an error has its line."""
    monkeypatch.setattr(sanitize, "DEVICE", "cpu")
    monkeypatch.setenv("SGEMV_CACHE", str(shared_cache()))
    library("cpu")
    (tmp_path / "mine.py").write_text(OWN)
    fake(tmp_path, {"runs": True, "log": CLEAN})
    assert run(tmp_path, "--kernels", str(tmp_path / "mine.py"), "--tool", "memcheck") == 5
    shown = capsys.readouterr()
    assert shown.out.startswith("memcheck: clean; 2 kernels, ")
    assert shown.err.startswith(
        "memcheck: my.bad on 1x1: mine.py:12: NameError: name 'nothing' is not defined; and on "
    )
    assert shown.err.count("\n") == 1


def test_the_process_says_how_far_it_came(capsys: pytest.CaptureFixture[str]) -> None:
    """A line a kernel; what raises is a fault of its own."""
    options = ["--registry", "tests.planted_kernels", "--device", "cpu"]
    assert target.main([*options, "--kernel", "right", "--kernel", "runs_out_of_memory"]) == 0
    first, *kernels, last = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert (first, last) == (target.STARTED, target.DONE)
    assert kernels[0] == {"kernel": "right", "launches": 49, "faults": []}
    assert (kernels[1]["launches"], len(kernels[1]["faults"])) == (49, 49)


FAULTS = [name for name in planted_cuda.kernels() if name != "planted_right"]


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")
@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_found(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By the tool that is there for it, on a GPU, in a kernel whose results are right; the right kernel is clean."""
    if shutil.which("compute-sanitizer") is None:
        pytest.skip("no compute-sanitizer on PATH")
    wanted = name.removeprefix("planted_")
    options = ["--registry", "tests.planted_cuda", "--reports", str(tmp_path), "--tool", wanted]
    assert sanitize.main([*options, "--kernel", "planted_right"]) == 0
    assert capsys.readouterr().out.startswith(f"{wanted}: clean; 1 kernels, ")
    assert sanitize.main([*options, "--kernel", name]) == 5
    assert f"{name}_kernel" in capsys.readouterr().out


def test_every_tool_has_a_planted_fault() -> None:
    """None is taken on trust."""
    assert {name.removeprefix("planted_") for name in FAULTS} == set(tool.TOOLS)
