"""harness.stats: intervals by hand and against a table of Student's t; pairing by trial."""

from __future__ import annotations

import math
import statistics

import pytest

from harness.model import Cache, Case, Measurement, Problem, Role, TrialResult, Verdict, Word
from harness.stats import Interval, log_t_interval, speedup, summarize, trial_medians_ns

T_975 = {1: 12.7062, 2: 4.30265, 4: 2.77645}
"""Quantile 0.975 of Student's t by degrees of freedom, from a printed table."""


def measured(
    samples_by_trial: dict[int, tuple[float, ...]], words: dict[int, Word] | None = None, kernel: str = "mine"
) -> Measurement:
    case = Case(kernel=kernel, role=Role.GEMV, problem=Problem(m=1, k=1), timer="graph", cache=Cache.COLD)
    trials = tuple(
        TrialResult(trial=i, verdict=Verdict(word=(words or {}).get(i, Word.PASSED)), samples_ns=ns)
        for i, ns in samples_by_trial.items()
    )
    return Measurement(case=case, trials=trials)


def test_interval_of_three_by_hand() -> None:
    """Logs 0, ln 2, ln 4: mean ln 2, standard deviation ln 2, so 2·2^(±4.30265/√3)."""
    interval = log_t_interval([0.0, math.log(2), math.log(4)])
    reach = 2 ** (T_975[2] / math.sqrt(3))
    assert interval.estimate == pytest.approx(2.0)
    assert interval.low == pytest.approx(2 / reach, rel=1e-5)
    assert interval.high == pytest.approx(2 * reach, rel=1e-5)


def test_interval_of_two_by_hand() -> None:
    """Logs ±h: mean 0, standard deviation h·√2, error h, so e^(±12.7062·h)."""
    interval = log_t_interval([-0.01, 0.01])
    assert interval.low == pytest.approx(math.exp(-0.127062), rel=1e-6)
    assert interval.high == pytest.approx(math.exp(0.127062), rel=1e-6)


def test_interval_of_five_against_the_standard_library() -> None:
    """Any five logs, with the table's quantile."""
    logs = [0.11, 0.13, 0.08, 0.12, 0.10]
    error = statistics.stdev(logs) / math.sqrt(5)
    interval = log_t_interval(logs)
    assert interval.high == pytest.approx(math.exp(statistics.fmean(logs) + T_975[4] * error), rel=1e-6)


def test_equal_values_give_an_interval_of_no_width() -> None:
    """No spread is no doubt, as far as these trials tell."""
    assert log_t_interval([0.0, 0.0, 0.0]) == Interval(estimate=1.0, low=1.0, high=1.0)


def test_one_trial_gives_an_estimate_alone() -> None:
    """Unknown is None."""
    interval = log_t_interval([math.log(8.0)])
    assert interval.estimate == pytest.approx(8.0)
    assert (interval.low, interval.high, interval.half_width) == (None, None, None)


def test_half_width_is_a_fraction_of_the_estimate() -> None:
    """(11 − 9)/2 over 10."""
    assert Interval(estimate=10.0, low=9.0, high=11.0).half_width == pytest.approx(0.1)


def test_summary_by_hand() -> None:
    """Trials' medians 2, 4, 8: geometric mean 4, spread (8 − 2)/4, seven samples."""
    summary = summarize(measured({0: (1.0, 2.0, 9.0), 1: (3.0, 5.0), 2: (8.0, 8.0)}))
    assert summary is not None
    assert summary.trial_medians_ns == (2.0, 4.0, 8.0)
    assert summary.median_ns.estimate == pytest.approx(4.0)
    assert summary.spread == pytest.approx(1.5)
    assert summary.samples == 7


def test_summary_of_one_trial() -> None:
    """No interval, and a spread of 0."""
    summary = summarize(measured({0: (7.0, 5.0, 6.0)}))
    assert summary is not None
    assert (summary.median_ns.estimate, summary.median_ns.low, summary.spread) == (pytest.approx(6.0), None, 0.0)


@pytest.mark.parametrize("word", [Word.WRONG, Word.CRASHED, Word.UNSUPPORTED, Word.NOT_MEASURED])
def test_a_partly_passed_measurement_has_no_figures(word: Word) -> None:
    """Two good trials do not make up for the third."""
    measurement = measured({0: (1.0,), 1: (1.0,), 2: ()}, {2: word})
    assert trial_medians_ns(measurement) == {}
    assert summarize(measurement) is None
    assert speedup(measurement, measured({0: (1.0,)})) is None
    assert speedup(measured({0: (1.0,)}), measurement) is None


def test_speedup_is_paired_by_trial() -> None:
    """Every trial is twice as fast, so the ratio is exactly known however much the trials themselves differ."""
    ratio = speedup(measured({0: (10.0,), 1: (20.0,), 2: (55.0,)}), measured({0: (20.0,), 1: (40.0,), 2: (110.0,)}))
    assert ratio is not None
    assert (ratio.estimate, ratio.low, ratio.high) == pytest.approx((2.0, 2.0, 2.0))


def test_speedup_pairs_by_number_not_by_position() -> None:
    """Trials 2 and 0 against 0 and 2: both ratios are 3. Paired by position they would be 6 and 1.5."""
    ratio = speedup(measured({2: (2.0,), 0: (1.0,)}), measured({0: (3.0,), 2: (6.0,)}))
    assert ratio is not None
    assert (ratio.estimate, ratio.low, ratio.high) == pytest.approx((3.0, 3.0, 3.0))


def test_speedup_uses_shared_trials_alone() -> None:
    """Trial 1 has no partner; one pair gives no interval."""
    ratio = speedup(measured({0: (1.0,), 1: (100.0,)}), measured({0: (4.0,), 2: (9.0,)}))
    assert ratio is not None
    assert (ratio.estimate, ratio.low) == (pytest.approx(4.0), None)


def test_speedup_without_a_shared_trial() -> None:
    """Nothing to pair."""
    assert speedup(measured({0: (1.0,)}), measured({1: (1.0,)})) is None
