"""harness.compare: words and reasons on planted runs, the test by hand and against scipy, its rates by simulation."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from harness.compare import COMPARED, THRESHOLD, CaseChange, Change, Comparison, compare, word
from harness.comparison.moderated import MOST_PRIOR_FREEDOM, NO_PRIOR, Pair, holm, inverse_trigamma, judge, prior
from harness.comparison.states import chance_of_parting
from harness.environment import Group
from harness.errors import CommandError, Exit
from harness.model import (
    Cache,
    Case,
    DeviceState,
    Measurement,
    Problem,
    Role,
    Run,
    TrialResult,
    Verdict,
    Word,
)
from harness.stats import Interval
from tests.sample_run import cpu_run, cuda_build, gpu_run

PASSED = Verdict(word=Word.PASSED)
QUIET = (0.0, 0.001, -0.001, 0.0005, -0.0005)
"""Five trials: what each is off by, as a fraction."""


def case(kernel: str = "mine", *, m: int = 64, timer: str = "graph", dtype: str = "float32") -> Case:
    problem = Problem(m=m, k=64, dtype=dtype)
    return Case(kernel=kernel, role=Role.GEMV, problem=problem, timer=timer, cache=Cache.COLD)


def measured(of: Case, medians_ns: Sequence[float], **more: Any) -> Measurement:
    """One sample a trial, which is its median; `more` goes into every trial."""
    trials = (TrialResult(trial=i, verdict=PASSED, samples_ns=(ns,), **more) for i, ns in enumerate(medians_ns))
    return Measurement(case=of, trials=tuple(trials))


def judged(of: Case, verdict: Word, reason: str = "because") -> Measurement:
    return Measurement(case=of, trials=(TrialResult(trial=0, verdict=Verdict(word=verdict, reason=reason)),))


def around(ns: float, offsets: Sequence[float] = QUIET) -> list[float]:
    return [ns * (1 + each) for each in offsets]


def run(*measurements: Measurement, **changes: Any) -> Run:
    """A run with only these measurements; `changes` whose names are keys of the environment go there."""
    plain = gpu_run(shapes=((64, 64),), kernels={}, trials=1, samples=2)
    values = {key: changes.pop(key) for key in list(changes) if key in plain.environment.values}
    environment = replace(plain.environment, values={**plain.environment.values, **values})
    return replace(plain, measurements=measurements, environment=environment, **changes)


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


def test_summary_and_exit_code() -> None:
    """300 regressions leave with 1: no count becomes a code."""
    cases = [case(m=i + 1) for i in range(300)]
    base = run(*(measured(each, around(1000.0)) for each in cases))
    new = run(*(measured(each, around(1100.0)) for each in cases))
    found = compare(base, new)
    assert found.counts == dict.fromkeys(Change, 0) | {Change.SLOWER: 300}
    assert found.exit_code is Exit.SLOWER


def test_the_same_run_twice() -> None:
    """Nothing differs; what was not measured in it is not comparable, what is broken in it is broken still."""
    same = gpu_run()
    found = compare(same, same)
    assert found.attribution == "same environment"
    assert found.environment == ()
    counts = found.counts
    assert counts[Change.SLOWER] == counts[Change.FASTER] == counts[Change.NEW] == counts[Change.GONE] == 0
    assert all(each.ratio and each.ratio.estimate == 1 and each.p == 1 for each in found.cases if each.p is not None)
    assert found.exit_code is Exit.KERNEL
    assert {each.case.kernel for each in found.cases if each.change is Change.FAILED} == {"sgemv_broken"}


def test_a_wrong_kernel_outweighs_a_slower_one() -> None:
    """Of 1 and 5 the higher wins; a kernel that fails is news on another device too."""
    base = run(measured(case("a"), around(1000.0)), measured(case("b"), around(1000.0)))
    new = run(measured(case("a"), around(1100.0)), judged(case("b"), Word.WRONG, "row 3"))
    found = compare(base, new)
    assert [each.change for each in found.cases] == ["slower", "failed"]
    assert found.cases[1].reason == "wrong: row 3"
    assert found.exit_code is Exit.KERNEL
    assert compare(base, run(judged(case("c"), Word.CRASHED))).exit_code is Exit.KERNEL


def test_no_case_in_common() -> None:
    """New and gone, and nothing compared: 3."""
    found = compare(run(measured(case("a"), around(1.0))), run(measured(case("b"), around(1.0))))
    assert [(each.case.kernel, each.change) for each in found.cases] == [("b", "new"), ("a", "gone")]
    assert found.exit_code is Exit.NOT_COMPARABLE
    assert compare(run(), run()).exit_code is Exit.NOT_COMPARABLE


def test_a_subset_against_all() -> None:
    """What the subset lacks is gone, and said to be if it was cut short; the rest is compared."""
    cases = [measured(case(m=i + 1), around(1000.0)) for i in range(4)]
    found = compare(run(*cases), run(*cases[:2], partial=True))
    assert [each.change for each in found.cases] == ["same", "same", "gone", "gone"]
    assert found.cases[-1].reason == "not in new, which was cut short"
    assert found.exit_code is Exit.FINE


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
    assert found.exit_code is Exit.NOT_COMPARABLE


@pytest.mark.parametrize("key", ["driver_version", "torch_version", "vbios_version", "gpu_uuid", "power_limit_mw"])
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


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, -5.0, 0.0, 1e300, 5e-324])
@pytest.mark.parametrize("where", ["base", "new"])
def test_times_that_are_none(bad: float, where: str) -> None:
    """One damaged sample makes its case not comparable and no other one worse."""
    good = [measured(case("a"), around(1000.0)), measured(case("b"), around(1000.0))]
    damaged = [measured(case("a"), [1000.0, bad]), good[1]]
    sides = (run(*damaged), run(*good)) if where == "base" else (run(*good), run(*damaged))
    found = compare(*sides)
    assert [each.change for each in found.cases] == ["not comparable", "same"]
    assert found.cases[0].reason == f"in {where} a sample of {bad:g} ns: wanted a finite time above 0"


# Few trials, no variance


def test_one_trial_a_side() -> None:
    """An estimate without an interval, and a word."""
    found = of_medians([1000.0], [2000.0])
    assert (found.change, found.reason) == (Change.AMBIGUOUS, "one trial a side gives no interval")
    assert found.ratio == Interval(estimate=pytest.approx(2.0), low=None, high=None)
    assert found.notes == ("one trial in base", "one trial in new")


def test_one_trial_against_five() -> None:
    """The five say how much trials differ: s·√(1/1 + 1/5) with 4 degrees of freedom."""
    base = around(1000.0)
    found = of_medians(base, [1100.0])
    logs = np.log(base)
    reach = stats.t.ppf(0.975, 4) * logs.std(ddof=1) * math.sqrt(1.2)
    assert found.change is Change.SLOWER
    assert found.ratio is not None
    assert found.ratio.high == pytest.approx(math.exp(math.log(1100) - logs.mean() + reach))
    assert found.notes == ("one trial in new",)


@pytest.mark.parametrize(("new_ns", "change"), [(1000.0, "same"), (1005.0, "same"), (1100.0, "slower")])
def test_no_variance_at_all(new_ns: float, change: str) -> None:
    """As far as these trials tell there is no doubt; nothing is divided by."""
    found = of_medians([1000.0] * 5, [new_ns] * 5)
    assert found.change == change
    assert found.p == (1.0 if new_ns == 1000 else 0.0)


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


# Notes


def noted(base: Measurement, new: Measurement, **changes: Any) -> tuple[str, ...]:
    return only(compare(run(base), run(new, **changes))).notes


def test_clocks_that_differ_are_said() -> None:
    """By the samples' own clocks; else by NVML's readings; 0.5 % is not worth a word."""
    plain = measured(case(), around(1000.0), sample_clocks_mhz=(1980.0,))
    assert noted(plain, measured(case(), around(1040.0), sample_clocks_mhz=(1905.0,))) == (
        "lower clock: 1 905 against 1 980 MHz",
    )
    assert noted(plain, measured(case(), around(1000.0), sample_clocks_mhz=(1971.0,))) == ()
    slow, fast = (DeviceState(time_unix_s=1.0, sm_clock_mhz=mhz) for mhz in (1200, 1980))
    assert noted(measured(case(), around(1.0), states=(slow,)), measured(case(), around(1.0), states=(fast,))) == (
        "higher clock: 1 980 against 1 200 MHz",
    )


def test_a_power_cap_is_said() -> None:
    """By what a reading names, or by a counter that grew; an idle GPU is no limit."""
    plain = measured(case(), around(1000.0))
    capped = DeviceState(time_unix_s=1.0, clock_event_reasons=("sw_power_cap", "gpu_idle"))
    assert noted(plain, measured(case(), around(1000.0), states=(capped,))) == ("power cap in new",)
    counts = tuple(DeviceState(time_unix_s=t, limited_ns={"thermal": 5, "sw_power_cap": int(t)}) for t in (1.0, 2.0))
    assert noted(measured(case(), around(1000.0), states=counts), plain) == ("power cap in base",)


def test_two_states_between_trials_are_named() -> None:
    """Two levels 6.5 % apart in one run; where the levels are the two runs, that is the change."""
    states = (1000.0, 1065.0, 1001.0, 1066.0, 1000.5)
    assert noted(measured(case(), around(1000.0)), measured(case(), states)) == (
        "two states between trials, 6.5 % apart, in new",
    )
    assert noted(measured(case(), states), measured(case(), states))[0].endswith("in both")
    assert noted(measured(case(), around(1000.0)), measured(case(), around(1065.0))) == ()
    assert of_medians(states, states[::-1]).change is Change.AMBIGUOUS


def test_levels_that_part_by_luck() -> None:
    """All trials of one run in one state and all of the other in the other, by hand: 2·(1/2)¹⁰, 2·(3/4)⁶·(1/4)²."""
    assert chance_of_parting(5, 5) == pytest.approx(1 / 512)
    assert chance_of_parting(6, 2) == pytest.approx(2 * 0.75**6 * 0.25**2)
    assert chance_of_parting(1, 1) == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("with_states", "factor", "change"), [(0, 1.065, "slower"), (8, 1.065, "ambiguous"), (8, 1.2, "slower")]
)
def test_states_of_the_neighbours_make_a_step_doubtful(with_states: int, factor: float, change: str) -> None:
    """Where 8 cases of 40 show steps of 7 %, one that parted by 6.5 % may be the ninth; 20 % is no such step."""
    states = (1000.0, 1070.0, 1001.0, 1071.0, 1000.5)
    neighbours = [
        measured(case(m=i + 1), states if i < with_states else around(1000.0, QUIET[::-1])) for i in range(40)
    ]
    base = run(*neighbours, measured(case("this"), around(1000.0)))
    new = run(*neighbours, measured(case("this"), around(1000.0 * factor)))
    assert compare(base, new).cases[-1].change == change


def test_drift_within_trials_is_named() -> None:
    """Every trial of the new run is 3 % slower in its second half."""
    drifting = tuple(TrialResult(trial=i, verdict=PASSED, samples_ns=(1000.0,) * 5 + (1030.0,) * 5) for i in range(3))
    found = noted(measured(case(), around(1015.0)), Measurement(case=case(), trials=drifting))
    assert found == ("drift within trials in new: +3.0 %",)


@pytest.mark.parametrize(
    ("source", "code", "header", "notes"),
    [
        ("x", "y", "h", ("kernel changed",)),
        ("x", "1", "h", ("source changed, device code did not",)),
        ("0", "y", "h", ("device code changed, source did not",)),
        ("0", "y", "x", ("kernel changed",)),
        ("0", "1", "x", ()),
        ("x", None, "h", ("kernel changed",)),
        ("0", None, "h", ()),
    ],
)
def test_another_source_under_the_same_name(source: str, code: str | None, header: str, notes: tuple[str, ...]) -> None:
    """The machine code decides where it is known; another kernel's file is not looked at."""

    def build(src: str, dev: str | None, head: str, other: str) -> Any:
        sources = {"mine.cu": src, "common.cuh": head, "other.cu": other}
        codes = {} if dev is None else {"mine.cu:sm_90": dev, "other.cu:sm_90": other}
        return (replace(cuda_build(), sources_sha256=sources, device_code_sha256=codes),)

    plain = measured(case(), around(1000.0))
    base = run(plain, builds=build("0", None if code is None else "1", "h", "a"))
    assert only(compare(base, run(plain, builds=build(source, code, header, "b")))).notes == notes


