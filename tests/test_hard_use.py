"""A bench under hard use: full disks, stores that vanish, devices that are lost, clocks that are set back."""

from __future__ import annotations

import errno
import resource
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from harness.answers import Unknown
from harness.bench import Bench
from harness.device.held_gpu import HeldGpu
from harness.device.nvml import Nvml
from harness.errors import CommandError, Exit
from harness.model import Cache, Measurement, Problem, Word
from harness.problems import OperandSets
from harness.store import Store, load, verify
from harness.store.draft import JOURNAL, Draft
from harness.workbench import Workbench
from tests import planted_kernels, planted_loss
from tests.abandoned import SOME, abandon
from tests.built import library
from tests.fake_nvml import FakeGpu, FakeNvml
from tests.kill_nine import kill
from tests.running_suites import ROOT, command, environment, planted
from tests.sample_run import empty_run, gpu_run
from tests.small_bench import cases, options

RUN_ID = "20260101T000000Z-x-y-abcdef"
FULL = OSError(errno.ENOSPC, "No space left on device")


def draft_in(root: Path) -> Draft:
    """One that is open."""
    return Draft.create(root, replace(empty_run(), id=RUN_ID))


@contextmanager
def no_file_over(size: int) -> Iterator[None]:
    """The kernel cuts every write at `size` bytes, as a full disk does."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_while_journaling(tmp_path: Path) -> None:
    """One line that says what becomes of what was measured; with room, it is a run, short of the line that was cut."""
    draft = draft_in(tmp_path)
    draft.append(SOME[0])
    with no_file_over((draft.folder / JOURNAL).stat().st_size + 100), pytest.raises(CommandError) as caught:
        draft.append(SOME[1])
    kept = f"what was measured is kept in .draft-{RUN_ID}: make room or a way to write, and the next command publishes"
    assert str(caught.value) == f"store {tmp_path}: File too large; {kept} it"
    assert caught.value.code is Exit.INFRASTRUCTURE
    folder = draft.publish(partial=True)
    assert folder is not None
    verify(folder)
    assert load(folder).measurements == SOME[:1]
    assert "1 line of the journal was torn" in load(folder).warnings[-1]


def test_a_full_disk_while_publishing(tmp_path: Path) -> None:
    """No half run is left, which would take the room that is wanted; the draft is free for the next command."""
    draft = draft_in(tmp_path)
    draft.append(SOME[0])
    with no_file_over(100), pytest.raises(CommandError, match="File too large; what was measured is kept in"):
        draft.publish(partial=False)
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_dir()) == [f".draft-{RUN_ID}"]
    (folder,) = Store(tmp_path).recover()
    verify(folder)
    assert load(folder).measurements == SOME[:1]


def test_a_full_disk_before_the_first_case(tmp_path: Path) -> None:
    """Where the draft or what was built does not fit: one line, and nothing stays."""
    with no_file_over(100), pytest.raises(CommandError, match="File too large; name a writable folder") as caught:
        draft_in(tmp_path)
    assert caught.value.code is Exit.INFRASTRUCTURE
    assert list(tmp_path.iterdir()) == []


def test_a_build_that_does_not_fit_into_the_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`copytree` gathers its errors into one without words of its own."""

    def full(*_: object, **__: object) -> None:
        why = str(OSError(FULL.errno, FULL.strerror, "a", None, "b"))
        raise shutil.Error([("a", "b", why), ("c", "d", why)])

    monkeypatch.setattr("harness.bench.shutil.copytree", full)
    built = SimpleNamespace(directory=tmp_path, record=SimpleNamespace(target="cpu"))
    bench = Bench(registry=planted_kernels, store=Store(tmp_path / "store"), options=options())
    bench._draft = draft_in(tmp_path / "store")
    with pytest.raises(CommandError, match="store: No space left on device; name a writable folder"):
        bench._keep([built])  # type: ignore[list-item]
    assert [path.name for path in (tmp_path / "store").iterdir()] == [".gitignore"]


