"""The log-log roofline: measured bandwidth and peaks, one point a case."""

from __future__ import annotations

import json
from typing import Any

import altair as alt

from harness.ceilings import COMPUTED_IN
from harness.roofline import intensity_flop_per_byte
from harness.words import significant
from reports import format as fmt
from reports.charts import Chart, Panel
from reports.figures import Figures, Row
from reports.marks import GRID, QUIET, SHAPES, finish, kernel_marks, plot
from reports.roofline.points import flop_per_s, is_roofline, median_ns, of_attainable, points
from reports.tables import Cell, Table, number, table, text

STAR = "M0,-1L0.25,-0.25L1,0L0.25,0.25L0,1L-0.25,0.25L-1,0L-0.25,-0.25Z"
HEXAGON = "M-1,0L-0.5,-0.87L0.5,-0.87L1,0L0.5,0.87L-0.5,0.87Z"
HOURGLASS = "M-0.8,-0.9L0.8,-0.9L-0.8,0.9L0.8,0.9Z"

COLOURS = {
    "float32": "var(--series-0)", "tf32": "var(--series-5)", "float16": "var(--series-1)",
    "bfloat16": "var(--series-3)", "int8": "var(--series-2)",
}  # fmt: skip
"""By dtype, in every chart where colour tells dtypes apart."""

MORE_SHAPES = ("triangle-left", "triangle-right", STAR, HOURGLASS, HEXAGON)
"""By Vega's name or as a path within ±1: for kernels whose own shape is taken, since colour is the dtype here."""

HEIGHT_PX = 460
MARGIN = 1.3
"""By which the lines reach beyond the points."""


def colour_by_dtype(dtypes: list[str], **more: Any) -> alt.Color:
    """The same colours in every chart; a dtype that is none of ours is grey. `more` goes to the legend."""
    looks = [COLOURS.get(dtype, "var(--limit)") for dtype in dtypes]
    return alt.Color("dtype:N", scale=alt.Scale(domain=dtypes, range=looks), legend=legend(**more))


def shape_by_kernel(f: Figures, kernels: list[str], *, filled: bool = True) -> alt.Shape:
    """The kernel's shape everywhere on the page; another where it is taken, as colour tells dtypes apart here.

    In the legend in the page's grey, where Vega would take black, which a dark page hides; `filled` as the marks are.
    """
    looks = {fmt.name(kernel): mark.shape for kernel, mark in kernel_marks(f).items()}
    shapes: list[str] = []
    for kernel in kernels:
        free = (shape for shape in (looks.get(kernel, SHAPES[0]), *MORE_SHAPES, *SHAPES) if shape not in shapes)
        shapes.append(next(free, SHAPES[0]))
    look = {"symbolFillColor": QUIET} if filled else {"symbolStrokeColor": QUIET}
    return alt.Shape("kernel:N", scale=alt.Scale(domain=kernels, range=shapes), legend=legend(**look))


def legend(**more: Any) -> alt.Legend:
    """Above the plot, narrow enough for a small screen."""
    look = {"symbolSize": 60, "columns": 2, "labelLimit": 130} | more
    return alt.Legend(title=None, orient="top", labelColor=QUIET, **look)


def panels(f: Figures) -> list[Panel]:
    """One panel with every dtype; none without a roof."""
    rows = points(f) if is_roofline(f) and f.ceilings.measured else ()
    if not rows:
        return []
    entries = [_entry(f, row) for row in rows]
    description = (
        f"Log-log roofline: {fmt.count(len(entries), 'case')} by FLOP a byte and TFLOP/s, under the measured read "
        "bandwidth and the measured peak of each dtype."
    )
    way = f.headline.label if f.headline else ""
    return [Panel(title=f"Timed by {way}", description=description, spec=_spec(f, entries), wide=True)]


def _entry(f: Figures, row: Row) -> dict[str, Any]:
    attainable = of_attainable(f, row)
    return {
        "ai": round(intensity_flop_per_byte(row.problem), 4),
        "rate": round(flop_per_s(row) / 1e12, 5),
        "dtype": fmt.name(row.problem.dtype),
        "kernel": fmt.name(row.kernel),
        "case": fmt.line(row.measurement.case.id),
        "time": _time(row),
        "intensity": f"{significant(intensity_flop_per_byte(row.problem), 3)}{fmt.NBSP}FLOP/byte",
        "speed": fmt.tflop_per_s(flop_per_s(row)),
        "of attainable": "unknown" if attainable is None else fmt.percent(attainable),
    }


def _time(row: Row) -> str:
    if row.summary is None:
        return "unknown"
    return f"{fmt.microseconds_pm(row.summary.median_ns)}, trials {fmt.percent(row.summary.spread)} apart"


