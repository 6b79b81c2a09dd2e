"""The full table: every case of a problem with its figures, or with the reason why it has none."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from harness.model import Problem, TrialResult, Word
from harness.roofline import intensity_flop_per_byte, least_bytes
from harness.throttling import reference_clock_mhz, throttled_share
from reports import format as fmt
from reports.cautions import is_wide
from reports.figures import BASELINE, Figures, Row, Way
from reports.tables import Cell, Column, Table, number, table, text
from reports.takeaway import is_short, side

PLACEMENTS_SPREAD = 0.01
"""Placements of the operands whose times lie further apart within a trial are told, as a fraction."""


@dataclass(frozen=True, kw_only=True)
class CaseRow:
    """A row of the full table, with what it can be filtered by."""

    cells: tuple[Cell, ...]
    kernels: tuple[str, ...]
    """One, or all that lack figures for one reason."""
    ways: tuple[Way, ...]


def case_columns(limit: str | None) -> list[Column]:
    """Heads of the full table."""
    return [
        text("kernel"),
        text("timer, cache"),
        number("time", "µs"),
        number("95 % interval", "± %"),
        number("spread of trials", "%"),
        number("bandwidth", "GB/s"),
        number(f"of {fmt.name(limit or 'limit')}", "%"),
        number(f"× {BASELINE}"),
        number("samples"),
        number("launches a sample"),
    ]


def case_table(f: Figures, problem: Problem) -> Table:
    """Every case of one problem; those without figures say why."""
    rows = [row.cells for row in case_rows(f).get(problem, ())]
    return table(fmt.problem(problem), case_columns(f.limit), rows, note=case_note(f, problem), group_by=1)


def case_rows(f: Figures) -> dict[Problem, tuple[CaseRow, ...]]:
    """By problem the rows of its cases, those with figures first."""
    reference_mhz = reference_clock_mhz(f.run.measurements)
    found: dict[Problem, list[CaseRow]] = {problem: [] for problem in f.problems}
    for way in f.ways:
        for row in f.passed(way):
            cells = tuple(c if isinstance(c, Cell) else Cell(text=c) for c in _case_cells(row, reference_mhz))
            found[row.problem].append(CaseRow(cells=cells, kernels=(row.kernel,), ways=(way,)))
    lacking: dict[Problem, list[Row]] = defaultdict(list)
    for row in f.rows:
        if row.summary is None and row.problem in found:
            lacking[row.problem].append(row)
    for problem, rows in lacking.items():
        found[problem] += _without_figures(f, rows)
    return {problem: tuple(rows) for problem, rows in found.items()}


def _without_figures(f: Figures, lacking: Sequence[Row]) -> list[CaseRow]:
    """A row a reason: kernels that lack figures for the same reason by the same timers share it."""
    ways_by_kernel: dict[tuple[Word, str], dict[str, list[Way]]] = defaultdict(lambda: defaultdict(list))
    for row in lacking:
        reason = fmt.line(row.verdict.reason or "passed, but has no samples")
        ways_by_kernel[row.verdict.word, reason][row.kernel].append(row.way)
    span = len(case_columns(f.limit)) - 2
    rows: list[CaseRow] = []
    for (word, reason), by_kernel in ways_by_kernel.items():
        mark = "bad" if word in (Word.WRONG, Word.CRASHED) else "quiet"
        said = Cell(text=word, note=reason, mark=mark, columns=span)
        for ways in dict.fromkeys(tuple(each) for each in by_kernel.values()):
            kernels = tuple(kernel for kernel, each in by_kernel.items() if tuple(each) == ways)
            alone = kernels[0] if len(kernels) == 1 else ""
            who = fmt.name(alone) if alone else fmt.listing([fmt.name(kernel) for kernel in kernels])
            when = "all" if len(ways) == len(f.ways) > 1 else " · ".join(way.label for way in ways)
            rows.append(
                CaseRow(cells=(Cell(text=who, kernel=alone), Cell(text=when), said), kernels=kernels, ways=ways)
            )
    return rows


def case_note(f: Figures, problem: Problem) -> str:
    """The problem's least work, and the floors that stand behind its short figures."""
    least, intensity = fmt.data_bytes(least_bytes(problem)), intensity_flop_per_byte(problem)
    said = [f"At least {least} must move, for {intensity:.2f} FLOP a byte."]
    short = [w for w in f.ways if w in f.floors and any(r.problem == problem and is_short(r) for r in f.passed(w))]
    if short:
        floors = fmt.listing([f"{fmt.microseconds_pm(f.floors[w].median_ns)} ({w.label})" for w in short])
        said.append(f"The timer's own floor, an empty kernel: {floors}.")
    return " ".join(said)


def _case_cells(row: Row, reference_mhz: float | None) -> list[Cell | str]:
    s = row.summary
    if s is None:
        raise ValueError(f"{row.measurement.case.id}: has no figures")
    trials = row.measurement.trials
    launches = sorted({t.launches_per_sample for t in trials if t.launches_per_sample is not None})
    ends = dict.fromkeys((launches[0], launches[-1])) if launches else {}
    variants = dict.fromkeys(t.variant for t in trials if t.variant)
    notes = (fmt.name(", ".join(variants)), _placements(trials))
    marked, _ = throttled_share(row.measurement, reference_mhz)
    half = s.median_ns.half_width
    return [
        Cell(text=fmt.name(row.kernel), kernel=row.kernel, note="; ".join(part for part in notes if part)),
        row.way.label,
        fmt.microseconds_figure(s.median_ns.estimate),
        fmt.NONE if half is None else fmt.percent_figure(half),
        _spread(row) if len(s.trial_medians_ns) > 1 else fmt.NONE,
        fmt.NONE if row.gb_per_s is None else fmt.gb_per_s_figure(row.gb_per_s),
        fmt.NONE if row.of_limit is None else f"{row.of_limit.estimate * 100:.1f}",
        fmt.NONE if row.speedup is None else Cell(text=fmt.times_figure(row.speedup.estimate), mark=_mark(row)),
        Cell(text=str(s.samples), note=f"{marked} throttled" if marked else ""),
        "–".join(str(n) for n in ends) or "unknown",
    ]


def _placements(trials: Sequence[TrialResult]) -> str:
    """The least and the greatest median by placement over all trials, where placements of one trial differ."""
    by_trial = [t.placements_ns for t in trials if t.placements_ns]
    if not any(max(each) > (1 + PLACEMENTS_SPREAD) * min(each) for each in by_trial):
        return ""
    every = [ns for each in by_trial for ns in each]
    return f"{fmt.microseconds_figure(min(every))}–{fmt.microseconds(max(every))} by placement"


def _spread(row: Row) -> Cell:
    spread = row.summary.spread if row.summary else 0.0
    return Cell(text=fmt.percent_figure(spread), mark="bad" if is_wide(row) else "")


def _mark(row: Row) -> str:
    return "best" if row.written_here and side(row) > 0 else ""
