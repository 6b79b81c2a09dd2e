"""Where each case of a device stands: its newest figure against the previous one and against the best ever.

The words are those of `harness.compare`, by its own test over the whole table. The runs are put before it as digests
tell them, a trial's median for its samples, so three things are missing that `compare` of two whole runs sees: a
timer's tick in the error, notes about clocks and drift within trials, and about a kernel's variants.

Runs also differ by what no trial within one shows, such as where a boot puts the memory. How much a case usually moves
from run to run is known from its history: a word on a step no larger than that is marked. And the best of many runs is
a lucky one, so `slower` than it needs more: that the runs around the best were faster than the newest too or, where too
few runs tell what is usual, significance after a correction [1] for the number of runs that it was chosen from.

[1] O. J. Dunn, Multiple comparisons among means, J. Am. Stat. Assoc. 56, 1961, 52-64 (Bonferroni's inequality).
[2] P. J. Rousseeuw, C. Croux, Alternatives to the median absolute deviation, J. Am. Stat. Assoc. 88, 1993, 1273-1283.
[3] E. S. Page, Continuous inspection schemes, Biometrika 41, 1954, 100-115 (a cumulative sum, here of signs).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from harness.compare import THRESHOLD, compare, word
from harness.comparison.boards import BOARD
from harness.comparison.records import CaseChange, Change
from harness.comparison.sides import FAILED
from harness.history.devices import ABSENT, WORDS, Device
from harness.history.digests import Floats
from harness.model import Case, Measurement, Run, TrialResult

FEWEST_STEPS = 10
"""Steps from run to run that tell how large they usually are."""

NORMAL_MAD = 0.6745
"""Median absolute deviation of a normal distribution, in its standard deviations [2]."""

AROUND = 5
"""Runs before the best, or after it, that tell with it which level it belongs to."""

SETTLED = 5
"""Runs that show a case on its earlier level before a step, more than show otherwise."""

MOST_ATTEMPTS = 10
"""To find such a step; two or three do as a rule."""

USUAL = 4.0
"""Moves of up to as many standard deviations are usual: a normal one goes beyond them once in 16 000 times, and there
are hundreds of cases a night."""


@dataclass(frozen=True, kw_only=True)
class Standing:
    """One case. Runs are given by their place in `Device.runs`."""

    case: Case
    """Which."""
    place: int
    """Its place in `Device.cases`."""
    newest: int
    """The last run that has the case, with figures or without."""
    previous: int | None
    """The last run before it with figures; None: there is none."""
    best: int | None
    """Of the runs before `newest`, the one with the lowest centre; None: none has figures."""
    against_previous: CaseChange
    """From `previous` to `newest`; `new` without a previous run."""
    against_best: CaseChange
    """From `best` to `newest`; `ambiguous` where that may be the best run's luck."""
    noise: float | None
    """Standard deviation of a run's ln(centre) about the case's level, from the median step between neighbouring runs
    before `newest`, which lone changes of the level do not touch; None: under `FEWEST_STEPS` steps."""
    usual_step: bool
    """Runs usually lie as far apart as `newest` and `previous`, so that little follows from a word on them; False where
    that is not known, or they do not differ."""
    began: int | None
    """The first run of what `newest` shows, where that is a failure or slower than the best; else None. Of a failure:
    where its unbroken row of failures began. Of slower: from there on most runs lie nearer to the newest than to the
    best, and those just before it do not; an estimate, since runs wander."""


def standings(device: Device, threshold: float = THRESHOLD) -> tuple[Standing, ...]:
    """Every case of the device, in its order.

    Args:
        device: with at least one run.
        threshold: a smaller change is nobody's concern, as a fraction.
    """
    known = ~np.isnan(device.centres_ns)
    newest = [_last(device.words[:, place] != ABSENT) for place in range(len(device.cases))]
    before = [np.flatnonzero(known[:last, place]) for place, last in enumerate(newest)]
    previous = [int(runs[-1]) if len(runs) else None for runs in before]
    best = [_best(device.centres_ns[:, place], runs) for place, runs in enumerate(before)]
    by_previous = _changes(device, previous, newest, threshold)
    by_best = _changes(device, best, newest, threshold)
    return tuple(
        _standing(device, place, before[place], (newest[place], previous[place], best[place]), changes)
        for place, changes in enumerate(zip(by_previous, by_best, strict=True))
    )


def _standing(
    device: Device,
    place: int,
    before: npt.NDArray[np.int64],
    runs: tuple[int, int | None, int | None],
    changes: tuple[CaseChange, CaseChange],
) -> Standing:
    newest, previous, best = runs
    noise = _noise(device.centres_ns[before, place])
    usual = None if noise is None else USUAL * noise
    against_best = changes[1] if best is None else _without_luck(changes[1], device.centres_ns[before, place], usual)
    return Standing(
        case=device.cases[place],
        place=place,
        newest=newest,
        previous=previous,
        best=best,
        against_previous=changes[0],
        against_best=against_best,
        noise=noise,
        usual_step=usual is not None and 0 < _distance(changes[0]) <= usual * math.sqrt(2),
        began=_began(device, place, newest, best, against_best.change),
    )


def _noise(centres_ns: Floats) -> float | None:
    if len(centres_ns) <= FEWEST_STEPS:
        return None
    steps = np.abs(np.diff(np.log(centres_ns)))
    return float(np.median(steps)) / NORMAL_MAD / math.sqrt(2)


