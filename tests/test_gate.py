"""harness.gate and the worker around it: every planted fault gets its word, and what is right passes at any shape."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace

import pytest
import torch

from harness.gate import Gate, bounds, compare, error_bound, reference
from harness.model import Cache, Case, Kernel, Operands, Problem, Role, TrialResult, Verdict, Word
from harness.problems import HOT_APART_BYTES
from harness.timing import NotMeasurable, Sample, Timing
from harness.trial import Worker, _figures, checked
from harness.workbench import Workbench
from tests import planted_kernels

PROBLEM = Problem(m=37, k=129)
KERNELS = planted_kernels.kernels()
SHAPES = [
    *((1, 1), (1, 2), (2, 1), (1, 7), (1, 4096), (3, 3), (5, 127), (64, 64), (129, 1), (1000, 1), (33, 1000)),
    *((1024, 16), (7, 4097), (2, 65537), (1, 2**20), (3, 2**20), (2, 2**20 - 1), (2**16, 3)),
]


def check(kernel: Kernel, problem: Problem = PROBLEM) -> Verdict:
    return Gate(problem, "cpu").check(kernel, lambda _: None)


@pytest.mark.parametrize(("body", "reason"), planted_kernels.WRONG, ids=lambda value: getattr(value, "__name__", ""))
def test_planted_faults_are_wrong_for_the_right_reason(body: planted_kernels.Body, reason: str) -> None:
    """The word, the probe that shows it, and what was found."""
    verdict = check(KERNELS[body.__name__])
    assert verdict.word is Word.WRONG
    assert reason in (verdict.reason or "")
    assert "\n" not in (verdict.reason or "")


@pytest.mark.parametrize("name", ["drops_the_last_element", "doubles_one_element", "drops_one_element_of_one_row"])
@pytest.mark.parametrize("k", [2, 100, 4096, 2**20])
def test_one_element_shows_at_any_k(name: str, k: int) -> None:
    """Also where it is a millionth of the sum, far below any tolerance."""
    verdict = check(KERNELS[name], Problem(m=2, k=k))
    assert verdict.word is Word.WRONG
    assert (verdict.reason or "").startswith("integers: ")


def test_every_single_element_is_seen() -> None:
    """A kernel that drops element (i, j), for each of them."""

    def dropping(row: int, column: int) -> Kernel:
        def bind(o: Operands):
            def launch() -> None:
                a = o.a.clone()
                a[row, column] = 0.0
                torch.matmul(a, o.x, out=o.y)

            return launch

        return Kernel(name="drops", role=Role.GEMV, summary="", bind=bind)

    shared = Gate(Problem(m=4, k=33), "cpu")
    for row in range(4):
        for column in range(33):
            verdict = shared.check(dropping(row, column), lambda _: None)
            assert verdict.word is Word.WRONG
            assert f"first y[{row}]" in (verdict.reason or "")


@pytest.mark.parametrize(("m", "k"), SHAPES)
def test_no_false_alarm(m: int, k: int) -> None:
    """torch.matmul passes at every shape, well within the bound on random operands."""
    verdict = check(KERNELS["right"], Problem(m=m, k=k))
    assert verdict == Verdict(word=Word.PASSED, max_error=verdict.max_error)
    assert verdict.max_error is not None
    assert 0.0 <= verdict.max_error < 1.0


@pytest.mark.parametrize("seed", range(8))
def test_no_false_alarm_by_bad_luck(seed: int) -> None:
    """Other random operands, and a result rounded once from float64."""
    problem = Problem(m=200, k=331, seed=seed)
    assert check(KERNELS["right"], problem).word is Word.PASSED
    assert check(KERNELS["right_in_double"], problem).word is Word.PASSED


@pytest.mark.parametrize("order", ["forward", "backward", "pairs"])
def test_no_false_alarm_by_order_of_summation(order: str) -> None:
    """One float32 accumulator through all of k, either way, and a tree: all of them are right."""

    def bind(o: Operands):
        def launch() -> None:
            products = o.a * o.x.view(1, -1)
            if order == "pairs":
                o.y.copy_(products.sum(1, keepdim=True))
                return
            columns = products.unbind(1)
            total = torch.zeros(o.a.shape[0])
            for column in columns if order == "forward" else reversed(columns):
                total = total + column
            o.y.copy_(total.unsqueeze(1))

        return launch

    verdict = check(Kernel(name=order, role=Role.GEMV, summary="", bind=bind), Problem(m=50, k=3000))
    assert verdict.word is Word.PASSED


@pytest.mark.parametrize(("m", "k"), [(1, 1), (1, 2), (3, 3), (64, 1000), (2, 2**16), (2, 2**20)])
def test_the_integers_are_exact_in_any_order(m: int, k: int) -> None:
    """The claims that equality rests on, for every row: Σ|a·x| ≤ 2²⁴, nothing zero; row 0 of one sign, above 2²³."""
    probe = next(probe for probe in Gate(Problem(m=m, k=k), "cpu").probes() if probe.name == "integers")
    a, x = probe.a.values[0].double(), probe.x.values[0].double()
    products = a * x.T
    assert torch.equal(a, a.round())
    assert torch.equal(x, x.round())
    assert bool((products != 0).all())
    assert float(products.abs().sum(1).max()) <= 2**24
    assert float(products[0].sum()) > 2**23
    assert bool((products[0] > 0).all())
    assert torch.equal(probe.expected.double(), products.sum(1, keepdim=True))


@pytest.mark.parametrize(("m", "k"), [(1, 1), (1, 5), (2, 2), (37, 129)])
def test_the_one_hot_probes_pick_single_elements(m: int, k: int) -> None:
    """First, middle and last column of A by x; a column a row of A, of which the first and the last are k's ends."""
    probes = {probe.name: probe for probe in Gate(Problem(m=m, k=k), "cpu").probes()}
    for column in {0, k // 2, k - 1}:
        probe = probes[f"one-hot x at {column}"]
        assert probe.x.values[0, :, 0].nonzero().tolist() == [[column]]
        assert torch.equal(probe.expected[:, 0], probe.a.values[0, :, column])
    rows = probes["one-hot rows of A"]
    picks = rows.a.values[0].argmax(1)
    assert torch.equal(rows.a.values[0], torch.nn.functional.one_hot(picks, k).float())
    assert int(picks[-1]) == k - 1
    assert m == 1 or int(picks[0]) == 0
    assert torch.equal(rows.expected[:, 0], rows.x.values[0, picks, 0])


def test_a_k_beyond_the_exact_check_is_not_measured() -> None:
    """2²⁴ products of at least 1 are the most; no memory for the operands is taken to find out."""
    verdict = check(KERNELS["right"], Problem(m=1, k=2**24 + 1))
    assert verdict.word is Word.NOT_MEASURED
    assert verdict.reason == "k=16777217: the gate's exact check ends at k=16777216"


def test_limit_and_floor_have_checks_of_their_own() -> None:
    """A limit reads everything and writes every y; a floor writes nothing. Column 64 is the first of the other half."""
    assert check(KERNELS["reads"]).word is Word.PASSED
    assert check(KERNELS["floor"]).word is Word.PASSED
    element = re.fullmatch(r"does not read element (\d+) of A", check(KERNELS["reads_half"]).reason)[1]
    assert int(element) % 129 >= 64
    assert check(KERNELS["reads_no_x"]).reason == "does not read element 0 of x"
    assert check(KERNELS["floor_that_writes"]).reason == "wrote y"
    unwritten = Kernel(name="r", role=Role.LIMIT, summary="", bind=KERNELS["leaves_one_y_unwritten"].bind)
    assert check(unwritten).reason == "left y unwritten"


def test_a_stray_launch_is_wrong() -> None:
    """What looks right but was started elsewhere is refused, with the reason that was given."""
    verdict = Gate(PROBLEM, "cpu").check(KERNELS["right"], lambda _: "launches no kernel on the current stream")
    assert verdict == Verdict(word=Word.WRONG, reason="launches no kernel on the current stream")


def test_reference_by_hand() -> None:
    """[[1, 2], [3, −4]] · [10, 1] = [12, 26]; norms √(100 + 4) and √(900 + 16). Two sets at once."""
    a = torch.tensor([[1.0, 2.0], [3.0, -4.0]]).expand(2, 2, 2)
    x = torch.tensor([[10.0], [1.0]]).expand(2, 2, 1)
    sums, norms = reference(a, x)
    assert sums.tolist() == [[[12.0], [26.0]]] * 2
    assert norms.flatten().tolist() == pytest.approx([math.sqrt(104), math.sqrt(916)] * 2)
    assert sums.dtype is torch.float64


def test_reference_in_parts_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Large operands go to float64 a few rows at a time."""
    generator = torch.Generator().manual_seed(5)
    a, x = torch.randn(2, 11, 7, generator=generator), torch.randn(2, 7, 1, generator=generator)
    monkeypatch.setattr(bounds, "CHUNK_ELEMENTS", 21)
    sums, norms = reference(a, x)
    assert torch.allclose(sums, a.double() @ x.double(), rtol=1e-15)
    assert torch.allclose(norms.squeeze(-1), (a.double() * x.double().mT).norm(dim=-1), rtol=1e-14)


def test_every_launch_of_one_binding_counts() -> None:
    """A kernel that works every other time would read twice as fast."""
    kernel = Kernel(name="every_other", role=Role.GEMV, summary="", bind=planted_kernels.bind_every_other)
    verdict = check(kernel)
    assert verdict.word is Word.WRONG
    assert verdict.reason.startswith("integers, launch 2: ")


def test_one_sum_after_the_other_is_never_refused() -> None:
    """The worst order of summation over many rows: float32, one accumulator a row, column after column."""
    generator = torch.Generator().manual_seed(4)
    a, x = torch.randn(1, 400_000, 128, generator=generator), torch.randn(1, 128, 1, generator=generator)
    y = torch.zeros(400_000, 1)
    for column in range(128):
        y += a[0, :, column : column + 1] * x[0, column]
    sums, norms = reference(a, x)
    fault, error = compare(y, sums[0], error_bound(norms[0], 128))
    assert fault is None
    assert error < 0.75


def test_error_bound_by_hand() -> None:
    """8·2⁻²⁴·√100·3 = 240·2⁻²⁴."""
    assert float(error_bound(torch.tensor([3.0], dtype=torch.float64), 100)) == 240 * 2.0**-24


@pytest.mark.parametrize(
    ("y", "expected", "fault"),
    [
        ([1.0, 2.0], [1.0, 2.0], None),
        ([1.0, 2.5], [1.0, 2.0], "1 of 2 wrong, first y[1]: found 2.5, wanted 2"),
        ([float("nan"), 3.0], [1.0, 2.0], "2 of 2 wrong, first y[0]: found nan, wanted 1"),
        ([0.0, -0.0], [-0.0, 0.0], None),
        ([float("nan"), 0.0], [0.0, 0.0], "1 of 2 wrong, first y[0]: found nan, wanted 0"),
        ([1.0 + 2**-23, 2.0], [1.0, 2.0], "1 of 2 wrong, first y[0]: found 1.00000012, wanted 1"),
    ],
)
def test_compare_for_equality(y: list[float], expected: list[float], fault: str | None) -> None:
    """The last bit counts, the sign of a zero does not, and NaN is never right."""
    found = compare(torch.tensor(y).view(-1, 1), torch.tensor(expected).view(-1, 1), None)
    assert found == (fault, None)


@pytest.mark.parametrize(
    ("y", "fault", "error"),
    [
        ([1.0, 0.0], None, 0.0),
        ([1.25, 0.0], None, 0.5),
        ([0.5, 0.0], None, 1.0),
        ([1.75, 0.0], "1 of 2 wrong, first y[0]: found 1.75, wanted 1", 1.5),
        ([float("inf"), 0.0], "1 of 2 wrong, first y[0]: found inf, wanted 1", None),
        ([float("nan"), 0.0], "1 of 2 wrong, first y[0]: found nan, wanted 1", None),
    ],
)
def test_compare_within_a_bound(y: list[float], fault: str | None, error: float | None) -> None:
    """Error over bound is reported; what JSON cannot hold is None."""
    expected = torch.tensor([[1.0], [0.0]], dtype=torch.float64)
    bound = torch.tensor([[0.5], [0.5]], dtype=torch.float64)
    assert compare(torch.tensor(y).view(-1, 1), expected, bound) == (fault, error)


def test_compare_with_a_bound_of_zero() -> None:
    """A row of zeros must give zero, and does."""
    zero = torch.zeros(1, 1, dtype=torch.float64)
    assert compare(torch.zeros(1, 1), zero, zero) == (None, None)
    assert compare(torch.ones(1, 1), zero, zero) == ("1 of 1 wrong, first y[0]: found 1, wanted 0", None)


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
