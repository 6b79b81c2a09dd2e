"""harness.selfcheck: every check at its bound, what is held against what, and why a check could not be judged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest

from harness.model import Cache, Case, Check, DeviceKernel, Measurement, Problem, Role, TrialResult, Verdict, Word
from harness.selfcheck import CHECKS, failed, selfcheck

PROBLEM = Problem(m=64, k=128)
PASSED = Verdict(word=Word.PASSED)
COLD, HOT = Cache.COLD, Cache.HOT
NEAR = 1e-6
"""Of a bound: what is this much within it passes, what is as much beyond it fails."""


def timed(
    timer: str,
    by_trial: float | Sequence[float],
    cache: Cache = COLD,
    *,
    kernel: str = "mine",
    role: Role = Role.GEMV,
    kernels_per_launch: int | None = 1,
) -> Measurement:
    """A kernel's median in each trial, of samples that lie around it unevenly."""
    medians = [by_trial] if isinstance(by_trial, float) else by_trial
    problem = Problem(m=1, k=1) if role is Role.FLOOR else PROBLEM
    return Measurement(
        case=Case(kernel=kernel, role=role, problem=problem, timer=timer, cache=cache),
        trials=tuple(
            TrialResult(
                trial=i, verdict=PASSED, samples_ns=(ns, 0.9 * ns, 7 * ns), kernels_per_launch=kernels_per_launch
            )
            for i, ns in enumerate(medians)
        ),
    )


def empty(timer: str, ns: float | Sequence[float]) -> Measurement:
    """The empty kernel."""
    return timed(timer, ns, kernel="empty", role=Role.FLOOR)


FLOOR = (empty("graph", 690.0), empty("event", 2900.0), empty("event-pair", 4300.0))
"""An event costs an empty kernel 2,210 ns more than a graph; a second empty kernel 1,400 ns, 710 more than itself."""


