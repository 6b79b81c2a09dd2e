"""harness.bench and the draft: from cases to a published run, and what is left of one that was killed."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import filelock
import psutil
import pynvml
import pytest

from harness.bench import Bench
from harness.cases import EVERY_WORKER, FLOOR_PROBLEM, Grid, cases_for
from harness.device.held_gpu import HeldGpu
from harness.errors import CommandError, Exit
from harness.model import (
    Cache,
    Case,
    DeviceState,
    Measurement,
    Options,
    Problem,
    Role,
    TrialResult,
    Verdict,
    Word,
)
from harness.store import Store, load, verify
from harness.store.draft import JOURNAL, Draft
from harness.timing import host
from harness.trial import Worker
from tests import planted_kernels, planted_timers
from tests.fake_nvml import FakeGpu, FakeNvml
from tests.sample_run import empty_run, gpu_run

ROOT = Path(__file__).parents[1]
PROBLEM = Problem(m=6, k=10)
ALL = ["floor", "right", "drops_the_last_element", "segfaults", "only_cuda", "reads"]


def options(**changes: object) -> Options:
    values = {"trials": 2, "max_time_s": 0.002, "quick": False, "device": "cpu", "command": ("a", "test")}
    return Options(**{**values, **changes})  # type: ignore[arg-type]


def cases(names: list[str], caches: tuple[Cache, ...] = (Cache.HOT,)) -> list[Case]:
    found = planted_kernels.kernels()
    grid = Grid(problems=(PROBLEM,), timers=("graph", "async"), caches=caches)
    return cases_for([found[name] for name in names], [grid], "cpu")


class Measured:
    """A bench run into `root`, end to end, once for many tests."""

    def __init__(self, root: Path) -> None:
        self.store = Store(root)
        self.seen: list[Measurement] = []
        self.on_disk: list[int] = []
        self.cases = [*cases(ALL), *(replace(each, problem=PROBLEM) for each in cases(["segfaults", "right"]))]
        self.cases[-1] = replace(self.cases[-1], problem=Problem(m=1, k=1))
        bench = Bench(
            registry=planted_kernels,
            store=self.store,
            options=options(),
            on_measured=self._told,
        )
        with bench as started:
            started.keep("note.txt", "kept")
            self.measurements = [started.measure(case) for case in self.cases]
            self.journal = (self.store.root / f".draft-{started._draft.folder.name[7:]}" / JOURNAL).read_text()
            published = started.publish()
        assert published is not None
        self.folder = published

    def _told(self, measurement: Measurement) -> None:
        (journal,) = self.store.root.glob(f".draft-*/{JOURNAL}")
        self.seen.append(measurement)
        self.on_disk.append(len(journal.read_text().splitlines()))


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Measured:
    """Shared; nothing may write to it."""
    return Measured(tmp_path_factory.mktemp("bench"))


def test_a_bench_end_to_end(measured: Measured) -> None:
    """What was measured is what is on disk, sample for sample, and it verifies."""
    verify(measured.folder)
    run = load(measured.folder)
    assert run.measurements == tuple(measured.measurements)
    assert (run.partial, run.id, run.options) == (False, measured.folder.name, options())
    assert (measured.folder / "note.txt").read_text() == "kept"
    assert run.kernels["right"] == "planted: right"


def test_verdicts_of_a_bench(measured: Measured) -> None:
    """A kernel that is wrong or crashes ends its own case at the first trial and nothing else."""
    words = [(m.case.kernel, m.verdict.word, len(m.trials)) for m in measured.measurements]
    assert words == [
        ("floor", Word.PASSED, 2),
        ("right", Word.PASSED, 2),
        ("drops_the_last_element", Word.WRONG, 1),
        ("segfaults", Word.CRASHED, 1),
        ("only_cuda", Word.UNSUPPORTED, 1),
        ("reads", Word.PASSED, 2),
        ("segfaults", Word.CRASHED, 1),
        ("right", Word.PASSED, 2),
    ]
    reasons = [m.verdict.reason for m in measured.measurements if m.case.kernel in {"segfaults", "only_cuda"}]
    assert reasons == [
        "killed by SIGSEGV (segmentation fault) while its results were checked",
        "needs a CUDA device",
        "not tried again on this problem: killed by SIGSEGV (segmentation fault) while its results were checked",
    ]


def test_every_measurement_is_told_once(measured: Measured) -> None:
    """In order, with all its trials, whatever its verdict: that is what progress is made of. By then it is on disk."""
    assert measured.seen == measured.measurements
    assert measured.on_disk == list(range(1, len(measured.seen) + 1))
    assert [t.trial for t in measured.measurements[0].trials] == [0, 1]


def test_the_journal_had_a_line_a_measurement(measured: Measured) -> None:
    """Each is whole in itself."""
    lines = measured.journal.splitlines()
    assert [Measurement.from_dict(json.loads(line)) for line in lines] == measured.measurements


def test_a_cpu_run_says_so_first(measured: Measured) -> None:
    """Nobody shall take it for GPU numbers."""
    assert load(measured.folder).warnings[0].startswith("These are CPU numbers: no CUDA device was used")


def on_gpu(fake: FakeNvml, naps: list[float] | None = None, **facts: str) -> HeldGpu:
    """The GPU with these facts, of a bench that is about to measure on it."""
    sleep = (naps if naps is not None else []).append
    with pytest.MonkeyPatch.context() as patched:
        patched.setitem(sys.modules, "pynvml", fake)
        patched.setattr("harness.device.held_gpu.uuid_of", lambda _: "the lock's name")
        gpu = HeldGpu(options(device="cuda:0"), print, sleep)
        gpu.turn = filelock.FileLock("ours")
        gpu.find(facts or {"gpu_uuid": fake.gpus[0].uuid})
    return gpu


def warned(gpu: HeldGpu) -> list[str]:
    """Its one worker, number 13, idles."""
    return list(gpu.warnings([13]))


BUSY = "The GPU was already busy (37 % by NVML) before the first sample, while no worker of this bench ran."
NUMBERED_OTHERWISE = {90013: "python3"}
"""Processes as a container's driver numbers them."""


