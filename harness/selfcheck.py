"""The selfcheck: do the timers tell the truth? Every kernel and problem timed in pairs of ways that must agree.

A pure function of a run's measurements, the timers of `harness.timing.checks` among them.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from harness.model import Cache, Check, Measurement, Problem, Role, TrialResult
from harness.stats import trial_medians_ns
from harness.timing import HEADLINE, Crew, timers

COLD, HOT = Cache.COLD, Cache.HOT
HEADLINE_COLD, PROFILER = (HEADLINE, COLD), ("profiler", COLD)
EVENT, EVENT_PAIR = ("event", COLD), ("event-pair", COLD)


SAME_CLOCK = 0.005
"""How far two medians of the SM clock may be apart, as a fraction, and times still be compared."""


class Rule(StrEnum):
    """How two times must compare."""

    AGREE = "differ by at most"
    """|found − wanted| ≤ bound."""
    ABOVE = "is longer by at least"
    """found − wanted ≥ bound: a difference that must be there."""
    NOT_BELOW = "is shorter by at most"
    """found − wanted ≥ −bound: how much longer it is, is what the check shows."""


@dataclass(frozen=True, kw_only=True)
class CheckKind:
    """One of the selfcheck's questions."""

    name: str
    """Names it in the table."""
    question: str
    """What it asks, in a sentence."""
    rule: Rule
    """How the two times must compare."""
    share: float
    """Bound, as a fraction of the time held against …"""
    least_ns: float
    """… or this many ns, where that is more."""
    times: Callable[[Figures], tuple[float, float]]
    """(found, wanted) in ns per launch; raises Unjudged."""
    of_floor: bool = True
    """Whether it is asked of the empty kernel too."""

    @property
    def bound(self) -> str:
        """The bound in words, such as `4 % or 0.15 µs`."""
        return f"{self.share * 100:g} % or {self.least_ns / 1e3:g} µs"


class Unjudged(Exception):  # noqa: N818 - it is a reason, not an error of the harness
    """A check lacks a figure; the message is the reason."""


class Figures:
    """Times of one kernel on one problem, and of the empty kernel, in ns per launch."""

    def __init__(self, own: Mapping[tuple[str, Cache], Measurement], floor: Figures | None) -> None:
        self._own = own
        self._floor = floor

    def pair(self, found: tuple[str, Cache], wanted: tuple[str, Cache] = HEADLINE_COLD) -> tuple[float, float]:
        """Both times over the trials that they share; over all where they ran in different workers."""
        one, other = self._medians(found), self._medians(wanted)
        shared = [trial for trial in one if trial in other]
        if found[0].startswith(HEADLINE):
            self._refuse_other_clocks(found, wanted)
        apart = Crew.FRESH in (timers()[found[0]].crew, timers()[wanted[0]].crew)
        if apart:
            return _mean(one.values()), _mean(other.values())
        return _mean(one[trial] for trial in shared), _mean(other[trial] for trial in shared)

    def between(self, found: tuple[str, Cache], after: tuple[str, Cache]) -> tuple[float, float]:
        """One time held against the mean of `graph` before it and of `after` behind it: a device drifts as it warms."""
        found_ns, before_ns = self.pair(found)
        _, after_ns = self.pair(found, after)
        return found_ns, (before_ns + after_ns) / 2

    def _refuse_other_clocks(self, found: tuple[str, Cache], wanted: tuple[str, Cache]) -> None:
        """A check of `graph` against itself is about one thing: where the clock was another, it would be about that."""
        one, other = (_clock_mhz(self._of(way)) for way in (found, wanted))
        if one is not None and other is not None and abs(one / other - 1) > SAME_CLOCK:
            raise Unjudged(f"the SM clock was {one:.0f} MHz by {found[0]} and {other:.0f} MHz by {wanted[0]}")

    def by_the_device(self) -> tuple[float, float]:
        """`graph`, held against the durations of a launch's kernels together.

        That is the profiler's span less the gaps in it, which profiling lengthens. The empty kernel is not asked: it
        takes longer while it is profiled than the period in which a graph starts it.
        """
        graph_ns, span_ns = self.pair(HEADLINE_COLD, PROFILER)
        trials = self._of(PROFILER).trials
        if len(trials[0].device_kernels) > 1:
            span_ns = _mean(_duration_ns(trial) for trial in trials)
        return graph_ns, span_ns

    def event_without_its_cost(self) -> tuple[float, float]:
        """`event` less what it costs the empty kernel, held against `graph`.

        That is what the empty kernel takes longer by it than by `graph`, and for every further kernel of a launch, what
        a second empty kernel does.
        """
        if self._floor is None:
            raise Unjudged("the empty kernel was not measured")
        event_ns, graph_ns = self.pair(EVENT)
        empty_event_ns, empty_graph_ns = self._floor.pair(EVENT)
        event_ns -= empty_event_ns - empty_graph_ns
        further = (self._of(HEADLINE_COLD).trials[0].kernels_per_launch or 1) - 1
        if further:
            pair_ns, single_ns = self._floor.pair(EVENT_PAIR, EVENT)
            event_ns -= further * (pair_ns - single_ns - empty_graph_ns)
        return event_ns, graph_ns

    def _medians(self, way: tuple[str, Cache]) -> dict[int, float]:
        measurement = self._of(way)
        medians = trial_medians_ns(measurement)
        if not medians:
            raise Unjudged(measurement.verdict.reason or f"{way[0]} has no samples ({way[1]})")
        return medians

    def _of(self, way: tuple[str, Cache]) -> Measurement:
        if way not in self._own:
            raise Unjudged(f"{way[0]} was not measured ({way[1]})")
        return self._own[way]


