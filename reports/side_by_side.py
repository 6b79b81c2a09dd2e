"""The same launches by every timer, other projects' among them: how each measures, what it reads, what it costs."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass

from harness.model import Cache, Problem, Role, Word
from harness.timing import Purpose, timers
from harness.words import significant
from reports import format as fmt
from reports.figures import BASELINE, Figures, Row, Way, purpose_of
from reports.launch_rate import REFERENCE_PROBLEMS
from reports.tables import Cell, Table, number, table, text

NO_RATIO = (
    "Each timer measures something else: the device's time, one launch with its events, or a call as the host sees it. "
    "So no ratio is taken between timers; the empty kernel's row shows what each adds of its own."
)


Rows = Mapping[tuple[str, Problem, Way], Row]
"""Rows of all timers by kernel, problem and way of timing."""


@dataclass(frozen=True, kw_only=True)
class SideBySide:
    """The section's content; exists only where a run has several timers or another project's."""

    takeaway: str
    timers: Table
    """A row a timer: what a sample is, and the time it took."""
    first: Table
    """The times on the problem that is shown at once."""
    others: tuple[Table, ...]
    """On the other problems."""
    no_ratio: str = NO_RATIO


def side_by_side(f: Figures) -> SideBySide | None:
    """Every timer's times beside each other; None where there is one timer."""
    rows, shown = index(f), ways(f)
    problems = timed_problems(f, rows)
    if not problems or (len(shown) < 2 and not f.peers):
        return None
    first, *others = problems
    return SideBySide(
        takeaway=_takeaway(f, rows, first),
        timers=_timers(f),
        first=_table(f, rows, first),
        others=tuple(_table(f, rows, problem) for problem in others),
    )


def timed_problems(f: Figures, rows: Rows) -> tuple[Problem, ...]:
    """Those with figures by two timers or more; where no problem has so many, by any."""
    shown = ways(f)
    timed: dict[Problem, set[Way]] = {}
    for row in rows.values():
        if row.way in shown and row.summary is not None and row.role is not Role.FLOOR:
            timed.setdefault(row.problem, set()).add(row.way)
    least = 2 if any(len(found) > 1 for found in timed.values()) else 1
    return tuple(p for p in ordered_problems(f) if len(timed.get(p, ())) >= least)


def index(f: Figures) -> Rows:
    """Every row, by kernel, problem and way of timing; the floor's under its own problem and every other."""
    found = {(r.kernel, r.problem, r.way): r for r in (*f.rows, *f.peers)}
    floors = [r for r in found.values() if r.role is Role.FLOOR]
    return found | {(r.kernel, problem, r.way): r for r in floors for problem in f.problems}


def ways(f: Figures) -> tuple[Way, ...]:
    """One a timer, cold where anything was timed cold; ours first, then other projects'."""
    found = (*f.ways, *dict.fromkeys(row.way for row in f.peers))
    cache = Cache.COLD if any(way.cache is Cache.COLD for way in found) else Cache.HOT
    return tuple(way for way in found if way.cache is cache)


def ordered_problems(f: Figures) -> tuple[Problem, ...]:
    """The reference's first problem leads where it is, since timers differ most on short kernels."""
    return tuple(sorted(f.problems, key=lambda p: p != REFERENCE_PROBLEMS[0]))


def seconds_a_case(f: Figures, timer: str) -> float | None:
    """Mean wall-clock time of one trial of a case, in s; None where it was not recorded."""
    trials = [t for row in (*f.rows, *f.peers) if row.way.timer == timer for t in row.measurement.trials]
    known = [t.seconds for t in trials if t.seconds is not None and t.verdict.word is Word.PASSED]
    return statistics.fmean(known) if known else None


def _time(row: Row) -> str:
    if row.summary is None:
        return "an unknown time"
    median = row.summary.median_ns
    return fmt.microseconds(median.estimate) if median.half_width is None else fmt.microseconds_pm(median)


