"""What the words of a comparison are worth, measured on runs with many trials.

Groups of trials that share none are drawn from a run and compared as if they were two runs. Nothing changed between
them, so every `slower` or `faster` is false: the rate of tables that have one. Then every trial of one case in the new
group is made longer by an effect, which must be found, and must not be called `same`. Groups keep their trials
together over all cases, so what a process does to all its cases is in it.

Groups of two runs are compared too: what a board and an hour add is in them. Effects are planted into cases of 10 µs
and more; a case with two states, as cuBLAS has on 8×4096, hides a small one.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from harness.compare import THRESHOLD, pair, word
from harness.comparison.boards import Apart, apart, are_two_boards
from harness.comparison.moderated import Judgement, Table
from harness.comparison.records import Change
from harness.comparison.sides import Side, side
from harness.errors import CommandError, Exit
from harness.model import Case, Run
from harness.timing import not_benched

TRIALS = 5
"""A bench's default."""

TABLES = 1000
"""Comparisons without a change, for each pair of runs."""

DRAWS = 500
"""Comparisons with one, for each effect, pair of runs and case."""

EFFECTS = (0.03, 0.01)
"""Planted slowdowns in groups of one run, as fractions."""

EFFECTS_APART = (0.06, 0.03)
"""The same in groups of two runs, whose boards differ by themselves."""

LONG_NS = 10e3
"""Cases from here on are planted into: below, a timer's own floor is a large part of the figure."""


@dataclass(frozen=True, kw_only=True)
class Null:
    """Comparisons without a change."""

    base: int
    """The run whose trials were the base: its place among the runs, from 1 on."""
    new: int
    """The run whose trials were the new ones; the same run, or another."""
    tables: int
    """Comparisons."""
    cases: int
    """In each of them."""
    slower: int
    """Tables with any `slower`."""
    faster: int
    """Tables with any `faster`."""
    named: dict[str, int]
    """Of each case that was called either, how often."""


@dataclass(frozen=True, kw_only=True)
class Planted:
    """Comparisons in which one case was slowed down."""

    effect: float
    """By how much, as a fraction."""
    one_run: bool
    """Both groups are of one run; else of two."""
    words: dict[str, Counter[Change]]
    """By case id: how often each word was said."""

    @property
    def draws(self) -> int:
        """Words said, of all cases together."""
        return sum(said.total() for said in self.words.values())

    def share(self, change: Change) -> float:
        """How often `change` was said, as a fraction over all cases."""
        return sum(said[change] for said in self.words.values()) / self.draws

    def least(self, change: Change) -> tuple[str, float]:
        """The case that was called `change` the least often, and how often."""
        return min(self._shares(change), key=lambda each: each[1])

    def most(self, change: Change) -> tuple[str, float]:
        """The case that was called `change` the most often, and how often."""
        return max(self._shares(change), key=lambda each: each[1])

    def _shares(self, change: Change) -> list[tuple[str, float]]:
        return [(case, said[change] / said.total()) for case, said in self.words.items()]


@dataclass(frozen=True, kw_only=True)
class Power:
    """The rates."""

    trials: int
    """In each group."""
    threshold: float
    """Of the words, as a fraction."""
    nulls: tuple[Null, ...]
    """Each run against itself, then each pair of runs."""
    planted: tuple[Planted, ...]
    """By effect, in groups of one run, then of two."""


@dataclass(frozen=True, kw_only=True)
class _Source:
    """The trials of a run."""

    number: int
    """Its place among the runs, from 1 on."""
    run: Run
    cases: tuple[Case, ...]
    sides: tuple[Side, ...]

    @property
    def trials(self) -> int:
        return len(self.sides[0].logs)


def power(  # noqa: PLR0913 - the numbers of an experiment
    runs: Sequence[Run],
    *,
    trials: int = TRIALS,
    tables: int = TABLES,
    draws: int = DRAWS,
    effects: Sequence[float] = EFFECTS,
    effects_apart: Sequence[float] = EFFECTS_APART,
    threshold: float = THRESHOLD,
    seed: int = 0,
) -> Power:
    """The rates on these runs; the same on every call.

    Args:
        runs: with samples; only cases that all of them have figures of, in every trial, take part.
        trials: in each group; every run needs twice as many.
        tables: comparisons without a change, for each pair of runs.
        draws: comparisons with one, for each effect, pair of runs and case.
        effects: slowdowns in groups of one run, as fractions.
        effects_apart: in groups of two runs.
        threshold: of the words, as a fraction.
        seed: of the draws.

    Raises:
        CommandError: a run has too few trials, or no case is in all of them (USAGE).
    """
    sources = _sources(runs, trials)
    drawn = _Drawing(trials=trials, threshold=threshold, chance=random.Random(seed))  # noqa: S311 - no secrets
    within, across = [(each, each) for each in sources], list(combinations(sources, 2))
    return Power(
        trials=trials,
        threshold=threshold,
        nulls=tuple(_null(*each, drawn, tables) for each in (*within, *across)),
        planted=tuple(
            _planted(pairs, effect, drawn, draws)
            for pairs, planted in ((within, effects), (across, effects_apart))
            if pairs
            for effect in planted
        ),
    )


