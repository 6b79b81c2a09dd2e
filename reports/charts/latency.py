"""Latency against T, one panel a weight, a line a kernel and dtype."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt

from harness.model import Problem, Role
from reports import format as fmt
from reports.charts import Chart, Panel
from reports.charts.roofline import colour_by_dtype, shape_by_kernel
from reports.figures import FLOOR_MATTERS_NS, Figures, Row, Way
from reports.marks import GRID, QUIET, finish, plot
from reports.roofline.llama import LAYERS
from reports.roofline.points import (
    Weight,
    flop_per_s,
    median_ns,
    of_attainable,
    of_weight,
    points,
    weight_label,
    weights,
)
from reports.tables import Cell, Table, number, table, text
from reports.takeaway import is_short

HEIGHT_PX = 320
NEAR = 1.3
"""Lines nearer to each other than this factor are told in one line of text."""


def weight_title(weight: Weight) -> str:
    """With the layer's name where it is LLaMA-7B's: `12288×4096, LLaMA-7B QKV`."""
    named = next((layer.name for layer in LAYERS if layer.weight == weight), "")
    return f"{weight_label(weight)}{f', LLaMA-7B {named}' if named else ''}"


def panels(f: Figures) -> list[Panel]:
    """The first weight at once, the others when their box is opened."""
    found: list[Panel] = []
    for weight in weights(f):
        rows = of_weight(points(f), weight)
        if rows:
            title, count = weight_title(weight), fmt.count(len(rows), "case")
            description = f"Median time of a launch in µs against T on {title}, both axes logarithmic: {count}."
            spec = _spec(f, [_entry(f, row) for row in rows], _bounds(f, weight, rows))
            found.append(Panel(title=title, description=description, spec=spec, wide=not found, folded=bool(found)))
    return found


def _entry(f: Figures, row: Row) -> dict[str, Any]:
    attainable = of_attainable(f, row)
    median = row.summary.median_ns if row.summary else None
    return {
        "tokens": row.problem.n,
        "us": round(median_ns(row) / 1e3, 4),
        "dtype": fmt.name(row.problem.dtype),
        "kernel": fmt.name(row.kernel),
        "T": str(row.problem.n),
        "time": "unknown" if median is None else fmt.microseconds_pm(median),
        "speed": fmt.tflop_per_s(flop_per_s(row)),
        "of attainable": "unknown" if attainable is None else fmt.percent(attainable),
    }


def _bounds(f: Figures, weight: Weight, rows: Sequence[Row]) -> list[dict[str, Any]]:
    """What reading the weight takes for one token, by dtype; the floor where a figure is so short that it matters."""
    if f.headline is None:
        return []
    reads = [r for r in of_weight(f.passed(f.headline), weight) if r.role is Role.LIMIT and r.problem.n == 1]
    floor = f.floor_row(f.headline)
    found = [(r, fmt.name(r.problem.dtype)) for r in reads]
    found += [(floor, "")] if floor is not None and any(is_short(row) for row in rows) else []
    return [
        {
            "us": round(median_ns(row) / 1e3, 4),
            "bound": f"{fmt.name(row.kernel)}, {dtype}" if dtype else f"{fmt.name(row.kernel)}: floor of the timer",
            "dtype": dtype or None,
            "time": fmt.microseconds_pm(row.summary.median_ns),
        }
        for row, dtype in found
        if row.summary is not None
    ]


def _spec(f: Figures, entries: list[dict[str, Any]], bounds: list[dict[str, Any]]) -> dict[str, Any]:
    dtypes = list(dict.fromkeys(entry["dtype"] for entry in entries))
    kernels = list(dict.fromkeys(entry["kernel"] for entry in entries))
    ticks = sorted({entry["tokens"] for entry in entries})
    scale = alt.Scale(type="log", base=2, nice=False, padding=10)
    x = alt.X("tokens:Q", scale=scale, axis=alt.Axis(title="T, tokens", values=ticks, gridColor=GRID, format="d"))
    y = alt.Y(
        "us:Q",
        scale=alt.Scale(type="log", nice=False, padding=10),
        axis=alt.Axis(title="µs a launch", gridColor=GRID, format="~g", labelOverlap="greedy", domain=False),
    )
    said = [alt.Tooltip(f"{name}:N", title=name) for name in ("kernel", "dtype", "T", "time", "speed", "of attainable")]
    base = plot(entries).encode(x=x, y=y, color=colour_by_dtype(dtypes))
    lines = base.mark_line(strokeWidth=1.3, opacity=0.7).encode(detail="kernel:N")
    marks = base.mark_point(filled=True, size=46, opacity=0.9)
    marks = marks.encode(shape=shape_by_kernel(f, kernels), tooltip=said)
    return finish(
        alt.layer(*_bound_layers(bounds, dtypes, y), lines, marks).properties(width="container", height=HEIGHT_PX)
    )


def _bound_layers(bounds: list[dict[str, Any]], dtypes: list[str], y: alt.Y) -> list[alt.Chart]:
    """Dashed, with their names at the right end; the floor is grey."""
    layers = []
    of_dtypes, floor = ([b for b in bounds if bool(b["dtype"]) is known] for known in (True, False))
    for own, colour in ((of_dtypes, colour_by_dtype(dtypes)), (floor, alt.value(QUIET))):
        if own:
            base = plot(own).encode(y=y, color=colour)
            told = [alt.Tooltip(f"{name}:N", title=name) for name in ("bound", "time")]
            layers.append(base.mark_rule(strokeDash=[5, 4], strokeWidth=1.3, opacity=0.8).encode(tooltip=told))
    names = plot(_names(bounds)).mark_text(align="right", baseline="bottom", dy=-3, fontSize=10.5, color=QUIET)
    return [*layers, names.encode(y=y, x=alt.value("width"), text="bound:N")] if layers else []


def _names(bounds: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Where to write what; bounds that nearly meet share a line of text."""
    found: list[dict[str, Any]] = []
    for bound in sorted(bounds, key=lambda each: -each["us"]):
        if found and found[-1]["us"] < bound["us"] * NEAR:
            found[-1]["bound"] += f" · {bound['dtype'] or bound['bound']}"
        else:
            found.append({"us": bound["us"], "bound": bound["bound"]})
    return found