def test_a_gpu_of_our_own_has_no_warning() -> None:
    """It is asked at once and waited for in no case."""
    naps: list[float] = []
    assert warned(on_gpu(FakeNvml([FakeGpu(processes={13: "python3"}, utilization_percent=9)]), naps)) == []
    assert naps == []


@pytest.mark.parametrize("processes", [NUMBERED_OTHERWISE, {}, {13: "python3"}])
def test_a_gpu_that_others_keep_busy_is_named_before_the_first_sample(processes: dict[int, str]) -> None:
    """Though NVML names nobody else: where a container hides who it is, the utilization tells."""
    naps: list[float] = []
    gpu = FakeGpu(processes=processes, utilization_percent=37)
    assert warned(on_gpu(FakeNvml([gpu]), naps)) == [BUSY]
    assert naps == [1, 1]


def test_the_end_of_our_own_start_up_is_not_taken_for_others() -> None:
    """The counter averages over up to a second: it is given time to fall."""
    gpu = FakeGpu(utilization_percent=80)
    held = on_gpu(FakeNvml([gpu]))
    naps: list[float] = []

    def sleep(seconds: float) -> None:
        naps.append(seconds)
        gpu.utilization_percent = 0

    held._sleep = sleep
    assert warned(held) == []
    assert naps == [1]


def test_other_processes_are_named() -> None:
    """By name, and once: that the GPU is busy then says no more."""
    gpu = FakeGpu(processes={13: "python3", 812: "/opt/trainer"}, utilization_percent=99)
    assert warned(on_gpu(FakeNvml([gpu]))) == ["Other processes used this GPU when the run began: trainer (pid 812)."]


