"""The test behind a word: by hand, against scipy, and its rates by simulation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from harness.compare import THRESHOLD, Change, word
from harness.comparison.moderated import (
    MOST_PRIOR_FREEDOM,
    NO_PRIOR,
    PARTS,
    Judgement,
    Pair,
    Table,
    holm,
    inverse_trigamma,
    prior,
)


def judge(pairs: Sequence[Pair]) -> list[Judgement]:
    return Table(pairs).judgements()


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
    """Without neighbours scipy's p comes out, times the parts; of unequal sides with the smaller one's freedom."""
    draw = np.random.default_rng(3)
    base, new = draw.normal(0, 0.01, sizes[0]), draw.normal(0.02, 0.03, sizes[1])
    (found,) = judge([Pair(base=tuple(base), new=tuple(new), family="")])
    student = stats.ttest_ind(base, new)
    p = student.pvalue
    if sizes[0] != sizes[1]:
        welch = stats.ttest_ind(base, new, equal_var=False).statistic
        p = max(p, 2 * stats.t.sf(abs(welch), min(sizes) - 1))
    assert found.p == pytest.approx(min(1, PARTS * p))


def test_the_headline_has_half_of_the_chance_of_error() -> None:
    """However many other cases are beside it, and whether or not there are any."""
    draw = np.random.default_rng(5)
    pairs = [
        Pair(base=tuple(draw.normal(0, 0.01, 5)), new=tuple(draw.normal(0.02, 0.01, 5)), family="", headline=i < 3)
        for i in range(40)
    ]
    found = [each.p for each in judge(pairs)]
    table = Table(pairs)
    raw = [p for _, p in table._tests]
    assert found[:3] == pytest.approx([min(1, PARTS * p) for p in holm(raw[:3])])
    assert found[3:] == pytest.approx([min(1, PARTS * p) for p in holm(raw[3:])])


def test_one_case_made_longer_is_judged_as_if_it_had_been_measured_so() -> None:
    """A shift leaves variances, and so the prior, alone."""
    draw = np.random.default_rng(6)
    pairs = [Pair(base=tuple(draw.normal(0, 0.01, 5)), new=tuple(draw.normal(0, 0.01, 5)), family="") for _ in range(9)]
    moved = [*pairs[:4], replace(pairs[4], new=tuple(log + 0.02 for log in pairs[4].new)), *pairs[5:]]
    found, wanted = Table(pairs).with_one(4, 0.02), judge(moved)[4]
    assert found.p == pytest.approx(wanted.p)
    assert found.ratio.low == pytest.approx(wanted.ratio.low)


def test_what_boards_differ_by_is_allowed_for() -> None:
    """By hand: two sides of five with sd s have an error of s²·2/5; with t² more it is known by more freedom."""
    draw = np.random.default_rng(7)
    base, new = draw.normal(0, 0.003, 5), draw.normal(0.01, 0.003, 5)
    pair = Pair(base=tuple(base), new=tuple(new), family="")
    (found,) = judge([replace(pair, between=0.004)])
    squared = (base.var(ddof=1) + new.var(ddof=1)) / 2 * 2 / 5
    total = squared + 0.004**2
    t = (new.mean() - base.mean()) / math.sqrt(total)
    assert found.p == pytest.approx(PARTS * 2 * stats.t.sf(abs(t), 8 * (total / squared) ** 2))
    (alone,) = judge([pair])
    assert alone.p is not None
    assert alone.p < found.p


def test_no_scatter_at_all_is_no_certainty() -> None:
    """Five equal trials against five others, a tick apart: nothing says how sure that is. Equal ones are the same."""
    equal, other = (math.log(2048.0),) * 5, (math.log(2080.0),) * 5
    (found,) = judge([Pair(base=equal, new=other, family="")])
    assert (found.ratio.low, found.p) == (None, None)
    (same,) = judge([Pair(base=equal, new=equal, family="")])
    assert (same.ratio.low, same.ratio.high, same.p) == (1.0, 1.0, 1.0)


@pytest.mark.parametrize("sizes", [(1, 1), (1, 24), (5, 1)])
def test_one_trial_on_a_side_says_nothing(sizes: tuple[int, int]) -> None:
    """What a process adds to that run is not known from the other's."""
    draw = np.random.default_rng(8)
    (found,) = judge([Pair(base=tuple(draw.normal(0, 1, sizes[0])), new=tuple(draw.normal(9, 1, sizes[1])), family="")])
    assert (found.ratio.low, found.p) == (None, None)


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
