"""What a reader must know before the figures: each a line, with the cases that it is about below it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

from harness.model import Role, Word
from harness.throttling import CLOCK_OFF, SM_CLOCK, reference_clock_mhz
from reports import format as fmt
from reports.figures import BASELINE, Figures, Row, Way
from reports.held_back import HARMLESS_REASONS, MarkedCase, counted_limits, marked_case, reason_in_words

LONG_NS = 10_000
"""From here on trials should agree within `LONG_SPREAD`, below within `SHORT_SPREAD`."""
LONG_SPREAD = 0.01
SHORT_SPREAD = 0.03


class Level(StrEnum):
    """How much a caution weighs."""

    BAD = "error"
    """Something is wrong with a kernel or the run."""
    CAUTION = "caution"
    """Figures may not mean what they seem to."""
    NOTE = "note"
    """Worth knowing."""


@dataclass(frozen=True, kw_only=True)
class Caution:
    """One thing to know before the figures."""

    level: Level
    text: str
    details: tuple[str, ...] = ()
    """The cases, one line each."""


def cautions(f: Figures) -> tuple[Caution, ...]:
    """All cautions of a run, the gravest first."""
    f = replace(f, rows=(*f.rows, *f.suite))
    found = [*_of_run(f), *_failed(f), *_printed(f), *_held_back(f), *_at_moments(f), *_unsettled(f), *_spread(f)]
    order = list(Level)
    return tuple(sorted(found, key=lambda c: order.index(c.level)))


def _of_run(f: Figures) -> Iterator[Caution]:
    run = f.run
    said = tuple(dict.fromkeys(run.warnings))
    if run.options.device.startswith("cpu") and not _mentioned("CPU numbers", said):
        yield Caution(level=Level.CAUTION, text="These are CPU numbers: no kernel here ran on a GPU.")
    for warning in said:
        yield Caution(level=Level.CAUTION, text=fmt.line(warning))
    if run.partial and not _mentioned("cut short", said):
        yield Caution(level=Level.CAUTION, text="The run was cut short: it holds what had been measured until then.")
    if run.options.quick and not _mentioned("quick", said):
        yield Caution(level=Level.CAUTION, text="A quick look (--quick): coarse figures, not ones to publish.")
    if run.environment.get("git_dirty") and not _mentioned("uncommitted", said):
        text = "The checkout had uncommitted changes: its commit alone does not give this code."
        yield Caution(level=Level.CAUTION, text=text)
    if run.options.trials == 1:
        yield Caution(
            level=Level.CAUTION, text="One trial only: no interval can be given, and no spread between trials."
        )
    if f.rows and BASELINE not in f.kernels:
        text = f"{BASELINE} was not measured, so no speed against it can be given."
        yield Caution(level=Level.NOTE, text=text)


def _mentioned(words: str, warnings: tuple[str, ...]) -> bool:
    """Whether the run itself warns of it already."""
    return any(words in warning for warning in warnings)


_FAILED = {
    Word.WRONG: (Level.BAD, "gave a wrong result, so it has no figures"),
    Word.CRASHED: (Level.BAD, "failed to run, so it has no figures"),
    Word.NOT_MEASURED: (Level.CAUTION, "could not be measured"),
}


def _failed(f: Figures) -> Iterator[Caution]:
    """A caution a kernel that failed, its reasons below; one note for all that is not supported."""
    for word, (level, usual) in _FAILED.items():
        for kernel in dict.fromkeys(row.kernel for row in f.rows):
            rows = [row for row in f.rows if row.kernel == kernel and row.verdict.word is word]
            if rows:
                lines = tuple(f"{_where(f, of)}: {reason}" for reason, of in _by_reason(rows).items())
                yield Caution(level=level, text=f"{fmt.name(kernel)} {usual}.", details=lines)
    unsupported = _by_reason(row for row in f.rows if row.verdict.word is Word.UNSUPPORTED)
    if unsupported:
        lines = tuple(f"{_who(f, rows)} on {_where(f, rows)}: {reason}" for reason, rows in unsupported.items())
        yield Caution(
            level=Level.NOTE, text="Some cases are ruled out, by a kernel's contract or by the cache.", details=lines
        )


def _printed(f: Figures) -> Iterator[Caution]:
    """A note a user's kernel that wrote something: the first line of it in each problem."""
    for kernel in dict.fromkeys(row.kernel for row in f.rows):
        by_words: dict[str, list[Row]] = defaultdict(list)
        for row in (each for each in f.rows if each.kernel == kernel):
            printed = next((trial.printed for trial in row.measurement.trials if trial.printed), None)
            if printed is not None:
                by_words[fmt.line(printed.splitlines()[0])].append(row)
        if by_words:
            lines = tuple(f"{_where(f, rows)}: {words}" for words, rows in by_words.items())
            text = f"{fmt.name(kernel)} printed; its first lines are here and more of it is in run.json, as printed."
            yield Caution(level=Level.NOTE, text=text, details=lines)


