"""harness.device.clock_lock: a lock leaves a note on disk, by which the next bench undoes what a killed one left."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pynvml
import pytest

from harness.answers import Unknown
from harness.device import clock_lock
from harness.device.clock_lock import ClockLock, check, note_path, undo_killed
from harness.device.nvml import Nvml, NvmlDevice
from harness.device.turn import lock_of
from harness.errors import CommandError, Exit
from tests.fake_nvml import FakeGpu, FakeNvml

BARE = "8f1c7a52-0b3d-4e6f-9a1b-2c3d4e5f6071"
OTHER = "00000000-0b3d-4e6f-9a1b-2c3d4e5f6071"
SET, RESET = "nvmlDeviceSetGpuLockedClocks", "nvmlDeviceResetGpuLockedClocks"
NO_RIGHT = pynvml.NVML_ERROR_NO_PERMISSION
BY_HAND = f"sudo nvidia-smi --id=GPU-{BARE} --reset-gpu-clocks"


def device(gpu: FakeGpu, **changes: object) -> NvmlDevice:
    nvml = Nvml.open(FakeNvml([gpu], **changes))  # type: ignore[arg-type]
    assert isinstance(nvml, Nvml)
    found = nvml.find(uuid=gpu.uuid, pci_bus_id=None)
    assert isinstance(found, NvmlDevice)
    return found


def read(folder: Path) -> dict[str, object]:
    note: dict[str, object] = json.loads(note_path(BARE, folder).read_text())
    return note


def left(folder: Path, gpu: str = BARE, **changes: object) -> Path:
    """A note of a bench that was killed."""
    path = note_path(gpu, folder)
    path.write_text(json.dumps({"mhz": 1410, "user": "alice", "boot_id": clock_lock._boot_id(), **changes}))
    return path


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> FakeGpu:
    """The one that this machine has."""
    there = FakeGpu(locked_mhz=1410)
    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml([there]))
    return there


def test_a_clock_is_locked_and_let_go(tmp_path: Path) -> None:
    """The note is there before it is locked, for every user to read and to clear, and gone when it is unlocked."""
    gpu = FakeGpu()
    lock = ClockLock(device(gpu), BARE, tmp_path)
    assert lock.acquire(1410) == 1410
    assert gpu.locked_mhz == 1410
    assert lock.text == "The SM clock was locked at 1410 MHz (--lock-clocks), and NVML then read 1410 MHz"
    assert (read(tmp_path)["mhz"], read(tmp_path)["boot_id"]) == (1410, clock_lock._boot_id())
    assert note_path(BARE, tmp_path).stat().st_mode & 0o777 == 0o666
    assert lock.release() is None
    assert (gpu.locked_mhz, list(tmp_path.iterdir())) == (None, [])
    gpu.locked_mhz = 1200  # by somebody, later
    assert lock.release() is None
    assert gpu.locked_mhz == 1200


def test_what_nvml_does_not_read_back_is_unknown(tmp_path: Path) -> None:
    """The clock is locked all the same."""
    lock = ClockLock(device(FakeGpu(errors={"nvmlDeviceGetClockInfo": 3})), BARE, tmp_path)
    assert lock.acquire(1410) == Unknown(reason="nvmlDeviceGetClockInfo: Not Supported")
    assert lock.text.endswith("did not say what it then was (nvmlDeviceGetClockInfo: Not Supported)")


@pytest.mark.parametrize(
    ("mhz", "words"),
    [
        (1400, "found 1400, wanted a clock of this GPU in MHz, from 210 to 1980; nearest are 1395 and 1410"),
        (209, "found 209, wanted a clock of this GPU in MHz, from 210 to 1980"),
        (2000, "found 2000, wanted a clock of this GPU in MHz, from 210 to 1980"),
    ],
)
def test_a_clock_that_the_gpu_has_not(mhz: int, words: str) -> None:
    """Code 2, with the nearest ones."""
    with pytest.raises(CommandError) as caught:
        check(device(FakeGpu()), mhz)
    assert (str(caught.value), caught.value.code) == (f"--lock-clocks: {words}", Exit.USAGE)


def test_where_no_clocks_are_listed_the_driver_decides(tmp_path: Path) -> None:
    """What it says stands in the line."""
    gpu = FakeGpu(errors={"nvmlDeviceGetSupportedMemoryClocks": 3, SET: pynvml.NVML_ERROR_INVALID_ARGUMENT})
    check(device(gpu), 1411)
    with pytest.raises(CommandError, match=rf"^--lock-clocks: GPU {BARE}: {SET}: Invalid Argument; leave it out$"):
        ClockLock(device(gpu), BARE, tmp_path).acquire(1411)


def test_an_instance_shares_its_boards_clock() -> None:
    """Others would be measured, or work, at it too: code 2."""
    part = FakeGpu(uuid=f"MIG-{BARE}", parent=FakeGpu(uuid="GPU-1"))
    with pytest.raises(CommandError, match=r"^--lock-clocks: the clocks of a MIG instance are its board's") as caught:
        check(device(part), 1410)
    assert caught.value.code is Exit.USAGE


def test_without_the_right(tmp_path: Path) -> None:
    """Code 6, one line with what to do; nothing is left, and nothing is unlocked that somebody else may have locked."""
    gpu = FakeGpu(locked_mhz=1200, errors={SET: NO_RIGHT})
    lock = ClockLock(device(gpu), BARE, tmp_path)
    with pytest.raises(CommandError) as caught:
        lock.acquire(1410)
    wanted = f"--lock-clocks: GPU {BARE}: {SET}: Insufficient Permissions; run as root, or leave it out"
    assert (str(caught.value), caught.value.code) == (wanted, Exit.INFRASTRUCTURE)
    assert lock.release() is None
    assert (gpu.locked_mhz, list(tmp_path.iterdir())) == (1200, [])


def test_no_note_no_lock(tmp_path: Path) -> None:
    """After kill -9 nobody would know: code 6. A link or a pipe in everybody's folder is not followed."""
    gpu, victim = FakeGpu(), tmp_path / "victim"
    victim.write_text("precious")
    note_path(BARE, tmp_path).symlink_to(victim)
    for folder in (tmp_path, tmp_path / "absent"):
        with pytest.raises(CommandError, match=r"cannot be written: .*; after kill -9 nobody would unlock") as caught:
            ClockLock(device(gpu), BARE, folder).acquire(1410)
        assert caught.value.code is Exit.INFRASTRUCTURE
    note_path(BARE, tmp_path).unlink()
    os.link(victim, note_path(BARE, tmp_path))
    with pytest.raises(CommandError, match=r"it is no file of its own"):
        ClockLock(device(gpu), BARE, tmp_path).acquire(1410)
    assert (gpu.locked_mhz, victim.read_text()) == (None, "precious")


