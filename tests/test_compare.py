"""harness.compare: words and reasons on planted runs."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

import pytest

from harness.compare import COMPARED, CaseChange, Change, Comparison, compare, word
from harness.errors import CommandError, Exit
from harness.model import Cache, Measurement, TrialResult, Word
from harness.stats import Interval
from tests.planted_runs import PASSED, around, case, judged, measured, run
from tests.sample_run import cpu_run, gpu_run


def only(comparison: Comparison) -> CaseChange:
    (change,) = comparison.cases
    return change


def of_medians(base_ns: Sequence[float], new_ns: Sequence[float]) -> CaseChange:
    return only(compare(run(measured(case(), base_ns)), run(measured(case(), new_ns))))


def numbers(thing: Any) -> list[float]:
    """Every float in a record, however deep."""
    if isinstance(thing, float):
        return [thing]
    if is_dataclass(thing):
        return [number for field in fields(thing) for number in numbers(getattr(thing, field.name))]
    return [number for each in thing for number in numbers(each)] if isinstance(thing, tuple) else []


# The words


@pytest.mark.parametrize(
    ("factor", "change"), [(1.03, "slower"), (0.97, "faster"), (1.0, "same"), (1.003, "same"), (1.0099, "ambiguous")]
)
def test_words_by_the_size_of_a_change(factor: float, change: str) -> None:
    """Trials that agree to 0.1 %: 3 % is seen, 0.3 % does not matter, 0.99 % may be either side of 1 %."""
    found = of_medians(around(10_000.0), around(10_000.0 * factor))
    assert found.change == change
    assert found.ratio is not None
    assert found.ratio.estimate == pytest.approx(factor)
    assert (found.reason is None) == (change != "ambiguous")


def test_a_noisy_case_is_ambiguous() -> None:
    """10 % between trials hide 3 %."""
    found = of_medians(around(10_000.0, (0, 0.1, -0.1, 0.05, -0.05)), around(10_300.0, (0, 0.1, -0.1, 0.05, -0.05)))
    assert found.change is Change.AMBIGUOUS
    assert found.reason == "the interval reaches beyond the threshold"


def test_the_threshold_decides_by_kernel() -> None:
    """The same 3 %: slower at 1 %, the same at 5 %."""
    base = run(measured(case("a"), around(1000.0)), measured(case("b"), around(1000.0)))
    new = run(measured(case("a"), around(1030.0)), measured(case("b"), around(1030.0)))
    found = compare(base, new, thresholds={"b": 0.05})
    assert [(each.change, each.threshold) for each in found.cases] == [("slower", 0.01), ("same", 0.05)]


@pytest.mark.parametrize("threshold", [-0.1, 1.0, math.nan, math.inf])
def test_a_threshold_that_is_no_fraction(threshold: float) -> None:
    """It is wrong usage, whether for all or for one kernel."""
    with pytest.raises(CommandError, match="wanted a fraction") as caught:
        compare(run(), run(), threshold=threshold)
    assert caught.value.code is Exit.USAGE
    with pytest.raises(CommandError, match="threshold of mine"):
        compare(run(), run(), thresholds={"mine": threshold})


def test_significance_alone_is_not_slower() -> None:
    """0.5 %, beyond doubt, is below what anybody cares about."""
    assert word(Interval(estimate=1.005, low=1.0049, high=1.0051), 1e-9, 0.01) is Change.SAME
    assert word(Interval(estimate=1.02, low=1.019, high=1.021), 0.011, 0.01) is Change.AMBIGUOUS
    assert word(Interval(estimate=1.02, low=1.019, high=1.021), 0.009, 0.01) is Change.SLOWER


def test_counts() -> None:
    """Every word has one."""
    cases = [case(m=i + 1) for i in range(300)]
    base = run(*(measured(each, around(1000.0)) for each in cases))
    new = run(*(measured(each, around(1100.0)) for each in cases))
    found = compare(base, new)
    assert found.counts == dict.fromkeys(Change, 0) | {Change.SLOWER: 300}


def test_the_same_run_twice() -> None:
    """Nothing differs; what was not measured in it is not comparable, what is broken in it is broken still."""
    same = gpu_run()
    found = compare(same, same)
    assert found.attribution == "same environment"
    assert found.environment == ()
    counts = found.counts
    assert counts[Change.SLOWER] == counts[Change.FASTER] == counts[Change.NEW] == counts[Change.GONE] == 0
    assert all(each.ratio and each.ratio.estimate == 1 and each.p == 1 for each in found.cases if each.p is not None)
    assert {each.case.kernel for each in found.cases if each.change is Change.FAILED} == {"sgemv_broken"}


def test_a_kernel_that_fails() -> None:
    """Its word needs no figures; it is news where the base run lacks the case too."""
    base = run(measured(case("a"), around(1000.0)), measured(case("b"), around(1000.0)))
    new = run(measured(case("a"), around(1100.0)), judged(case("b"), Word.WRONG, "row 3"))
    found = compare(base, new)
    assert [each.change for each in found.cases] == ["slower", "failed"]
    assert found.cases[1].reason == "wrong: row 3"
    assert only(compare(run(), run(judged(case("c"), Word.CRASHED)))).change is Change.FAILED


def test_no_case_in_common() -> None:
    """New and gone, and nothing compared."""
    found = compare(run(measured(case("a"), around(1.0))), run(measured(case("b"), around(1.0))))
    assert [(each.case.kernel, each.change) for each in found.cases] == [("b", "new"), ("a", "gone")]
    assert compare(run(), run()).cases == ()


def test_a_subset_against_all() -> None:
    """What the subset lacks is gone, and said to be if it was cut short; the rest is compared."""
    cases = [measured(case(m=i + 1), around(1000.0)) for i in range(4)]
    found = compare(run(*cases), run(*cases[:2], partial=True))
    assert [each.change for each in found.cases] == ["same", "same", "gone", "gone"]
    assert found.cases[-1].reason == "not in new, which was cut short"


def test_verdicts_become_words() -> None:
    """Figures in one run only are new or gone; in neither, there is nothing to compare."""
    good, bad = measured(case(), around(1000.0)), judged(case(), Word.UNSUPPORTED, "K=16")
    assert only(compare(run(bad), run(good))).change is Change.NEW
    gone = only(compare(run(good), run(bad)))
    assert (gone.change, gone.reason) == (Change.GONE, "in new unsupported: K=16")
    neither = only(compare(run(bad), run(bad)))
    assert (neither.change, neither.reason) == (Change.NOT_COMPARABLE, "in both unsupported: K=16")
    assert only(compare(run(judged(case(), Word.WRONG)), run(good))).change is Change.NEW


# Not comparable


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("gpu_name", "NVIDIA H100", "other GPU model: NVIDIA H100 against NVIDIA H200"),
        ("ecc", False, "other ECC: off against on"),
        ("mig", True, "other MIG mode: on against off"),
        ("allow_tf32", True, "other TF32 flag: on against off"),
    ],
)
def test_what_must_match(key: str, value: Any, reason: str) -> None:
    """Another device or another arithmetic is no change of the code."""
    found = compare(run(measured(case(), around(1000.0))), run(measured(case(), around(2000.0)), **{key: value}))
    assert (only(found).change, only(found).reason) == (Change.NOT_COMPARABLE, reason)


@pytest.mark.parametrize("key", ["driver_version", "torch_version", "vbios_version", "power_limit_mw"])
def test_what_may_differ(key: str) -> None:
    """It is what is asked about. So is a fact that one run could not have."""
    base = run(measured(case(), around(1000.0)), **{key: "1"})
    assert only(compare(base, run(*base.measurements, **{key: "2"}))).change is Change.SAME
    assert only(compare(base, run(*base.measurements, ecc=None))).change is Change.SAME


def test_cpu_against_gpu() -> None:
    """One reason, not ten."""
    found = compare(cpu_run(), gpu_run())
    assert found.not_comparable == ("GPU against CPU",)
    assert not any(each.change in COMPARED for each in found.cases)


def test_another_timer_cache_or_dtype_is_a_reason() -> None:
    """The same kernel on the same problem, measured in another way, is neither new nor gone."""
    plain = case()
    others = {"timer": replace(plain, timer="event"), "cache": replace(plain, cache=Cache.HOT)}
    others["dtype"] = case(dtype="float16")
    for name, other in others.items():
        found = compare(run(measured(plain, around(1.0))), run(measured(other, around(1.0))))
        assert {each.change for each in found.cases} == {Change.NOT_COMPARABLE}
        assert all(each.reason and each.reason.startswith(f"other {name}: ") for each in found.cases)


def test_a_timer_that_is_no_longer_asked_for_is_gone() -> None:
    """Where both runs have the other timer, there is nothing to set it against."""
    both = [measured(case(timer=timer), around(1000.0)) for timer in ("graph", "async")]
    assert [each.change for each in compare(run(*both), run(both[0])).cases] == ["same", "gone"]


def test_timers_that_check_others_are_left_out() -> None:
    """They are no figures of a kernel. A timer that this program does not know is compared."""
    cases = [measured(case(timer=timer), around(1000.0)) for timer in ("graph", "graph-double", "of tomorrow")]
    assert [each.case.timer for each in compare(run(*cases), run(*cases)).cases] == ["graph", "of tomorrow"]


def test_a_case_that_is_there_twice() -> None:
    """Which of the two is meant cannot be told."""
    once = measured(case(), around(1000.0))
    assert only(compare(run(once), run(once, once))).reason == "twice in new"
    assert only(compare(run(once), run(judged(case(), Word.CRASHED), once))).change is Change.FAILED


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, -5.0, 0.0, 4.37e18, 1e300, 5e-324])
@pytest.mark.parametrize("where", ["base", "new"])
def test_times_that_are_none(bad: float, where: str) -> None:
    """One damaged sample makes its case not comparable and no other one worse."""
    good = [measured(case("a"), around(1000.0)), measured(case("b"), around(1000.0))]
    damaged = [measured(case("a"), [1000.0, bad]), good[1]]
    sides = (run(*damaged), run(*good)) if where == "base" else (run(*good), run(*damaged))
    found = compare(*sides)
    assert [each.change for each in found.cases] == ["not comparable", "same"]
    assert found.cases[0].reason == f"in {where} a sample of {bad:g} ns: wanted 1e-06 to 1e+18 ns"


# Few trials, no variance


def test_one_trial_a_side() -> None:
    """An estimate without an interval, and a word."""
    found = of_medians([1000.0], [2000.0])
    assert (found.change, found.reason) == (Change.AMBIGUOUS, "one trial on a side gives no interval")
    assert found.ratio == Interval(estimate=pytest.approx(2.0), low=None, high=None)
    assert found.notes == ("one trial in base", "one trial in new")


def test_one_trial_against_five() -> None:
    """The five say how much their run's trials differ, and nothing of what a process added to the other run."""
    found = of_medians(around(1000.0), [1100.0])
    assert (found.change, found.reason) == (Change.AMBIGUOUS, "one trial on a side gives no interval")
    assert found.notes == ("one trial in new",)