def _by_reason(rows: Iterable[Row]) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        found[fmt.line(row.verdict.reason or "no reason given")].append(row)
    return found


def _who(f: Figures, rows: list[Row]) -> str:
    kernels = list(dict.fromkeys(row.kernel for row in rows))
    return "every kernel" if len(kernels) == len(f.kernels) > 1 else ", ".join(fmt.name(each) for each in kernels)


def _held_back(f: Figures) -> Iterator[Caution]:
    """Samples under a limit or off the clock, by the device's own counters: cases without any other first."""
    reference_mhz, locked_mhz = reference_clock_mhz(f.run.measurements), f.run.options.lock_clocks_mhz
    if reference_mhz is not None and locked_mhz is not None and reference_mhz < (1 - CLOCK_OFF) * locked_mhz:
        text = f"No trial ran at the SM clock that was locked: {locked_mhz} MHz, and {reference_mhz:.0f} MHz at best."
        yield Caution(level=Level.CAUTION, text=text)
    cases = [marked_case(row, reference_mhz) for row in f.rows if row.summary is not None]
    always = [case for case in cases if case.always]
    partly: dict[str, list[MarkedCase]] = defaultdict(list)
    for case in cases:
        for reason in () if case.always else case.reasons:
            partly[reason].append(case)
    found = list(_always(always, reference_mhz))
    for reason, some in sorted(partly.items(), key=lambda each: -sum(case.held(each[0]) for case in each[1])):
        found.append(_partly(some, reason, _cause(reason, reference_mhz), "other case" if always else "case"))
    for place, caution in enumerate(found):
        told = "" if place else " Every figure is over all samples, these too."
        yield replace(caution, text=caution.text + told)


def _always(cases: list[MarkedCase], reference_mhz: float | None) -> Iterator[Caution]:
    """Cases of which every sample is marked: those that a counted limit held back, then those by their clock alone."""
    by_limit = [case for case in cases if case.reasons != (SM_CLOCK,)]
    by_clock = [case for case in cases if case.reasons == (SM_CLOCK,)]
    if by_limit:
        beside = any(SM_CLOCK in case.reasons for case in by_limit)
        cause = (
            f"while a counted limit held the clocks back{', or at a low clock beside such samples' if beside else ''}"
        )
        yield _every(by_limit, f"{cause}: {_whose(by_limit)} figures are those of a slower device.")
    if by_clock:
        cause = _cause(SM_CLOCK, reference_mhz)
        yield _every(by_clock, f"{cause}: that may come of {_whose(by_clock)} own power draw.")


def _every(cases: list[MarkedCase], said: str) -> Caution:
    text = f"Every sample of {fmt.count(len(cases), 'case')} was taken {said}"
    return Caution(level=Level.CAUTION, text=text, details=tuple(_held_by(case) for case in cases))


def _whose(cases: list[MarkedCase]) -> str:
    return "its" if len(cases) == 1 else "their"


def _held_by(case: MarkedCase) -> str:
    reasons = ["no counted limit says what" if name == SM_CLOCK else reason_in_words(name) for name in case.reasons]
    said = (fmt.count(len(case.why), "sample"), fmt.listing(reasons), case.clocks(case.reasons))
    return f"{_case(case.row)}: {'; '.join(part for part in said if part)}"


def _cause(reason: str, reference_mhz: float | None) -> str:
    """What the samples that `reason` marks were taken under."""
    if reason != SM_CLOCK:
        return f"while {reason_in_words(reason)} held the clocks back"
    reference = f"{reference_mhz or 0:.0f}{fmt.NBSP}MHz"
    below = f"at an SM clock more than {CLOCK_OFF * 100:g}{fmt.NBSP}% below the {reference} that this run could have"
    return f"{below}, and no counted limit says why"


def _partly(cases: list[MarkedCase], reason: str, cause: str, what: str) -> Caution:
    """Cases of which `reason` marks some samples."""
    held = [case.held(reason) for case in cases]
    some = fmt.out_of(sum(held), sum(len(case.why) for case in cases), "sample")
    text = f"{some} of {fmt.count(len(cases), what)} {'was' if sum(held) == 1 else 'were'} taken {cause}."
    lines = []
    for case, hits in zip(cases, held, strict=True):
        said = (fmt.out_of(hits, len(case.why), "sample"), case.clocks((reason,)))
        lines.append(f"{_case(case.row)}: {', '.join(part for part in said if part)}")
    return Caution(level=Level.CAUTION, text=text, details=tuple(lines))