def _spec(f: Figures, entries: list[dict[str, Any]]) -> dict[str, Any]:
    kernels = list(dict.fromkeys(entry["kernel"] for entry in entries))
    left, right = min(e["ai"] for e in entries) / MARGIN, max(e["ai"] for e in entries) * MARGIN
    roofs = _roofs(f, [dtype for dtype in f.dtypes if dtype not in COMPUTED_IN], left, right)
    dtypes = list(dict.fromkeys(each["dtype"] for each in (*entries, *roofs)))
    tops = [e["rate"] for e in entries] + [r["rate"] for r in roofs]
    x = alt.X(
        "ai:Q",
        scale=alt.Scale(type="log", domain=[left, right], nice=False),
        axis=alt.Axis(title="arithmetic intensity, FLOP/byte", gridColor=GRID, format="~g", labelOverlap="greedy"),
    )
    y = alt.Y(
        "rate:Q",
        scale=alt.Scale(type="log", domain=[min(tops) / MARGIN, max(tops) * MARGIN], nice=False),
        axis=alt.Axis(title="TFLOP/s", gridColor=GRID, format="~g", labelOverlap="greedy", domain=False),
    )
    said = [alt.Tooltip(f"{name}:N", title=name) for name in ("case", "time", "intensity", "speed", "of attainable")]
    # In the legend, not at their lines: on a small screen such labels cover points.
    named = json.dumps({dtype: dtype for dtype in dtypes} | {roof["dtype"]: roof["name"] for roof in roofs})
    colour = colour_by_dtype(dtypes, columns=1, labelLimit=260, labelExpr=f"({named})[datum.label]")
    marks = (
        plot(entries)
        .mark_point(filled=True, size=48, opacity=0.75)
        .encode(x=x, y=y, color=colour, shape=shape_by_kernel(f, kernels))
        .encode(tooltip=said)
    )
    layers: list[Any] = [marks]
    if roofs:
        line = plot(roofs).encode(x=x, y=y, color=colour, detail="name:N")
        layers = [line.mark_line(strokeWidth=1.6), marks]
    return finish(alt.layer(*layers).properties(width="container", height=HEIGHT_PX))


def _roofs(f: Figures, dtypes: list[str], left: float, right: float) -> list[dict[str, Any]]:
    """Up the bandwidth's slope to the ridge, then along the roof; a dtype without a measured peak has none."""
    found = []
    for dtype in dtypes:
        peak, ridge = f.ceilings.peak(dtype), f.ceilings.ridge_flop_per_byte(dtype)
        if peak is None or peak.per_s is None or ridge is None:
            continue
        roof = peak.per_s.estimate / 1e12
        name = f"{fmt.name(dtype)}: {fmt.tflop_per_s(peak.per_s.estimate)}"
        places = [left, *([ridge] if left < ridge < right else []), right]
        found += [
            {"ai": at, "rate": round(roof * min(1.0, at / ridge), 5), "dtype": fmt.name(dtype), "name": name}
            for at in places
        ]
    return found


def tables(f: Figures) -> list[Table]:
    """The nearest and the farthest of each kernel and dtype; every case is in the tables of the batch."""
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in points(f):
        groups.setdefault((row.kernel, row.problem.dtype), []).append(row)
    lines: list[list[Cell | str]] = []
    for (kernel, dtype), rows in groups.items():
        known = [(share, row) for row in rows if (share := of_attainable(f, row)) is not None]
        ends = [pick(known, key=lambda pair: pair[0]) for pick in (min, max)] if known else []
        for share, row in dict(ends).items():
            name = Cell(text=fmt.name(kernel), kernel=kernel)
            speed, ai = fmt.tflop_per_s_figure(flop_per_s(row)), significant(intensity_flop_per_byte(row.problem), 3)
            figure = fmt.microseconds_figure(median_ns(row))
            half = row.summary.median_ns.half_width if row.summary else None
            around = fmt.NONE if half is None else fmt.percent_figure(half)
            lines.append(
                [name, fmt.name(dtype), fmt.problem(row.problem), figure, around, ai, speed, fmt.percent_figure(share)]
            )
    heads = [
        text("kernel"), text("dtype"), text("problem"), number("time", "µs"), number("95 % interval", "± %"),
        number("intensity", "FLOP/byte"), number("speed", "TFLOP/s"), number("of attainable", "%"),
    ]  # fmt: skip
    way = f.headline.label if f.headline else ""
    found = table(f"Farthest from and nearest to what is attainable, by {way}", heads, lines, group_by=0)
    return [found] if lines else []


CHARTS = (
    Chart(
        section="roofline",
        title="Roofline: every product under the measured ceilings",
        explanation=(
            "The slope is the measured read bandwidth, the flat part each dtype's measured matrix peak, which stands "
            "behind its name: left of the ridge bytes bound a product, right of it arithmetic. Least bytes are "
            "counted, so what is still in cache can stand above the slope. A peak is what a large product sustains, "
            "often at the power limit and so at a lower SM clock, which the ceilings' table tells: a short product can "
            "stand above it. int8 weights are multiplied as float16."
        ),
        spec=panels,
        table=tables,
    ),
)
