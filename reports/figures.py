"""A run's cases with what is computed from several of them: speed against `torch.matmul`, share of the limit, floors.

A ratio is only ever taken between two kernels on one problem, by one timer, from one cache state, paired by trial.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

from harness.ceilings import Ceilings, ceilings
from harness.model import Cache, Measurement, Problem, Role, Run, Verdict, Word
from harness.roofline import bandwidth_gb_per_s
from harness.stats import Interval, Summary, speedup, summarize
from harness.timing import HEADLINE, Crew, Purpose, timers

BASELINE = "torch.matmul"
"""What every kernel is compared with."""

LIBRARY = ("torch.", "F.")
"""How names of torch's own kernels begin."""

FLOOR_MATTERS_NS = 10_000
"""Below it the timer's own cost is a visible part of a figure, so the floor stands beside it."""


MOST_OPEN = 4
"""Ways of timing that are shown side by side; of more, the headline timer's lead and the rest is folded."""


@dataclass(frozen=True, kw_only=True)
class Way:
    """How a launch was timed: rows of different ways are never compared."""

    timer: str
    cache: Cache

    @property
    def label(self) -> str:
        """E.g. `graph/cold`."""
        return f"{self.timer}/{self.cache}"


@dataclass(frozen=True, kw_only=True)
class Row:
    """One case's figures; those that need a passed verdict are None without it."""

    measurement: Measurement
    verdict: Verdict
    summary: Summary | None
    """Time with its interval, spread, number of samples."""
    gb_per_s: float | None
    """Least bytes over the time; None for the floor too."""
    of_limit: Interval | None
    """Speed as a fraction of the limit kernel's on the same problem, timer and cache."""
    speedup: Interval | None
    """Speed as a multiple of `BASELINE`'s on the same problem, timer and cache."""

    @property
    def kernel(self) -> str:
        """The kernel's name."""
        return self.measurement.case.kernel

    @property
    def problem(self) -> Problem:
        """What was computed."""
        return self.measurement.case.problem

    @property
    def role(self) -> Role:
        """The kernel's role."""
        return self.measurement.case.role

    @property
    def way(self) -> Way:
        """How it was timed."""
        return way_of(self.measurement)

    @property
    def written_here(self) -> bool:
        """A kernel to be judged: neither torch's own nor the limit or the floor."""
        return self.role is Role.GEMV and not self.kernel.startswith(LIBRARY)


@dataclass(frozen=True, kw_only=True)
class Figures:
    """Everything that the page and the terminal show of a run's measurements.

    The selfcheck's timers are not among them: the selfcheck's own table says what they found.
    """

    run: Run
    rows: tuple[Row, ...]
    """In order of measuring, floors included; other projects' timers are in `peers` alone."""
    problems: tuple[Problem, ...]
    """In order of appearance; the floors' dummy problem is not one."""
    kernels: tuple[str, ...]
    """In order of the run's registry, without the floor."""
    ways: tuple[Way, ...]
    """The headline's timer first, cold before hot."""
    headline: Way | None
    """Whose figures stand first; None if nothing passed."""
    floors: dict[Way, Summary]
    """What the timer itself costs: the `empty` kernel's figures."""
    limit: str | None
    """Name of the limit kernel, None if it was not measured."""
    peers: tuple[Row, ...]
    """Other projects' timers, floors included: to be set beside ours, and nowhere else."""
    suite: tuple[Row, ...] = ()
    """By timers that only a suite asks for, such as `energy`: each has a place of its own on the page."""

    @cached_property
    def floor(self) -> str | None:
        """Name of the kernel that does nothing, None if it was not measured."""
        return next((r.kernel for r in self.rows if r.role is Role.FLOOR), None)

    @cached_property
    def ceilings(self) -> Ceilings:
        """What the run measured of its device's bounds."""
        return ceilings(self.run)

    @property
    def timers(self) -> tuple[str, ...]:
        """All that figures are of, the headline's first; other projects' and the selfcheck's are not among them."""
        return tuple(dict.fromkeys(way.timer for way in (*self.ways, *(row.way for row in self.suite))))

    @cached_property
    def gemv(self) -> Figures:
        """The same run as if it held products with one vector alone; all of it where it has none of them."""
        kept = tuple(p for p in self.problems if p.n == 1)
        if not kept or kept == self.problems:
            return self
        rows = tuple(r for r in self.rows if r.problem.n == 1)
        kernels = tuple(k for k in self.kernels if any(r.kernel == k for r in rows))
        return replace(self, rows=rows, problems=kept, kernels=kernels)

    @cached_property
    def dtypes(self) -> tuple[str, ...]:
        """Of the problems, in order of appearance."""
        return tuple(dict.fromkeys(p.dtype for p in self.problems))

    @property
    def charted(self) -> tuple[Way, ...]:
        """Ways with figures of every trial. A timer in workers of its own has fewer: evidence, no headline."""
        alone = {name for name, timer in timers().items() if timer.crew is not Crew.EVERY}
        led_by = self.headline.timer if self.headline else None
        return tuple(w for w in self.ways if w.timer not in alone or w.timer == led_by)

    @property
    def leading(self) -> tuple[Way, ...]:
        """Ways that are shown at once: all where they are few, else the headline timer's."""
        if len(self.ways) <= MOST_OPEN:
            return self.ways
        return tuple(w for w in self.ways if w.timer == (self.headline or self.ways[0]).timer)

    @property
    def folded(self) -> tuple[Way, ...]:
        """The other ways."""
        return tuple(w for w in self.ways if w not in self.leading)

    def by(self, ways: Iterable[Way]) -> Figures:
        """The same run as if it had been timed in these ways alone."""
        kept = tuple(ways)
        return replace(self, rows=tuple(r for r in self.rows if r.way in kept), ways=kept)

    def of_dtype(self, dtype: str) -> Figures:
        """The same run as if it held problems of one dtype alone."""
        kept = tuple(p for p in self.problems if p.dtype == dtype)
        return replace(self, rows=tuple(r for r in self.rows if r.problem.dtype == dtype), problems=kept)

    def passed(self, way: Way) -> tuple[Row, ...]:
        """Rows with figures by one way of timing, without the floor, by problem, then kernel."""
        return self._passed.get(way, ())

    def find(self, kernel: str, problem: Problem, way: Way) -> Row | None:
        """The row of one case, None if it is not in the run."""
        return self._by_case.get((kernel, problem, way))

    def floor_row(self, way: Way) -> Row | None:
        """The floor's row by one way of timing, None if it has no figures."""
        return next((r for r in self.rows if r.role is Role.FLOOR and r.way == way and r.summary is not None), None)

    @cached_property
    def _by_case(self) -> dict[tuple[str, Problem, Way], Row]:
        return {(r.kernel, r.problem, r.way): r for r in reversed((*self.rows, *self.suite))}

    @cached_property
    def _passed(self) -> dict[Way, tuple[Row, ...]]:
        """A run can hold thousands of cases, so they are put in order once."""
        places = {problem: place for place, problem in enumerate(self.problems)}
        kernels = {kernel: place for place, kernel in enumerate(self.kernels)}
        found: dict[Way, list[Row]] = {}
        for r in self.rows:
            if r.summary is not None and r.role is not Role.FLOOR:
                found.setdefault(r.way, []).append(r)
        order = {way: sorted(rows, key=lambda r: (places[r.problem], kernels[r.kernel])) for way, rows in found.items()}
        return {way: tuple(rows) for way, rows in order.items()}