def test_another_variant_is_said() -> None:
    """Of a kernel whose fastest variant is taken."""
    fast, plain = (measured(case(), around(1000.0), variant=name) for name in ("float4", "float"))
    assert noted(plain, fast) == ("other variant: float4 against float",)


# The environment


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "same environment"),
        ({"driver_version": "1", "cuda_driver_version": "13.1"}, "driver only"),
        ({"torch_version": "3", "cuda_runtime_version": "14", "cublas_version": None}, "torch only"),
        ({"driver_version": "1", "torch_version": "3"}, "several: driver, torch"),
        ({"vbios_version": "9"}, "same environment, as far as both runs know it"),
        ({"gpu_uuid": "GPU-1", "git_commit": "f"}, "several: GPU, source"),
        ({"power_limit_mw": 500_000}, "power limit only"),
    ],
)
def test_attribution(changes: dict[str, Any], said: str) -> None:
    """One line. The sample does not know its VBIOS: that is not known to differ."""
    found = compare(run(), run(**changes))
    assert found.attribution == said
    assert {each.key for each in found.environment} == {k for k in changes if changes[k] is not None}


def test_differences_by_group() -> None:
    """Differing fields only, with units, in the registry's groups; what a build was made with is among them."""
    build = replace(cuda_build(), flags=("-O1",))
    found = compare(run(), run(power_limit_mw=500_000, driver_version="1", builds=(build,)))
    groups = found.by_group
    assert list(groups) == [Group.DRIVER, Group.SETTINGS, Group.SOURCE]
    (limit,) = groups[Group.SETTINGS]
    assert (limit.key, limit.base, limit.new, limit.unit) == ("power_limit_mw", 700_000, 500_000, "mW")
    assert groups[Group.SOURCE][0].key == "build.cuda.flags"
    assert found.attribution == "several: driver, power limit, build"