def tables(f: Figures) -> list[Table]:
    """Every case of a weight, one table a weight."""
    return [_table(f, weight) for weight in weights(f)]


def _table(f: Figures, weight: Weight) -> Table:
    """A row a problem and kernel; what follows from a time follows from the headline's."""
    others = [way for way in f.ways if way != f.headline and of_weight(points(f, way), weight)]
    own = [r for way in (f.headline, *others) if way for r in of_weight(points(f, way), weight)]
    places = dict.fromkeys((r.problem, r.kernel) for r in own)
    order = sorted(places, key=lambda place: (f.dtypes.index(place[0].dtype), place[0].n))
    led_by = f.headline.label if f.headline else ""
    heads = [
        text("dtype"), number("T"), text("kernel"), number(led_by, "µs"), number("95 % interval", "± %"),
        number("spread of trials", "%"), number("speed", "TFLOP/s"), number("bandwidth", "GB/s"),
        number("of attainable", "%"),
    ]  # fmt: skip
    for way in others:
        heads += [number(way.label, "µs"), number("95 % interval", "± %")]
    lines = [_cells(f, problem, kernel, others) for problem, kernel in order]
    return table(weight_title(weight), heads, lines, group_by=1)


def _cells(f: Figures, problem: Problem, kernel: str, others: Sequence[Way]) -> list[Cell | str]:
    row = f.find(kernel, problem, f.headline) if f.headline else None
    cells: list[Cell | str] = [
        fmt.name(problem.dtype),
        str(problem.n),
        Cell(text=fmt.name(kernel), kernel=kernel),
        *_time(row),
        *(_derived(f, row) if row is not None and row.summary is not None else [fmt.NONE] * 4),
    ]
    for way in others:
        cells += _time(f.find(kernel, problem, way))
    return cells


def _time(row: Row | None) -> list[str]:
    if row is None or row.summary is None:
        return [fmt.NONE, fmt.NONE]
    half = row.summary.median_ns.half_width
    return [fmt.microseconds_figure(median_ns(row)), fmt.NONE if half is None else fmt.percent_figure(half)]


def _derived(f: Figures, row: Row) -> list[str]:
    attainable, summary = of_attainable(f, row), row.summary
    several = summary is not None and len(summary.trial_medians_ns) > 1
    return [
        fmt.percent_figure(summary.spread) if summary and several else fmt.NONE,
        fmt.tflop_per_s_figure(flop_per_s(row)),
        fmt.NONE if row.gb_per_s is None else fmt.gb_per_s_figure(row.gb_per_s),
        fmt.NONE if attainable is None else fmt.percent_figure(attainable),
    ]


CHARTS = (
    Chart(
        section="latency",
        title="Time of a launch against T",
        explanation=(
            "The same weight with T tokens. Flat: the weight's bytes take the time, and more tokens cost next to "
            "nothing. Rising as T does: arithmetic takes it. Both axes are logarithmic; colour is the dtype, shape the "
            "kernel. Dashed: what reading the weight takes for one token, and the empty kernel where a figure is below "
            f"{FLOOR_MATTERS_NS // 1000}{fmt.NBSP}µs."
        ),
        spec=panels,
        table=tables,
        others="The same for",
    ),
)
