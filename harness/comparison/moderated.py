"""Whether a case changed, from a few trials a side, over a table of cases.

The datum is the logarithm of a trial's median: the trial is the unit, and ratios are what is asked about. Two tests are
made of each case, and the less certain one counts:

* the **moderated t**: the variance that both sides share is squeezed towards what the cases of its timer and cache
  usually have [1]. It keeps a case whose few trials happen to agree from looking certain, and gives one without any
  spread an interval.
* the **t of the case's own variance**, without a prior. Variances of cases differ here by four orders of magnitude
  (spreads of 0.01 % to 6 % on one timer); no one prior fits that, and it would squeeze a noisy case to what quiet ones
  have, which [3] calls hypervariable genes. With as many trials on either side it is Student's, which bears spreads
  that differ; else Welch's with the Satterthwaite degrees of freedom [2], since Student's does not bear both.

Both must call it significant, so an error of the prior can hide a change but cannot make one up. Holm's correction [4]
goes over all cases that were tested; it needs no independence, which neighbours in time do not have. A timer's tick is
added to the error and not averaged over trials: rounding falls the same way in all of them.

Two states between trials are no normal error: five trials that all fell into one state against five in the other look
like a change without a doubt, once in 512 times where both states are as likely. The share of a family's cases that
show states times that chance is therefore added to p, unless the change is larger than any step between states there.

[1] G. K. Smyth, Linear models and empirical Bayes methods for assessing differential expression in microarray
    experiments, Stat. Appl. Genet. Mol. Biol. 3(1), 2004, article 3, sections 4 and 6.2.
[2] B. L. Welch, The generalization of «Student's» problem when several different population variances are involved,
    Biometrika 34, 1947, 28-35; F. E. Satterthwaite, Biometrics Bulletin 2, 1946, 110-114.
[3] B. Phipson et al., Robust hyperparameter estimation protects against hypervariable genes, Ann. Appl. Stat. 10(2),
    2016, 946-963.
[4] S. Holm, A simple sequentially rejective multiple test procedure, Scand. J. Stat. 6, 1979, 65-70.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from scipy.special import digamma, polygamma, stdtr, stdtrit

from harness.comparison.states import chance_of_parting, find_states
from harness.stats import CONFIDENCE, Interval

FEWEST_CASES = 3
"""A prior needs as many: fewer tell nothing about how variances differ."""

MOST_PRIOR_FREEDOM = 1e4
"""Stands for infinity: the variances of these cases do not differ by more than chance."""

_NEAR_ZERO = 1e-5
"""A variance below this share of the median one says nothing of the others; its logarithm would outweigh them all."""

_ROUNDING = 1e-12
"""Differences of logarithms that come from floating point alone."""

_EXPONENT = 700.0
"""e to this is near the largest float."""


@dataclass(frozen=True, kw_only=True)
class Pair:
    """A case's trials in both runs."""

    base: tuple[float, ...]
    """ln(median in ns) by trial; at least one."""
    new: tuple[float, ...]
    """The same of the new run; at least one."""
    family: str
    """Cases of one family share a prior: what one timer and cache usually have says nothing about another's."""
    tick: float = 0.0
    """The timer's resolution over the time, as a fraction; 0: finer than the samples show."""


@dataclass(frozen=True, kw_only=True)
class Prior:
    """A scaled inverse χ² distribution of variances over cases."""

    freedom: float
    """d₀: trials' worth of what the other cases say; 0: they say nothing."""
    variance: float
    """s₀²: the usual variance of a trial's logarithm."""


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """What the trials say of one case."""

    ratio: Interval
    """Time in the new run over time in the base run; without ends where both sides have one trial."""
    p: float | None
    """Of the ratio being 1, two-sided, after Holm; None where both sides have one trial."""


@dataclass(frozen=True, kw_only=True)
class _Usual:
    """What the cases of one family are like."""

    prior: Prior
    """Of their variances."""
    share_with_states: float
    """Of these cases, those whose trials show two states, as a fraction."""
    widest_step: float
    """The largest step between two states, as a difference of logarithms; 0: none has any."""


NO_PRIOR = Prior(freedom=0.0, variance=0.0)
"""What too few cases give."""


def judge(pairs: Sequence[Pair]) -> list[Judgement]:
    """Each case's ratio and its p after correction over all of `pairs`, in their order."""
    families: dict[str, list[Pair]] = {}
    for pair in pairs:
        families.setdefault(pair.family, []).append(pair)
    usual = {family: _usual(members) for family, members in families.items()}
    tests = [_test(pair, usual[pair.family]) for pair in pairs]
    tested = [place for place, (_, p) in enumerate(tests) if p is not None]
    corrected = dict(zip(tested, holm([p for _, p in tests if p is not None]), strict=True))
    return [Judgement(ratio=ratio, p=corrected.get(place)) for place, (ratio, _) in enumerate(tests)]