def test_whether_others_use_the_gpu_cannot_be_told() -> None:
    """Neither who nor whether: said so. A driver that lists our own processes alone, as on MIG, has told."""
    errors = {"nvmlDeviceGetUtilizationRates": pynvml.NVML_ERROR_NOT_SUPPORTED}
    assert warned(on_gpu(FakeNvml([FakeGpu(processes={13: "python3"}, errors=errors)]))) == []
    (line,) = warned(on_gpu(FakeNvml([FakeGpu(processes=NUMBERED_OTHERWISE, errors=errors)])))
    assert line == (
        "Whether others used this GPU when the run began is not known: the driver numbers processes otherwise than "
        "this container does; nvmlDeviceGetUtilizationRates: Not Supported."
    )


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (pynvml.NVML_ERROR_LIBRARY_NOT_FOUND, "the NVML library (libnvidia-ml.so.1) does not load"),
        (pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH, "the NVIDIA driver's libraries and its kernel module differ"),
        (pynvml.NVML_ERROR_NO_PERMISSION, "NVML does not start: Insufficient Permissions"),
    ],
)
def test_a_gpu_without_nvml_is_measured_with_a_warning(error: int, words: str) -> None:
    """One line says what is not known and why; there are no readings."""
    held = on_gpu(FakeNvml(init_error=error))
    (line,) = warned(held)
    assert line.startswith(f"Clocks, temperature and power are unknown: {words}")
    assert held.state() is None


def test_reordered_gpus_by_uuid() -> None:
    """CUDA_VISIBLE_DEVICES=GPU-bbbbbbbb…,GPU-aaaaaaaa…: torch's first GPU is NVML's second.

    Its worker tells the UUID; warnings and readings are then of that GPU and not of the idle one at its index.
    """
    first = FakeGpu(uuid="GPU-aaaaaaaa-0000-0000-0000-000000000000", bus_id="00000000:1B:00.0")
    second = FakeGpu(
        uuid="GPU-bbbbbbbb-0000-0000-0000-000000000000",
        bus_id="00000000:43:00.0",
        sm_clock_mhz=1215,
        processes={13: "python3", 812: "trainer"},
    )
    held = on_gpu(FakeNvml([first, second]), gpu_uuid=second.uuid.removeprefix("GPU-"), gpu_pci_bus_id=second.bus_id)
    assert warned(held) == ["Other processes used this GPU when the run began: trainer (pid 812)."]
    state = held.state()
    assert state is not None
    assert state.sm_clock_mhz == 1215


def test_warnings_are_known_before_the_first_case(tmp_path: Path) -> None:
    """Those of the run, for whoever waits for it."""
    with Bench(registry=planted_kernels, store=Store(tmp_path), options=options(trials=1)) as bench:
        assert bench.warnings[0].startswith("These are CPU numbers")
        bench.measure(cases(["right"])[0])
        folder = bench.publish()
    assert folder is not None
    assert load(folder).warnings == bench.warnings


def test_nothing_is_left_behind(measured: Measured) -> None:
    """No draft, lock, log or worker."""
    assert [path.name for path in measured.store.root.iterdir()] == [measured.folder.name]


def test_cases_in_the_order_of_measuring() -> None:
    """The floor once, on its own problem; then kernels side by side on one problem, timer and cache."""
    found = cases(["right", "floor", "reads"], (Cache.COLD, Cache.HOT))
    assert [(case.kernel, case.problem, case.timer, case.cache) for case in found] == [
        ("floor", FLOOR_PROBLEM, "async", Cache.COLD),
        ("floor", FLOOR_PROBLEM, "async", Cache.HOT),
        ("right", PROBLEM, "async", Cache.COLD),
        ("reads", PROBLEM, "async", Cache.COLD),
        ("right", PROBLEM, "async", Cache.HOT),
        ("reads", PROBLEM, "async", Cache.HOT),
    ]


def test_cases_on_a_gpu() -> None:
    """The headline first, and no kernels that only a CPU has; on a CPU those for CUDA stay, to say what they need."""
    found = planted_kernels.kernels()
    both = [found["right"], found["only_cuda"]]
    grid = Grid(problems=(PROBLEM,), timers=("async", "graph"), caches=(Cache.COLD,))
    on_gpu = cases_for(both, [grid], "cuda")
    assert [(case.kernel, case.timer) for case in on_gpu] == [("only_cuda", "graph"), ("only_cuda", "async")]
    assert [case.kernel for case in cases_for(both, [grid], "cpu")] == ["right", "only_cuda"]


