"""`python -m harness.nightly` as a user runs it: on the CPU from end to end, without a GPU, and wrong usage."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.reproduce.request import request_of
from harness.store import Store, load
from tests.built import shared_cache

ROOT = Path(__file__).resolve().parents[1]


def night(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if name not in ("SGEMV_STORE", "PYTEST_ADDOPTS")}
    return subprocess.run(
        [sys.executable, "-m", "harness.nightly", *arguments], cwd=ROOT, capture_output=True, text=True, check=False,
        timeout=240, env={**kept, "SGEMV_CACHE": str(shared_cache()), **environment},
    )  # fmt: skip


def test_a_night_on_the_cpu(tmp_path: Path) -> None:
    """The real thing from end to end, twice; what it records can be reproduced, without the words that are its own."""
    options = [
        "--shape",
        "64x64",
        "--kernel",
        "torch.matmul",
        "--trials",
        "2",
        "--max-time",
        "0.01",
        "--timer",
        "async",
    ]
    words = ["--device", "cpu", *options, "--cache=cold", "--idle-wait", "1", "--store", str(tmp_path / "store")]
    typed = " ".join(["nox -s nightly --", *words, "--summary", "s.md"])
    told = {"SGEMV_STANDING": str(tmp_path), "SGEMV_COMMAND": typed}
    first = night(*words, "--summary", "s.md", **told)
    assert first.returncode == 0, first.stdout + first.stderr
    assert "nothing to compare with" in (tmp_path / "s.md").read_text(encoding="utf-8")
    store = Store(tmp_path / "store")
    run = load(store.resolve("nightly"))
    request = request_of(run, tmp_path)
    assert request.left_out == ()
    assert request.arguments == ("suites", "--kernel=torch.matmul", "--shape=64x64", "--timer=async", "--cache=cold",
                                 "--trials=2", "--max-time=0.01", "--device=cpu")  # fmt: skip
    assert (store.root / "reports" / f"{run.id}.html").is_file()


def test_a_machine_without_a_gpu_never_takes_the_cpu(tmp_path: Path) -> None:
    """Code 6; only --device cpu asks for CPU numbers, and the summary says so."""
    done = night("--store", str(tmp_path / "store"), CUDA_VISIBLE_DEVICES="")
    assert done.returncode == 6, done.stdout + done.stderr
    summary = (tmp_path / "store" / "reports" / "nightly.md").read_text(encoding="utf-8")
    assert "CUDA_VISIBLE_DEVICES hides every GPU; wanted one that torch can use, and --device cpu asks for" in summary


def test_a_summary_that_cannot_be_written_is_said_first(tmp_path: Path) -> None:
    """Not after a night's work."""
    done = night("--summary", "/proc/nope/night.md", "--store", str(tmp_path))
    line = "/proc/nope/night.md: No such file or directory; name a writable file with --summary\n"
    assert (done.returncode, done.stdout, done.stderr) == (6, "", line)


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--idle-wait", "soon"], "--idle-wait: found 'soon', wanted a number of seconds from 0 to 86400"),
        (["--device", "gpu"], "--device: found 'gpu', wanted cuda, cuda:N, a UUID (GPU-… or MIG-…), all or cpu"),
        (["--ref", "mine"], "--ref: not of nightly, whose ref is 'nightly'; leave it out"),
    ],
)
def test_wrong_usage_is_one_line(words: list[str], line: str, tmp_path: Path) -> None:
    """Before anything is looked at."""
    done = night(*words, "--store", str(tmp_path))
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"{line}\n")