def figures(run: Run) -> Figures:
    """Compute every figure of `run`."""
    by_case = {(m.case.problem, way_of(m), m.case.kernel): m for m in run.measurements}
    limits = {(m.case.problem, way_of(m)): m for m in run.measurements if m.case.role is Role.LIMIT}
    rows = _rows_for(Purpose.BENCH, run, by_case, limits)
    measured = [r for r in rows if r.role is not Role.FLOOR]
    ways = _ways(r.way for r in rows)
    return Figures(
        run=run,
        rows=rows,
        problems=tuple(dict.fromkeys(r.problem for r in measured)),
        kernels=_kernels(run, measured),
        ways=ways,
        headline=next((w for w in ways if any(r.way == w and r.summary for r in measured)), None),
        floors={r.way: r.summary for r in rows if r.role is Role.FLOOR and r.summary is not None},
        limit=next((r.kernel for r in rows if r.role is Role.LIMIT), None),
        peers=_rows_for(Purpose.PEER, run, by_case, limits),
        suite=_rows_for(Purpose.SUITE, run, by_case, limits),
    )


def purpose_of(timer: str) -> Purpose:
    """What a timer is for; one that this version does not know was of the bench."""
    known = timers().get(timer)
    return known.purpose if known else Purpose.BENCH


def way_of(measurement: Measurement) -> Way:
    """How a measurement was timed."""
    return Way(timer=measurement.case.timer, cache=measurement.case.cache)


def verdict_of(measurement: Measurement) -> Verdict:
    """The measurement's verdict, also where every trial was lost."""
    if not measurement.trials:
        return Verdict(word=Word.NOT_MEASURED, reason="no trial of it ended")
    return measurement.verdict


def _rows_for(
    purpose: Purpose,
    run: Run,
    by_case: dict[tuple[Problem, Way, str], Measurement],
    limits: dict[tuple[Problem, Way], Measurement],
) -> tuple[Row, ...]:
    wanted = {timer for timer in {m.case.timer for m in run.measurements} if purpose_of(timer) is purpose}
    return tuple(_row(m, by_case, limits) for m in run.measurements if m.case.timer in wanted)


def _row(
    m: Measurement,
    by_case: dict[tuple[Problem, Way, str], Measurement],
    limits: dict[tuple[Problem, Way], Measurement],
) -> Row:
    verdict = verdict_of(m)
    summary = summarize(m) if verdict.word is Word.PASSED else None
    place = (m.case.problem, way_of(m))
    is_gemv = m.case.role is Role.GEMV and summary is not None
    has_traffic = m.case.role is not Role.FLOOR and summary is not None
    return Row(
        measurement=m,
        verdict=verdict,
        summary=summary,
        gb_per_s=bandwidth_gb_per_s(m.case.problem, summary.median_ns.estimate) if summary and has_traffic else None,
        of_limit=speedup(m, limits[place]) if is_gemv and _usable(limits.get(place)) else None,
        speedup=speedup(m, by_case[*place, BASELINE]) if is_gemv and _usable(by_case.get((*place, BASELINE))) else None,
    )


def _usable(measurement: Measurement | None) -> bool:
    return measurement is not None and verdict_of(measurement).word is Word.PASSED


def _ways(found: Iterable[Way]) -> tuple[Way, ...]:
    """Each once: the headline's timer first, then by appearance; cold before hot."""
    ways = list(dict.fromkeys(found))
    timers = list(dict.fromkeys(w.timer for w in ways))
    timers.sort(key=lambda timer: timer != HEADLINE)
    return tuple(sorted(ways, key=lambda w: (timers.index(w.timer), w.cache is not Cache.COLD)))


def _kernels(run: Run, measured: list[Row]) -> tuple[str, ...]:
    present = dict.fromkeys(r.kernel for r in measured)
    return (*(k for k in run.kernels if k in present), *(k for k in present if k not in run.kernels))