def of(measurements: Sequence[Measurement], name: str, kernel: str = "mine") -> Check:
    """The one check of this name."""
    (found,) = (check for check in selfcheck(measurements) if (check.name, check.kernel) == (name, kernel))
    return found


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What a check is to be, written down a second time."""

    found: tuple[str, Cache]
    wanted: tuple[str, Cache] = ("graph", COLD)
    share: float
    least_ns: float
    passes: tuple[float, ...] = (-1 + NEAR, 0.0, 1 - NEAR)
    """Differences, in bounds."""
    fails: tuple[float, ...] = (-1 - NEAR, 1 + NEAR)


NOT_BELOW = {"passes": (-1 + NEAR, 0.0, 50.0), "fails": (-1 - NEAR,)}
WANTED = {
    "profiler": Wanted(found=("graph", COLD), wanted=("profiler", COLD), share=0.04, least_ns=150),
    "event": Wanted(found=("event", COLD), share=0.03, least_ns=300),
    "length": Wanted(found=("graph-double", COLD), share=0.01, least_ns=20),
    "NVML": Wanted(found=("graph-unwatched", COLD), share=0.005, least_ns=5),
    "neighbours": Wanted(found=("graph-alone", COLD), share=0.03, least_ns=30),
    "cold": Wanted(
        found=("graph", COLD), wanted=("graph", HOT), share=0.01, least_ns=20,
        passes=(1 + NEAR, 50.0), fails=(-1.0, 0.0, 1 - NEAR),
    ),
    "dirty lines": Wanted(
        found=("event-memset", COLD), wanted=("event-read", COLD), share=0.03, least_ns=300, **NOT_BELOW
    ),
    "cold code": Wanted(found=("event-read", COLD), wanted=("event", COLD), share=0.03, least_ns=300, **NOT_BELOW),
    "two streams": Wanted(found=("graph-two-streams", COLD), share=0.01, least_ns=20, **NOT_BELOW),
}  # fmt: skip


def test_every_check_is_here() -> None:
    """In the order of the table; each asks a question and can say its bound."""
    assert [kind.name for kind in CHECKS] == list(WANTED)
    assert [kind.bound for kind in CHECKS][:4] == [
        "4 % or 0.15 µs", "3 % or 0.3 µs", "1 % or 0.02 µs", "0.5 % or 0.005 µs",
    ]  # fmt: skip
    assert all(kind.question.endswith("?") for kind in CHECKS)


@pytest.mark.parametrize("wanted_ns", [600.0, 100_000.0], ids=["by the least", "by the share"])
@pytest.mark.parametrize("name", WANTED)
def test_a_check_at_its_bound(name: str, wanted_ns: float) -> None:
    """A short kernel is judged by ns, a long one by a share of what its time is held against."""
    kind = WANTED[name]
    bound_ns = max(kind.share * wanted_ns, kind.least_ns)
    own_ns = 2900.0 - 690.0 if name == "event" else 0.0
    for differences, passed in ((kind.passes, True), (kind.fails, False)):
        for difference in differences:
            found_ns = wanted_ns + difference * bound_ns
            measured = [
                timed(kind.found[0], found_ns + own_ns, kind.found[1]),
                timed(kind.wanted[0], wanted_ns, kind.wanted[1]),
                *([timed("graph-double", wanted_ns)] if name == "NVML" else []),
            ]
            check = of([*FLOOR, *measured], name)
            assert check.passed is passed, f"{difference} bounds"
            assert check.found_ns == pytest.approx(found_ns)
            assert check.wanted_ns == pytest.approx(wanted_ns)
            assert check.bound_ns == pytest.approx(bound_ns)
            assert (check.problem, check.reason) == (PROBLEM, None)


@pytest.mark.parametrize(("kernels", "own_ns"), [(1, 2210.0), (None, 2210.0), (2, 2920.0), (3, 3630.0)])
def test_events_cost_a_further_kernel_more(kernels: int | None, own_ns: float) -> None:
    """By hand: 2,210 ns for the events, and 710 ns for each kernel of a launch beyond its first."""
    measured = [timed("graph", 5000.0, kernels_per_launch=kernels), timed("event", 5000.0 + own_ns)]
    check = of([*FLOOR, *measured], "event")
    assert (check.found_ns, check.wanted_ns) == (pytest.approx(5000.0), pytest.approx(5000.0))
    assert check.passed


def test_a_launch_of_one_kernel_needs_no_second_empty_one() -> None:
    """Only one of several kernels does."""
    single, double = (
        [*FLOOR[:2], timed("graph", 5000.0, kernels_per_launch=n), timed("event", 7210.0)] for n in (1, 2)
    )
    assert of(single, "event").passed
    assert of(double, "event").reason == "event-pair was not measured (cold)"


def device_kernel(ns: float | None) -> DeviceKernel:
    return DeviceKernel(
        name="k", grid=(1, 1, 1), block=(32, 1, 1), registers=None, shared_bytes=None, duration_ns=ns
    )  # fmt: skip


@pytest.mark.parametrize(
    ("durations_ns", "wanted_ns"),
    [((), 5000.0), ((4000.0,), 5000.0), ((3000.0, 1000.0), 4000.0), ((2000.0, 1000.0, 500.0), 3500.0)],
)
def test_profiling_lengthens_the_gaps_between_kernels(durations_ns: tuple[float, ...], wanted_ns: float) -> None:
    """Of a launch of several, their durations count; of one, the whole span from start to end."""
    profiled = timed("profiler", 5000.0)
    kernels = tuple(device_kernel(ns) for ns in durations_ns)
    profiled = replace(profiled, trials=(replace(profiled.trials[0], device_kernels=kernels),))
    check = of([timed("graph", [4000.0, 9000.0]), profiled], "profiler")
    assert (check.found_ns, check.wanted_ns) == (pytest.approx(6000.0), pytest.approx(wanted_ns))


def test_kernels_without_durations_cannot_be_added_up() -> None:
    """A record that only names them says so; those that the headline names are not asked."""
    named = (device_kernel(3000.0), device_kernel(None))
    graph, profiled = timed("graph", 6000.0), timed("profiler", 5000.0)
    graph, with_gap = (replace(m, trials=(replace(m.trials[0], device_kernels=named),)) for m in (graph, profiled))
    check = of([graph, with_gap], "profiler")
    assert (check.passed, check.reason) == (None, "the profiler names kernels without their durations")
    assert of([graph, profiled], "profiler").wanted_ns == pytest.approx(5000.0)


def test_durations_are_over_all_profiled_workers() -> None:
    """Kernels of 1,000 and 2,000 ns in one worker, 2,000 and 10,000 in another: the geometric mean of the sums."""
    profiled = timed("profiler", [5000.0, 20_000.0])
    trials = tuple(
        replace(t, device_kernels=(device_kernel(first), device_kernel(second)))
        for t, first, second in zip(profiled.trials, (1000.0, 2000.0), (2000.0, 10_000.0), strict=True)
    )
    check = of([timed("graph", 6000.0), replace(profiled, trials=trials)], "profiler")
    assert check.wanted_ns == pytest.approx(6000.0)


def test_a_timer_of_three_trials_is_held_against_the_same_three() -> None:
    """What differs between processes is in both: the two trials that only one has would fail it."""
    graph = timed("graph", [1000.0, 1210.0, 1100.0, 5000.0, 9000.0])
    check = of([graph, timed("graph-double", [1000.0, 1210.0, 1100.0])], "length")
    assert check.found_ns == pytest.approx(1100.0)
    assert check.wanted_ns == pytest.approx(1100.0)
    assert check.passed


def test_the_first_worker_is_held_against_itself() -> None:
    """`graph-alone` runs in the first trial's process."""
    check = of([timed("graph", [1000.0, 2000.0, 4000.0]), timed("graph-alone", 1010.0)], "neighbours")
    assert check.wanted_ns == pytest.approx(1000.0)
    assert check.passed


