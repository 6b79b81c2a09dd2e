"""The map of cases × runs: a row a case, what needs a look first on top, and in each cell a sign, a figure, a word."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from harness.comparison.records import CaseChange, Change, Comparison
from harness.model import Case
from harness.stats import Interval
from reports import format as fmt
from reports.comparison.words import SIGNS, limit, probability, time_in_words, way

FULL_COLOUR = 5
"""Colour is full where a ratio is this many thresholds from 1."""

LEAST_FULL = 0.05
"""... but never nearer than this, as a fraction."""

AMBIGUOUS_SHARE = 0.4
"""Of the colour's strength where nobody can be sure of the ratio."""

WORDS = list(Change)
"""What needs a look first."""


@dataclass(frozen=True, kw_only=True)
class Cell:
    """What became of a case in one new run."""

    word: Change
    sign: str
    figure: str
    """How far its time is from the base's, `+3.1 %`; "" where it was not compared."""
    interval: str
    """`+2.8 to +3.4 %`, of the figure; "" without."""
    probability: str
    """`p = 0.0021`; "" where it was not compared."""
    new: str
    """The new run's time with unit and spread; "" without."""
    marks: str
    """What the device did otherwise, `lower clock, power cap in new`; "" where nothing is known."""
    remark: str
    """The reason and the notes, in a line."""
    side: str
    """CSS class of the colour: `longer`, `shorter` or ""."""
    tint: int
    """Of the colour, in %."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One case of any of the runs."""

    case: Case
    way: str
    problem: str
    base: str
    """The base run's time with unit and spread; "" where it has none."""
    cells: tuple[Cell | None, ...]
    """By new run; None: neither it nor the base has the case."""
    facets: tuple[int, ...]
    """Places in the lists of `HeatMap.facets`."""
    places: tuple[int, ...]
    """Its place in each of `ORDERS`."""

    @property
    def words(self) -> str:
        """Each word that it has in any run, as its place in `WORDS`."""
        return " ".join(str(WORDS.index(word)) for word in WORDS if any(c and c.word is word for c in self.cells))


@dataclass(frozen=True, kw_only=True)
class HeatMap:
    """All cases, in the first of `ORDERS`."""

    rows: tuple[Row, ...]
    facets: tuple[tuple[str, tuple[str, ...]], ...]
    """What may be filtered by: (`kernel`, its values), in order of appearance; the same for problem, timer, cache."""
    counts: tuple[tuple[Change, str, int], ...]
    """(word, sign, cells that have it), of the words that are there."""
    full: float
    """The ratio's distance from 1 from which on colour is full, as a fraction."""


ORDERS = ("gravest word first", "largest slowdown first", "by problem", "as measured")
"""The first stands on the page; the others are there for a script to sort by."""

BY_PROBLEM = ORDERS.index("by problem")


def heat_map(found: Sequence[Comparison]) -> HeatMap:
    """The map of one base and its new runs.

    Args:
        found: one for each new run.
    """
    threshold = found[0].threshold
    by_run = [{each.case.id: each for each in comparison.cases} for comparison in found]
    changes = {key: [by_id.get(key) for by_id in by_run] for key in dict.fromkeys(k for by_id in by_run for k in by_id)}
    cases = {key: _case(each) for key, each in changes.items()}
    facets = tuple((name, tuple(dict.fromkeys(of(c) for c in cases.values()))) for name, of in _FACETS)
    places = _places(list(changes.values()), facets)
    rows = [
        _row(cases[key], each, facets, place, threshold)
        for (key, each), place in zip(changes.items(), places, strict=True)
    ]
    words = [cell.word for row in rows for cell in row.cells if cell]
    return HeatMap(
        rows=tuple(sorted(rows, key=lambda row: row.places[0])),
        facets=facets,
        counts=tuple((word, SIGNS[word], words.count(word)) for word in WORDS if word in words),
        full=full_colour(threshold),
    )


def full_colour(threshold: float) -> float:
    """How far a ratio is from 1 where its colour is full, as a fraction."""
    return max(LEAST_FULL, FULL_COLOUR * threshold)


def tint(ratio: float, full: float) -> int:
    """Strength of a ratio's colour in %: linear in its logarithm, so twice and half the time are equally strong."""
    return round(100 * min(1.0, abs(math.log(ratio)) / math.log1p(full)))


