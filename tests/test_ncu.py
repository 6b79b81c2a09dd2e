"""Nsight Compute: what is asked of it, what it says, each way to fail, and the process that it runs."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from harness.errors import CommandError, Exit
from harness.model import Problem
from harness.ncu import output, target
from harness.ncu import tool as ncu
from harness.ncu.output import METRICS
from harness.problems import parse_shape
from kernels import registry
from tests.fake_ncu import CUBLAS, NONE_PROFILED, PERMISSION, WELL, fake, log
from tests.fake_tool import calls

TARGET = ncu.Target(
    registry="kernels.registry", device="cuda:0", kernel="torch.matmul", problem=Problem(m=4096, k=4096)
)


def failure(tool: str, **options: float) -> CommandError:
    with pytest.raises(CommandError) as caught:
        ncu.profile(tool, TARGET, **options)
    assert "\n" not in str(caught.value)
    return caught.value


def test_a_view_is_profiled_as_a_view() -> None:
    """The process under ncu is told its layout, and so is whoever reads an error of it."""
    view = replace(TARGET, problem=parse_shape("64x48:col:row_stride=70:first=1"))
    shape = view.command()[view.command().index("--shape") + 1]
    assert parse_shape(shape) == view.problem
    assert str(view) == f"torch.matmul on {shape}"


def test_numbers_are_read_by_name_and_without_their_commas(tmp_path: Path) -> None:
    """One kernel."""
    (seen,) = ncu.profile(fake(tmp_path, {"log": log(CUBLAS), "stdout": WELL}), TARGET)
    assert (seen.name, seen.grid, seen.block, seen.registers) == (CUBLAS, (512, 1, 1), (128, 1, 1), 40)
    assert (seen.duration_ns, seen.dram_bytes, seen.sectors_per_request) == (22_304, 67_145_728, 16)
    assert (seen.dram_throughput_pct, seen.occupancy_pct, seen.l2_hit_pct) == (71.25, 48.5, 3.125)
    assert seen.missing == ()


def test_clocks_are_left_alone_and_caches_flushed(tmp_path: Path) -> None:
    """What ncu is told; its words go apart from those of the process, which profiles the launch alone."""
    ncu.profile(fake(tmp_path, {"log": log(CUBLAS), "stdout": WELL}), TARGET)
    (arguments,) = calls(tmp_path)
    for option, value in {
        "--clock-control": "none", "--cache-control": "all", "--profile-from-start": "off", "--print-units": "base",
        "--page": "raw", "--metrics": ",".join(METRICS.values()), "--kernel": "torch.matmul", "--shape": "4096x4096",
        "--device": "cuda:0", "--registry": "kernels.registry", "-m": "harness.ncu.target",
    }.items():  # fmt: skip
        assert arguments[arguments.index(option) + 1] == value
    assert sys.executable in arguments


def test_units_that_were_scaled_all_the_same() -> None:
    """Base units are asked for; what is not known is refused, not taken for bytes."""
    units = {"duration_ns": "us", "dram_read_bytes": "Mbyte"}
    (seen,) = output.parse(log(CUBLAS, units=units, duration_ns="22.5", dram_read_bytes="67.25"))
    assert (seen.duration_ns, seen.dram_read_bytes) == (22_500, 67_250_000)
    with pytest.raises(CommandError, match=r"found dram__bytes_read.sum in 'furlong', wanted one of: byte, ") as caught:
        output.parse(log(CUBLAS, units={"dram_read_bytes": "furlong"}))
    assert caught.value.code is Exit.INFRASTRUCTURE


def test_a_row_that_was_cut_off_is_refused() -> None:
    """Half a number would be a wrong number."""
    with pytest.raises(CommandError, match=r"a row of \d+ columns under \d+ names"):
        output.parse(log(CUBLAS)[:-20])


def test_a_metric_without_a_value_is_none() -> None:
    """Its column is missing, or says that there is none; the rest stands."""
    (seen,) = output.parse(log(CUBLAS, leave_out=["l2_hit_pct"], dram_write_bytes="n/a", occupancy_pct="nan"))
    assert seen.missing == tuple(METRICS[name] for name in ("dram_write_bytes", "occupancy_pct", "l2_hit_pct"))
    assert (seen.dram_bytes, seen.dram_read_bytes) == (None, 67_141_632)


@pytest.mark.parametrize("said", ["lts__t_sector_hit_rate.pct", r"regex:^lts__t_sector_hit_rate\.pct(\.|$)"])
def test_a_metric_that_ncu_refuses_is_left_out(tmp_path: Path, said: str) -> None:
    """Some ncu stop at the first metric that they do not know."""
    metric = METRICS["l2_hit_pct"]
    refusal = f"==ERROR== Failed to find metric {said}\n==PROF== Trying to shutdown target application\n"
    tool = fake(
        tmp_path,
        {"log": refusal, "stdout": target.STARTED, "code": 9},
        {"log": log(CUBLAS, leave_out=["l2_hit_pct"]), "stdout": WELL},
    )
    (seen,) = ncu.profile(tool, TARGET)
    assert seen.missing == (metric,)
    assert [metric in ",".join(arguments) for arguments in calls(tmp_path)] == [True, False]


@pytest.mark.parametrize("code", [0, 1])
def test_counters_for_administrators_only(tmp_path: Path, code: int) -> None:
    """One line that says what to do, whatever ncu leaves with."""
    error = failure(fake(tmp_path, {"log": PERMISSION + NONE_PROFILED, "stdout": WELL, "code": code}))
    assert error.code is Exit.INFRASTRUCTURE
    for words in ("NVreg_RestrictProfilingToAdminUsers=0", "CAP_SYS_ADMIN", "https://developer.nvidia.com/ERR_NVGPU"):
        assert words in str(error)


@pytest.mark.parametrize(
    ("play", "code", "words"),
    [
        (
            {"log": NONE_PROFILED, "stdout": WELL},
            Exit.KERNEL,
            "torch.matmul on 4096x4096: ncu profiled no kernel: the launch started none, or ",
        ),
        (
            {
                "log": "==ERROR== The application returned an error code (1).\n" + NONE_PROFILED,
                "stdout": target.STARTED,
                "stderr": "Traceback (most recent call last):\nRuntimeError: an illegal memory access\n",
                "code": 1,
            },
            Exit.KERNEL,
            "torch.matmul on 4096x4096: crashed before it was profiled: RuntimeError: an illegal memory access",
        ),
        (
            {"stdout": f"{target.STARTED}\n{target.WARM}\n", "code": 11},
            Exit.KERNEL,
            "torch.matmul on 4096x4096: crashed in the profiled launch: exit code 11",
        ),
        (
            {
                "log": '==ERROR== Failed to profile "gemv" in process 1046\n==PROF== Trying to shutdown target '
                "application\n==ERROR== The application returned an error code (9).\n",
                "stdout": f"{target.STARTED}\n{target.WARM}\n",
                "code": 9,
            },
            Exit.INFRASTRUCTURE,
            'torch.matmul on 4096x4096: ncu failed: Failed to profile "gemv" in process 1046',
        ),
        (
            {"stderr": "ncu: line 3: no such file\n", "code": 127},
            Exit.INFRASTRUCTURE,
            "torch.matmul on 4096x4096: ncu ran nothing, exit code 127: ncu: line 3: no such file",
        ),
    ],
)
def test_each_failure_is_one_line(tmp_path: Path, play: dict[str, Any], code: Exit, words: str) -> None:
    """Whether the kernel or ncu is to blame decides the code."""
    error = failure(fake(tmp_path, play))
    assert error.code is code
    assert str(error).startswith(words)


def test_a_launch_that_hangs_is_killed(tmp_path: Path) -> None:
    """With everything that ncu started."""
    error = failure(fake(tmp_path, {"stdout": WELL, "sleep_s": 60}), timeout_s=0.5)
    assert error.code is Exit.KERNEL
    assert str(error) == "torch.matmul on 4096x4096: hung, killed after 0.5 s under ncu"


def test_ncu_is_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By --ncu, on PATH, in the CUDA toolkit."""
    tool = fake(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert ncu.find(None) == tool
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    assert ncu.find(tool) == tool
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "cuda"))
    with pytest.raises(CommandError, match=r"developer\.nvidia\.com/nsight-compute.*or name it with --ncu") as caught:
        ncu.find(None)
    assert caught.value.code is Exit.INFRASTRUCTURE
    assert f"no ncu (looked at PATH, {tmp_path}/cuda/bin)" in str(caught.value)
    with pytest.raises(CommandError, match="--ncu: found '/no/ncu', which is no executable") as caught:
        ncu.find("/no/ncu")
    assert caught.value.code is Exit.INFRASTRUCTURE
    folder = tmp_path / "cuda" / "bin"
    folder.mkdir(parents=True)
    assert fake(folder) == ncu.find(None)


def test_one_warm_launch_is_profiled(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Set-up happens before; what is asynchronous has ended before the profiler stops."""
    told: list[str] = []
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: told.append("synchronize"))
    monkeypatch.setattr(torch.cuda.profiler, "start", lambda: told.append("start"))
    monkeypatch.setattr(torch.cuda.profiler, "stop", lambda: told.append("stop"))
    target.profile(lambda: told.append("launch"))
    assert told == ["launch", "synchronize", "start", "launch", "synchronize", "stop"]
    told.clear()
    options = ["--registry", "tests.planted_kernels", "--device", "cpu", "--kernel", "right", "--shape", "8x8"]
    capsys.readouterr()
    assert target.main(options) == 0
    assert told == ["synchronize", "start", "synchronize", "stop"]
    assert capsys.readouterr().out == WELL


def test_a_variant_is_found_by_its_own_name() -> None:
    """As the parent names it."""
    kernels = registry.kernels()
    variant = kernels["read"].ways("cuda", Problem(m=8, k=8))[-1]
    assert target.named(kernels.values(), variant.name).name == variant.name
    assert target.named(kernels.values(), "torch.mv") is kernels["torch.mv"]
