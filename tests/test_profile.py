"""`python -m harness.ncu`: what it selects, shows, writes and refuses, with a stand-in for ncu."""

from __future__ import annotations

import csv
import io
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from rich.console import Console

from harness.device import GpuStatus, Usability
from harness.kernel_names import short_name
from harness.model import Problem
from harness.ncu import __main__ as profile
from harness.ncu import output, table, target
from kernels import registry
from tests.fake_ncu import CUBLAS, PERMISSION, REDUCE, WELL, fake, log
from tests.fake_tool import calls


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a machine with a GPU, and with nothing to build."""
    monkeypatch.setattr("harness.tool.gpu_status", lambda *_: GpuStatus(word=Usability.USABLE))
    monkeypatch.setattr(registry, "prepare", lambda _: ())


def run(*arguments: object) -> int:
    return profile.main(["--registry", "kernels.registry", *map(str, arguments)])


@pytest.mark.parametrize(
    ("demangled", "short"),
    [
        (CUBLAS, "gemv2T_kernel_val<…>"),
        (REDUCE, "cublasLt::splitKreduce_kernel<32, 16>"),
        ("sgemv_mine_kernel(const float *, long, long)", "sgemv_mine_kernel"),
        ("void sgemv::<unnamed>::read_stream_kernel<(int)8>(const float *)", "sgemv::read_stream_kernel<(int)8>"),
        ("void (anonymous namespace)::f(int)", "f"),
        ("void cub::Agent<int>::run<3>(int)", "cub::Agent<int>::run<3>"),
        ("std::enable_if<(bool)1, void>::type g(int)", "g"),
        ("plain", "plain"),
    ],
)
def test_short_names(demangled: str, short: str) -> None:
    assert short_name(demangled) == short


@pytest.mark.usefixtures("gpu")
def test_a_launch_of_two_device_kernels(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A row each, and one for what they move together; the file has every digit."""
    tool = fake(tmp_path, {"log": log(CUBLAS, REDUCE), "stdout": WELL})
    assert run("--kernel", "torch.matmul", "--ncu", tool, "--csv", tmp_path / "out.csv") == 0
    shown = capsys.readouterr().out
    assert "4096x4096: 67.14 MB at least" in shown
    lines = [line.split() for line in shown.splitlines()]
    numbers = ["512", "128", "40", "22.30", "67.15", "MB", "1.000", "71.2", "48.5", "16.00", "3.1"]
    assert lines[lines.index(["torch.matmul"]) + 1 :][:3] == [
        ["gemv2T_kernel_val<…>", *numbers],
        ["cublasLt::splitKreduce_kernel<32,", "16>", *numbers],
        ["all", "2", "134.3", "MB", "2.000"],
    ]
    for words in ("cold", "--cache-control all", "--clock-control none", "not the harness's figures"):
        assert words in shown
    with (tmp_path / "out.csv").open(encoding="utf-8") as file:
        written = list(csv.DictReader(file))
    assert [row["device_kernel"] for row in written] == [CUBLAS, REDUCE]
    assert (written[0]["kernel"], written[0]["least_bytes"], written[0]["grid"]) == (
        "torch.matmul",
        "67141632",
        "512x1x1",
    )
    assert (written[0]["ncu_duration_ns"], written[0]["l2_hit_pct"]) == ("22304.0", "3.125")


def test_a_narrow_table_has_every_column() -> None:
    """Names are folded instead; rich would leave columns out without a word."""
    seen = output.parse(log(CUBLAS, REDUCE, grid="(131072, 1, 1)"))
    out = io.StringIO()
    console = Console(file=out, width=table.LEAST_WIDTH, markup=False)
    console.print(table.table(Problem(m=4096, k=4096), [("sgemv_k128_f32x4", seen)]))
    numbers = ["131072", "128", "40", "22.30", "67.15", "MB", "1.000", "71.2", "48.5", "16.00", "3.1"]
    assert [line.split()[-11:] for line in out.getvalue().splitlines()].count(numbers) == 2
    assert "…" not in out.getvalue().replace("<…>", "")


