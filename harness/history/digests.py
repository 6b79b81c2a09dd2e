"""One run's figures, fast: from the digests in run.json, without reading a sample.

run.json is decoded into types that hold only what a history needs, and checked against its own line in SHA256SUMS; the
other files of the run are not looked at. A run from before digests is loaded whole, which takes much longer.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt

from harness import store
from harness.comparison.sides import LONGEST_NS, SHORTEST_NS
from harness.errors import CommandError, Exit, first_line
from harness.model import (
    SCHEMA_VERSION,
    BuildRecord,
    Cache,
    Case,
    Environment,
    Measurement,
    Options,
    Problem,
    Role,
    Run,
    TrialResult,
    Verdict,
    Word,
)
from harness.store.tables import without_tables
from harness.timing import not_benched

Floats = npt.NDArray[np.float64]


class _Verdict(msgspec.Struct, gc=False):
    word: Word
    reason: str | None = None


class _Digest(msgspec.Struct, gc=False):
    count: int
    median_ns: float
    throttled: int


class _Trial(msgspec.Struct, gc=False):
    verdict: _Verdict
    digest: _Digest | None = None


class _Measurement(msgspec.Struct):
    case: msgspec.Raw
    trials: list[_Trial]


class _Run(msgspec.Struct):
    """Of run.json; fields that are not here are skipped."""

    schema_version: int
    id: str
    started_utc: str
    finished_utc: str
    partial: bool
    options: Options
    environment: Environment
    builds: tuple[BuildRecord, ...]
    measurements: list[_Measurement]


class _Version(msgspec.Struct):
    schema_version: int


@dataclass(frozen=True, kw_only=True)
class PastRun:
    """A run with a figure a trial instead of samples. Arrays have a row a case."""

    run: Run
    """The record without measurements, warnings and kernels' summaries."""
    places: npt.NDArray[np.int64]
    """(cases,): which case of `Cases` a row is of."""
    medians_ns: Floats
    """(cases, trials): median sample of each trial, ns per launch; NaN: no such trial, or the case has no figures."""
    held_back: Floats
    """(cases,): share of the samples during which a limit held the clocks back; 0 without figures."""
    verdicts: tuple[Verdict, ...]
    """(cases,): the worst of the trials'. `passed` without figures: its reason says what is wrong with the record."""


class Cases:
    """Every case that the runs of a history have, each with a place of its own."""

    def __init__(self) -> None:
        self.known: list[Case] = []
        self._by_case: dict[Case, int] = {}
        self._by_text: dict[bytes, int] = {}
        self._decoder = msgspec.json.Decoder(Case)
        self._checks = not_benched()

    def place(self, case: Case) -> int:
        """Of a case, by which runs are told apart; a new one gets the next."""
        if case not in self._by_case:
            self._by_case[case] = len(self.known)
            self.known.append(case)
        return self._by_case[case]

    def place_of_text(self, text: bytes) -> int:
        """`place` of the case that a piece of JSON describes: the same text is decoded once.

        Raises:
            msgspec.ValidationError: it is no case.
        """
        found = self._by_text.get(text)
        if found is None:
            found = self._by_text[text] = self.place(self._decoder.decode(text))
        return found

    def is_figure(self, place: int) -> bool:
        """Whether its timer is one of a bench, and not there to check another one."""
        return self.known[place].timer not in self._checks


_DECODER = msgspec.json.Decoder(_Run)
_NOT_OURS = (msgspec.MsgspecError, RecursionError)
"""What decoding raises on text that this project has not written."""


def read(folder: Path, cases: Cases, whole: Callable[[], Path] | None = None) -> PastRun:
    """The run in `folder`.

    Args:
        folder: of a published run.
        cases: of the history; new ones are added.
        whole: gives the run's folder where `folder` may lack all but run.json and SHA256SUMS.

    Raises:
        CommandError: run.json or SHA256SUMS is missing, damaged or of a newer schema (RUN).
    """
    path = folder / "run.json"
    data = _checked(folder)
    try:
        found = _DECODER.decode(data)
        rows = [(cases.place_of_text(bytes(m.case)), m.trials) for m in found.measurements]
    except _NOT_OURS as error:
        raise _unreadable(path, data, error) from error
    if found.schema_version > SCHEMA_VERSION:
        raise _newer(path, found.schema_version)
    if _lacks_digests(found.measurements):
        return _read_whole(whole() if whole else folder, cases)
    return _past_run(_header(found), rows, cases)


def _checked(folder: Path) -> bytes:
    """run.json, if it is as it was published."""
    path, sums = folder / "run.json", folder / "SHA256SUMS"
    try:
        listed = sums.read_text(encoding="utf-8", errors="replace").splitlines()
        data = path.read_bytes()
    except OSError as error:
        raise CommandError(f"{error.filename or folder}: {error.strerror}", Exit.RUN) from error
    wanted = next((digest for digest, _, name in (line.partition("  ") for line in listed) if name == path.name), None)
    if wanted is None:
        raise CommandError(f"{path}: not listed in SHA256SUMS", Exit.RUN)
    if hashlib.sha256(data).hexdigest() != wanted:
        raise CommandError(f"{path}: changed since it was published (SHA-256 differs)", Exit.RUN)
    return data