@pytest.mark.parametrize(("new_ns", "change"), [(1000.0, "same"), (1005.0, "ambiguous"), (1100.0, "ambiguous")])
def test_no_variance_at_all(new_ns: float, change: str) -> None:
    """Alone in its table: nothing says how sure a difference is, a coarse clock may make it; nothing is divided by."""
    found = of_medians([1000.0] * 5, [new_ns] * 5)
    assert found.change == change
    assert found.p == (1.0 if new_ns == 1000 else None)
    assert found.reason == (None if new_ns == 1000 else "trials that do not scatter at all give no interval")


def test_no_variance_among_cases_that_have_some() -> None:
    """Three trials that agree by chance are not certain where their neighbours differ by 2 %."""
    loud = [measured(case(m=i + 1), around(1000.0, (0.02, -0.02, 0.0))) for i in range(12)]
    base = run(*loud, measured(case("still"), [1000.0] * 3))
    new = run(*loud, measured(case("still"), [1020.0] * 3))
    found = compare(base, new).cases[-1]
    assert found.change is Change.AMBIGUOUS
    assert found.p is not None
    assert found.p > 0.01


def test_ticks_of_a_clock_are_not_averaged_away() -> None:
    """Samples of a clock with 32 ns a tick: one tick between medians of 1504 ns is not known to be 2 %."""
    ticks = [1504.0] * 20 + [1472.0] * 9 + [1536.0] * 9

    def ticking(of: Sequence[float]) -> Measurement:
        trials = tuple(TrialResult(trial=i, verdict=PASSED, samples_ns=tuple(of)) for i in range(5))
        return Measurement(case=case(), trials=trials)

    base, later = ticking(ticks), ticking([ns + 32 for ns in ticks])
    assert only(compare(run(base), run(later))).change is Change.AMBIGUOUS
    assert only(compare(run(base), run(ticking([ns * 2 for ns in ticks])))).change is Change.SLOWER


