"""harness.bench: from cases to a published run, and what is kept of one that is killed or interrupted."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from harness.bench import Bench
from harness.cases import FLOOR_PROBLEM, Grid, cases_for
from harness.errors import CommandError, Exit
from harness.model import Cache, Case, Measurement, Problem, Word
from harness.store import Store, load, verify
from harness.store.draft import JOURNAL
from tests import planted_kernels
from tests.small_bench import PROBLEM, cases, options

ROOT = Path(__file__).parents[1]
ALL = ["floor", "right", "drops_the_last_element", "segfaults", "only_cuda", "reads"]


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


def test_nothing_is_left_behind(measured: Measured) -> None:
    """No draft, lock, log or worker."""
    assert [path.name for path in measured.store.root.iterdir()] == [measured.folder.name]


def test_warnings_are_known_before_the_first_case(tmp_path: Path) -> None:
    """Those of the run, for whoever waits for it."""
    with Bench(registry=planted_kernels, store=Store(tmp_path), options=options(trials=1)) as bench:
        assert bench.warnings[0].startswith("These are CPU numbers")
        bench.measure(cases(["right"])[0])
        folder = bench.publish()
    assert folder is not None
    assert load(folder).warnings == bench.warnings


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
from tests.small_bench import cases, options
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