def _distance(change: CaseChange) -> float:
    return abs(math.log(change.ratio.estimate)) if change.ratio else 0.0


def _last(having: npt.NDArray[np.bool_]) -> int:
    return int(np.flatnonzero(having)[-1])


def _best(centres_ns: Floats, runs: npt.NDArray[np.int64]) -> int | None:
    """The latest of equals."""
    if not len(runs):
        return None
    lowest = runs[centres_ns[runs] == centres_ns[runs].min()]
    return int(lowest[-1])


def _changes(
    device: Device, bases: Sequence[int | None], newest: Sequence[int], threshold: float
) -> tuple[CaseChange, ...]:
    """One comparison over all cases, even if their runs are not the same: they are of one device."""
    old = [(place, run) for place, run in enumerate(bases) if run is not None]
    base = _composed(device, old)
    new = _composed(device, list(enumerate(newest)))
    return compare(base, new, threshold=threshold).cases


def _composed(device: Device, picked: Sequence[tuple[int, int]]) -> Run:
    """A run of cases from several runs, given as (case, run); every trial has one sample, its median.

    Its board is that of all the runs that it is made of, else not known.
    """
    boards = {device.runs[run].run.environment.get(BOARD) for _, run in picked}
    values = {**device.newest.environment.values, BOARD: boards.pop() if len(boards) == 1 else None}
    measurements = tuple(_measurement(device, place, run) for place, run in picked)
    environment = replace(device.newest.environment, values=values)
    return replace(device.newest, environment=environment, measurements=measurements)


def _measurement(device: Device, place: int, run: int) -> Measurement:
    verdict = device.verdict(run, place)
    if verdict is None:
        raise ValueError(f"{device.cases[place].id}: wanted a run that has it, got run {run}")
    known = [float(ns) for ns in device.medians_ns(run, place) if not math.isnan(ns)]
    trials = [TrialResult(trial=i, verdict=verdict, samples_ns=(ns,)) for i, ns in enumerate(known)]
    return Measurement(case=device.cases[place], trials=tuple(trials) or (TrialResult(trial=0, verdict=verdict),))


def _without_luck(change: CaseChange, centres_ns: Floats, usual: float | None) -> CaseChange:
    """The word once the best is known as the lowest of several runs.

    Args:
        change: from the best to the newest.
        centres_ns: of the runs before the newest, in order.
        usual: how far one run lies from the case's level at most, as a rule, in logarithms; None: not known.
    """
    if change.change is not Change.SLOWER or change.new_ns is None or change.ratio is None or change.p is None:
        return change
    if usual is None:
        p = min(1.0, change.p * len(centres_ns))
        said = word(change.ratio, p, change.threshold, change.least)
        reason = None if said is Change.SLOWER else f"not significant against the lowest of {len(centres_ns)} runs"
        return replace(change, p=p, change=said, reason=reason)
    best = int(np.argmin(centres_ns))
    sides = centres_ns[max(0, best - AROUND) : best + 1], centres_ns[best : best + AROUND + 1]
    # Of one side, since a step may be next to the best; more runs than FEWEST_STEPS leave one that is full.
    level_ns = min(float(np.median(side)) for side in sides if len(side) > AROUND)
    if math.log(change.new_ns.estimate / level_ns) > usual:
        return change
    return replace(change, change=Change.AMBIGUOUS, reason="the best was a lucky run: those around it were no faster")


def _began(device: Device, place: int, newest: int, best: int | None, change: Change) -> int | None:
    if WORDS[device.words[newest, place]] in FAILED:
        codes = [code for code, each in enumerate(WORDS) if each in FAILED]
        present = np.flatnonzero(device.words[: newest + 1, place] != ABSENT)
        fine = np.flatnonzero(~np.isin(device.words[present, place], codes))
        return int(present[fine[-1] + 1]) if len(fine) else int(present[0])
    if change is not Change.SLOWER or best is None:
        return None
    centres_ns = device.centres_ns[best : newest + 1, place]
    runs = np.flatnonzero(~np.isnan(centres_ns))
    return best + int(runs[step(np.log(centres_ns[runs]))])


def step(logs: Floats) -> int:
    """Where a series came to the level that it ends on: the place from which on most values lie nearer to that.

    From the end back, values above the middle between two levels count up and those below it down; the place of the
    highest count is taken, once `SETTLED` more have counted down than up since [3]. The levels are at first the first
    value and the last, then the medians of both parts, until the place stays. A lone outlier counts as one value,
    however far out it lies, and a level that came and went before counts for nothing.

    Args:
        logs: at least two, of which the first is the lowest and the last above it.
    """
    levels, place = (float(logs[0]), float(logs[-1])), 0
    for _ in range(MOST_ATTEMPTS):
        found = _last_rise(logs > sum(levels) / 2)
        if found == place:
            break
        place, levels = found, (float(np.median(logs[:found])), float(np.median(logs[found:])))
        if levels[0] >= levels[1]:  # no two levels: the values wander
            break
    return place


def _last_rise(above: npt.NDArray[np.bool_]) -> int:
    counts = np.cumsum(np.where(above[:0:-1], 1, -1))
    settled = np.flatnonzero(np.maximum.accumulate(counts) - counts >= SETTLED)
    end = int(settled[0]) if len(settled) else len(counts)
    return len(above) - 1 - int(np.argmax(counts[:end]))