def test_nothing_is_nan_whatever_the_trials() -> None:
    """Every number is finite and every case has a word: a trial or many, alike or not, close to a float's ends."""
    series = ([1.0], [1.0, 1.0], [1e-6, 1e18], [1e18] * 3, around(1000.0), [1000.0] * 24, [1000.0, 1000.0, 1e9])
    cases = [(base, new) for base in series for new in series]
    base = run(*(measured(case(m=i + 1), each[0]) for i, each in enumerate(cases)))
    new = run(*(measured(case(m=i + 1), each[1]) for i, each in enumerate(cases)))
    found = compare(base, new)
    assert len(found.cases) == 49
    assert all(math.isfinite(number) for number in numbers(found))
    for ratio in (each.ratio for each in found.cases if each.ratio):
        assert ratio.low is None or (ratio.high is not None and 0 < ratio.low <= ratio.estimate <= ratio.high)


def test_large_runs_are_compared_fast() -> None:
    """Two runs of 300 cases, 5 trials of 60 samples, in under a second."""
    shapes = tuple((64 * (i + 1), 64) for i in range(15))
    large = gpu_run(shapes=shapes, kernels={f"k{i}": "" for i in range(5)}, samples=60)
    assert len(large.measurements) == 300
    compare(large, run())  # imports
    start = time.process_time()
    assert len(compare(large, large).cases) == 300
    assert time.process_time() - start < 1.0