@pytest.mark.parametrize(("name", "timer"), [("two streams", "graph-two-streams"), ("profiler", "profiler")])
def test_a_worker_of_its_own_is_held_against_all_trials(name: str, timer: str) -> None:
    """It is not the process of trial 0, whatever its number: the geometric mean of 1,000, 2,000 and 4,000 ns."""
    check = of([timed("graph", [1000.0, 2000.0, 4000.0]), timed(timer, 2000.0)], name)
    assert check.found_ns == pytest.approx(2000.0)
    assert check.wanted_ns == pytest.approx(2000.0)


def test_the_floor_is_paired_by_trial_too() -> None:
    """Its events cost 2,210 ns in the trials that both timers have; a third trial of `graph` alone changes nothing."""
    floor = [empty("graph", [690.0, 690.0, 5000.0]), empty("event", [2900.0, 2900.0])]
    check = of([*floor, timed("graph", 5000.0), timed("event", 7210.0)], "event")
    assert check.found_ns == pytest.approx(5000.0)


def without(measurement: Measurement, word: Word, reason: str | None) -> Measurement:
    """The case, with one trial that ended like this."""
    return replace(measurement, trials=(TrialResult(trial=0, verdict=Verdict(word=word, reason=reason)),))


@pytest.mark.parametrize("name", WANTED)
def test_what_was_not_measured_is_not_judged(name: str) -> None:
    """The timer that lacks, and for which cache."""
    kind = WANTED[name]
    for there, lacking in ((kind.found, kind.wanted), (kind.wanted, kind.found)):
        check = of([*FLOOR, timed(there[0], 5000.0, there[1])], name)
        assert check.reason == f"{lacking[0]} was not measured ({lacking[1]})"
        assert (check.passed, check.found_ns, check.wanted_ns, check.bound_ns) == (None, None, None, None)


def test_a_wrong_kernel_is_not_judged() -> None:
    """Its verdict is the reason; that of the timer which was refused, likewise."""
    graph, double = timed("graph", 5000.0), timed("graph-double", 5000.0)
    assert of([graph, without(double, Word.NOT_MEASURED, "no delay")], "length").reason == "no delay"
    assert of([without(graph, Word.WRONG, "row 3"), double], "length").reason == "row 3"
    half = replace(graph, trials=(*graph.trials, *without(graph, Word.CRASHED, "SIGSEGV").trials))
    assert of([half, double], "length").reason == "SIGSEGV"