def test_an_unsupported_problem_is_not_tried(tmp_path: Path) -> None:
    """The kernel's own reason; no worker is asked."""
    case = Case(
        kernel="only_even_k", role=planted_kernels.kernels()["right"].role,
        problem=Problem(m=2, k=3), timer="async", cache=Cache.HOT,
    )  # fmt: skip
    with Bench(registry=planted_kernels, store=Store(tmp_path), options=options(trials=1)) as bench:
        verdict = bench.measure(case).verdict
    assert (verdict.word, verdict.reason) == (Word.UNSUPPORTED, "K=3 is odd")


def test_a_bench_without_measurements_is_no_run(tmp_path: Path) -> None:
    """Nothing to keep."""
    with Bench(registry=planted_kernels, store=Store(tmp_path), options=options(trials=1)) as bench:
        assert bench.publish() is None
    assert list(tmp_path.iterdir()) == []


class Unstartable:
    """A registry that no worker can import."""

    __name__ = "no_such_registry"
    kernels = staticmethod(planted_kernels.kernels)
    prepare = staticmethod(planted_kernels.prepare)
    load = staticmethod(planted_kernels.load)


def test_workers_that_cannot_start_end_the_bench(tmp_path: Path) -> None:
    """One line with the worker's last words, code 6, nothing left behind."""
    with pytest.raises(CommandError) as caught:
        Bench(registry=Unstartable(), store=Store(tmp_path), options=options(trials=1)).__enter__()
    assert caught.value.code is Exit.INFRASTRUCTURE
    assert str(caught.value).startswith("no worker could start on cpu: exited with code 1 while it started: ")
    assert str(caught.value).endswith("No module named 'no_such_registry'")
    assert list(tmp_path.iterdir()) == []


def test_a_store_that_is_a_file_ends_the_bench(tmp_path: Path) -> None:
    """Before anything is measured."""
    (tmp_path / "file").write_text("")
    with pytest.raises(CommandError, match="name a writable folder with --store or SGEMV_STORE") as caught:
        Bench(registry=planted_kernels, store=Store(tmp_path / "file"), options=options()).__enter__()
    assert caught.value.code is Exit.INFRASTRUCTURE


KILLED = """
import sys
from pathlib import Path
from harness.bench import Bench
from harness.store import Store
from tests import planted_kernels
from tests.test_bench import cases, options
bench = Bench(registry=planted_kernels, store=Store(Path(sys.argv[1])), options=options())
with bench as started:
    print(*started._pool.pids, flush=True)
    for case in cases(["floor", "right", "reads"]):
        print(bench.measure(case).case.kernel, flush=True)
    print("hanging", flush=True)
    bench.measure(cases(["hangs"])[0])
"""


def test_a_killed_bench_loses_nothing_that_was_measured(tmp_path: Path) -> None:
    """A kill -9 in the middle of a case.

    Until then the draft is not stolen; after it the run is published as partial, with every sample of the journal, and
    the workers are gone too.
    """
    program = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert program.stdout is not None
    try:
        workers = [int(pid) for pid in program.stdout.readline().split()]
        lines = [program.stdout.readline().strip() for _ in range(4)]
        assert lines == ["floor", "right", "reads", "hanging"], program.stderr and program.stderr.read()
        (draft,) = (path for path in tmp_path.glob(".draft-*") if path.is_dir())
        assert Store(tmp_path).recover() == []
        journal = (draft / JOURNAL).read_text().splitlines()
    finally:
        program.kill()
        program.communicate()
    (folder,) = Store(tmp_path).recover()
    verify(folder)
    run = load(folder)
    assert run.partial
    assert run.warnings[-1] == "The run was cut short: it holds what had been measured until then."
    assert [m.case.kernel for m in run.measurements] == ["floor", "right", "reads"]
    assert [m.samples_ns for m in run.measurements] == [
        tuple(ns for trial in json.loads(line)["trials"] for ns in trial["samples_ns"]) for line in journal
    ]
    assert all(len(m.samples_ns) >= 20 for m in run.measurements)
    assert Store(tmp_path).recover() == []
    assert [path.name for path in tmp_path.iterdir() if not path.name.startswith(".logs-")] == [folder.name]
    _, alive = psutil.wait_procs([psutil.Process(pid) for pid in workers if psutil.pid_exists(pid)], timeout=10)
    assert not alive, "a worker outlived its parent"