def test_no_room_for_temporary_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One line, before a worker starts."""

    def full(**_: object) -> None:
        raise FULL

    monkeypatch.setattr("harness.worker.tempfile.mkdtemp", full)
    with pytest.raises(CommandError, match="no temporary folder can be made: No space left on device; set TMPDIR"):
        Bench(registry=planted_kernels, store=Store(tmp_path), options=options()).__enter__()


def test_a_kept_file_is_whole_or_not_there(tmp_path: Path) -> None:
    """Half of one in the run of a bench that was killed would be taken for all of it, since its sum agrees."""
    draft = draft_in(tmp_path)
    draft.append(SOME[0])
    with no_file_over(100), pytest.raises(CommandError, match="File too large"):
        draft.keep("pytest-benchmark.json", "x" * 1000)
    draft.keep("note.txt", "kept")
    folder = draft.publish(partial=False)
    assert folder is not None
    assert (folder / "note.txt").read_text() == "kept"
    assert not (folder / "pytest-benchmark.json").exists()


@pytest.mark.parametrize("doing", ["measuring", "publishing"])
def test_a_store_that_is_deleted_meanwhile(tmp_path: Path, doing: str) -> None:
    """It is said: a run that was measured must not end as if nothing had been."""
    draft = draft_in(tmp_path / "store")
    draft.append(SOME[0])
    shutil.rmtree(tmp_path / "store")
    act = (lambda: draft.append(SOME[1])) if doing == "measuring" else (lambda: draft.publish(partial=False))
    with pytest.raises(CommandError) as caught:
        act()
    what = f".draft-{RUN_ID} was deleted while a bench measured into it; nothing of it could be kept"
    assert str(caught.value) == f"store {tmp_path / 'store'}: {what}"
    assert caught.value.code is Exit.INFRASTRUCTURE


def test_a_command_goes_on_beside_a_draft_that_does_not_fit(tmp_path: Path) -> None:
    """Whoever looks at runs on a full disk sees them, and is told of the draft."""
    folder = abandon(tmp_path, SOME)
    store = Store(tmp_path)
    with no_file_over(100):
        (line,) = store.recovered()
    assert line.startswith(f"store {tmp_path}: File too large; what was measured is kept in {folder.name}: ")


def lost_bench(root: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """A bench on a device that its kernel `falls_off_the_bus` ends."""
    monkeypatch.setenv(planted_loss.GONE, str(root / "gone"))
    return Bench(registry=planted_loss, store=Store(root / "store"), options=options(trials=1))


def test_a_device_that_is_lost_ends_the_bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not one kernel after the other is called crashed: one line, with NVML's word, code 6, and the run is kept."""
    gpu = FakeGpu()
    library = Nvml.open(FakeNvml([gpu]))
    assert isinstance(library, Nvml)
    lost = replace(cases(["right"])[0], kernel="falls_off_the_bus")
    with lost_bench(tmp_path, monkeypatch) as bench:
        bench._gpu.device = library.find(uuid=gpu.uuid, pci_bus_id=None)
        bench.measure(cases(["right"])[0])
        gpu.lost = True
        with pytest.raises(CommandError) as caught:
            bench.measure(lost)
        folder = bench.publish(partial=True)
    assert str(caught.value) == (
        "no worker starts on cpu any more: exited with code 1 while it started: RuntimeError: No CUDA GPUs are "
        "available; NVML: nvmlDeviceGetTemperatureV: GPU is lost; nvmlDeviceGetTemperature: GPU is lost; what was "
        "measured until then is kept"
    )
    assert caught.value.code is Exit.INFRASTRUCTURE
    assert folder is not None
    words = [(m.case.kernel, m.verdict.word) for m in load(folder).measurements]
    assert words == [("right", Word.PASSED), ("falls_off_the_bus", Word.CRASHED)]


def at(measurement: Measurement, times_unix_s: tuple[float, ...]) -> Measurement:
    """The same with other times of its samples, of which there are as many."""
    (first, *others) = measurement.trials
    assert len(first.samples_ns) == len(times_unix_s)
    return replace(measurement, trials=(replace(first, sample_times_unix_s=times_unix_s), *others))


TIMED = next(m for m in gpu_run(shapes=((64, 64),), trials=2, samples=3).measurements if m.samples_ns)


@pytest.mark.parametrize(
    ("times_unix_s", "told"),
    [
        ((1e9, 1e9 + 1, 1e9 + 2), False),
        ((1e9, 1e9 + 1, 1e9 + 0.95), False),
        ((1e9, 1e9 + 1, 1e9 - 3600), True),
    ],
    ids=["forward", "set right", "set back"],
)
def test_a_clock_that_is_set_back_is_told(tmp_path: Path, times_unix_s: tuple[float, ...], told: bool) -> None:
    """The run is kept; whoever matches its readings by time must know."""
    draft = draft_in(tmp_path)
    draft.append(at(TIMED, times_unix_s))
    folder = draft.publish(partial=False)
    assert folder is not None
    words = "The clock was set back while the run was measured: its times of day are of two clocks."
    assert (words in load(folder).warnings) is told


