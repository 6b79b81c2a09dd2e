"""Every trial's median against its case's, one panel a way of timing."""

from __future__ import annotations

import statistics
from typing import Any

from harness.model import TrialResult
from harness.stats import trial_medians_ns
from reports import format as fmt
from reports.charts import Chart, Panel
from reports.figures import Figures, Row, Way
from reports.marks import Axis, dots, kernel_marks
from reports.tables import Cell, Table, number, table, text


def _deviations(row: Row) -> list[tuple[TrialResult, float, float]]:
    """(trial, its median in ns, its deviation from the case's as a fraction)."""
    medians = trial_medians_ns(row.measurement)
    if row.summary is None or not medians:
        return []
    centre = row.summary.median_ns.estimate
    return [(t, medians[t.trial], medians[t.trial] / centre - 1) for t in row.measurement.trials if t.trial in medians]


def _inside(trial: TrialResult) -> str:
    """The middle four fifths of a trial's samples."""
    if len(trial.samples_ns) < 2:
        return fmt.microseconds(trial.samples_ns[0])
    tenths = statistics.quantiles(trial.samples_ns, n=10, method="inclusive")
    return f"{fmt.microseconds_figure(tenths[0])} to {fmt.microseconds(tenths[-1])}"


def panels(f: Figures) -> list[Panel]:
    """Deviation in %, a mark a trial."""
    if f.run.options.trials < 2:
        return []
    marks = kernel_marks(f)
    axis = Axis(
        title="trial's median against the case's, %",
        label="datum.value == 0 ? '0 %' : format(datum.value * 100, '+.3~g') + ' %'",
        reference=0,
    )
    found = []
    for way in f.gemv.charted:
        for dtype in f.gemv.dtypes:
            rows = [entry for row in f.gemv.of_dtype(dtype).passed(way) for entry in _entries(row)]
            if rows:
                title = way.label if len(f.gemv.dtypes) == 1 else f"{way.label}, {fmt.name(dtype)}"
                description = f"Deviation of each trial's median from its case's, timed by {title}: {len(rows)} marks."
                shown = tuple(dict.fromkeys(row["kernel"] for row in rows))
                spec = dots(rows, marks, axis)
                folded = way in f.gemv.folded or dtype != f.gemv.dtypes[0]
                found.append(Panel(title=title, description=description, spec=spec, kernels=shown, folded=folded))
    return found


def _entries(row: Row) -> list[dict[str, Any]]:
    return [
        {
            "kernel": row.kernel,
            "problem": fmt.problem(row.problem),
            "value": round(deviation, 6),
            "trial": str(trial.trial),
            "median": f"{fmt.microseconds(ns)} ({fmt.signed_percent(deviation)})",
            "middle 80 %": _inside(trial),
        }
        for trial, ns, deviation in _deviations(row)
    ]


def tables(f: Figures) -> list[Table]:
    """Every trial's median by case."""
    return [found for way in f.gemv.charted if (found := _table(f.gemv, way)).rows]


def _table(f: Figures, way: Way) -> Table:
    trials = sorted({t.trial for row in f.passed(way) for t in row.measurement.trials})
    rows: list[list[Cell | str]] = []
    for row in f.passed(way):
        by_trial = {t.trial: ns for t, ns, _ in _deviations(row)}
        spread = row.summary.spread if row.summary is not None else 0.0
        medians = [fmt.microseconds_figure(by_trial[t]) if t in by_trial else fmt.NONE for t in trials]
        name = Cell(text=fmt.name(row.kernel), kernel=row.kernel)
        rows.append([fmt.problem(row.problem), name, *medians, fmt.percent_figure(spread)])
    heads = [text("problem"), text("kernel"), *(number(f"trial {t}", "µs") for t in trials), number("spread", "%")]
    return table(f"Timed by {way.label}: median by trial", heads, rows, group_by=0)


CHARTS = (
    Chart(
        section="trials",
        title="Median of every trial, against its case's",
        explanation=(
            "A mark is one trial, a process of its own. Marks on top of each other: the figure repeats. Groups apart "
            "from each other: the kernel has states that flip between processes, and no number of samples within one "
            "would have shown it. The panels' scales differ."
        ),
        spec=panels,
        table=tables,
    ),
)
