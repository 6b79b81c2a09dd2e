"""harness.trial: a worker times what is right; a fault costs its own case, and shows after timing if not before."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import torch

from harness.model import Cache, Case, Kernel, Operands, Problem, Role, TrialResult, Verdict, Word
from harness.problems import HOT_APART_BYTES
from harness.timing import NotMeasurable, Sample, Timing
from harness.trial import Worker, _figures, checked
from harness.workbench import Workbench
from tests import planted_kernels
from tests.gated import KERNELS, PROBLEM, check


class Bench:
    """A worker in this process, for cases whose kernels do not end it."""

    def __init__(self) -> None:
        self.said: list[dict[str, object]] = []
        self.worker = Worker(KERNELS, "cpu", self.said.append, 1.0)

    def measure(self, name: str, problem: Problem = PROBLEM):
        """One trial of a planted kernel; its result can pass through the pipe."""
        kernel = KERNELS[name]
        case = Case(kernel=name, role=kernel.role, problem=problem, timer="async", cache=Cache.HOT)
        result = self.worker.measure(case, 0, 0.002)
        json.dumps(result.to_dict(), allow_nan=False)
        return result


@pytest.fixture(scope="module")
def bench() -> Bench:
    """One for all: a fault must not reach the next case."""
    return Bench()


def test_a_right_kernel_is_timed(bench: Bench) -> None:
    """Samples exist, and the phases say what went on."""
    bench.said.clear()
    result = bench.measure("right")
    assert result.verdict.word is Word.PASSED
    assert len(result.samples_ns) >= 10
    assert result.operand_sets == 1
    assert [said["phase"] for said in bench.said][-4:] == ["gate", "variants", "timing", "recheck"]


@pytest.mark.parametrize(
    ("times", "clocks", "kept_times", "kept_clocks"),
    [
        ((1.0, 2.0), (1980.0, None), (1.0, 2.0), (1980.0, None)),
        ((None, None), (None, None), (), ()),
        ((1.0, None), (None, None), (), ()),
    ],
)
def test_what_is_not_known_of_samples_is_left_empty(
    times: tuple[float | None, ...],
    clocks: tuple[float | None, ...],
    kept_times: tuple[float, ...],
    kept_clocks: tuple[float | None, ...],
) -> None:
    """A sample that did not tell when it began did not begin in 1970; the timer's reason is kept."""
    samples = [Sample(ns=5.0, time_unix_s=time, sm_clock_mhz=mhz) for time, mhz in zip(times, clocks, strict=True)]
    timing = Timing(
        samples=tuple(samples), launches_per_sample=7, kernels_per_launch=2, stopped="count", rerun=lambda: None,
        settled=True, unknown={"sample_times_unix_s": "planted"},
    )  # fmt: skip
    result = TrialResult(trial=0, verdict=Verdict(word=Word.PASSED), **_figures(timing))
    assert (result.sample_times_unix_s, result.sample_clocks_mhz) == (kept_times, kept_clocks)
    assert (result.samples_ns, result.launches_per_sample, result.kernels_per_launch) == ((5.0, 5.0), 7, 2)
    assert (result.stopped, result.settled, result.unknown) == ("count", True, {"sample_times_unix_s": "planted"})


def test_no_digits_that_no_clock_has() -> None:
    """They would be half of a run's bytes: ps, 0.1 ms and 10 kHz are left. Nothing is not zero."""
    odd = Sample(ns=1723.00049999, time_unix_s=1747213920.123456, sm_clock_mhz=1979.99876)
    samples = (odd, Sample(ns=1 / 3, time_unix_s=1747213920.0))
    timing = Timing(samples=samples, launches_per_sample=1, kernels_per_launch=1, stopped="time", rerun=lambda: None)
    figures = _figures(timing)
    assert figures["samples_ns"] == (1723.0, 0.333)
    assert figures["sample_times_unix_s"] == (1747213920.1235, 1747213920.0)
    assert figures["sample_clocks_mhz"] == (1980.0, None)


def test_a_cached_result_is_caught_after_timing(bench: Bench) -> None:
    """The gate binds afresh for each probe and sees nothing; other operands under the same launch show it."""
    assert check(KERNELS["caches_its_result"]).word is Word.PASSED
    result = bench.measure("caches_its_result")
    assert result.verdict.word is Word.WRONG
    assert (result.verdict.reason or "").startswith("after timing, with other operands: 37 of 37 wrong, first y[0]: ")
    assert result.samples_ns == ()


@pytest.mark.parametrize(("body", "reason"), planted_kernels.WRONG, ids=lambda value: getattr(value, "__name__", ""))
def test_a_wrong_kernel_costs_its_own_case_only(body: planted_kernels.Body, reason: str) -> None:
    """It gets no samples; the next kernel on the same problem is judged by undamaged operands."""
    bench = Bench()
    result = bench.measure(body.__name__)
    assert (result.verdict.word, result.samples_ns) == (Word.WRONG, ())
    assert reason in (result.verdict.reason or "")
    assert bench.measure("right").verdict.word is Word.PASSED
    assert bench.measure("reads").verdict.word is Word.PASSED


