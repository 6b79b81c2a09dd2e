"""Whether each case changed, from a few trials a side, over a table of cases.

The datum is the logarithm of a trial's median: the trial is the unit, and ratios are what is asked about. Two tests are
made of each case, and the less certain one counts:

* the **moderated t**: the variance that both sides share is squeezed towards what the cases of its timer and cache
  usually have [1]. It keeps a case whose few trials happen to agree from looking certain, and gives one without any
  spread an interval.
* the **t of the case's own variance**, without a prior. Variances of cases differ here by four orders of magnitude
  (spreads of 0.01 % to 6 % on one timer); no one prior fits that, and it would squeeze a noisy case to what quiet ones
  have, which [3] calls hypervariable genes. With as many trials on either side it is Student's, which bears spreads
  that differ up to about threefold this far out in its tail; else Welch's [2], with one degree of freedom less than
  the smaller side has trials [5]: the smaller side may be the noisier one.

Both must call it significant, so an error of the prior can hide a change but cannot make one up. Holm's correction [4]
needs no independence, which neighbours in time do not have. It is made in two parts, each with half of the chance of
error: the headline's cold cases, and all others. So what is said of the headline does not hang on how many other timers
were measured beside it. A timer's tick is added to the error and not averaged over trials: rounding falls the same way
in all of them. So is what two boards of one model differ by, where the runs are of two.

Two states between trials are no normal error, and this knows nothing of them: five trials that all fell into one state
against five in the other look like a change without a doubt.

[1] G. K. Smyth, Linear models and empirical Bayes methods for assessing differential expression in microarray
    experiments, Stat. Appl. Genet. Mol. Biol. 3(1), 2004, article 3, sections 4 and 6.2.
[2] B. L. Welch, The generalization of «Student's» problem when several different population variances are involved,
    Biometrika 34, 1947, 28-35.
[3] B. Phipson et al., Robust hyperparameter estimation protects against hypervariable genes, Ann. Appl. Stat. 10(2),
    2016, 946-963.
[4] S. Holm, A simple sequentially rejective multiple test procedure, Scand. J. Stat. 6, 1979, 65-70.
[5] P. L. Hsu, Contribution to the theory of «Student's» t-test as applied to the problem of two samples, Statist. Res.
    Mem. 2, 1938, 1-24.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

from scipy.special import digamma, polygamma, stdtr, stdtrit

from harness.stats import CONFIDENCE, Interval

FEWEST_CASES = 3
"""A prior needs as many: fewer tell nothing about how variances differ."""

MOST_PRIOR_FREEDOM = 1e4
"""Stands for infinity: the variances of these cases do not differ by more than chance."""

PARTS = 2
"""The headline's cold cases and all others, each with as much of the chance of error, whether or not both are there."""

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
    headline: bool = False
    """One of the cases that half of the chance of error is kept for."""
    between: float = 0.0
    """Standard deviation of what the runs differ by without a change, as a logarithm."""


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
    """Time in the new run over time in the base run; without ends where nothing says how sure it is."""
    p: float | None
    """Of the ratio being 1, two-sided, after correction; None with an interval without ends: one trial on a side, or
    trials that differ between the sides and not at all within them."""


NO_PRIOR = Prior(freedom=0.0, variance=0.0)
"""What too few cases give."""