def _at_moments(f: Figures) -> Iterator[Caution]:
    """What held the clocks back when NVML was asked, where no counter tells of it: older runs have none at all."""
    by_reason: dict[str, list[tuple[Row, int, int]]] = defaultdict(list)
    for row in f.rows:
        known = [
            (frozenset(s.clock_event_reasons), counted)
            for t in row.measurement.trials
            for counted in [counted_limits(t)]
            for s in t.states
            if s.clock_event_reasons is not None
        ]
        for reason in sorted({name for names, counted in known for name in names - counted} - HARMLESS_REASONS):
            uncounted = [names for names, counted in known if reason not in counted]
            by_reason[reason].append((row, sum(reason in names for names in uncounted), len(uncounted)))
    for reason, seen in by_reason.items():
        measured = sum(bool(t.states) for row in f.rows for t in row.measurement.trials[:1])
        text = f"Clocks were held back by {reason_in_words(reason)} in {fmt.out_of(len(seen), measured, 'case')}."
        lines = tuple(f"{_case(row)}: in {fmt.out_of(hits, total, 'reading')}" for row, hits, total in seen)
        yield Caution(level=Level.CAUTION, text=text, details=lines)


def _unsettled(f: Figures) -> Iterator[Caution]:
    """Cases whose times were still moving when the first sample was taken, in some trial."""
    looked = [row for row in f.rows if row.summary and any(t.settled is not None for t in row.measurement.trials)]
    found = [(row, sum(t.settled is False for t in row.measurement.trials)) for row in looked]
    lines = tuple(
        f"{_case(row)}: in {fmt.out_of(missed, len(row.measurement.trials), 'trial')}"
        for row, missed in found
        if missed
    )
    if lines:
        which = fmt.out_of(len(lines), len(looked), "case")
        text = f"Times had not become steady before the first sample in {which}."
        yield Caution(level=Level.CAUTION, text=text, details=lines)


def _spread(f: Figures) -> Iterator[Caution]:
    timed = [r for way in f.ways for r in f.rows if r.way == way and r.summary is not None]
    led_by = f.headline.timer if f.headline else None
    timed = [r for r in timed if r.way.timer == led_by] or timed  # others spread by themselves, as their floors show
    wide = [r for r in timed if is_wide(r)]
    if wide:
        by_way = [
            f"{sum(r.way == way for r in wide)} by {way.label}" if len(timed) > 1 else way.label
            for way in f.ways
            if any(r.way == way for r in wide)
        ]
        text = (
            f"Trials disagree in {fmt.out_of(len(wide), len(timed), 'case')} ({'; '.join(by_way)}): their medians "
            f"lie more than {LONG_SPREAD * 100:g}{fmt.NBSP}% apart from {LONG_NS // 1000}{fmt.NBSP}µs on, or more than "
            f"{SHORT_SPREAD * 100:g}{fmt.NBSP}% below."
        )
        yield Caution(level=Level.CAUTION, text=text, details=tuple(_states(r) for r in wide))


def is_wide(row: Row) -> bool:
    """Whether the trials' medians lie further apart than they should."""
    if row.summary is None:
        return False
    return row.summary.spread > (LONG_SPREAD if row.summary.median_ns.estimate >= LONG_NS else SHORT_SPREAD)


def _states(row: Row) -> str:
    """The case with its trials' medians in order, so that discrete states can be told from drift."""
    if row.summary is None:
        return _case(row)
    medians = ", ".join(fmt.microseconds_figure(ns) for ns in row.summary.trial_medians_ns)
    return f"{_case(row)}: {medians}{fmt.NBSP}µs by trial, {fmt.percent(row.summary.spread)} apart"


def _case(row: Row) -> str:
    place = "" if row.role is Role.FLOOR else f" on {fmt.problem(row.problem)}"
    return f"{fmt.name(row.kernel)}{place} ({row.way.label})"


def _where(f: Figures, rows: list[Row]) -> str:
    """Problems, each with the ways of timing unless these are all there are."""
    by_problem: dict[str, list[Way]] = defaultdict(list)
    for row in rows:
        if row.way not in by_problem[fmt.problem(row.problem)]:
            by_problem[fmt.problem(row.problem)].append(row.way)
    if all(len(ways) == len(f.ways) for ways in by_problem.values()):
        every = len(by_problem) == len(f.problems) > 1
        return f"all {len(f.problems)} problems" if every else fmt.separator(by_problem).join(by_problem)
    return fmt.separator(by_problem).join(
        f"{name} ({' · '.join(way.label for way in ways)})" for name, ways in by_problem.items()
    )