def _sources(runs: Sequence[Run], trials: int) -> list[_Source]:
    """The runs' trials, of the cases that they share."""
    others = not_benched()
    found = [{m.case.id: (m.case, side(m)) for m in run.measurements if m.case.timer not in others} for run in runs]
    whole = [max((len(each.logs) for _, each in cases.values()), default=0) for cases in found]
    for run, most in zip(runs, whole, strict=True):
        if most < 2 * trials:
            wanted = f"two groups of {trials} need {2 * trials} trials"
            raise CommandError(f"{run.id}: found {most} trials, wanted more: {wanted}", Exit.USAGE)
    shared = [
        key
        for key in found[0]
        if all(key in cases and len(cases[key][1].logs) == most for cases, most in zip(found, whole, strict=True))
    ]
    if not shared:
        raise CommandError("power: no case has figures in every trial of these runs", Exit.USAGE)
    return [
        _Source(
            number=number,
            run=run,
            cases=tuple(cases[key][0] for key in shared),
            sides=tuple(cases[key][1] for key in shared),
        )
        for number, (run, cases) in enumerate(zip(runs, found, strict=True), start=1)
    ]


@dataclass(frozen=True, kw_only=True)
class _Drawing:
    """How comparisons are drawn."""

    trials: int
    threshold: float
    chance: random.Random

    def table(self, base: _Source, new: _Source) -> Table:
        """One comparison: of each case two groups of trials that share none."""
        if base is new:
            drawn = self.chance.sample(range(base.trials), 2 * self.trials)
            ours, theirs = drawn[: self.trials], drawn[self.trials :]
        else:
            ours, theirs = (self.chance.sample(range(each.trials), self.trials) for each in (base, new))
        return Table(
            [
                pair(case, _at(old.logs, ours), _at(fresh.logs, theirs), max(old.tick, fresh.tick), allowed.spread)
                for case, old, fresh, allowed in zip(
                    base.cases, base.sides, new.sides, _allowed(base, new), strict=True
                )
            ]
        )

    def word(self, judged: Judgement, allowed: Apart) -> Change:
        """What `compare` says of a case of the table."""
        return word(judged.ratio, judged.p, self.threshold, allowed.least)


def _allowed(base: _Source, new: _Source) -> list[Apart]:
    """Of each case."""
    two_boards = base is not new and are_two_boards(base.run, new.run)
    return [apart(case, two_boards=two_boards) for case in base.cases]


def _at(logs: Sequence[float], places: Sequence[int]) -> tuple[float, ...]:
    return tuple(logs[place] for place in places)


def _null(base: _Source, new: _Source, drawn: _Drawing, tables: int) -> Null:
    """Tables without a change."""
    counts, named = Counter[Change](), Counter[str]()
    for _ in range(tables):
        judged = zip(drawn.table(base, new).judgements(), _allowed(base, new), strict=True)
        said = [drawn.word(*each) for each in judged]
        counts.update(set(said))
        pairs = zip(base.cases, said, strict=True)
        named.update(case.id for case, change in pairs if change in {Change.SLOWER, Change.FASTER})
    return Null(
        base=base.number,
        new=new.number,
        tables=tables,
        cases=len(base.cases),
        slower=counts[Change.SLOWER],
        faster=counts[Change.FASTER],
        named=dict(named.most_common()),
    )


def _planted(pairs: Sequence[tuple[_Source, _Source]], effect: float, drawn: _Drawing, draws: int) -> Planted:
    """One long case after the other is slowed down, in tables that have no other change."""
    words: dict[str, Counter[Change]] = {}
    for base, new in pairs:
        for _ in range(draws):
            table, allowed = drawn.table(base, new), _allowed(base, new)
            for place in _long(base):
                said = words.setdefault(base.cases[place].id, Counter())
                said[drawn.word(table.with_one(place, math.log1p(effect)), allowed[place])] += 1
    if not words:
        raise CommandError(f"power: no case takes {LONG_NS / 1e3:g} µs or more in these runs", Exit.USAGE)
    return Planted(effect=effect, one_run=pairs[0][0] is pairs[0][1], words=words)


def _long(source: _Source) -> Iterator[int]:
    for place, each in enumerate(source.sides):
        if math.fsum(each.logs) / len(each.logs) >= math.log(LONG_NS):
            yield place
