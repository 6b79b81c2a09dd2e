"""harness.device.turn: one bench at a time on a GPU, and who else is at work on it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import filelock
import pytest

from harness.answers import Unknown
from harness.bench import Bench
from harness.device import turn
from harness.device.held_gpu import HeldGpu
from harness.errors import CommandError, Exit
from harness.store import Store
from tests import planted_kernels
from tests.small_bench import options

ROOT = Path(__file__).parents[1]
GPU = "8f1c7a52-0b3d-4e6f-9a1b-2c3d4e5f6071"

HOLDER = """
import sys, time
from pathlib import Path
from harness.device.turn import take_turn
lock = take_turn(sys.argv[1], print, folder=Path(sys.argv[2]))
print("holds", flush=True)
time.sleep(60)
"""


def test_the_second_waits_until_the_first_is_killed(tmp_path: Path) -> None:
    """It says so in one line; kill -9 releases the lock as any other end does."""
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, GPU, str(tmp_path)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    said: list[str] = []

    def say(line: str) -> None:
        said.append(line)
        holder.kill()

    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "holds\n"
        lock = turn.take_turn(GPU, say, folder=tmp_path)
    finally:
        holder.kill()
        holder.communicate()
    assert isinstance(lock, filelock.BaseFileLock)
    assert lock.is_locked
    assert said == [f"another bench measures on GPU {GPU}: waiting for it, 60 min at most"]
    lock.release()


def test_patience_has_an_end(tmp_path: Path) -> None:
    """One line with what to do, code 6; another GPU is free all the while."""
    held = turn.take_turn(GPU, print, folder=tmp_path)
    said: list[str] = []
    with pytest.raises(CommandError) as caught:
        turn.take_turn(GPU, said.append, folder=tmp_path, patience_s=0.05)
    assert caught.value.code is Exit.INFRASTRUCTURE
    assert str(caught.value).startswith(
        f"another bench has held GPU {GPU} for 0 min ({tmp_path}/sgemv-{GPU}.lock); end"
    )
    assert len(said) == 1
    other = turn.take_turn("another", said.append, folder=tmp_path)
    for lock in (held, other):
        assert isinstance(lock, filelock.BaseFileLock)
        lock.release()
    assert len(said) == 1


def test_any_user_may_be_the_next(tmp_path: Path) -> None:
    """Whatever the umask: the lock outlives the first one's turn."""
    lock = turn.take_turn(GPU, print, folder=tmp_path)
    assert isinstance(lock, filelock.BaseFileLock)
    lock.release()
    assert (tmp_path / f"sgemv-{GPU}.lock").stat().st_mode & 0o777 == 0o666


def test_a_lock_that_cannot_be_had_is_unknown(tmp_path: Path) -> None:
    """Another's file that may not be written to, or no folder: the bench goes on and says so."""
    (tmp_path / "file").touch()
    lock = turn.take_turn(GPU, print, folder=tmp_path / "file")
    assert isinstance(lock, Unknown)
    assert lock.reason.startswith(f"{tmp_path}/file/sgemv-{GPU}.lock: ")


def test_a_bench_holds_its_gpu_until_its_workers_have_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Taken before they start; a run on which nobody can tell says so."""
    monkeypatch.setattr("harness.device.held_gpu.uuid_of", lambda device: f"{device}-{GPU}")
    monkeypatch.setattr("harness.device.held_gpu.take_turn", lambda gpu, say: turn.take_turn(gpu, say, folder=tmp_path))
    bench = Bench(registry=planted_kernels, store=Store(tmp_path), options=options(device="cuda:0"))
    bench._log_folder = tmp_path / "logs"
    bench._gpu = HeldGpu(bench.options, print, print)
    bench._gpu.take_turn()
    second = filelock.FileLock(tmp_path / f"sgemv-cuda:0-{GPU}.lock")

    def close() -> None:
        with pytest.raises(filelock.Timeout):
            second.acquire(timeout=0)

    bench._pool = SimpleNamespace(close=close)  # type: ignore[assignment]
    bench.close()
    second.acquire(timeout=0)
    second.release()
    bench._gpu.turn = Unknown(reason="no lock")
    assert next(bench._gpu.warnings([])) == (
        "Whether another bench measured on this GPU at the same time is not known: no lock."
    )
