"""harness.timing: when sampling stops, which samples count, how well their median is known, when times are steady."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from harness.device.sm_clock import NoClock
from harness.timing import NotMeasurable, Sample, draw_samples, median_error, settle, with_clocks
from tests.fake_clock import Clock, clock

__all__ = ["clock"]


def sampled(draw: Callable[[], float | None]) -> Callable[[], Sample | None]:
    """What `draw` gives, as samples."""

    def sample() -> Sample | None:
        ns = draw()
        return None if ns is None else Sample(ns=ns)

    return sample


def drawn(draw: Callable[[], float | None], max_time_s: float, **options: int) -> tuple[tuple[float, ...], str]:
    """`draw_samples` in bare numbers."""
    samples, stopped = draw_samples(sampled(draw), max_time_s, **options)
    return tuple(sample.ns for sample in samples), stopped


def test_steady_samples_stop_as_precise() -> None:
    """Ten equal samples know their median; an eleventh is not drawn."""
    assert drawn(lambda: 5.0, 60.0) == ((5.0,) * 10, "precise")


def test_unsteady_samples_stop_by_time(clock: Clock) -> None:
    """1 ms a sample and a budget of 25 ms: the 26th is the first that ends beyond it."""
    values = itertools.cycle([1.0, 2.0])

    def draw() -> float:
        clock.advance(1_000_000)
        return next(values)

    samples, stopped = drawn(draw, 0.025)
    assert stopped == "time"
    assert samples == (1.0, 2.0) * 13


def test_a_small_budget_still_gives_the_fewest_samples(clock: Clock) -> None:
    """Each sample takes half the budget: ten are drawn all the same."""
    values = itertools.cycle([1.0, 2.0])

    def draw() -> float:
        clock.advance(500_000_000)
        return next(values)

    assert drawn(draw, 1.0) == ((1.0, 2.0) * 5, "time")


def test_a_very_slow_launch_gives_what_ten_budgets_allow(clock: Clock) -> None:
    """4 s a sample and a budget of 1 s: the third ends beyond 10 s."""

    def draw() -> float:
        clock.advance(4_000_000_000)
        return 4e9

    assert drawn(draw, 1.0) == ((4e9,) * 3, "time")


def test_samples_that_must_not_count_are_left_out() -> None:
    """None is not a sample."""
    values = itertools.cycle([None, 3.0, None])
    assert drawn(lambda: next(values), 60.0) == ((3.0,) * 10, "precise")


def test_no_sample_that_counts_is_not_measurable(clock: Clock) -> None:
    """The reason says how long was tried: ten budgets."""

    def draw() -> None:
        clock.advance(100_000_000)

    with pytest.raises(NotMeasurable, match=r"^no sample counted within 0\.5 s$"):
        drawn(draw, 0.05)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf"), 0.0, -1.0])
def test_a_sample_that_is_no_time_is_refused(bad: float) -> None:
    """Not one gets into a record: pytest-benchmark's session would not survive it."""
    values = itertools.chain([1.0, 2.0], itertools.repeat(bad))
    with pytest.raises(NotMeasurable, match=rf"a sample of {bad} ns: wanted a finite time above 0"):
        drawn(lambda: next(values), 60.0)


def test_there_is_a_most() -> None:
    """Samples without end and without precision stop at 200."""
    values = itertools.cycle([1.0, 2.0])
    samples, stopped = drawn(lambda: next(values), 60.0)
    assert (len(samples), stopped) == (200, "count")


def test_median_error_of_ten_by_hand() -> None:
    """n/2 ± 0.98·√10 = 5 ± 3.1: places 1 and 9 of 0 … 9. For 100 … 109 that is (109 − 101)/2/105."""
    assert median_error([float(100 + i) for i in range(10)]) == pytest.approx(4 / 105)


def test_median_error_of_a_hundred_by_hand() -> None:
    """50 ± 9.8: places 40 and 60. For 1000 … 1099 that is 10/1050, in any order."""
    assert median_error([float(1000 + i) for i in reversed(range(100))]) == pytest.approx(10 / 1050)


def test_median_error_ignores_a_few_outliers() -> None:
    """That is what a median is for."""
    assert median_error([1.0] * 98 + [1e6] * 2) == 0.0


def test_median_error_of_one_sample() -> None:
    """Both ends are the sample itself."""
    assert median_error([3.0]) == 0.0


def test_samples_know_when_they_began(clock: Clock) -> None:
    """So that a reading of the device can be held against them."""

    def draw() -> Sample:
        clock.advance(1_000_000_000)
        return Sample(ns=1.0)

    samples, _ = draw_samples(draw, 5.0)
    assert [sample.time_unix_s for sample in samples] == [float(second) for second in range(10)]


def test_settling_waits_for_steady_times(clock: Clock) -> None:
    """Clocks that rise: 1 % a sample at first, then steady."""
    times = iter([100.0 - i for i in range(10)] + [90.0] * 100)
    seen: list[float] = []

    def draw() -> Sample:
        clock.advance(1_000)
        seen.append(next(times))
        return Sample(ns=seen[-1])

    assert settle(draw, window=3, within=0.003)
    assert seen[-6:] == [90.0] * 6 or abs(seen[-2] / seen[-5] - 1) <= 0.003
    assert len(seen) < 20


def test_times_that_never_settle_are_said_to_be_unsettled(clock: Clock) -> None:
    """After 0.3 s of this clock."""
    times = itertools.count(1.0)

    def draw() -> Sample:
        clock.advance(50_000_000)
        return Sample(ns=2.0 ** next(times))

    assert settle(draw, window=3, within=0.003) is False


def test_times_too_long_to_compare_tell_nothing(clock: Clock) -> None:
    """Steady, but six of them take longer than the warm-up may: that is no word against them."""

    def draw() -> Sample:
        clock.advance(60_000_000)
        return Sample(ns=6e7)

    assert settle(draw, window=3, within=0.003) is None


def test_samples_without_a_clock_say_why() -> None:
    """The reason goes into the record."""
    samples, unknown = with_clocks([Sample(ns=1.0)], NoClock("no counters"))
    assert samples == (Sample(ns=1.0),)
    assert unknown == {"sample_clocks_mhz": "no counters"}
