"""Every trial's median against its case's time, one panel a way of timing."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from itertools import count
from typing import Any

import altair as alt

from harness.model import Role, TrialResult
from harness.stats import trial_medians_ns
from reports import format as fmt
from reports.charts import Chart, Panel
from reports.figures import Figures, Row, Way
from reports.marks import ACCENT, GRID, PAGE, Axis, dots, finish, kernel_marks, tooltips
from reports.tables import Cell, Table, number, table, text

QUANTILES = ("lowest, µs", "5 %, µs", "25 %, µs", "median, µs", "75 %, µs", "95 %, µs", "highest, µs")
LOOK, SAMPLES = ",.5r", {"samples": "d"}

FLOOR = "floor of the timer"
ONE_CASE = "One case, trial by trial"
ONE_CASE_DESCRIPTION = (
    "Quantiles of each trial's samples of the chosen case; the table below the picture has the figures."
)


def _deviations(row: Row) -> list[tuple[TrialResult, float, float]]:
    """(trial, its median in ns, its deviation from the case's as a fraction)."""
    medians = trial_medians_ns(row.measurement)
    if row.summary is None or not medians:
        return []
    centre = row.summary.median_ns.estimate
    return [(t, medians[t.trial], medians[t.trial] / centre - 1) for t in row.measurement.trials if t.trial in medians]


def panels(f: Figures) -> list[Panel]:
    """The quantiles of one case's trials; then deviation in %, a mark a trial."""
    if f.run.options.trials < 2:
        return []
    groups, number = _groups(f.gemv), count()
    numbered = [(title, folded, [(next(number), row) for row in rows]) for title, folded, rows in groups]
    cases = [(case, row) for *_, rows in numbered for case, row in rows]
    spreads = [(row.way == f.headline, row.summary.spread, -case) for case, row in cases if row.summary is not None]
    if not spreads:
        return []
    spec = _one_case(f.run.options.trials)
    first = Panel(title=ONE_CASE, description=ONE_CASE_DESCRIPTION, spec=spec, chosen=-max(spreads)[-1])
    return [first, *(_panel(f, title, rows, folded=folded) for title, folded, rows in numbered)]


def _groups(f: Figures) -> Iterator[tuple[str, bool, list[Row]]]:
    """(title, whether it is folded, rows) by way of timing and dtype; the floor stands with the first dtype."""
    for way in f.charted:
        for dtype in f.dtypes:
            floor = f.floor_row(way) if dtype == f.dtypes[0] else None
            rows = list(f.of_dtype(dtype).passed(way))
            if rows:
                title = way.label if len(f.dtypes) == 1 else f"{way.label}, {fmt.name(dtype)}"
                yield title, way in f.folded or dtype != f.dtypes[0], [*rows, *([floor] if floor else [])]


def _panel(f: Figures, title: str, cases: list[tuple[int, Row]], *, folded: bool) -> Panel:
    axis = Axis(
        title="trial's median against the case's time, %",
        label="datum.value == 0 ? '0 %' : format(datum.value * 100, '+.3~g') + ' %'",
        reference=0,
    )
    rows = [entry for case, row in cases for entry in _entries(case, row)]
    description = f"Deviation of each trial's median from its case's time, timed by {title}: {len(rows)} marks."
    shown = tuple(dict.fromkeys(row["kernel"] for row in rows))
    spec = dots(rows, kernel_marks(f), axis, {"value": "+.2%", **dict.fromkeys(QUANTILES, LOOK), **SAMPLES})
    return Panel(title=title, description=description, spec=spec, kernels=shown, folded=folded)


def _entries(case: int, row: Row) -> list[dict[str, Any]]:
    return [
        {
            "case": case,
            "kernel": row.kernel,
            "problem": place_of(row),
            "timer": row.way.label,
            "value": float(f"{deviation:.3g}"),
            "trial": str(trial.trial),
            **{name: float(f"{ns / 1e3:.5g}") for name, ns in zip(QUANTILES, quantiles_ns(trial), strict=True)},
            "samples": len(trial.samples_ns),
        }
        for trial, _, deviation in _deviations(row)
    ]


def place_of(row: Row) -> str:
    """The row's problem; the floor has none."""
    return FLOOR if row.role is Role.FLOOR else fmt.problem(row.problem)


def quantiles_ns(trial: TrialResult) -> tuple[float, ...]:
    """What `QUANTILES` names of a trial's samples, in ns; one sample is all of them."""
    samples = trial.samples_ns
    if len(samples) == 1:
        return samples * len(QUANTILES)
    twentieths = statistics.quantiles(samples, n=20, method="inclusive")
    return (min(samples), *(twentieths[place - 1] for place in (1, 5, 10, 15, 19)), max(samples))


def _one_case(trials: int) -> dict[str, Any]:
    """A line a trial, whose rows are put in when a case is chosen."""
    lowest, low, lower, median, upper, high, highest = QUANTILES
    base = alt.Chart(alt.NamedData(name="chosen")).encode(
        y=alt.Y("trial:N", title="trial", sort=None, axis=alt.Axis(domain=False)),
        tooltip=[
            alt.Tooltip(field="trial", type="nominal"),
            *tooltips([], {**dict.fromkeys(QUANTILES, LOOK), **SAMPLES}),
        ],
    )
    scale = alt.Scale(zero=False, nice=False, padding=14)
    axis = alt.Axis(title="µs a launch", gridColor=GRID, tickCount=6, labelOverlap="greedy")

    layers = []
    for start, end, width, opacity in ((lowest, highest, 1.2, 0.6), (low, high, 4, 0.4), (lower, upper, 11, 0.45)):
        x = alt.X(field=start, type="quantitative", scale=scale, axis=axis)
        rule = base.mark_rule(strokeWidth=width, opacity=opacity, color=ACCENT)
        layers.append(rule.encode(x=x, x2=alt.X2(field=end)))
    middle = base.mark_point(filled=True, size=70, color=ACCENT, opacity=1, stroke=PAGE, strokeWidth=1.5)
    layers.append(middle.encode(x=alt.X(field=median, type="quantitative")))
    return finish(alt.layer(*layers).properties(width="container", height=30 * trials))


def tables(f: Figures) -> list[Table]:
    """Every trial's median by case."""
    return [found for way in f.gemv.charted if (found := _table(f.gemv, way)).rows]


def _table(f: Figures, way: Way) -> Table:
    floor = f.floor_row(way)
    timed = (*f.passed(way), *([floor] if floor else []))
    trials = sorted({t.trial for row in timed for t in row.measurement.trials})
    rows: list[list[Cell | str]] = []
    for row in timed:
        by_trial = {t.trial: _cell(t, ns) for t, ns, _ in _deviations(row)}
        spread = row.summary.spread if row.summary is not None else 0.0
        medians = [by_trial.get(t, fmt.NONE) for t in trials]
        name = Cell(text=fmt.name(row.kernel), kernel=row.kernel)
        rows.append([place_of(row), name, *medians, fmt.percent_figure(spread)])
    heads = [text("problem"), text("kernel"), *(number(f"trial {t}", "µs") for t in trials), number("spread", "%")]
    caption = f"Timed by {way.label}: median by trial, with what 5 and 95{fmt.NBSP}% of its samples lie below"
    return table(caption, heads, rows, group_by=0)


def _cell(trial: TrialResult, median_ns: float) -> Cell:
    _, low, *_, high, _ = quantiles_ns(trial)
    around = f"{fmt.microseconds_figure(low)}–{fmt.microseconds_figure(high)}"
    return Cell(text=fmt.microseconds_figure(median_ns), note=around if len(trial.samples_ns) > 1 else "one sample")


CHARTS = (
    Chart(
        section="trials",
        title="Median of every trial, against its case's time",
        explanation=(
            "A mark is one trial, a process of its own. Marks on top of each other: the figure repeats. Groups apart "
            "from each other: the kernel has states that flip between processes, and no number of samples within one "
            "would have shown it. The panels' scales differ. First stands one case, the headline's whose trials lie "
            "furthest apart, trial by trial: a line from the lowest to the highest sample, thicker from 5 to "
            f"95{fmt.NBSP}% and from 25 to 75{fmt.NBSP}%, a mark at the median. A click on a mark below, or the list, "
            "chooses another."
        ),
        spec=panels,
        table=tables,
    ),
)
