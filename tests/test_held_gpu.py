"""harness.device.held_gpu: what a bench locks is let go on every way out, and after kill -9 by the next start."""

from __future__ import annotations

import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.answers import Unknown
from harness.device.clock_lock import note_path
from harness.device.held_gpu import HeldGpu
from harness.device.turn import lock_of
from harness.errors import CommandError, Exit
from tests.fake_nvml import FakeGpu, FakeNvml
from tests.held_gpu import on_gpu, warned
from tests.small_bench import options

ROOT = Path(__file__).parents[1]
BARE = "8f1c7a52-0b3d-4e6f-9a1b-2c3d4e5f6071"


def test_refused_before_anything_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the GPU's own list, and where NVML does not know the GPU or is not there at all."""
    asked = options(device="cuda:0", uuid=f"GPU-{BARE}", lock_clocks_mhz=1411)
    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml())
    with pytest.raises(CommandError, match="nearest are 1410 and 1425"):
        HeldGpu(asked, print, print)
    for fake, words in ((FakeNvml([]), "NVML finds no such GPU"), (FakeNvml(init_error=12), "the NVML library")):
        monkeypatch.setitem(sys.modules, "pynvml", fake)
        with pytest.raises(CommandError, match=rf"^--lock-clocks: {words}.*; leave it out$") as caught:
            HeldGpu(asked, print, print)
        assert caught.value.code is Exit.INFRASTRUCTURE


def test_refused_where_no_lock_tells_that_a_bench_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next bench would unlock its clock while it measures."""
    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml())
    held = HeldGpu(options(device="cuda:0", uuid=f"GPU-{BARE}", lock_clocks_mhz=1410), print, print)
    held.find({})
    held.turn = Unknown(reason="/x: Permission denied")
    with pytest.raises(CommandError, match=r"^--lock-clocks: no lock tells others .*: /x: Permission denied$"):
        held.lock_clock()


def test_an_instance_says_whose_clocks_and_power_these_are() -> None:
    """The other instances' work is in them."""
    board = FakeGpu(mig_mode=1)
    part = FakeGpu(uuid="MIG-dddddddd-0000-0000-0000-000000000000", parent=board)
    (line,) = warned(on_gpu(FakeNvml([part, board])))
    assert line == "This is a MIG instance: clocks, power and energy are its board's, which other instances share."


def test_a_clock_that_stays_locked_stands_in_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its reader must know what the GPU was measured at."""
    said = "the SM clock of GPU x is still locked"
    monkeypatch.setattr("harness.device.held_gpu.undo_killed", lambda own, _: said if own == BARE else None)
    monkeypatch.setattr("harness.device.held_gpu.take_turn", lambda *_: lock_of("unused"))
    held = HeldGpu(options(device="cuda:0", uuid=f"GPU-{BARE}"), print, print)
    held.take_turn()
    assert next(held.warnings([])) == "The SM clock of GPU x is still locked."


BENCH = """
import sys, time
from pathlib import Path
from types import SimpleNamespace
from harness import bench as module
from harness.ending import ended
from harness.model import Options
from harness.store import Store
from tests.fake_nvml import FakeGpu, FakeNvml

uuid, folder, way, mhz = sys.argv[1], Path(sys.argv[2]), sys.argv[3], int(sys.argv[4])
sys.modules["pynvml"] = FakeNvml([FakeGpu(uuid=uuid)], calls=folder / "calls")
facts = {"values": {}, "unknown": {}}
module.Pool = lambda _: SimpleNamespace(facts=lambda: facts, close=lambda: None, pids=[])
registry = SimpleNamespace(__name__="none", kernels=lambda: {}, prepare=lambda _: ())
asked = Options(trials=1, max_time_s=1.0, quick=False, device="cuda:0", uuid=uuid, command=("x",),
                lock_clocks_mhz=mhz or None)

def work():
    with module.Bench(registry=registry, store=Store(folder / "store"), options=asked, say=print) as bench:
        print("measures", bench.environment.get("locked_sm_clock_mhz"), *bench.warnings[-1:], flush=True)
        if way == "raises":
            raise ZeroDivisionError
        if way != "ends":
            time.sleep(60)
        bench.publish()
    return 0

sys.exit(ended(work))
"""
"""A bench as it is, but for its workers, into a file of NVML's calls that outlives it."""


class Killed:
    """Benches of one GPU, one after another."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.gpu = folder, str(uuid.uuid4())

    def start(self, way: str, mhz: int = 1410) -> subprocess.Popen[str]:
        """One that ends in this way."""
        arguments = [f"GPU-{self.gpu}", str(self.folder), way, str(mhz)]
        both = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        return subprocess.Popen([sys.executable, "-c", BENCH, *arguments], cwd=ROOT, text=True, **both)  # type: ignore[call-overload,no-any-return]

    @property
    def calls(self) -> list[str]:
        """Changes of its clock, in order."""
        lines = (self.folder / "calls").read_text().splitlines()
        return [line.removeprefix(f"GPU-{self.gpu} ") for line in lines]

    @property
    def note(self) -> Path:
        """Of its clock."""
        return note_path(self.gpu)


@pytest.fixture
def killed(tmp_path: Path) -> Iterator[Killed]:
    """Of a GPU that no other test has; nothing of it stays in /tmp."""
    benches = Killed(tmp_path)
    yield benches
    benches.note.unlink(missing_ok=True)
    Path(lock_of(benches.gpu).lock_file).unlink(missing_ok=True)


@pytest.mark.parametrize(
    ("way", "code"), [("ends", 0), ("raises", 6), ("SIGINT", 130), ("SIGTERM", 130), ("SIGHUP", 130)]
)
def test_every_way_out(killed: Killed, way: str, code: int) -> None:
    """Locked once, let go once, nothing left."""
    bench = killed.start(way)
    assert bench.stdout is not None
    said = bench.stdout.readline()
    assert said.startswith("measures 1410 ")
    assert "locked at 1410 MHz (--lock-clocks), and NVML then read 1410 MHz: these are not the times" in said
    if way.startswith("SIG"):
        assert killed.note.exists()
        bench.send_signal(getattr(signal, way))
    out, _ = bench.communicate(timeout=30)
    assert bench.returncode == code, out
    assert killed.calls == ["locked at 1410", "unlocked"]
    assert not killed.note.exists()


def test_kill_nine_and_the_next_start(killed: Killed) -> None:
    """Whatever the next bench is asked for, it begins with the GPU as it was."""
    bench = killed.start("SIGKILL")
    assert bench.stdout is not None
    bench.stdout.readline()
    bench.kill()
    bench.communicate(timeout=30)
    assert killed.calls == ["locked at 1410"]
    assert killed.note.exists()
    following = killed.start("ends", mhz=0)
    out, _ = following.communicate(timeout=30)
    assert following.returncode == 0, out
    assert f"unlocked the SM clock of GPU {killed.gpu}, which was locked at 1410 MHz by a bench of " in out
    assert "measures None" in out
    assert killed.calls == ["locked at 1410", "unlocked"]
    assert not killed.note.exists()
