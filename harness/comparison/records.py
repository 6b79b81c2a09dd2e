"""What a comparison says: records without code that looks at runs."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum

from harness.environment import Group
from harness.model import Case
from harness.stats import Interval

Value = str | int | float | bool | None
"""Of an environment's key."""


class Change(StrEnum):
    """The comparison's word on a case."""

    FAILED = "failed"
    """Wrong or crashed in the new run."""
    SLOWER = "slower"
    """Significantly, and by more than the threshold."""
    FASTER = "faster"
    """Significantly, and by more than the threshold."""
    AMBIGUOUS = "ambiguous"
    """These trials cannot tell."""
    SAME = "same"
    """The whole interval of the ratio lies within the threshold."""
    NEW = "new"
    """Figures in the new run only."""
    GONE = "gone"
    """Figures in the base run only."""
    NOT_COMPARABLE = "not comparable"
    """Something else was measured, or nothing in either run."""


COMPARED = frozenset({Change.SLOWER, Change.FASTER, Change.AMBIGUOUS, Change.SAME})
"""Words on cases that were comparable."""


@dataclass(frozen=True, kw_only=True)
class EnvironmentDifference:
    """One fact in which two runs differ."""

    key: str
    """Of `Environment.values`; `environment_variables.NAME` for one of the variables, `options.trials` and the like
    for how the run was asked to measure, `build.cuda.flags` and the like for what is kept with a build."""
    group: Group
    """Where it belongs."""
    base: Value
    """In the base run; None: not known there."""
    new: Value
    """In the new run; None: not known there."""
    unit: str | None = None
    """Of both."""


@dataclass(frozen=True, kw_only=True)
class CaseChange:
    """What became of one case."""

    case: Case
    """As the new run has it, or the base run where the new one lacks it."""
    change: Change
    """The word."""
    threshold: float
    """Asked for: within it a case is the same, as a fraction."""
    least: float = 0.0
    """Beyond which the case is slower or faster, as a fraction: the threshold, or what two boards may differ by."""
    reason: str | None = None
    """Why; None for `slower`, `faster` and `same`, whose figures say it."""
    base_ns: Interval | None = None
    """Geometric mean of the base run's trial medians, ns per launch; None without usable samples."""
    new_ns: Interval | None = None
    """The same of the new run."""
    base_trials: int = 0
    """Trials behind `base_ns`."""
    new_trials: int = 0
    """Trials behind `new_ns`."""
    ratio: Interval | None = None
    """Time in the new run over time in the base run: above 1 is slower. None unless compared; without ends where
    nothing says how sure it is. The interval is of this case alone, not corrected for the table."""
    p: float | None = None
    """Of the ratio being 1, two-sided, after Holm's correction over the table; None where it could not be had."""
    marks: tuple[str, ...] = ()
    """What the device did otherwise, in two or three words that stand right beside the word: `lower clock`, `power cap
    in new`. The notes have the figures."""
    notes: tuple[str, ...] = ()
    """What a reader must know beside the word, clocks and limits first: a head, then figures where there are any, e.g.
    `kernel changed`, `lower clock: 1 905 against 1 980 MHz`."""


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Two runs, held against each other."""

    base_id: str
    """The run compared with."""
    new_id: str
    """The run that is judged."""
    base_partial: bool = False
    """The base run was cut short."""
    new_partial: bool = False
    """The new run was cut short."""
    threshold: float
    """The default threshold, as a fraction."""
    two_boards: bool = False
    """Or of ones that are not known: what two differ by without a change is allowed for in every interval and p."""
    environment: tuple[EnvironmentDifference, ...]
    """Differing fields only, in the order of `environment.ENVIRONMENT_KEYS`, then the options and the builds."""
    attribution: str
    """What differs, in one line: `driver only`, `same environment`, `several: driver, torch`."""
    not_comparable: tuple[str, ...]
    """Why no case of the two runs may be compared; empty: nothing forbids it."""
    cases: tuple[CaseChange, ...]
    """In the order of the new run, then what only the base run has."""

    @property
    def by_group(self) -> dict[Group, tuple[EnvironmentDifference, ...]]:
        """The environment's differences by group; groups without one are absent."""
        groups = (group for group in Group if any(each.group is group for each in self.environment))
        return {group: tuple(each for each in self.environment if each.group is group) for group in groups}

    @property
    def counts(self) -> dict[Change, int]:
        """How many cases each word has; every word is there."""
        found = Counter(each.change for each in self.cases)
        return {change: found[change] for change in Change}
