"""What a kernel's rule loses: its time over that of the fastest of the kernels that it picks among, case by case.

The rule's kernel is the one whose trials recorded a choice with its reason. The kernels that it picks among stand in
the run as its registry named them (`Run.candidates`): no name is read as a sign of what a kernel is for.

The fastest is the one whose time is least in the same run, so that among many that are equal the luckiest is taken,
and the regret is a little too large rather than too small. Where the rule picked it, the regret is what two
measurements of the same code differ by.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace

from harness.comparison.sides import side
from harness.errors import CommandError, Exit
from harness.model import Case, Measurement, Run, Word
from harness.stats import Interval, speedup
from harness.timing import HEADLINE, not_benched
from harness.words import visible

HOW = "`nox -s tune` measures them all"


@dataclass(frozen=True, kw_only=True)
class Variant:
    """One of the kernels that the rule picks among, on one case."""

    kernel: str
    """Its name."""
    centre_ns: Interval | None = None
    """Centre of its trials' medians, ns per launch; None with a fault."""
    ratio: Interval | None = None
    """Time of the rule's kernel over its own, paired by trial; None with a fault."""
    fault: str | None = None
    """Why it has no figures, in one line; None: it has."""

    @property
    def refused(self) -> bool:
        """Whether its contract leaves the problem out, so that the rule could not have picked it."""
        return self.fault is not None and self.fault.startswith(f"{Word.UNSUPPORTED}: ")


@dataclass(frozen=True, kw_only=True)
class Regret:
    """What the rule lost on one case."""

    case: Case
    """Of the rule's kernel."""
    chose: tuple[str, ...] = ()
    """The kernel that it picked; several only where its trials differ; none with a fault."""
    reasons: tuple[str, ...] = ()
    """Why, for each of `chose`, in the words of the rule."""
    centre_ns: Interval | None = None
    """Centre of its trials' medians, ns per launch; None with a fault."""
    variants: tuple[Variant, ...] = ()
    """All that it picks among, in the order of the run's registry; none with a fault."""
    fault: str | None = None
    """Why the rule's kernel has no figures, in one line; None: it has."""

    @property
    def fastest(self) -> Variant | None:
        """The variant that the ratio to is the greatest; None: none has figures."""
        return max((each for each in self.variants if each.ratio), key=_estimate, default=None)

    @property
    def ratio(self) -> Interval | None:
        """Time of the rule's kernel over the fastest variant's: 1.05 is a regret of 5 %.

        None too where what it picked has no figures and nothing else is faster: `fastest` is then not the fastest.
        """
        fastest = self.fastest
        if fastest is None or (self.chose_unmeasured and _estimate(fastest) < 1):
            return None
        return fastest.ratio

    @property
    def measured(self) -> int:
        """How many of the variants have figures."""
        return sum(each.fault is None for each in self.variants)

    @property
    def eligible(self) -> int:
        """How many of the variants the rule could have picked, by their contracts."""
        return sum(not each.refused for each in self.variants)

    @property
    def chose_unmeasured(self) -> tuple[str, ...]:
        """Of `chose`, what has no figures of its own beside the rule's: the ratio is to the others alone."""
        measured = {each.kernel for each in self.variants if each.fault is None}
        return tuple(name for name in self.chose if name not in measured)

    def above(self, fraction: float) -> bool:
        """Whether the whole interval of the regret lies above `fraction`."""
        return self.ratio is not None and self.ratio.low is not None and self.ratio.low > 1 + fraction


@dataclass(frozen=True, kw_only=True)
class Regrets:
    """Of one run, by the headline's timer, or by the first where the run lacks that."""

    run_id: str
    """The run's."""
    partial: bool
    """True: the run was cut short, and cases may be missing."""
    cases: tuple[Regret, ...]
    """In order of measuring; at least one has a ratio."""

    @property
    def worst(self) -> Regret:
        """Of the greatest estimate."""
        return max((each for each in self.cases if each.ratio), key=_estimate)


def _estimate(of: Variant | Regret) -> float:
    return of.ratio.estimate if of.ratio is not None else -math.inf


def regrets(run: Run) -> Regrets:
    """What the rule of `run` lost.

    Args:
        run: with its samples, as `store.load` gives it.

    Raises:
        CommandError: no kernel in it chose by a rule, or none that it picks among has figures beside it
            (NOT_COMPARABLE).
    """
    rules = {m.case.kernel for m in run.measurements if _choices(m)}
    if not rules:
        raise _missing(run, "no kernel chose among others by a rule")
    own = [m for m in run.measurements if m.case.kernel in rules]
    timer, measured = _timer(own), _Measured(run.measurements)
    among = {rule: run.candidates.get(rule, run.picked_among) for rule in rules}
    cases = tuple(_regret(m, measured, among[m.case.kernel]) for m in own if m.case.timer == timer)
    if not any(each.ratio for each in cases):
        names = ", ".join(sorted(visible(name) for name in rules))
        raise _missing(run, f"none of the kernels that {names} picks among has figures beside it")
    return Regrets(run_id=run.id, partial=run.partial, cases=cases)


def _missing(run: Run, what: str) -> CommandError:
    return CommandError(f"run {visible(run.id)}: {what}; {HOW}", Exit.NOT_COMPARABLE)


def _choices(measurement: Measurement) -> dict[str, str]:
    """The reason by the kernel chosen, over the trials."""
    trials = measurement.trials
    return {t.variant: t.variant_reason for t in trials if t.variant is not None and t.variant_reason is not None}


def _timer(measurements: Iterable[Measurement]) -> str:
    """The headline's where it is among them, else the first of a bench."""
    others = not_benched()
    found = dict.fromkeys(m.case.timer for m in measurements if m.case.timer not in others)
    return HEADLINE if HEADLINE in found else next(iter(found), HEADLINE)


class _Measured:
    """The measurements of a run by case."""

    def __init__(self, measurements: Iterable[Measurement]) -> None:
        self._by_case: dict[Case, list[Measurement]] = defaultdict(list)
        for m in measurements:
            self._by_case[m.case].append(m)

    def of(self, case: Case) -> tuple[Measurement, Interval] | str:
        """The measurement with the centre of its medians in ns, or why there are no figures."""
        found = self._by_case.get(case, [])
        if len(found) != 1:
            return "twice in this run" if found else "not in this run"
        own = side(found[0])
        return own.fault or "no figures" if own.centre_ns is None else (found[0], own.centre_ns)


def _regret(own: Measurement, measured: _Measured, among: Iterable[str]) -> Regret:
    found, choices = measured.of(own.case), _choices(own)
    if isinstance(found, str) or not choices:
        return Regret(case=own.case, fault=found if isinstance(found, str) else "no choice recorded")
    return Regret(
        case=own.case,
        chose=tuple(choices),
        reasons=tuple(choices.values()),
        centre_ns=found[1],
        variants=tuple(_variant(name, own, measured) for name in among),
    )


def _variant(kernel: str, own: Measurement, measured: _Measured) -> Variant:
    found = measured.of(replace(own.case, kernel=kernel))
    if isinstance(found, str):
        return Variant(kernel=kernel, fault=found)
    ratio = speedup(found[0], own)
    if ratio is None:
        return Variant(kernel=kernel, fault="shares no trial with it")
    return Variant(kernel=kernel, centre_ns=found[1], ratio=ratio)