@pytest.mark.usefixtures("gpu")
def test_what_ncu_does_not_know_is_a_dash_and_a_note(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Never a zero."""
    written = log(CUBLAS, leave_out=["l2_hit_pct"], load_requests="0", load_sectors="0")
    tool = fake(tmp_path, {"log": written, "stdout": WELL})
    assert run("--kernel", "torch.matmul", "--ncu", tool) == 0
    shown = capsys.readouterr().out
    row = next(line for line in shown.splitlines() if "gemv2T" in line)
    assert row.split()[-2:] == ["–", "–"]
    assert "–: ncu gives no value for lts__t_sector_hit_rate.pct on this GPU." in shown
    assert "– under load sectors per request: no load instruction went to global memory through L1." in shown


@pytest.mark.usefixtures("gpu")
def test_variants_and_kernels_that_cannot(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each variant by its own name; a line for what is outside a contract or not for a GPU."""
    tool = fake(tmp_path, {"log": log(CUBLAS), "stdout": WELL})
    wanted = [option for name in ("read", "sgemv_k16_f32", "sgemv_cpu_f32") for option in ("--kernel", name)]
    assert run(*wanted, "--shape", "64x64", "--ncu", tool) == 0
    profiled_names = [arguments[arguments.index("--kernel") + 1] for arguments in calls(tmp_path)]
    variants = [each.name for each in registry.kernels()["read"].ways("cuda", Problem(m=64, k=64))]
    assert profiled_names == variants
    assert len(variants) > 1
    shown = capsys.readouterr().out
    assert "sgemv_cpu_f32 on 64x64: not profiled: runs on cpu, wanted cuda" in shown
    assert "sgemv_k16_f32 on 64x64: not profiled: " in shown
    assert run("--kernel", "sgemv_cpu_f32", "--ncu", tool) == 2


@pytest.mark.usefixtures("gpu")
def test_other_dtypes_and_tokens(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is not made for a dtype says so where it was named, and is not asked for where nothing was."""
    tool = fake(tmp_path, {"log": log(CUBLAS), "stdout": WELL})
    named = ["--kernel", "torch.matmul", "--kernel", "sgemv_k16_f32"]
    assert run(*named, "--shape", "64x48x2:float16", "--ncu", tool) == 0
    shown = capsys.readouterr().out
    assert "sgemv_k16_f32 on 64x48x2:float16: not profiled: computes float32, wanted float16" in shown
    assert "64x48x2:float16: 6.592 kB at least" in shown  # (64·48 + 48·2 + 64·2)·2
    (arguments,) = calls(tmp_path)
    assert arguments[arguments.index("--shape") + 1] == "64x48x2:float16"
    assert run("--shape", "64x48x2:float16", "--ncu", tool) == 0
    assert "sgemv" not in capsys.readouterr().out


@pytest.mark.usefixtures("gpu")
def test_a_crash_costs_one_kernel_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The others are shown; the code tells."""
    tool = fake(tmp_path, {"stdout": target.STARTED, "code": 1}, {"log": log(CUBLAS), "stdout": WELL})
    assert run("--kernel", "torch.matmul", "--kernel", "torch.mv", "--ncu", tool) == 5
    said = capsys.readouterr()
    assert said.err == "torch.matmul on 4096x4096: crashed before it was profiled: exit code 1\n"
    assert "torch.mv" in said.out


@pytest.mark.usefixtures("gpu")
def test_without_permission_it_says_so_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By default every GEMV kernel of a GPU is profiled; none of them will be."""
    assert run("--ncu", fake(tmp_path, {"log": PERMISSION, "stdout": WELL})) == 6
    assert len(capsys.readouterr().err.splitlines()) == 1
    assert len(calls(tmp_path)) == 1


@pytest.mark.usefixtures("gpu")
def test_kernels_of_a_users_file(tmp_path: Path) -> None:
    """These alone, unless others are named; the process under ncu finds them, and refuses what they do not take."""
    path = tmp_path / "mine.py"
    path.write_text(
        "from kernels.own import kernel\n"
        "@kernel('mine', unsupported=lambda problem: None if problem.k > 8 else 'k <= 8')\n"
        "def bind(operands):\n    return lambda: operands.y.zero_()\n"
    )
    tool = fake(tmp_path, {"log": log(REDUCE), "stdout": WELL})
    assert run("--kernels", path, "--shape", "4x16", "--ncu", tool) == 0
    (arguments,) = calls(tmp_path)
    assert arguments[arguments.index("--kernel") + 1] == "mine"
    found = arguments[arguments.index("--registry") + 1]
    assert found.startswith("kernels.own.registry:")
    with pytest.raises(ValueError, match=r"^mine does not take it: k <= 8$"):
        target.main(["--registry", found, "--device", "cpu", "--kernel", "mine", "--shape", "4x8"])


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--kernel", "sgemvv"), "--kernel: found 'sgemvv', wanted one of "),
        (("--kernels", "no.py"), "--kernels: found 'no.py', which is no such file (looked at "),
        (("--shape", "12"), "--shape: found '12', wanted MxK or MxKxN with whole numbers from 1 on, such as 1024x128"),
        (("--csv", "/no/such/folder/x.csv"), "--csv: found '/no/such/folder/x.csv', wanted a file in a folder that "),
    ],
)
def test_wrong_values_are_one_line(arguments: tuple[str, ...], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Before anything is built."""
    assert run(*arguments) == 2
    said = capsys.readouterr().err
    assert said.startswith(words)
    assert said.count("\n") == 1


def test_without_a_gpu(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """It says why, in a line."""
    none = GpuStatus(word=Usability.NONE, reason="no NVIDIA GPU found")
    monkeypatch.setattr("harness.tool.gpu_status", lambda *_: none)
    assert run() == 6
    assert capsys.readouterr().err == "profile needs an NVIDIA GPU: no NVIDIA GPU found\n"


INTERRUPTED = """
import sys
from harness import tool
from harness.ncu import __main__ as profile
from harness.device import GpuStatus, Usability
from kernels import registry
tool.gpu_status = lambda *_: GpuStatus(word=Usability.USABLE)
registry.prepare = lambda _: ()
sys.exit(profile.main(["--registry", "kernels.registry", "--kernel", "torch.matmul", "--ncu", sys.argv[1]]))
"""


def test_an_interrupt_ends_ncu(tmp_path: Path) -> None:
    """130; nothing is left running."""
    tool = fake(tmp_path, {"sleep_s": 60})
    text = Path(tool).read_text(encoding="utf-8").replace(
        "time.sleep", "(here / 'pid').write_text(str(__import__('os').getpid())); time.sleep"
    )  # fmt: skip
    Path(tool).write_text(text, encoding="utf-8")
    root = str(Path(__file__).parents[1])
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, tool],
        cwd=root,
        env=os.environ | {"PYTHONPATH": root},
        stderr=subprocess.PIPE,
    )
    until = time.monotonic() + 60
    while not ((tmp_path / "pid").exists() and (tmp_path / "pid").read_text(encoding="utf-8")):
        assert time.monotonic() < until
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=30)
    assert (process.returncode, said) == (130, b"")
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text(encoding="utf-8")), 0)