def _timed(row: Row) -> str:
    alone = row.summary is not None and row.summary.median_ns.half_width is None
    return f"{fmt.name(row.way.label)}{', one trial' if alone else ''}"


def _takeaway(f: Figures, rows: Rows, problem: Problem) -> str:
    """The shortest and the longest reading of the same kernel."""
    found = [rows.get((BASELINE, problem, way)) for way in ways(f)]
    timed = [(r.summary.median_ns.estimate, r) for r in found if r is not None and r.summary is not None]
    if len(timed) < 2:
        return ""
    low, high = min(timed, key=lambda pair: pair[0])[1], max(timed, key=lambda pair: pair[0])[1]
    return (
        f"{BASELINE} on {fmt.problem(problem)} reads from {_time(low)} ({_timed(low)}) to {_time(high)} "
        f"({_timed(high)}), by {fmt.count(len(timed), 'timer')}."
    )


def _timers(f: Figures) -> Table:
    known = timers()
    rows: list[list[Cell | str]] = []
    for timer in dict.fromkeys(way.timer for way in ways(f)):
        seconds = seconds_a_case(f, timer)
        spent = Cell(text="unknown", mark="quiet") if seconds is None else significant(seconds, 3)
        whose = "another project's" if purpose_of(timer) is Purpose.PEER else ""
        own = [row for row in (*f.rows, *f.peers) if row.way.timer == timer]
        trials = max((len(row.measurement.trials) for row in own), default=0)
        said = known[timer].summary if timer in known else "not a timer of this version"
        clock = known[timer].clock if timer in known else "unknown"
        rows.append([Cell(text=fmt.name(timer), note=whose), said, clock, str(trials), spent])
    heads = [
        text("timer"),
        text("a sample"),
        text("clock"),
        number("trials"),
        number("timing took", "s a case and trial"),
    ]
    return table("What each timer is, and the time it takes", heads, rows)


def _table(f: Figures, rows: Rows, problem: Problem) -> Table:
    shown = ways(f)
    floor = next((row.kernel for row in (*f.rows, *f.peers) if row.role is Role.FLOOR), "")
    cells: list[list[Cell | str]] = []
    for kernel in (*f.kernels, floor):
        found = [rows.get((kernel, problem, way)) for way in shown]
        if any(row is not None and row.summary is not None for row in found):
            head = Cell(text=fmt.name(kernel), kernel=kernel)
            if kernel == floor:
                head = Cell(text="empty kernel", note="floor of the timer", mark="quiet")
            cells.append([head, *(_cell(row) for row in found)])
    heads = [text("kernel"), *(number(fmt.name(way.timer), "µs") for way in shown)]
    caption = f"{fmt.problem(problem)}: time of a launch, {shown[0].cache}"
    return table(caption, heads, cells, note=_why_not(f, rows, problem))


def _cell(row: Row | None) -> Cell:
    if row is None or row.summary is None:
        return Cell(text=fmt.NONE, mark="quiet")
    median = row.summary.median_ns
    note = "one trial" if median.half_width is None else fmt.plus_minus(median)
    return Cell(text=fmt.microseconds_figure(median.estimate), note=note)


def _why_not(f: Figures, rows: Rows, problem: Problem) -> str:
    """Why a timer lacks figures of kernels that another has."""
    said: dict[str, dict[str, list[str]]] = {}
    for kernel in f.kernels:
        found = [row for way in ways(f) if (row := rows.get((kernel, problem, way))) is not None]
        if any(row.summary is not None for row in found):
            for row in found:
                if row.summary is None:
                    why = fmt.line(row.verdict.reason or "it has no samples")
                    said.setdefault(why, {}).setdefault(row.way.timer, []).append(kernel)
    lines = [
        f"{fmt.name(timer)} has no figure of {fmt.listing([fmt.name(kernel) for kernel in kernels])}: {why}."
        for why, by_timer in said.items()
        for timer, kernels in by_timer.items()
    ]
    return " ".join(lines)