def test_a_clock_that_cannot_be_unlocked_keeps_its_note(tmp_path: Path) -> None:
    """Said in a line, with what undoes it; the next bench tries again."""
    gpu = FakeGpu()
    lock = ClockLock(device(gpu), BARE, tmp_path)
    lock.acquire(1410)
    gpu.lost = True
    assert lock.release() == f"the SM clock could not be unlocked: {RESET}: GPU is lost; {BY_HAND}"
    assert read(tmp_path)["mhz"] == 1410


def test_the_next_bench_undoes_what_a_killed_one_left(tmp_path: Path, gpu: FakeGpu) -> None:
    """Of its own GPU, and of any other that no living bench holds."""
    for own in (BARE, OTHER, None):
        gpu.locked_mhz, path, said = 1410, left(tmp_path), list[str]()
        assert undo_killed(own, said.append, tmp_path) is None
        assert said == [
            f"unlocked the SM clock of GPU {BARE}, which was locked at 1410 MHz by a bench of alice that was killed"
        ]
        assert (gpu.locked_mhz, path.exists()) == (None, False)


def test_a_living_bench_keeps_its_clock(tmp_path: Path, gpu: FakeGpu) -> None:
    """It holds its GPU's lock."""
    path, said = left(tmp_path), list[str]()
    with lock_of(BARE, tmp_path):
        assert undo_killed(OTHER, said.append, tmp_path) is None
    assert (gpu.locked_mhz, path.exists(), said) == (1410, True, [])


