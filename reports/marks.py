"""How kernels look in every chart and table, and the one kind of plot that most charts are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

from reports import format as fmt
from reports.figures import BASELINE, Figures

COLOURS = 7
"""Series colours of the style sheet (after Okabe and Ito): `--series-0` and so on."""

SHAPES = ("circle", "square", "triangle-up", "diamond", "triangle-down", "cross")
"""With colour, so that nobody needs to see colour; 7 and 6 share no factor, so 42 kernels differ."""

BREAK = ", "
"""Between the parts of a problem's name; at an axis each has a line of its own, so that none is cut off."""

LABEL_PX = 15
"""Height of such a line."""

ROW_PX = 13
"""Height of one kernel's line in a plot by problem."""

INK, QUIET, GRID, RULE = "var(--ink)", "var(--ink-2)", "var(--grid)", "var(--ink-2)"


@dataclass(frozen=True, kw_only=True)
class Mark:
    """A kernel's look."""

    colour: str
    shape: str


def kernel_marks(f: Figures) -> dict[str, Mark]:
    """By kernel: torch's baseline and the limit in greys, every other in a colour and shape of its own."""
    marks: dict[str, Mark] = {}
    free = 0
    for kernel in f.kernels:
        if kernel in (BASELINE, f.limit):
            colour = "var(--baseline)" if kernel == BASELINE else "var(--limit)"
            marks[kernel] = Mark(colour=colour, shape="square" if kernel == BASELINE else "cross")
        else:
            marks[kernel] = Mark(colour=f"var(--series-{free % COLOURS})", shape=SHAPES[free % len(SHAPES)])
            free += 1
    return marks


@dataclass(frozen=True, kw_only=True)
class Axis:
    """The value axis of a plot."""

    title: str
    """With unit."""
    label: str = "datum.label"
    """Vega expression of a tick's text."""
    reference: float | None = None
    """Where a line stands that values are compared with."""
    reference_name: str = ""
    """What the line stands for, written at its upper end."""
    log: bool = False
    """True for ratios, where 2 and ½ are equally far from 1."""
    zero: bool = False
    """True: the axis starts at 0."""


def dots(rows: Sequence[dict[str, Any]], marks: dict[str, Mark], axis: Axis) -> dict[str, Any]:
    """A plot with a band a problem and in it a line a kernel.

    Args:
        rows: one a mark: `problem`, `kernel`, `value`, and where known `low` and `high`; all other entries with text
            are shown on hover under their own name, which holds no dot (Vega would look inside it).
        marks: each kernel's look.
        axis: of the values.
    """
    present = {row["kernel"] for row in rows}
    looks = {fmt.name(kernel): mark for kernel, mark in marks.items() if kernel in present}
    kernels = list(looks)
    problems = list(dict.fromkeys(row["problem"] for row in rows))
    base = plot([{**row, "kernel": fmt.name(row["kernel"])} for row in rows]).encode(
        y=_bands(problems),
        yOffset=alt.YOffset("kernel:N", scale=alt.Scale(domain=kernels, padding=0.9), sort=None),
        color=_by_kernel(kernels, [looks[k].colour for k in kernels], alt.Color),
        tooltip=[alt.Tooltip(f"{name}:N", title=name) for name in _said(rows)],
    )
    x = _value_axis(axis)
    points = base.mark_point(filled=True, size=52, opacity=0.85).encode(
        x=x, shape=_by_kernel(kernels, [looks[k].shape for k in kernels], alt.Shape)
    )
    layers = [points]
    if any("low" in row for row in rows):
        layers.insert(0, base.mark_rule(strokeWidth=1.6, opacity=0.75).encode(x=alt.X("low:Q"), x2="high:Q"))
    if axis.reference is not None:
        layers = [*_reference(axis), *layers]
    deepest = max(len(problem.split(BREAK)) for problem in problems)
    height = max(60, len(problems) * max(len(kernels) * ROW_PX + 14, deepest * LABEL_PX))
    return finish(alt.layer(*layers).properties(width="container", height=height))


def plot(rows: Sequence[dict[str, Any]]) -> alt.Chart:
    """A plot of rows that stand in the page itself; altair's own limit on rows is for tables of samples."""
    return alt.Chart(alt.Data(values=list(rows)))  # type: ignore[no-untyped-call] # altair leaves it unannotated


def finish(chart: alt.LayerChart | alt.FacetChart | alt.Chart) -> dict[str, Any]:
    """The plot's specification without the address of its schema, which nothing must fetch.

    Not held against that schema: it takes seconds for a page's hundreds of marks, and tests draw every chart.
    """
    spec: dict[str, Any] = chart.to_dict(validate=False)
    spec.pop("$schema", None)
    spec.pop("config", None)  # the page's own
    return spec


def _reference(axis: Axis) -> list[alt.Chart]:
    """The line that values are compared with, and its name above it."""
    line = plot([{"at": axis.reference, "name": axis.reference_name}]).encode(x="at:Q")
    drawn = [line.mark_rule(color=RULE, strokeWidth=1.2)]
    if axis.reference_name:
        above = line.mark_text(baseline="bottom", dy=-5, fontSize=11, color=QUIET)
        drawn.append(above.encode(y=alt.value(0), text="name:N"))
    return drawn


def _bands(problems: list[str]) -> alt.Y:
    lines = f"split(datum.label, '{BREAK}')"
    axis = alt.Axis(
        title=None, grid=True, gridColor=GRID, bandPosition=0, domain=False, labelPadding=8, labelLimit=120,
        labelExpr=lines, labelLineHeight=LABEL_PX, labelOffset=alt.expr(f"(1 - length({lines})) * {LABEL_PX / 2}"),
    )  # fmt: skip
    return alt.Y("problem:N", sort=None, scale=alt.Scale(domain=problems, paddingInner=0, paddingOuter=0), axis=axis)


def _value_axis(axis: Axis) -> alt.X:
    scale = alt.Scale(zero=axis.zero, nice=axis.zero, padding=0 if axis.zero else 14)
    if axis.log:
        scale = alt.Scale(type="log", base=2, nice=False, padding=14)
    shown = alt.Axis(
        title=axis.title,
        labelExpr=axis.label,
        tickCount=5,
        gridColor=GRID,
        domain=False,
        labelOverlap="greedy",
        labelSeparation=10,
    )
    return alt.X("value:Q", scale=scale, axis=shown)


def _by_kernel(kernels: list[str], looks: list[str], channel: Any) -> Any:
    return channel("kernel:N", scale=alt.Scale(domain=kernels, range=looks), legend=None)


def _said(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Entries that are text, in order of appearance."""
    return list(dict.fromkeys(name for row in rows for name, value in row.items() if isinstance(value, str)))


def page_config() -> dict[str, Any]:
    """Vega-Lite configuration of every chart; colours follow the page into dark and onto paper."""
    font = 'ui-sans-serif, system-ui, -apple-system, "Segoe UI", sans-serif'
    words = {"labelFont": font, "titleFont": font, "labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": 500}
    return {
        "background": "transparent",
        "font": font,
        "view": {"stroke": "transparent"},
        "axis": {**words, "labelColor": INK, "titleColor": QUIET, "tickColor": GRID, "domainColor": GRID}
        | {"titlePadding": 10, "ticks": False, "labelPadding": 6},
        "text": {"font": font, "fill": INK},
        "legend": {"layout": {"top": {"direction": "vertical", "anchor": "start"}}},
    }
