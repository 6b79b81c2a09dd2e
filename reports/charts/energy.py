"""Energy a token against T, one panel a weight."""

from __future__ import annotations

from typing import Any

import altair as alt

from harness.words import significant
from reports import format as fmt
from reports.charts import Chart, Panel
from reports.charts.latency import joined, weight_title
from reports.charts.roofline import colour_by_dtype, shape_by_kernel
from reports.figures import Figures
from reports.marks import GRID, finish, plot
from reports.roofline.energy import Taken, energy_tables, taken

HEIGHT_PX = 260


def panels(f: Figures) -> list[Panel]:
    """One a weight that was measured with several T."""
    by_weight: dict[tuple[int, int], list[Taken]] = {}
    for each in taken(f):
        by_weight.setdefault((each.row.problem.m, each.row.problem.k), []).append(each)
    found: list[Panel] = []
    for weight, own in by_weight.items():
        if len({each.row.problem.n for each in own}) > 1:
            description = f"Energy a token in mJ against T on {weight_title(weight)}, both axes logarithmic."
            spec = _spec(f, joined([_entry(each) for each in own]))
            found.append(Panel(title=weight_title(weight), description=description, spec=spec, folded=len(found) > 1))
    return found


def _entry(each: Taken) -> dict[str, Any]:
    idle = "unknown" if each.idle_watts is None else f"{significant(each.idle_watts, 3)}{fmt.NBSP}W"
    return {
        "tokens": each.row.problem.n,
        "mj": float(f"{each.mj_per_token:.5g}"),
        "dtype": fmt.name(each.row.problem.dtype),
        "kernel": fmt.name(each.row.kernel),
        "T": str(each.row.problem.n),
        "a token": f"{fmt.millijoules_figure(each.mj_per_token)}{fmt.NBSP}mJ",
        "a launch": f"{fmt.millijoules_figure(each.mj_per_launch.estimate)}{fmt.NBSP}mJ "
        f"{fmt.plus_minus(each.mj_per_launch)}",
        "board": f"{significant(each.watts, 3)}{fmt.NBSP}W",
        "idle": idle,
    }


def _spec(f: Figures, entries: list[dict[str, Any]]) -> dict[str, Any]:
    dtypes = list(dict.fromkeys(entry["dtype"] for entry in entries))
    kernels = list(dict.fromkeys(entry["kernel"] for entry in entries))
    ticks = sorted({entry["tokens"] for entry in entries})
    scale = alt.Scale(type="log", base=2, nice=False, padding=14)
    x = alt.X("tokens:Q", scale=scale, axis=alt.Axis(title="T, tokens", values=ticks, gridColor=GRID, format="d"))
    y = alt.Y(
        "mj:Q",
        scale=alt.Scale(type="log", nice=False, padding=14),
        axis=alt.Axis(title="mJ a token", gridColor=GRID, format="~g", labelOverlap="greedy", domain=False),
    )
    names = ("kernel", "dtype", "T", "a token", "a launch", "board", "idle")
    said = [alt.Tooltip(f"{name}:N", title=name) for name in names]
    base = plot(entries).encode(x=x, y=y, color=colour_by_dtype(dtypes))
    lines = base.mark_line(strokeWidth=1.3, opacity=0.7).encode(detail=["kernel:N", "stretch:N"])
    marks = base.mark_point(filled=False, size=60, strokeWidth=1.6)  # two kernels may take the same
    marks = marks.encode(shape=shape_by_kernel(f, kernels, filled=False), tooltip=said)
    return finish(alt.layer(lines, marks).properties(width="container", height=HEIGHT_PX))


CHARTS = (
    Chart(
        section="energy",
        title="Energy a token against T",
        explanation=(
            "Energy of the whole board for one launch, over its tokens, idle power included. Both axes are "
            "logarithmic: a straight fall by half for each doubling of T means that a launch takes the same however "
            "many tokens it has. A line joins neighbouring T; where one was not measured, it breaks."
        ),
        spec=panels,
        table=energy_tables,
        others="The same for",
    ),
)
