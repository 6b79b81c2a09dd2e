"""The full table: every case of a problem with its figures, or with the reason why it has none."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from harness.model import Problem, TrialResult, Word
from harness.roofline import intensity_flop_per_byte, least_bytes
from harness.throttling import reference_clock_mhz, throttled_share
from reports import format as fmt
from reports.cautions import is_wide
from reports.figures import BASELINE, Figures, Row
from reports.tables import Cell, Column, Table, number, table, text
from reports.takeaway import is_short, side

PLACEMENTS_SPREAD = 0.01
"""Placements of the operands whose times lie further apart within a trial are told, as a fraction."""


def case_columns(limit: str | None) -> list[Column]:
    """Heads of the full table."""
    return [
        text("kernel"),
        text("timer, cache"),
        number("median", "µs"),
        number("95 % interval", "± %"),
        number("spread of trials", "%"),
        number("bandwidth", "GB/s"),
        number(f"of {limit or 'limit'}", "%"),
        number(f"× {BASELINE}"),
        number("samples"),
        number("launches a sample"),
    ]


def case_table(f: Figures, problem: Problem) -> Table:
    """Every case of one problem; those without figures say why."""
    columns = case_columns(f.limit)
    reference_mhz = reference_clock_mhz(f.run.measurements)
    rows = [_case_cells(r, reference_mhz) for way in f.ways for r in f.passed(way) if r.problem == problem]
    rows += _without_figures(f, problem, span=len(columns) - 2)
    return table(fmt.problem(problem), columns, rows, note=_note(f, problem), group_by=1)


def _without_figures(f: Figures, problem: Problem, span: int) -> list[list[Cell | str]]:
    """A row a reason: kernels that lack figures for the same reason by the same timers share it."""
    ways_by_kernel: dict[tuple[Word, str], dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for r in f.rows:
        if r.problem == problem and r.summary is None:
            reason = fmt.line(r.verdict.reason or "passed, but has no samples")
            ways_by_kernel[r.verdict.word, reason][r.kernel].append(r.way.label)
    rows: list[list[Cell | str]] = []
    for (word, reason), by_kernel in ways_by_kernel.items():
        mark = "bad" if word in (Word.WRONG, Word.CRASHED) else "quiet"
        said = Cell(text=word, note=reason, mark=mark, columns=span)
        for ways in dict.fromkeys(tuple(each) for each in by_kernel.values()):
            kernels = [kernel for kernel, each in by_kernel.items() if tuple(each) == ways]
            alone = kernels[0] if len(kernels) == 1 else ""
            who = fmt.name(alone) if alone else fmt.listing([fmt.name(kernel) for kernel in kernels])
            when = "all" if len(ways) == len(f.ways) > 1 else " · ".join(ways)
            rows.append([Cell(text=who, kernel=alone), when, said])
    return rows


def _note(f: Figures, problem: Problem) -> str:
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