def abandon(root: Path, measurements: tuple[Measurement, ...], run_id: str = "20260101T000000Z-x-y-abcdef") -> Path:
    """A draft as a killed process leaves it."""
    draft = Draft.create(root, replace(empty_run(), id=run_id))
    for measurement in measurements:
        draft.append(measurement)
    draft._lock.release()
    return draft.folder


SOME = gpu_run(shapes=((64, 64),), trials=2, samples=5).measurements[:3]


@pytest.mark.parametrize("tail", ['{"case": {"kern', '{"case": {}, "trials": []}\n', "\x00\x00\x00\x00"])
def test_a_torn_line_costs_itself_only(tmp_path: Path, tail: str) -> None:
    """As a crash in the middle of a write leaves it; the run says that something is lost."""
    folder = abandon(tmp_path, SOME)
    with (folder / JOURNAL).open("a") as journal:
        journal.write(tail)
    (published,) = Store(tmp_path).recover()
    run = load(published)
    assert run.measurements == SOME
    assert "1 line of the journal was torn" in run.warnings[-1]


def test_a_partial_run_ended_with_its_last_measurement(tmp_path: Path) -> None:
    """Not when it was found, which may be days later."""
    folder = abandon(tmp_path, SOME)
    os.utime(folder / JOURNAL, (1767225600, 1767225600))
    (published,) = Store(tmp_path).recover()
    assert load(published).finished_utc == "2026-01-01T00:00:00+00:00"