class Table:
    """Cases that are judged together."""

    def __init__(self, pairs: Sequence[Pair]) -> None:
        """Test each case, in any order."""
        families: dict[str, list[Pair]] = {}
        for pair in pairs:
            families.setdefault(pair.family, []).append(pair)
        self._priors = {family: prior([_pooled(pair) for pair in members]) for family, members in families.items()}
        self._pairs = list(pairs)
        self._tests = [self._test(pair) for pair in pairs]

    def judgements(self) -> list[Judgement]:
        """Of each case, in their order."""
        return self._judged(self._tests)

    def with_one(self, place: int, longer: float) -> Judgement:
        """Of the case at `place`, were all its new trials longer by this; the others, and all variances, stay.

        Args:
            place: of the case in the table.
            longer: as a logarithm.
        """
        pair = self._pairs[place]
        moved = replace(pair, new=tuple(log + longer for log in pair.new))
        return self._judged([*self._tests[:place], self._test(moved), *self._tests[place + 1 :]])[place]

    def _test(self, pair: Pair) -> tuple[Interval, float | None]:
        return _test(pair, self._priors[pair.family])

    def _judged(self, tests: Sequence[tuple[Interval, float | None]]) -> list[Judgement]:
        corrected: dict[int, float] = {}
        for headline in (True, False):
            part = {
                place: p
                for place, (pair, (_, p)) in enumerate(zip(self._pairs, tests, strict=True))
                if p is not None and pair.headline is headline
            }
            adjusted = holm(list(part.values()))
            corrected |= {place: min(1.0, PARTS * p) for place, p in zip(part, adjusted, strict=True)}
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
    if value < 1e-7:
        return 1 / value
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


def _test(pair: Pair, usual: Prior) -> tuple[Interval, float | None]:
    """The ratio with its interval, and p before correction: the less certain of the two tests."""
    difference = statistics.fmean(pair.new) - statistics.fmean(pair.base)
    if abs(difference) < _ROUNDING:
        difference = 0.0
    rounding = pair.tick**2 / 12 * 2  # of a uniform error on either side
    tests = [(math.sqrt(squared + rounding), freedom) for squared, freedom in _errors(pair, usual)]
    if not tests or (difference and not any(error for error, _ in tests)):  # no scatter at all is no certainty
        return Interval(estimate=_exp(difference), low=None, high=None), None
    reach = max(float(stdtrit(freedom, (1 + CONFIDENCE) / 2)) * error for error, freedom in tests)
    p = max(_two_sided(difference, error, freedom) for error, freedom in tests)
    return Interval(estimate=_exp(difference), low=_exp(difference - reach), high=_exp(difference + reach)), p


def _errors(pair: Pair, usual: Prior) -> list[tuple[float, float]]:
    """Squared standard error of the difference and its degrees of freedom, by each test; empty for one trial a side."""
    if min(len(pair.base), len(pair.new)) == 1:  # how much a process adds to that run is not known
        return []
    variance, freedom = _pooled(pair)
    shares = 1 / len(pair.base) + 1 / len(pair.new)
    squeezed = (usual.freedom * usual.variance + freedom * variance) / (usual.freedom + freedom)
    moderated = squeezed * shares, usual.freedom + freedom
    own = _own_error(pair, variance * shares, freedom)
    return [_with(pair.between, *moderated), _with(pair.between, *own)]


def _with(between: float, squared: float, freedom: float) -> tuple[float, float]:
    """An error with a known one added, by Satterthwaite's degrees of freedom."""
    if not between or not squared:
        return squared + between**2, freedom
    total = squared + between**2
    return total, min(freedom * (total / squared) ** 2, MOST_PRIOR_FREEDOM)


def _own_error(pair: Pair, pooled: float, freedom: int) -> tuple[float, float]:
    """Squared error and freedom without a prior: Welch's where the sides differ in trials, else the pooled ones."""
    if len(pair.base) == len(pair.new):
        return pooled, freedom
    terms = [_squares(logs) / (len(logs) - 1) / len(logs) for logs in (pair.base, pair.new)]
    return sum(terms), min(len(pair.base), len(pair.new)) - 1


def _two_sided(difference: float, error: float, freedom: float) -> float:
    if error == 0:
        return 0.0 if difference else 1.0
    return 2 * float(stdtr(freedom, -abs(difference) / error))


def _exp(exponent: float) -> float:
    """The exponential, or the nearest float that is neither 0 nor infinite."""
    return math.exp(min(max(exponent, -_EXPONENT), _EXPONENT))
