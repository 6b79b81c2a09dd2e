"""Latency against T, one panel a weight, a line a kernel and dtype."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt

from harness.model import Problem, Role
from reports import format as fmt
from reports.charts import Chart, Panel
from reports.charts.roofline import colour_by_dtype, legend, shape_by_kernel
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

READ, FLOOR = "read, one token", "empty kernel: floor of the timer"
DASHES = {READ: [6, 8], FLOOR: [2, 4]}
"""The bounds' lines by what the legend calls them: names in the plot would cover lines on a small screen."""


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
            bounds = _bounds(f, weight, rows)
            description = f"Time of a launch in µs against T on {title}, both axes logarithmic: {count}."
            description += "".join(f" {bound['bound']}: {bound['time']}." for bound in bounds)
            spec = _spec(f, joined([_entry(f, row) for row in rows]), bounds)
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


def joined(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """With `stretch`, within which a line joins a kernel's points: it breaks at a T of the others that it lacks.

    Args:
        entries: with `tokens`, `dtype` and `kernel`.
    """
    places = {tokens: place for place, tokens in enumerate(sorted({entry["tokens"] for entry in entries}))}
    lines: dict[tuple[str, str], list[int]] = {}
    for entry in entries:
        lines.setdefault((entry["dtype"], entry["kernel"]), []).append(places[entry["tokens"]])
    return [
        entry | {"stretch": _stretch(places[entry["tokens"]], lines[entry["dtype"], entry["kernel"]])}
        for entry in entries
    ]


def _stretch(place: int, measured: Sequence[int]) -> int:
    """The first place from which on all up to `place` were measured."""
    while place - 1 in measured:
        place -= 1
    return place


def _bounds(f: Figures, weight: Weight, rows: Sequence[Row]) -> list[dict[str, Any]]:
    """What reading the weight takes for one token, by dtype; the floor where a figure is so short that it matters."""
    if f.headline is None:
        return []
    reads = [r for r in of_weight(f.passed(f.headline), weight) if r.role is Role.LIMIT and r.problem.n == 1]
    floor = f.floor_row(f.headline)
    found: list[tuple[Row, str | None]] = [(r, fmt.name(r.problem.dtype)) for r in reads]
    found += [(floor, None)] if floor is not None and any(is_short(row) for row in rows) else []
    return [
        {
            "us": round(median_ns(row) / 1e3, 4),
            "line": FLOOR if dtype is None else READ,
            "bound": FLOOR if dtype is None else f"{READ}, {dtype}",
            "dtype": dtype,
            "time": fmt.microseconds_pm(row.summary.median_ns),
        }
        for row, dtype in found
        if row.summary is not None
    ]


def _spec(f: Figures, entries: list[dict[str, Any]], bounds: list[dict[str, Any]]) -> dict[str, Any]:
    dtypes = list(dict.fromkeys(each["dtype"] for each in (*entries, *bounds) if each["dtype"]))
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
    lines = base.mark_line(strokeWidth=1.3, opacity=0.7).encode(detail=["kernel:N", "stretch:N"])
    marks = base.mark_point(filled=True, size=46, opacity=0.9)
    marks = marks.encode(shape=shape_by_kernel(f, kernels), tooltip=said)
    layers = (*_bound_layers(bounds, dtypes, y), lines, marks)
    return finish(alt.layer(*layers).properties(width="container", height=HEIGHT_PX))


def _bound_layers(bounds: list[dict[str, Any]], dtypes: list[str], y: alt.Y) -> list[alt.Chart]:
    """Dashed lines of their dtype's colour, the floor's grey; where two meet each shows in the other's gaps."""
    shown = [name for name in DASHES if any(bound["line"] == name for bound in bounds)]
    scale = alt.Scale(domain=shown, range=[DASHES[name] for name in shown])
    names = legend(columns=1, labelLimit=260, symbolSize=400, rowPadding=-6)
    dash = alt.StrokeDash("line:N", scale=scale, legend=names)
    told = [alt.Tooltip(f"{name}:N", title=name) for name in ("bound", "time")]
    layers = []
    for place, bound in enumerate(bounds):
        colour = alt.value(QUIET) if bound["dtype"] is None else colour_by_dtype(dtypes)
        rule = plot([bound]).mark_rule(strokeWidth=1.3, opacity=0.8, strokeDashOffset=7 * (place % 2))
        layers.append(rule.encode(y=y, color=colour, strokeDash=dash, tooltip=told))
    return layers


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
            "kernel. A line joins neighbouring T; where one was not measured, it breaks. Dashed in the dtype's colour: "
            "what reading the weight takes for one token. Dotted: the empty kernel, where a figure is below "
            f"{FLOOR_MATTERS_NS // 1000}{fmt.NBSP}µs."
        ),
        spec=panels,
        table=tables,
        others="The same for",
    ),
)