@pytest.mark.parametrize(
    ("name", "word", "reason"),
    [
        ("raises", Word.CRASHED, "ValueError: planted: no such luck"),
        ("raises_after_damage", Word.CRASHED, "ValueError: planted: raised after writing"),
        ("runs_out_of_memory", Word.NOT_MEASURED, "out of memory: its operands alone take 0.0 GiB"),
        ("asks_for_too_much", Word.NOT_MEASURED, "out of memory: its operands alone take 0.0 GiB"),
    ],
)
def test_a_kernel_that_raises_costs_its_own_case_only(name: str, word: Word, reason: str) -> None:
    """The first line of what it said, and the next kernel passes."""
    bench = Bench()
    result = bench.measure(name)
    assert (result.verdict.word, result.verdict.reason, result.samples_ns) == (word, reason, ())
    assert bench.measure("right").verdict.word is Word.PASSED


@pytest.mark.parametrize("bad_ns", [0.0, -1.0, float("nan"), float("inf")])
def test_a_timer_s_sample_that_is_no_time_is_not_measurable(bad_ns: float) -> None:
    """Whoever's timer it is: a logarithm of it would end the session much later."""
    timing = Timing(
        samples=(Sample(ns=1.0), Sample(ns=bad_ns)),
        launches_per_sample=1,
        kernels_per_launch=None,
        stopped="count",
        rerun=lambda: None,
    )
    with pytest.raises(NotMeasurable, match=rf"a sample of {bad_ns} ns: wanted a finite time above 0"):
        checked(timing)
    with pytest.raises(NotMeasurable, match="no sample was taken"):
        checked(replace(timing, samples=()))


def test_damage_while_timing_is_caught_and_repaired() -> None:
    """Right at first, it spoils A from the sixth launch on: no samples, and the next kernel passes."""

    def bind(o: Operands):
        launches = 0

        def launch() -> None:
            nonlocal launches
            launches += 1
            torch.matmul(o.a, o.x, out=o.y)
            if launches > 5:
                o.a[0, 0] += 1.0

        return launch

    late = Kernel(name="late", role=Role.GEMV, summary="", bind=bind, devices=("cpu",))
    worker = Worker({**KERNELS, "late": late}, "cpu", lambda _: None, 1.0)
    case = Case(kernel="late", role=Role.GEMV, problem=Problem(m=8, k=8), timer="async", cache=Cache.HOT)
    result = worker.measure(case, 0, 0.002)
    assert (result.verdict.word, result.verdict.reason) == (Word.WRONG, "after timing: changed A or x")
    follower = Case(kernel="right", role=Role.GEMV, problem=Problem(m=8, k=8), timer="async", cache=Cache.HOT)
    assert worker.measure(follower, 0, 0.002).verdict.word is Word.PASSED


def test_hot_sets_are_placements_of_their_own() -> None:
    """Several are timed one by one, and so lie apart; those that are rotated over, or the only one, need not."""
    bench = Workbench(Problem(m=4, k=4), "cpu")

    def distance(count: int, cache: Cache) -> int:
        first, second = (each.a.storage_offset() for each in bench.sets(count, cache).operands()[:2])
        return second - first

    assert 4 * distance(2, Cache.HOT) > HOT_APART_BYTES > 4 * distance(2, Cache.COLD)
    assert bench.sets(2, Cache.HOT) is bench.sets(2, Cache.HOT) is not bench.sets(2, Cache.COLD)
    assert bench.sets(1, Cache.HOT) is bench.sets(1, Cache.COLD)


def test_what_does_not_fit_the_cache_is_not_hot(bench: Bench) -> None:
    """Refused before anything is allocated."""
    result = bench.measure("right", Problem(m=2**20, k=2**12))
    assert result.verdict.word is Word.UNSUPPORTED
    assert (result.verdict.reason or "").startswith("never hot: its operands do not stay in a cache of ")


def test_the_fastest_variant_is_measured() -> None:
    """Every variant must pass; the name of the fastest is kept."""
    import time

    def slow(o: Operands) -> None:
        planted_kernels.reads(o)
        time.sleep(0.002)

    variants = (planted_kernels._kernel(slow, Role.LIMIT), KERNELS["reads"])
    read = Kernel(name="read", role=Role.LIMIT, summary="", bind=KERNELS["reads"].bind, variants=variants)
    worker = Worker({"read": read}, "cpu", lambda _: None, 1.0)
    case = Case(kernel="read", role=Role.LIMIT, problem=Problem(m=4, k=4), timer="async", cache=Cache.HOT)
    result = worker.measure(case, 0, 0.002)
    assert (result.verdict.word, result.variant) == (Word.PASSED, "reads")
    bad = Kernel(name="read", role=Role.LIMIT, summary="", bind=read.bind, variants=(*variants, KERNELS["reads_no_x"]))
    result = Worker({"read": bad}, "cpu", lambda _: None, 1.0).measure(case, 0, 0.002)
    assert (result.verdict.word, result.verdict.reason) == (Word.WRONG, "does not read element 0 of x")