def test_torn_lines_are_counted(tmp_path: Path) -> None:
    """In words that fit the number."""
    folder = abandon(tmp_path, SOME)
    with (folder / JOURNAL).open("a") as journal:
        journal.write('{\n{"case"')
    (published,) = Store(tmp_path).recover()
    assert "2 lines of the journal were torn by the end of its process and are lost." in load(published).warnings


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        ("no header", "header.json: No such file or directory"),
        ("half a header", "header.json: "),
        ("a renamed field", "header.json: "),
        ("a newer schema", "header.json: schema version 2, wanted at most 1"),
        ("a journal of another schema", "journal.jsonl: none of its lines can be read (3 torn)"),
    ],
)
def test_a_draft_that_cannot_be_read_is_kept(tmp_path: Path, damage: str, words: str) -> None:
    """Its measurements are not deleted: it stays, unlocked, and is named; other drafts are published all the same."""
    folder = abandon(tmp_path, SOME)
    header, journal = folder / "header.json", folder / JOURNAL
    text = header.read_text()
    if damage == "no header":
        header.unlink()
    elif damage == "half a header":
        header.write_text(text[: len(text) // 2])
    elif damage == "a renamed field":
        header.write_text(text.replace('"started_utc"', '"begun_utc"'))
    elif damage == "a newer schema":
        header.write_text(text.replace('"schema_version": 1', '"schema_version": 2'))
    else:
        journal.write_text(journal.read_text().replace('"trials"', '"tries"'))
    before = journal.read_bytes()
    abandon(tmp_path, SOME, "20260102T000000Z-x-y-abcdef")
    store = Store(tmp_path)
    assert [path.name for path in store.recover()] == ["20260102T000000Z-x-y-abcdef"]
    (line,) = store.kept_aside
    assert line.startswith(f"draft {folder}: {words}")
    assert "\n" not in line
    assert journal.read_bytes() == before
    header.write_text(text)
    if damage != "a journal of another schema":
        (published,) = store.recover()
        assert load(published).measurements == SOME
        assert store.kept_aside == []


def test_a_lock_without_a_draft_is_cleared_away(tmp_path: Path) -> None:
    """Of a process killed between deleting its draft and its lock; one that is held stays."""
    (tmp_path / ".draft-20260101T000000Z-gone.lock").touch()
    held = filelock.FileLock(tmp_path / ".draft-20260102T000000Z-begins.lock")
    with held:
        assert Store(tmp_path).recover() == []
        assert [path.name for path in tmp_path.iterdir()] == [Path(held.lock_file).name]


def test_a_kill_while_a_published_draft_is_deleted(tmp_path: Path) -> None:
    """Its header is gone already, its journal not: there is nothing to keep, since the run is there."""
    folder = abandon(tmp_path, SOME)
    (published,) = Store(tmp_path).recover()
    abandon(tmp_path.with_name(f"{tmp_path.name}-again"), SOME).rename(folder)
    (folder / "header.json").unlink()
    store = Store(tmp_path)
    store.recover()
    assert store.kept_aside == []
    assert [path.name for path in tmp_path.iterdir()] == [published.name]


@pytest.mark.parametrize("left", ["no header", "half a header", "no journal", "an empty journal"])
def test_a_draft_without_measurements_is_cleared_away(tmp_path: Path, left: str) -> None:
    """Killed before the first case was through."""
    folder = abandon(tmp_path, ())
    if left == "no header":
        (folder / "header.json").unlink()
    if left == "half a header":
        (folder / "header.json").write_text('{"schema_version": 1, ')
    if left == "an empty journal":
        (folder / JOURNAL).write_text("")
    assert Store(tmp_path).recover() == []
    assert list(tmp_path.iterdir()) == []


def test_a_kill_while_publishing_does_no_harm(tmp_path: Path) -> None:
    """Half a run beside the draft is made anew; a whole run beside it is kept as it is."""
    folder = abandon(tmp_path, SOME)
    half = tmp_path / f".publish-{folder.name[7:]}"
    half.mkdir()
    (half / "run.json").write_text("{")
    (published,) = Store(tmp_path).recover()
    verify(published)
    assert not half.exists()
    before = (published / "SHA256SUMS").read_bytes()
    abandon(tmp_path.with_name(f"{tmp_path.name}-again"), SOME[:1]).rename(folder)
    Store(tmp_path).recover()
    assert (published / "SHA256SUMS").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == [published.name]


def test_a_live_draft_is_not_stolen(tmp_path: Path) -> None:
    """Not even by the process that holds it; other drafts are recovered all the same."""
    live = Draft.create(tmp_path, replace(empty_run(), id="20260102T000000Z-live"))
    live.append(SOME[0])
    abandon(tmp_path, SOME)
    (published,) = Store(tmp_path).recover()
    assert published.name == "20260101T000000Z-x-y-abcdef"
    live.append(SOME[1])
    folder = live.publish(partial=False)
    assert folder is not None
    assert load(folder).measurements == SOME[:2]


def _recover(root: Path, start, found) -> None:
    start.wait()
    found.put([path.name for path in Store(root).recover()])


def test_two_recoveries_at_once(tmp_path: Path) -> None:
    """Eight drafts, three processes: each draft becomes one whole run, published by one of them."""
    ids = [f"20260101T00000{i}Z-x-y-abcdef" for i in range(8)]
    for run_id in ids:
        abandon(tmp_path, SOME, run_id)
    context = multiprocessing.get_context("spawn")
    start, found = context.Barrier(3), context.Queue()
    processes = [context.Process(target=_recover, args=(tmp_path, start, found)) for _ in range(3)]
    for process in processes:
        process.start()
    names = [name for _ in processes for name in found.get(timeout=60)]
    for process in processes:
        process.join(timeout=60)
        assert process.exitcode == 0
    assert sorted(names) == ids
    assert sorted(path.name for path in tmp_path.iterdir()) == ids
    for run_id in ids:
        verify(tmp_path / run_id)
        assert load(tmp_path / run_id).measurements == SOME


def test_a_full_disk_while_publishing_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The draft stays, no half run beside it, and the next command publishes it; this one goes on with its own work."""
    folder = abandon(tmp_path, SOME)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("harness.store.draft.write_run", full)
        assert (store := Store(tmp_path)).recover() == []
    kept = f"what was measured is kept in {folder.name}: make room or a way to write, and the next command publishes it"
    assert store.kept_aside == [f"store {tmp_path}: No space left on device; {kept}"]
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == [folder.name]
    (published,) = Store(tmp_path).recover()
    assert load(published).measurements == SOME


def test_interrupting_a_case_keeps_those_before_it(tmp_path: Path) -> None:
    """Ctrl-C in the parent: the workers are ended, and what is in the journal can be published."""
    bench = Bench(registry=planted_kernels, store=Store(tmp_path), options=options(trials=1))
    started = bench.__enter__()
    started.measure(cases(["right"])[0])
    workers = list(started._pool.pids)

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    previous = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        with pytest.raises(KeyboardInterrupt):
            started.measure(cases(["hangs"])[0])
    finally:
        started.__exit__(None, None, None)
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
    assert not any(psutil.pid_exists(pid) for pid in workers)
    folder = started.publish(partial=True)
    assert folder is not None
    assert [m.case.kernel for m in load(folder).measurements] == ["right"]


@pytest.fixture
def _planted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The parent knows the timers that its workers plant."""
    monkeypatch.setattr(host, "TIMERS", planted_timers.planted())


OTHER_PROBLEM = Problem(m=7, k=10)
ROUNDED_S = 1e-4
"""What a sample's time may have been rounded by."""


def case_of(timer: str, kernel: str = "right", problem: Problem = PROBLEM, cache: Cache = Cache.HOT) -> Case:
    return Case(kernel=kernel, role=Role.GEMV, problem=problem, timer=timer, cache=cache)


def planted_bench(root: Path, **changes: object) -> Bench:
    return Bench(registry=planted_timers, store=Store(root), options=options(**changes))


@pytest.mark.usefixtures("_planted")
def test_every_crew_has_its_workers(tmp_path: Path) -> None:
    """The samples are process ids. Trials keep theirs for all cases; the first one's goes on alone; others are new."""
    with planted_bench(tmp_path) as bench:
        first, second = (t.samples_ns[0] for t in bench.measure(case_of("every")).trials)
        assert (first, second) == tuple(bench._pool.pids)
        assert bench.measure(case_of("every")).samples_ns == (first, second)

        assert bench.measure(case_of("alone")).samples_ns == (first,)
        assert tuple(bench._pool.pids) == (first,)
        assert not psutil.pid_exists(int(second))
        assert bench.measure(case_of("alone")).samples_ns == (first,)

        (fresh,) = bench.measure(case_of("fresh")).samples_ns
        assert tuple(bench._pool.pids) == (fresh,)
        assert not psutil.pid_exists(int(first))
        assert bench.measure(case_of("fresh", problem=OTHER_PROBLEM)).samples_ns == (fresh,)
        others = bench.measure(case_of("two fresh")).samples_ns
        assert tuple(bench._pool.pids) == others
        assert not psutil.pid_exists(int(fresh))

        third, fourth = bench.measure(case_of("every")).samples_ns
        assert tuple(bench._pool.pids) == (third, fourth)
        last = bench.measure(case_of("fresh")).samples_ns[0]
        assert len({first, second, fresh, *others, third, fourth, last}) == 8
    assert not psutil.pid_exists(int(last))


@pytest.mark.usefixtures("_planted")
def test_the_last_one_without_every_worker_before_it(tmp_path: Path) -> None:
    """After a timer with a process of its own, whose process is not taken for the first trial's."""
    with planted_bench(tmp_path) as bench:
        (fresh,) = bench.measure(case_of("fresh")).samples_ns
        (alone,) = bench.measure(case_of("alone")).samples_ns
        assert tuple(bench._pool.pids) == (alone,)
    assert alone != fresh


@pytest.mark.usefixtures("_planted")
def test_a_worker_that_dies_alone_is_replaced(tmp_path: Path) -> None:
    """The next case finds one, and still only one."""
    with planted_bench(tmp_path) as bench:
        (before,) = bench.measure(case_of("alone")).samples_ns
        assert bench.measure(case_of("alone", "exits")).verdict.word is Word.CRASHED
        (after,) = bench.measure(case_of("alone")).samples_ns
        assert tuple(bench._pool.pids) == (after,)
    assert after != before


@pytest.mark.usefixtures("_planted")
def test_a_variant_is_chosen_once(tmp_path: Path) -> None:
    """By the first timer of a problem; the others measure that one, in whatever worker."""
    with planted_bench(tmp_path) as bench:

        def found(timer: str, problem: Problem) -> set[str | None]:
            return {t.variant for t in bench.measure(case_of(timer, "two_ways", problem)).trials}

        assert found("likes one", PROBLEM) == {"one"}
        assert found("likes other", PROBLEM) == {"one"}
        assert found("likes other", OTHER_PROBLEM) == {"other"}
        assert found("likes one", OTHER_PROBLEM) == {"other"}
        assert found("likes other, fresh", PROBLEM) == {"one"}


class FakePool:
    """Answers as a pool, each time with another variant where it is let choose."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, str | None]] = []

    def measure(
        self, _case: Case, trial: int, _max_time_s: float, _read_state: object, variant: str | None
    ) -> TrialResult:
        """Right, in no time."""
        self.asked.append((trial, variant))
        passed = Verdict(word=Word.PASSED)
        chosen = variant or f"chosen by ask {len(self.asked)}"
        return TrialResult(trial=trial, verdict=passed, samples_ns=(1.0,), variant=chosen)


def test_later_trials_measure_the_first_ones_variant() -> None:
    """Whatever they would have found the fastest; cold and hot operands may want different ones."""
    bench = Bench(registry=planted_timers, store=Store(Path()), options=options(trials=3))
    bench._device_type, bench._kernels, bench._lost, bench._variants = "cpu", planted_timers.kernels(), {}, {}
    bench._stage, bench._draft = EVERY_WORKER, SimpleNamespace(append=lambda _: None)  # type: ignore[assignment]
    pool = bench._pool = FakePool()  # type: ignore[assignment]
    for cache in (Cache.HOT, Cache.COLD):
        bench.measure(case_of("async", "two_ways", cache=cache))
    bench.measure(case_of("sync", "two_ways"))
    first, second = "chosen by ask 1", "chosen by ask 4"
    hot, cold, again = [None, first, first], [None, second, second], [first] * 3
    assert pool.asked == [(i % 3, variant) for i, variant in enumerate([*hot, *cold, *again])]


@pytest.mark.usefixtures("_planted")
def test_the_device_is_not_read_where_a_timer_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """NVML is left alone, so that a case can show what reading it costs; else it is read to the end of the last one."""
    readings: list[DeviceState] = []

    def read() -> DeviceState:
        readings.append(DeviceState(time_unix_s=time.time()))
        return readings[-1]

    with planted_bench(tmp_path, trials=1) as bench:
        monkeypatch.setattr(bench, "_read_state", read)
        (unwatched,) = bench.measure(case_of("naps unwatched")).trials
        assert (readings, unwatched.states) == ([], ())
        (watched,) = bench.measure(case_of("naps")).trials
        assert watched.states == tuple(readings)
    began, ended = watched.sample_times_unix_s
    assert any(began <= state.time_unix_s < ended for state in watched.states)
    assert watched.states[-1].time_unix_s >= ended - ROUNDED_S


@pytest.mark.usefixtures("_planted")
def test_the_phase_says_whether_a_timer_is_watched() -> None:
    """It is all that the parent goes by."""
    for timer, phase in (("naps", "timing"), ("naps unwatched", "timing unwatched")):
        said: list[dict[str, str]] = []
        Worker(planted_timers.kernels(), "cpu", said.append, 1.0).measure(case_of(timer), 0, 0.002)
        assert [each["phase"] for each in said] == ["operands", "gate", "variants", phase, "recheck"]