def test_a_key_of_a_newer_program() -> None:
    """It is shown, not lost."""
    newer = run()
    environment = replace(newer.environment, values={**newer.environment.values, "of_tomorrow": 1})
    (found,) = compare(run(), replace(newer, environment=environment)).environment
    assert (found.key, found.base, found.new) == ("of_tomorrow", None, 1)


# The test itself


def test_holm_by_hand() -> None:
    """4·0.01, then 3·0.015, then 2·0.03 and, never below what came before, 1·0.04 → 0.06; at most 1."""
    assert holm([0.04, 0.01, 0.03, 0.015]) == pytest.approx([0.06, 0.04, 0.06, 0.045])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []


@pytest.mark.parametrize(("y", "value"), [(1.0, math.pi**2 / 6), (0.5, math.pi**2 / 2), (2.0, math.pi**2 / 6 - 1)])
def test_inverse_trigamma_at_known_points(y: float, value: float) -> None:
    """ψ′(1) = π²/6, ψ′(1/2) = π²/2, ψ′(2) = π²/6 - 1."""
    assert inverse_trigamma(value) == pytest.approx(y, rel=1e-7)


def test_the_prior_is_found_again() -> None:
    """Variances drawn as section 4 of Smyth 2004 has it, with d₀ = 6 and s₀ = 0.4 %: both come back."""
    draw = np.random.default_rng(11)
    true = 6 * 0.004**2 / draw.chisquare(6, 4000)
    found = prior([(float(v), 8) for v in true * draw.chisquare(8, 4000) / 8])
    assert found.freedom == pytest.approx(6, rel=0.15)
    assert found.variance == pytest.approx(0.004**2, rel=0.05)