def test_a_note_that_goes_meanwhile(tmp_path: Path, gpu: FakeGpu, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its bench came to its own end: nobody was killed, and the clock is somebody else's."""
    path, said = left(tmp_path), list[str]()

    @contextmanager
    def ends(*_: object) -> Iterator[bool]:
        path.unlink()
        yield True

    monkeypatch.setattr(clock_lock, "_free", ends)
    assert undo_killed(OTHER, said.append, tmp_path) is None
    assert (gpu.locked_mhz, said) == (1410, [])


def test_another_users_note(tmp_path: Path, gpu: FakeGpu, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a folder as /tmp it can be emptied, which is as good; a new note goes into it."""
    path, said = left(tmp_path), list[str]()

    def sticky(*_: object, **__: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "unlink", sticky)
        assert undo_killed(BARE, said.append, tmp_path) is None
    assert (gpu.locked_mhz, path.read_text(), len(said)) == (None, "", 1)
    gpu.locked_mhz = 1200
    assert undo_killed(BARE, said.append, tmp_path) is None
    assert (gpu.locked_mhz, len(said)) == (1200, 1)
    ClockLock(device(gpu), BARE, tmp_path).acquire(1395)
    assert read(tmp_path)["mhz"] == 1395


def test_a_user_without_the_right_is_told(tmp_path: Path, gpu: FakeGpu) -> None:
    """Whose clock it is measured at stands in the run, where it is its own GPU."""
    gpu.errors[RESET] = NO_RIGHT
    path, said = left(tmp_path), list[str]()
    line = (
        f"the SM clock of GPU {BARE} is still locked at 1410 MHz by a bench of alice that was killed: {RESET}: "
        f"Insufficient Permissions; {BY_HAND}"
    )
    assert undo_killed(BARE, said.append, tmp_path) == line
    assert undo_killed(OTHER, said.append, tmp_path) is None
    assert (said, path.exists()) == ([line, line], True)


def test_after_a_reboot_nothing_is_locked(tmp_path: Path, gpu: FakeGpu) -> None:
    """The note goes without a word; the clock is nobody's here."""
    path, said = left(tmp_path, boot_id="another"), list[str]()
    assert undo_killed(BARE, said.append, tmp_path) is None
    assert (gpu.locked_mhz, path.exists(), said) == (1410, False, [])


def test_a_gpu_that_is_not_here(tmp_path: Path, gpu: FakeGpu) -> None:
    """Gone, or not shown to this container: its note waits for somebody who sees it, or for the next start."""
    path, said = left(tmp_path, OTHER), list[str]()
    assert undo_killed(BARE, said.append, tmp_path) is None
    assert (gpu.locked_mhz, path.exists(), said) == (1410, True, [])


@pytest.mark.parametrize("text", ["{", '{"mhz": "fast"}', "[]", "\x00\xff", '{"mhz": 1410, "mhz"', "[" * 4000])
def test_a_note_that_says_nothing(tmp_path: Path, gpu: FakeGpu, text: str) -> None:
    """That it is there says enough."""
    note_path(BARE, tmp_path).write_text(text, encoding="latin-1")
    said = list[str]()
    assert undo_killed(BARE, said.append, tmp_path) is None
    assert said == [f"unlocked the SM clock of GPU {BARE}, which was locked by a bench that was killed"]
    assert gpu.locked_mhz is None


def test_a_hostile_note(tmp_path: Path, gpu: FakeGpu) -> None:
    """What it says is shown in one line as it is; a name that is no UUID, a folder or a pipe is no note."""
    left(tmp_path, user="\x1b[2J\nroot")
    for name in ("sgemv-../../x.clocks", "sgemv-x.clocks", f"sgemv-{BARE}.clocks.clocks"):
        (tmp_path / Path(name).name).write_text("x")
    note_path(OTHER, tmp_path).mkdir()
    said = list[str]()
    undo_killed(BARE, said.append, tmp_path)
    note_path(BARE, tmp_path).unlink(missing_ok=True)
    os.mkfifo(note_path(BARE, tmp_path))
    undo_killed(BARE, said.append, tmp_path)
    (line,) = said
    assert "by a bench of ⟨001B⟩[2J⟨000A⟩root that was killed" in line
    assert gpu.locked_mhz is None