def test_a_run_that_ends_before_it_began(tmp_path: Path) -> None:
    """Its measurements have no times: the run itself tells."""
    draft = Draft.create(tmp_path, replace(empty_run(), id=RUN_ID, started_utc="2999-01-01T00:00:00+00:00"))
    draft.append(replace(TIMED, trials=tuple(replace(t, states=(), sample_times_unix_s=()) for t in TIMED.trials)))
    folder = draft.publish(partial=False)
    assert folder is not None
    assert load(folder).warnings[-1].startswith("The clock was set back")


class Fitting:
    """In place of `OperandSets`, on a device that has room for so many."""

    def __init__(self, room: int) -> None:
        self.room, self.asked = room, list[int]()

    def __call__(self, problem: Problem, device: str, count: int, *, apart_bytes: int) -> OperandSets:
        """Made of real ones, one of each."""
        self.asked.append(count)
        if count > self.room:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return OperandSets(problem, device, count, apart_bytes=apart_bytes)


@pytest.mark.parametrize(("room", "asked"), [(16, [16]), (7, [16, 8, 4]), (3, [16, 8, 4, 3])])
def test_fewer_sets_where_memory_is_short(monkeypatch: pytest.MonkeyPatch, room: int, asked: list[int]) -> None:
    """Sets beyond those that make operands cold are given up first. By hand: 3 sets of 65 × 64 floats are 4 caches."""
    fitting = Fitting(room)
    monkeypatch.setattr("harness.workbench.OperandSets", fitting)
    monkeypatch.setattr("harness.workbench.last_level_cache_bytes", lambda _: 10_000)
    bench = Workbench(Problem(m=64, k=64), "cpu")
    sets = bench.sets(16, Cache.COLD)
    assert (sets.count, fitting.asked) == (asked[-1], asked)
    assert bench.sets(16, Cache.COLD) is sets


def test_operands_that_never_fit_cold(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer would not be cold: it is torch's error, which the worker calls «not measured»."""
    monkeypatch.setattr("harness.workbench.OperandSets", fitting := Fitting(2))
    monkeypatch.setattr("harness.workbench.last_level_cache_bytes", lambda _: 10_000)
    with pytest.raises(torch.OutOfMemoryError):
        Workbench(Problem(m=64, k=64), "cpu").sets(16, Cache.COLD)
    assert fitting.asked == [16, 8, 4, 3]


def test_a_cpu_bench_waits_for_nobody() -> None:
    """A CPU is shared with everything anyway."""
    gpu = HeldGpu(options(), print, print)
    gpu.take_turn()
    assert isinstance(gpu.turn, Unknown)
    assert list(gpu.warnings([])) == []


def test_a_supervisor_ends_a_bench_whose_output_is_lost(tmp_path: Path) -> None:
    """SIGTERM while a kernel hangs, and Ctrl-C while it publishes: code 130, what was measured is kept, one line."""
    library("cpu")
    arguments, variables = planted(tmp_path, "-k", "empty or matmul or hangs", "-q")
    with Path("/dev/full").open("w") as full:
        bench = subprocess.Popen(
            command(*arguments), cwd=ROOT, env=environment(**variables), stdout=full, stderr=subprocess.PIPE, text=True
        )
    try:
        deadline = time.monotonic() + 60
        while bench.poll() is None and time.monotonic() < deadline and not lines_in(tmp_path / "store", 2):
            time.sleep(0.02)
        bench.send_signal(signal.SIGTERM)
        time.sleep(0.1)
        bench.send_signal(signal.SIGINT)
        _, said = bench.communicate(timeout=60)
    finally:
        bench.kill()
        bench.wait()
    assert bench.returncode == 130, said
    assert said == "the standard output cannot be written to: No space left on device; send it elsewhere\n"
    run = load(Store(tmp_path / "store").resolve("latest"))
    assert run.partial
    assert [m.case.kernel for m in run.measurements] == ["empty", "torch.matmul"]


def lines_in(root: Path, count: int) -> bool:
    """Whether the one journal there has so many lines."""
    return any(len(path.read_text().splitlines()) >= count for path in root.glob(f".draft-*/{JOURNAL}"))


def test_kills_at_random_moments(tmp_path: Path) -> None:
    """Three rounds of the many that `python -m tests.kill_nine` does: whole or partial runs, nothing lost."""
    assert "0 are lost" in kill(tmp_path / "store", rounds=3, seed=5)