def _unreadable(path: Path, data: bytes, error: Exception) -> CommandError:
    """A newer schema may well lack what this one needs, so that comes first."""
    try:
        version = msgspec.json.decode(data, type=_Version).schema_version
    except _NOT_OURS:
        version = SCHEMA_VERSION
    if version > SCHEMA_VERSION:
        return _newer(path, version)
    return CommandError(f"{path}: damaged: {first_line(error)}", Exit.RUN)


def _newer(path: Path, version: int) -> CommandError:
    what = f"schema version {version}, wanted at most {SCHEMA_VERSION}: update this project"
    return CommandError(f"{path}: {what}", Exit.RUN)


def _lacks_digests(measurements: Iterable[_Measurement]) -> bool:
    """Whether trials passed but none says of its samples: the run is from before digests."""
    passed = (trial for m in measurements for trial in m.trials if trial.verdict.word is Word.PASSED)
    first = next(passed, None)
    return first is not None and first.digest is None and all(trial.digest is None for trial in passed)


def _header(found: _Run) -> Run:
    return Run(
        schema_version=found.schema_version,
        id=found.id,
        started_utc=found.started_utc,
        finished_utc=found.finished_utc,
        partial=found.partial,
        options=found.options,
        environment=found.environment,
        builds=found.builds,
        kernels={},
        warnings=(),
        measurements=(),
    )


def _read_whole(folder: Path, cases: Cases) -> PastRun:
    """A run whose digests have to be made from its samples."""
    run = store.load(folder)
    rows = [(cases.place(m.case), [_trial(t) for t in m.trials]) for m in without_tables(run.measurements)]
    return _past_run(replace(run, kernels={}, warnings=(), measurements=(), selfcheck=None), rows, cases)


def _trial(trial: TrialResult) -> _Trial:
    of, verdict = trial.digest, trial.verdict
    digest = None if of is None else _Digest(count=of.count, median_ns=of.median_ns, throttled=of.throttled)
    return _Trial(verdict=_Verdict(word=verdict.word, reason=verdict.reason), digest=digest)


def _past_run(header: Run, rows: Sequence[tuple[int, list[_Trial]]], cases: Cases) -> PastRun:
    counts = Counter(place for place, _ in rows)
    kept = {place: _figures(trials) for place, trials in rows if cases.is_figure(place)}
    kept |= {place: _Figures(verdict=TWICE) for place in kept if counts[place] > 1}
    figures = kept.values()
    medians_ns = np.full((len(kept), max((len(each.medians_ns) for each in figures), default=0)), np.nan)
    for row, each in zip(medians_ns, figures, strict=True):
        row[: len(each.medians_ns)] = each.medians_ns
    return PastRun(
        run=header,
        places=np.fromiter(kept, np.int64, len(kept)),
        medians_ns=medians_ns,
        held_back=np.array([each.held_back for each in figures], np.float64),
        verdicts=tuple(each.verdict for each in figures),
    )


class _Figures(msgspec.Struct):
    """A case in one run."""

    verdict: Verdict
    medians_ns: Sequence[float] = ()
    held_back: float = 0.0


PASSED = Verdict(word=Word.PASSED)
TWICE = Verdict(word=Word.PASSED, reason="twice in this run")
NO_TRIALS = Verdict(word=Word.NOT_MEASURED, reason="no trials")
NO_SAMPLES = Verdict(word=Word.PASSED, reason="passed, but without samples")


def _figures(trials: list[_Trial]) -> _Figures:
    """As `comparison.sides.side` has it: figures exist only where every trial passed."""
    medians_ns, count, held_back = [], 0, 0
    for trial in trials:  # runs through some millions of them: no second pass
        if trial.verdict.word is not Word.PASSED:
            return _Figures(verdict=_worst(trials))
        if trial.digest is not None:
            medians_ns.append(trial.digest.median_ns)
            count += trial.digest.count
            held_back += trial.digest.throttled
    if not medians_ns:
        return _Figures(verdict=NO_SAMPLES if trials else NO_TRIALS)
    if not (min(medians_ns) >= SHORTEST_NS and max(medians_ns) <= LONGEST_NS):
        reason = f"a median of {min(medians_ns):g} to {max(medians_ns):g} ns: wanted finite times above 0"
        return _Figures(verdict=Verdict(word=Word.PASSED, reason=reason))
    return _Figures(verdict=PASSED, medians_ns=medians_ns, held_back=min(max(held_back, 0), count) / max(count, 1))


def _worst(trials: list[_Trial]) -> Verdict:
    """By the record's own order of verdicts."""
    verdicts = [Verdict(word=trial.verdict.word, reason=trial.verdict.reason) for trial in trials]
    results = tuple(TrialResult(trial=i, verdict=verdict) for i, verdict in enumerate(verdicts))
    return Measurement(case=_ANY, trials=results).verdict


_ANY = Case(kernel="", role=Role.FLOOR, problem=Problem(m=1, k=1), timer="", cache=Cache.COLD)
"""The verdict of a measurement does not depend on it."""