def _clock_mhz(measurement: Measurement) -> float | None:
    """Median over all samples."""
    clocks = measurement.sample_clocks_mhz
    return statistics.median(clocks) if clocks else None


def _duration_ns(trial: TrialResult) -> float:
    """Of a launch's kernels together; of those that have a duration, which the profiler's have."""
    known = [kernel.duration_ns for kernel in trial.device_kernels if kernel.duration_ns is not None]
    if len(known) < len(trial.device_kernels) or not known:
        raise Unjudged("the profiler names kernels without their durations")
    return sum(known)


def _mean(values_ns: Iterable[float]) -> float:
    return math.exp(statistics.fmean(math.log(ns) for ns in values_ns))


CHECKS = (
    CheckKind(
        name="profiler",
        question="Does the headline agree with the device's own timestamps of a launch's kernels (CUPTI)?",
        rule=Rule.AGREE,
        share=0.04,
        least_ns=150,
        times=lambda f: f.by_the_device(),
        of_floor=False,
    ),
    CheckKind(
        name="event",
        question="Does it agree with one launch between two events, less what those cost on the empty kernel?",
        rule=Rule.AGREE,
        share=0.03,
        least_ns=300,
        times=Figures.event_without_its_cost,
        of_floor=False,
    ),
    CheckKind(
        name="length",
        question="Does it stay the same with twice the launches a sample?",
        rule=Rule.AGREE,
        share=0.01,
        least_ns=20,
        times=lambda f: f.pair(("graph-double", COLD)),
    ),
    CheckKind(
        name="NVML",
        question="Does it stay the same while nobody reads the device through NVML, between two times of being read?",
        rule=Rule.AGREE,
        share=0.005,
        least_ns=5,
        times=lambda f: f.between(("graph-unwatched", COLD), ("graph-double", COLD)),
    ),
    CheckKind(
        name="neighbours",
        question="Does the first trial's worker, with operands allocated anew, read the same when the others ended?",
        rule=Rule.AGREE,
        share=0.03,
        least_ns=30,
        times=lambda f: f.pair(("graph-alone", COLD)),
    ),
    CheckKind(
        name="cold",
        question="Where the data fits the cache, are cold operands slower than hot ones, and so really cold?",
        rule=Rule.ABOVE,
        share=0.01,
        least_ns=20,
        times=lambda f: f.pair(HEADLINE_COLD, ("graph", HOT)),
        of_floor=False,
    ),
    CheckKind(
        name="dirty lines",
        question="What does a cache filled by writing zeros cost over one filled by reading (one launch, events)?",
        rule=Rule.NOT_BELOW,
        share=0.03,
        least_ns=300,
        times=lambda f: f.pair(("event-memset", COLD), ("event-read", COLD)),
    ),
    CheckKind(
        name="cold code",
        question="What does filling the cache, which evicts the kernel's code too, cost over rotating the operands?",
        rule=Rule.NOT_BELOW,
        share=0.03,
        least_ns=300,
        times=lambda f: f.pair(("event-read", COLD), EVENT),
    ),
    CheckKind(
        name="two streams",
        question="What does it cost that a process has ever used a second stream?",
        rule=Rule.NOT_BELOW,
        share=0.01,
        least_ns=20,
        times=lambda f: f.pair(("graph-two-streams", COLD)),
    ),
)
"""In the order of the table."""


def selfcheck(measurements: Iterable[Measurement]) -> tuple[Check, ...]:
    """Every check of every kernel on every problem, in the order of measuring."""
    by_kernel: dict[tuple[str, Problem], dict[tuple[str, Cache], Measurement]] = {}
    floors: dict[tuple[str, Cache], Measurement] = {}
    for m in measurements:
        way = (m.case.timer, m.case.cache)
        by_kernel.setdefault((m.case.kernel, m.case.problem), {})[way] = m
        if m.case.role is Role.FLOOR:
            floors[way] = m
    floor = Figures(floors, None) if floors else None
    return tuple(
        _judge(kind, kernel, problem, Figures(own, floor))
        for (kernel, problem), own in by_kernel.items()
        for kind in CHECKS
        if kind.of_floor or next(iter(own.values())).case.role is not Role.FLOOR
    )


def _judge(kind: CheckKind, kernel: str, problem: Problem, figures: Figures) -> Check:
    try:
        found_ns, wanted_ns = kind.times(figures)
    except Unjudged as reason:
        return Check(name=kind.name, kernel=kernel, problem=problem, reason=str(reason))
    bound_ns = max(kind.share * wanted_ns, kind.least_ns)
    difference_ns = found_ns - wanted_ns
    passed = {
        Rule.AGREE: abs(difference_ns) <= bound_ns,
        Rule.ABOVE: difference_ns >= bound_ns,
        Rule.NOT_BELOW: difference_ns >= -bound_ns,
    }[kind.rule]
    return Check(
        name=kind.name,
        kernel=kernel,
        problem=problem,
        found_ns=found_ns,
        wanted_ns=wanted_ns,
        bound_ns=bound_ns,
        passed=passed,
    )


def failed(checks: Sequence[Check]) -> tuple[Check, ...]:
    """The checks that did not pass; those that could not be judged are none of them."""
    return tuple(check for check in checks if check.passed is False)
