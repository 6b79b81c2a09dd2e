"""The reference's shapes by the host's clock and by device time, side by side."""

from __future__ import annotations

from typing import Any

import altair as alt

from harness.model import Problem
from reports import format as fmt
from reports.charts import Chart, Panel
from reports.figures import Figures
from reports.launch_rate import launch_rate, rows_of, ways
from reports.marks import GRID, QUIET, finish, plot
from reports.tables import Table

LOOKS = (("var(--accent)", "circle"), ("var(--series-1)", "square"), ("var(--series-2)", "diamond"))
"""One a way of timing: here colour tells timers apart, not kernels."""


def panels(f: Figures) -> list[Panel]:
    """One panel a problem: a line a kernel, a mark a timer."""
    found = launch_rate(f)
    return [_panel(f, problem) for problem in found.problems] if found else []


def _panel(f: Figures, problem: Problem) -> Panel:
    rows: list[dict[str, Any]] = []
    for way in ways(f):
        for row in rows_of(f, problem, way):
            if row.summary is not None:
                median = row.summary.median_ns
                entry = {"kernel": fmt.name(row.kernel), "timer": way.label, "value": median.estimate / 1e3}
                rows.append(entry | {"time": fmt.microseconds_pm(median)})
        if way in f.floors:
            floor = f.floors[way].median_ns
            entry = {"kernel": "(empty kernel)", "timer": way.label, "value": floor.estimate / 1e3}
            rows.append(entry | {"time": fmt.microseconds_pm(floor)})
    description = f"Time of a launch on {fmt.problem(problem)} in µs by timer, for each kernel."
    return Panel(title=fmt.problem(problem), description=description, spec=_spec(rows))


def _spec(rows: list[dict[str, Any]]) -> dict[str, Any]:
    timers = list(dict.fromkeys(row["timer"] for row in rows))
    kernels = sorted(dict.fromkeys(row["kernel"] for row in rows), key=lambda name: name == "(empty kernel)")
    base = plot(rows).encode(
        y=alt.Y("kernel:N", sort=None, scale=alt.Scale(domain=kernels), axis=_kernel_axis()),
        tooltip=["kernel:N", "timer:N", alt.Tooltip("time:N", title="time")],
    )
    legend = alt.Legend(title=None, orient="top", labelColor=QUIET, symbolSize=70)
    points = (
        base.encode(yOffset=alt.YOffset("timer:N", scale=alt.Scale(domain=timers, padding=0.8)))
        .mark_point(filled=True, size=70, opacity=1)
        .encode(
            x=alt.X(
                "value:Q",
                scale=alt.Scale(domainMin=0),
                axis=alt.Axis(title="µs a launch", gridColor=GRID, tickCount=6),
            ),
            color=alt.Color(
                "timer:N", scale=alt.Scale(domain=timers, range=[c for c, _ in LOOKS[: len(timers)]]), legend=legend
            ),
            shape=alt.Shape("timer:N", scale=alt.Scale(domain=timers, range=[s for _, s in LOOKS[: len(timers)]])),
        )
    )
    spans = base.mark_rule(color=GRID, strokeWidth=3).encode(
        x="min(value):Q", x2="max(value):Q", tooltip=alt.value(None)
    )
    return finish(alt.layer(spans, points).properties(width="container", height=len(kernels) * 34))


def _kernel_axis() -> alt.Axis:
    return alt.Axis(title=None, domain=False, labelLimit=150, labelPadding=8)


def tables(f: Figures) -> list[Table]:
    """The section's tables."""
    found = launch_rate(f)
    return list(found.tables) if found else []


CHARTS = (
    Chart(
        section="launches",
        title="A launch by the host's clock and by device time, µs",
        explanation=(
            "The grey line joins one kernel's figures by different timers: its length is what the host adds, not what "
            "the kernel costs. read only reads A and x; the empty kernel does nothing. Figures of different timers "
            "stand beside each other to show that they are different things; no ratio is taken between them."
        ),
        spec=panels,
        table=tables,
    ),
)