def test_a_prior_from_little() -> None:
    """Two cases, or none with variance, tell nothing; equal variances tell all."""
    assert prior([(1.0, 8), (1.0, 8)]) == NO_PRIOR
    assert prior([(0.0, 8)] * 5) == NO_PRIOR
    assert prior([(1.0, 0)] * 5) == NO_PRIOR
    assert prior([(1.0, 8)] * 5).freedom == pytest.approx(MOST_PRIOR_FREEDOM)


@pytest.mark.parametrize("sizes", [(5, 5), (24, 3), (2, 7)])
def test_alone_it_is_student_or_welch(sizes: tuple[int, int]) -> None:
    """Without neighbours, and with a smaller side that is the noisier one, scipy's p comes out."""
    draw = np.random.default_rng(3)
    base, new = draw.normal(0, 0.01, sizes[0]), draw.normal(0.02, 0.03, sizes[1])
    (found,) = judge([Pair(base=tuple(base), new=tuple(new), family="")])
    student = stats.ttest_ind(base, new).pvalue
    welch = stats.ttest_ind(base, new, equal_var=False).pvalue
    assert found.p == pytest.approx(student if sizes[0] == sizes[1] else max(student, welch))


# The rates


def rates(sds: np.ndarray, tables: int, *, seed: int, tail: int | None = None, planted: float = 0.0) -> Any:
    """Words of `tables` tables of A/A pairs, 5 trials a side, sd by case; the last case is slowed by `planted`."""
    draw = np.random.default_rng(seed)
    shape = (tables, 2, len(sds), 5)
    noise = draw.standard_normal(shape) if tail is None else draw.standard_t(tail, shape) / math.sqrt(tail / (tail - 2))
    logs = noise * sds[None, None, :, None]
    logs[:, 1, -1] += math.log1p(planted)
    found = []
    for base, new in logs.tolist():
        pairs = [Pair(base=tuple(b), new=tuple(n), family="") for b, n in zip(base, new, strict=True)]
        found.append([word(each.ratio, each.p, THRESHOLD) for each in judge(pairs)])
    return found


