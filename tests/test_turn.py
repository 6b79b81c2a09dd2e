"""harness.turn: one bench at a time on a GPU, and who else is at work on it."""

# ruff: noqa: D102, N802 - the driver's own names and meanings
from __future__ import annotations

import ctypes
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import filelock
import pytest

from harness import turn
from harness.answers import Unknown
from harness.bench import Bench
from harness.driver import DriverError
from harness.errors import CommandError, Exit
from harness.store import Store
from tests import planted_kernels
from tests.test_bench import options

ROOT = Path(__file__).parents[1]
GPU = "8f1c7a52-0b3d-4e6f-9a1b-2c3d4e5f6071"
UUID_BYTES = bytes.fromhex(GPU.replace("-", ""))

HOLDER = """
import sys, time
from pathlib import Path
from harness.turn import take_turn
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


class FakeCuda:
    """Two GPUs as libcuda shows them."""

    def cuInit(self, flags: int) -> int:
        return flags

    def cuDeviceGet(self, device: object, index: int) -> int:
        device._obj.value = 40 + index  # type: ignore[attr-defined]
        return 0 if index < 2 else 101

    def cuDeviceGetUuid_v2(self, found: object, device: ctypes.c_int) -> int:
        assert device.value in (40, 41)
        found._obj[:] = UUID_BYTES if device.value == 41 else bytes(16)  # type: ignore[attr-defined]
        return 0


def test_the_driver_names_a_gpu_as_torch_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """By its place among those that CUDA shows, never NVML's."""
    monkeypatch.setattr("harness.driver._library", FakeCuda)
    assert turn.driver_uuid(1) == GPU
    assert turn.driver_uuid(0) == "00000000-0000-0000-0000-000000000000"
    with pytest.raises(DriverError, match="cuDeviceGet: CUDA driver error 101"):
        turn.driver_uuid(2)


@pytest.mark.parametrize(("program", "found"), [("print('abc')", "abc"), ("raise OSError('no driver')", None)])
def test_a_gpu_is_named_by_a_process_of_its_own(monkeypatch: pytest.MonkeyPatch, program: str, found: str) -> None:
    """Its last words are the reason where it fails."""
    run = subprocess.run
    asked: list[str] = []

    def instead(command: list[str], **kwargs: object) -> object:
        asked.extend(command[1:])
        return run([sys.executable, "-c", program], **kwargs)  # type: ignore[call-overload]

    monkeypatch.setattr("harness.turn.subprocess.run", instead)
    assert turn.uuid_of("cuda:3") == (found or Unknown(reason="OSError: no driver"))
    assert asked == ["-m", "harness.turn", "3"]


def test_a_bench_holds_its_gpu_until_its_workers_have_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Taken before they start; a run on which nobody can tell says so."""
    monkeypatch.setattr("harness.bench.uuid_of", lambda device: f"{device}-{GPU}")
    monkeypatch.setattr("harness.bench.take_turn", lambda gpu, say: turn.take_turn(gpu, say, folder=tmp_path))
    bench = Bench(registry=planted_kernels, store=Store(tmp_path), options=options(device="cuda:0"))
    bench._device_type, bench._log_folder = "cuda", tmp_path / "logs"
    bench._device = Unknown(reason="no NVML")
    bench._turn = bench._take_turn()
    second = filelock.FileLock(tmp_path / f"sgemv-cuda:0-{GPU}.lock")

    def close() -> None:
        with pytest.raises(filelock.Timeout):
            second.acquire(timeout=0)

    bench._pool = SimpleNamespace(close=close)  # type: ignore[assignment]
    bench.close()
    second.acquire(timeout=0)
    second.release()
    bench._turn = Unknown(reason="no lock")
    assert next(iter(bench._warnings(dirty=False))) == (
        "Whether another bench measured on this GPU at the same time is not known: no lock."
    )
