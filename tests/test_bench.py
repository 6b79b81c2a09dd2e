"""harness.bench and the draft: from cases to a published run, and what is left of one that was killed."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import filelock
import psutil
import pytest

from harness.bench import FLOOR_PROBLEM, Bench, cases_for
from harness.draft import JOURNAL, Draft
from harness.errors import CommandError, Exit
from harness.model import Cache, Case, Measurement, Options, Problem, TrialResult, Word
from harness.store import Store, load, verify
from tests import planted_kernels
from tests.sample_run import empty_run, gpu_run

ROOT = Path(__file__).parents[1]
PROBLEM = Problem(m=6, k=10)
ALL = ["floor", "right", "drops_the_last_element", "segfaults", "only_cuda", "reads"]


def options(**changes: object) -> Options:
    values = {"trials": 2, "max_time_s": 0.002, "quick": False, "device": "cpu", "command": ("a", "test")}
    return Options(**{**values, **changes})  # type: ignore[arg-type]


def cases(names: list[str], caches: tuple[Cache, ...] = (Cache.HOT,)) -> list[Case]:
    found = planted_kernels.kernels()
    return cases_for([found[name] for name in names], [PROBLEM], ["graph", "async"], caches, "cpu")


class Measured:
    """A bench run into `root`, end to end, once for many tests."""

    def __init__(self, root: Path) -> None:
        self.store = Store(root)
        self.seen: list[tuple[Case, TrialResult]] = []
        self.cases = [*cases(ALL), *(replace(each, problem=PROBLEM) for each in cases(["segfaults", "right"]))]
        self.cases[-1] = replace(self.cases[-1], problem=Problem(m=1, k=1))
        bench = Bench(
            registry=planted_kernels,
            store=self.store,
            options=options(),
            on_result=lambda case, result: self.seen.append((case, result)),
        )
        with bench as started:
            (started.kept / "note.txt").write_text("kept")
            self.measurements = [started.measure(case) for case in self.cases]
            self.journal = (self.store.root / f".draft-{started._draft.folder.name[7:]}" / JOURNAL).read_text()
            published = started.publish()
        assert published is not None
        self.folder = published


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
        "killed by SIGSEGV in phase 'gate'",
        "needs a CUDA device",
        "not tried again on this problem: killed by SIGSEGV in phase 'gate'",
    ]


def test_every_trial_is_told(measured: Measured) -> None:
    """In order, as it ends: that is what progress is made of."""
    told = [(case, result) for m in measured.measurements for case, result in ((m.case, t) for t in m.trials)]
    assert measured.seen == told
    assert [t.trial for t in measured.measurements[0].trials] == [0, 1]


def test_the_journal_had_a_line_a_measurement(measured: Measured) -> None:
    """Each is whole in itself."""
    lines = measured.journal.splitlines()
    assert [Measurement.from_dict(json.loads(line)) for line in lines] == measured.measurements


def test_a_cpu_run_says_so_first(measured: Measured) -> None:
    """Nobody shall take it for GPU numbers."""
    assert load(measured.folder).warnings[0].startswith("These are CPU numbers: no CUDA device was used")


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
    on_gpu = cases_for(both, [PROBLEM], ["async", "graph"], [Cache.COLD], "cuda")
    assert [(case.kernel, case.timer) for case in on_gpu] == [("only_cuda", "graph"), ("only_cuda", "async")]
    assert [case.kernel for case in cases_for(both, [PROBLEM], ["async"], [Cache.COLD], "cpu")] == [
        "right",
        "only_cuda",
    ]


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
    assert str(caught.value).startswith("no worker could start on cpu: exited with code 1 in phase 'starting': ")
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
        print(hash(bench.measure(case)) and case.kernel, flush=True)
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
    abandon(tmp_path, SOME)
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
    abandon(tmp_path, SOME[:1])
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
    """The draft stays, and the next command publishes it."""
    folder = abandon(tmp_path, SOME)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("harness.draft.write_run", full)
        with pytest.raises(CommandError, match=r"store .*: No space left on device; name a writable folder") as caught:
            Store(tmp_path).recover()
    assert caught.value.code is Exit.INFRASTRUCTURE
    assert folder.exists()
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
