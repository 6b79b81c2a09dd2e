"""The test behind a word: by hand, against scipy, and its rates by simulation."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from harness.compare import THRESHOLD, Change, word
from harness.comparison.moderated import MOST_PRIOR_FREEDOM, NO_PRIOR, Pair, holm, inverse_trigamma, judge, prior


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