def prior(variances: Sequence[tuple[float, int]]) -> Prior:
    """d₀ and s₀² by the moments of ln s², as section 6.2 of [1] has it.

    Args:
        variances: of each case its variance and degrees of freedom; those without either are left out.
    """
    floor = _NEAR_ZERO * statistics.median([variance for variance, _ in variances if variance > 0] or [0.0])
    known = [(variance, freedom / 2) for variance, freedom in variances if freedom > 0 and variance > floor]
    if len(known) < FEWEST_CASES:
        return NO_PRIOR
    halves = [half for _, half in known]
    logs = [math.log(variance) - float(digamma(half)) + math.log(half) for variance, half in known]
    centre = statistics.fmean(logs)
    excess = statistics.variance(logs) - statistics.fmean(float(polygamma(1, half)) for half in halves)
    half = inverse_trigamma(excess) if excess > 0 else MOST_PRIOR_FREEDOM / 2
    half = min(half, MOST_PRIOR_FREEDOM / 2)
    return Prior(freedom=2 * half, variance=_exp(centre + float(digamma(half)) - math.log(half)))


def inverse_trigamma(value: float) -> float:
    """The y with ψ′(y) = `value` > 0, by Newton's method on 1/ψ′, as the appendix of [1] has it."""
    if value > 1e7:
        return 1 / math.sqrt(value)
    y = 0.5 + 1 / value
    for _ in range(50):
        trigamma = float(polygamma(1, y))
        step = trigamma * (1 - trigamma / value) / float(polygamma(2, y))
        y += step
        if -step / y < 1e-8:
            break
    return y


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's adjusted p: reject where it is at most α, and the chance of any false rejection is at most α [4]."""
    order = sorted(range(len(p_values)), key=lambda place: p_values[place])
    adjusted = [1.0] * len(p_values)
    highest = 0.0
    for rank, place in enumerate(order):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[place]))
        adjusted[place] = highest
    return adjusted


def _pooled(pair: Pair) -> tuple[float, int]:
    """The variance that both sides share, and its degrees of freedom; (0, 0) for one trial a side."""
    freedom = len(pair.base) + len(pair.new) - 2
    return (_squares(pair.base) + _squares(pair.new)) / max(freedom, 1), freedom


def _squares(logs: Sequence[float]) -> float:
    """Sum of squared deviations; 0 where they are floating point alone."""
    centre = statistics.fmean(logs)
    return math.fsum(d * d for d in (log - centre for log in logs) if abs(d) > _ROUNDING)


def _usual(pairs: Sequence[Pair]) -> _Usual:
    """What a family is like; one more case counts among those with states: the one that parted shows none itself."""
    steps = [states.step for states in (find_states(pair.base, pair.new) for pair in pairs) if states]
    return _Usual(
        prior=prior([_pooled(pair) for pair in pairs]),
        share_with_states=min(1.0, (len(steps) + 1) / len(pairs)) if steps else 0.0,
        widest_step=max(steps, default=0.0),
    )


def _test(pair: Pair, usual: _Usual) -> tuple[Interval, float | None]:
    """The ratio with its interval, and p before correction: the less certain of the two tests."""
    difference = statistics.fmean(pair.new) - statistics.fmean(pair.base)
    if abs(difference) < _ROUNDING:
        difference = 0.0
    errors = _errors(pair, usual.prior)
    if not errors:
        return Interval(estimate=_exp(difference), low=None, high=None), None
    rounding = pair.tick**2 / 12 * 2  # of a uniform error on either side
    tests = [(math.sqrt(squared + rounding), freedom) for squared, freedom in errors]
    reach = max(float(stdtrit(freedom, (1 + CONFIDENCE) / 2)) * error for error, freedom in tests)
    p = max(_two_sided(difference, error, freedom) for error, freedom in tests)
    if abs(difference) <= usual.widest_step:
        p = min(1.0, p + usual.share_with_states * chance_of_parting(len(pair.base), len(pair.new)))
    ratio = Interval(estimate=_exp(difference), low=_exp(difference - reach), high=_exp(difference + reach))
    return ratio, p


def _errors(pair: Pair, usual: Prior) -> list[tuple[float, float]]:
    """Squared standard error of the difference and its degrees of freedom, by each test; empty for one trial a side."""
    variance, freedom = _pooled(pair)
    if freedom == 0:
        return []
    shares = 1 / len(pair.base) + 1 / len(pair.new)
    squeezed = (usual.freedom * usual.variance + freedom * variance) / (usual.freedom + freedom)
    return [(squeezed * shares, usual.freedom + freedom), _own_error(pair, variance * shares, freedom)]


def _own_error(pair: Pair, pooled: float, freedom: int) -> tuple[float, float]:
    """Squared error and freedom without a prior: Welch's where the sides differ in trials, else the pooled ones."""
    if len(pair.base) == len(pair.new) or 1 in (len(pair.base), len(pair.new)):  # one has no variance of its own
        return pooled, freedom
    terms = [(_squares(logs) / (len(logs) - 1) / len(logs), len(logs) - 1) for logs in (pair.base, pair.new)]
    total = sum(term for term, _ in terms)
    if total == 0:  # and so is the pooled one
        return pooled, freedom
    return total, 1 / sum((term / total) ** 2 / own for term, own in terms)


def _two_sided(difference: float, error: float, freedom: float) -> float:
    if error == 0:
        return 0.0 if difference else 1.0
    return 2 * float(stdtr(freedom, -abs(difference) / error))


def _exp(exponent: float) -> float:
    """The exponential, or the nearest float that is neither 0 nor infinite."""
    return math.exp(min(max(exponent, -_EXPONENT), _EXPONENT))