WIDE = np.exp(np.linspace(math.log(0.0005), math.log(0.06), 50))
"""As the kept runs have them: 0.05 % to 6 %, evenly by logarithm."""
LONE = np.array([0.0005] * 45 + [0.06] * 5)
"""Quiet cases and a few noisy ones: what a prior common to all gets most wrong."""


@pytest.mark.parametrize(("sds", "tail"), [(WIDE, None), (WIDE, 3), (LONE, None)], ids=["wide", "tails", "lone"])
def test_two_runs_of_the_same_code(sds: np.ndarray, tail: int | None) -> None:
    """At most 1 table of 50 cases in 200 has a `slower`: normal trials and Student's with 3 degrees of freedom."""
    tables = rates(sds, 600, seed=20, tail=tail)
    assert sum(Change.SLOWER in table for table in tables) <= 3


def test_a_prior_alone_would_cry_wolf() -> None:
    """What the second test is for: noisy cases squeezed to quiet ones pass for certain, and the bound above fails."""
    quiet, noisy = 0.002, 0.02
    draw = np.random.default_rng(4)
    usual = prior([(float(v), 8) for v in np.r_[[quiet] * 49, noisy] ** 2 * draw.chisquare(8, 50) / 8])
    data = draw.normal(0, noisy, (20_000, 2, 5))
    squeezed = (usual.freedom * usual.variance + 8 * data.var(2, ddof=1).mean(1)) / (usual.freedom + 8)
    t = (data[:, 1] - data[:, 0]).mean(1) / np.sqrt(squeezed * 0.4)
    slower = stats.t.sf(t, usual.freedom + 8) < 0.01 / 50 / 2
    assert slower.mean() > 5 * 0.01 / 50 / 2  # five times what this case may have of the table's error


def test_a_slowdown_of_three_percent_is_found() -> None:
    """In a case whose trials spread by 0.3 % (sd), among cases of any noise: in at least 95 of 100."""
    tables = rates(np.append(WIDE, 0.003), 200, seed=21, planted=0.03)
    assert sum(table[-1] is Change.SLOWER for table in tables) >= 190


@pytest.mark.parametrize("sd", [0.0005, 0.003])
def test_a_slowdown_of_one_percent_is_not_called_the_same(sd: float) -> None:
    """In at most 5 of 100; where trials agree well, and where a lucky few of them look as if they did."""
    tables = rates(np.append(WIDE, sd), 200, seed=22, planted=0.01)
    assert sum(table[-1] is Change.SAME for table in tables) <= 10


def test_large_runs_are_compared_fast() -> None:
    """Two runs of 300 cases, 5 trials of 60 samples, in under a second."""
    shapes = tuple((64 * (i + 1), 64) for i in range(15))
    large = gpu_run(shapes=shapes, kernels={f"k{i}": "" for i in range(5)}, samples=60)
    assert len(large.measurements) == 300
    compare(large, run())  # imports
    start = time.perf_counter()
    assert len(compare(large, large).cases) == 300
    assert time.perf_counter() - start < 1.0
