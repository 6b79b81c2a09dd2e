"""The runs of a store by device, each with the figures of its cases over time.

Points of different devices are never joined: runs belong to one device where `compare` would compare them, by the facts
that must match. A fact that a run does not know forbids nothing, as there, but the device's name must be known alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit

from harness.comparison.attribution import differences, obstacles
from harness.comparison.notes import kernel_notes
from harness.comparison.records import EnvironmentDifference
from harness.comparison.sides import FAILED
from harness.errors import CommandError, Exit
from harness.history.digests import Cases, Floats, PastRun, read
from harness.model import Case, Run, Verdict, Word
from harness.stats import CONFIDENCE
from harness.store import Store

WORDS = tuple(Word)
"""A verdict's code in `Device.words` is its place here."""

ABSENT = len(WORDS)
"""The code of a case that a run does not have."""


@dataclass(frozen=True, kw_only=True)
class Device:
    """Runs that may be compared, oldest first, and the cases that they measured. Arrays are (runs, cases)."""

    runs: tuple[PastRun, ...]
    """Oldest first."""
    cases: tuple[Case, ...]
    """Those with a figure or a failure in any run, in the order of measuring."""
    centres_ns: Floats
    """Geometric mean of the trials' medians, ns per launch, as `stats.log_t_interval` has it; NaN without figures."""
    half_widths: Floats
    """Half the 95 % interval over the centre, as a fraction; NaN without figures or with one trial."""
    held_back: Floats
    """Share of the samples during which a limit held the clocks back."""
    words: npt.NDArray[np.uint8]
    """The gate's, as a place in `WORDS`, or `ABSENT`."""
    rows: npt.NDArray[np.int64]
    """The row of the case in its run; -1: it is absent."""

    @property
    def newest(self) -> Run:
        """The last run, without its measurements."""
        return self.runs[-1].run

    @cached_property
    def differences(self) -> tuple[tuple[EnvironmentDifference, ...], ...]:
        """Of each run, what differs from the run before it; empty for the first."""
        return ((), *(differences(before.run, run.run) for before, run in pairwise(self.runs)))

    @cached_property
    def kernel_changes(self) -> dict[str, dict[int, str]]:
        """By kernel: the runs, by place, whose code of it is another than that of the run before, and what changed."""
        found: dict[str, dict[int, str]] = {case.kernel: {} for case in self.cases}
        for place, (before, run) in enumerate(pairwise(self.runs), start=1):
            if before.run.builds != run.run.builds:
                for kernel, changes in found.items():
                    if notes := kernel_notes(kernel, before.run, run.run):
                        changes[place] = "; ".join(notes)
        return found

    def verdict(self, run: int, case: int) -> Verdict | None:
        """Of a case in a run, both by place; None: it is absent."""
        row = int(self.rows[run, case])
        return None if row < 0 else self.runs[run].verdicts[row]

    def medians_ns(self, run: int, case: int) -> Floats:
        """By trial, as `PastRun.medians_ns` has them; empty: it is absent."""
        row = int(self.rows[run, case])
        return np.empty(0) if row < 0 else self.runs[run].medians_ns[row]


@dataclass(frozen=True, kw_only=True)
class History:
    """What a store holds over time."""

    devices: tuple[Device, ...]
    """The one that was measured last comes first."""
    unreadable: tuple[CommandError, ...] = ()
    """A line a run that is damaged, incomplete or of a newer schema."""


def read_history(store: Store, last: int | None = None) -> History:
    """The runs of a store, or its `last` ones; what cannot be read is named and left out."""
    ids = store.ids()
    cases, found, unreadable = Cases(), list[PastRun](), list[CommandError]()
    shown = ids if last is None else ids[-last:]
    store.prefetch(shown)
    for run_id in shown:
        try:
            found.append(read(store.head(run_id), cases, partial(store.folder, run_id)))
        except CommandError as error:
            if error.code is not Exit.RUN:
                raise
            unreadable.append(error)
    devices = tuple(device(runs, cases.known) for runs in by_device(found))
    return History(devices=devices, unreadable=tuple(unreadable))


@dataclass
class _Group:
    known: Run
    """Of all its runs, every fact that one of them knows; the later one's where they differ."""
    runs: list[PastRun] = field(default_factory=list)

    def takes(self, run: Run) -> bool:
        return _names(self.known) == _names(run) and not obstacles(self.known, run)

    def add(self, past: PastRun) -> None:
        facts = {key: value for key, value in past.run.environment.values.items() if value is not None}
        values = {**self.known.environment.values, **facts}
        self.known = replace(self.known, environment=replace(self.known.environment, values=values))
        self.runs.append(past)


def _names(run: Run) -> tuple[object, object]:
    return run.environment.get("gpu_name"), run.environment.get("device_name")


def by_device(runs: Iterable[PastRun]) -> list[list[PastRun]]:
    """The runs that may be compared with each other, in their order; the group of the last run comes first."""
    groups: list[_Group] = []
    for past in runs:
        group = next((each for each in groups if each.takes(past.run)), None) or _Group(known=past.run)
        group.add(past)
        groups = [group, *(each for each in groups if each is not group)]
    return [group.runs for group in groups]


def device(runs: Sequence[PastRun], cases: Sequence[Case]) -> Device:
    """The figures of one device's runs.

    Args:
        runs: oldest first, at least one.
        cases: those that `PastRun.places` means.
    """
    shape = len(runs), len(cases)
    centres, halves, held_back = np.full(shape, np.nan), np.full(shape, np.nan), np.zeros(shape)
    words, rows = np.full(shape, ABSENT, np.uint8), np.full(shape, -1)
    codes = {word: code for code, word in enumerate(WORDS)}
    for i, run in enumerate(runs):
        centres[i, run.places], halves[i, run.places] = _intervals(run.medians_ns)
        held_back[i, run.places] = run.held_back
        words[i, run.places] = [codes[verdict.word] for verdict in run.verdicts]
        rows[i, run.places] = np.arange(len(run.places))
    failed = np.isin(words, [codes[word] for word in FAILED])
    told = [int(place) for place in np.flatnonzero((~np.isnan(centres) | failed).any(axis=0))]
    order = list(_measured_last(rows, told))
    return Device(
        runs=tuple(runs),
        cases=tuple(cases[place] for place in order),
        centres_ns=centres[:, order],
        half_widths=halves[:, order],
        held_back=held_back[:, order],
        words=words[:, order],
        rows=rows[:, order],
    )


def _measured_last(rows: npt.NDArray[np.int64], places: Iterable[int]) -> Iterator[int]:
    """In the order of the newest run, then what it lacks."""
    newest = rows[-1]
    yield from sorted(places, key=lambda place: (newest[place] < 0, newest[place], place))


def _intervals(medians_ns: Floats) -> tuple[Floats, Floats]:
    """Centre and relative half-width of each row, as `stats.log_t_interval` has them for one."""
    logs = np.log(medians_ns)
    known = ~np.isnan(logs)
    counts = known.sum(axis=1)
    centres = np.where(counts > 0, np.nansum(logs, axis=1) / np.maximum(counts, 1), np.nan)
    squares = np.nansum((logs - centres[:, None]) ** 2, axis=1)
    freedom = np.maximum(counts - 1, 1)
    reach = stdtrit(freedom, (1 + CONFIDENCE) / 2) * np.sqrt(squares / freedom / np.maximum(counts, 1))
    return np.exp(centres), np.where(counts > 1, np.sinh(reach), np.nan)