_FACETS: tuple[tuple[str, Callable[[Case], str]], ...] = (
    ("kernel", lambda case: fmt.name(case.kernel)),
    ("problem", lambda case: fmt.problem(case.problem)),
    ("timer", lambda case: fmt.name(case.timer)),
    ("cache", lambda case: str(case.cache)),
)


def _case(changes: Sequence[CaseChange | None]) -> Case:
    return next(each.case for each in changes if each is not None)


def _row(
    case: Case,
    changes: Sequence[CaseChange | None],
    facets: Sequence[tuple[str, tuple[str, ...]]],
    places: tuple[int, ...],
    threshold: float,
) -> Row:
    base = next((each.base_ns for each in changes if each and each.base_ns), None)
    return Row(
        case=case,
        way=way(case),
        problem=fmt.problem(case.problem),
        base=time_in_words(base),
        cells=tuple(None if each is None else cell(each, threshold) for each in changes),
        facets=tuple(values.index(of(case)) for (_, values), (_, of) in zip(facets, _FACETS, strict=True)),
        places=places,
    )


def cell(change: CaseChange, threshold: float) -> Cell:
    """A case's cell; a ratio that nobody can be sure of is paler.

    Args:
        change: of the case.
        threshold: of the table, as a fraction; a case that has its own says so.
    """
    ratio = change.ratio
    strength = tint(ratio.estimate, full_colour(threshold)) if ratio else 0
    own = "" if change.threshold == threshold else f"threshold {limit(change.threshold)}"
    return Cell(
        word=change.change,
        sign=SIGNS[change.change],
        figure=fmt.difference(ratio) if ratio else "",
        interval=fmt.difference_range(ratio) if ratio else "",
        probability=probability(change.p) if ratio else "",
        new=time_in_words(change.new_ns),
        marks=fmt.line(", ".join(change.marks)),
        remark="; ".join(fmt.line(each) for each in (change.reason, *change.notes, own) if each),
        side="" if ratio is None or strength == 0 else "longer" if ratio.estimate > 1 else "shorter",
        tint=round(AMBIGUOUS_SHARE * strength) if change.change is Change.AMBIGUOUS else strength,
    )


def _places(
    changes: Sequence[Sequence[CaseChange | None]], facets: Sequence[tuple[str, tuple[str, ...]]]
) -> list[tuple[int, ...]]:
    """Each case's place in every one of `ORDERS`."""
    every = range(len(changes))
    problems = dict(facets)["problem"]
    first = sorted(every, key=lambda i: attention(changes[i]))
    orders = (
        first,
        sorted(every, key=lambda i: -_largest(changes[i])),
        sorted(first, key=lambda i: problems.index(fmt.problem(_case(changes[i]).problem))),
        list(every),
    )
    ranks = [{case: place for place, case in enumerate(order)} for order in orders]
    return [tuple(rank[i] for rank in ranks) for i in every]


def attention(changes: Sequence[CaseChange | None]) -> tuple[int, float, float]:
    """Sorts cases by the gravest word in any run, then by its largest effect: a speedup's size among the faster.

    Of what is ambiguous, an effect that the interval is sure of comes before a larger one that may be none.
    """
    known = [each for each in changes if each is not None]
    word = min((each.change for each in known), key=WORDS.index)
    ratios = [each.ratio for each in known if each.change is word and each.ratio]
    effects = [math.log(ratio.estimate) for ratio in ratios]
    largest = -min(effects, default=0.0) if word is Change.FASTER else max(effects, default=-math.inf)
    sure = max((_sure(ratio) for ratio in ratios), default=0.0) if word is Change.AMBIGUOUS else 0.0
    return WORDS.index(word), -sure, -largest


def _sure(ratio: Interval) -> float:
    """How far the interval's nearer end is from 1, in logarithms; 0 where 1 lies in it, or where there is none."""
    if ratio.low is None or ratio.high is None:
        return 0.0
    return max(0.0, math.log(ratio.low), -math.log(ratio.high))


def _largest(changes: Sequence[CaseChange | None]) -> float:
    """The largest ratio in any run; those that were compared in none come last."""
    return max((each.ratio.estimate for each in changes if each and each.ratio), default=-math.inf)
