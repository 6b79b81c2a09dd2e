"""harness.bench with planted timers: which workers each is run in, which variant, and when the device is read."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from harness.bench import Bench
from harness.cases import EVERY_WORKER
from harness.model import Cache, Case, DeviceState, Problem, Role, TrialResult, Verdict, Word
from harness.store import Store
from harness.timing import host
from harness.trial import Worker
from tests import planted_timers
from tests.small_bench import PROBLEM, options


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