def test_a_passed_case_without_samples_is_not_judged() -> None:
    """Its verdict has no reason to give."""
    nothing = without(timed("graph", 1.0), Word.PASSED, None)
    assert of([nothing, timed("graph-double", 1.0)], "length").reason == "graph has no samples (cold)"


def test_without_the_empty_kernel_events_are_not_judged() -> None:
    """Nothing else needs it."""
    measured = [timed("graph", 5000.0), timed("event", 7210.0), timed("graph-double", 5000.0)]
    assert of(measured, "event").reason == "the empty kernel was not measured"
    assert of([empty("graph", 690.0), *measured], "event").reason == "event was not measured (cold)"
    wrong = without(empty("event", 2900.0), Word.WRONG, "wrote outside y")
    assert of([empty("graph", 690.0), wrong, *measured], "event").reason == "wrote outside y"
    assert of(measured, "length").passed


def test_what_is_asked_of_the_empty_kernel() -> None:
    """It has no operands to be cold, is what `event` is corrected by, and takes longer while profiled; else all."""
    read = timed("graph", 2000.0, kernel="read", role=Role.LIMIT)
    asked = [(check.kernel, check.name) for check in selfcheck([FLOOR[0], read, timed("graph", 3000.0)])]
    of_floor = [name for name in WANTED if name not in {"profiler", "event", "cold"}]
    assert asked == [
        *(("empty", name) for name in of_floor),
        *(("read", name) for name in WANTED),
        *(("mine", name) for name in WANTED),
    ]


def test_problems_are_judged_apart() -> None:
    """A kernel's time on one is never held against that on another."""
    other = Problem(m=64, k=129)
    graph, double = timed("graph", 5000.0), timed("graph-double", 5000.0)
    double = replace(double, case=replace(double.case, problem=other))
    checks = [check for check in selfcheck([graph, double]) if check.name == "length"]
    assert [(check.problem, check.reason) for check in checks] == [
        (PROBLEM, "graph-double was not measured (cold)"),
        (other, "graph was not measured (cold)"),
    ]


def test_nothing_measured_nothing_checked() -> None:
    """An empty table, not an error."""
    assert selfcheck([]) == ()


@pytest.mark.parametrize(("after_ns", "passed"), [(2020.0, True), (2000.0, False), (2060.0, False)])
def test_a_drift_is_no_word_on_nvml(after_ns: float, passed: bool) -> None:
    """2,000 ns read, 2,012 not read, and then 2,020 read again: the device warms, half-way it would be at 2,010."""
    measured = [timed("graph", 2000.0), timed("graph-unwatched", 2012.0), timed("graph-double", after_ns)]
    check = of(measured, "NVML")
    assert check.passed is passed
    assert check.wanted_ns == pytest.approx((2000.0 + after_ns) / 2)


def test_failed_are_those_that_were_judged_and_did_not_pass() -> None:
    """A check without a figure says nothing against a timer."""
    right, wrong, unjudged = (
        Check(name="length", kernel="mine", problem=PROBLEM, passed=passed) for passed in (True, False, None)
    )
    assert failed([right, wrong, unjudged, wrong]) == (wrong, wrong)
    assert failed([right, unjudged]) == ()


@pytest.mark.parametrize(("mhz", "judged"), [(1980.0, True), (1975.0, True), (1965.0, False)])
def test_another_clock_is_no_word_on_a_timer(mhz: float, judged: bool) -> None:
    """`graph` against itself: where the SM clock was another, a check would be about that."""

    def clocked(measurement: Measurement, at_mhz: float) -> Measurement:
        trials = (replace(t, sample_clocks_mhz=(at_mhz,) * len(t.samples_ns)) for t in measurement.trials)
        return replace(measurement, trials=tuple(trials))

    graph, unwatched = clocked(timed("graph", 2000.0), 1980.0), clocked(timed("graph-unwatched", 2000.0), mhz)
    double = clocked(timed("graph-double", 2000.0), 1980.0)
    check = of([graph, unwatched, double], "NVML")
    assert (check.passed is True) is judged
    if not judged:
        assert check.reason == "the SM clock was 1965 MHz by graph-unwatched and 1980 MHz by graph"
