"""How kernels look in every chart and table, and the one kind of plot that most charts are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

import altair as alt
from altair.utils.schemapi import debug_mode

from reports import format as fmt
from reports.figures import BASELINE, Figures

COLOURS = 7
"""Series colours of the style sheet (after Okabe and Ito): `--series-0` and so on."""

GLYPHS = {"circle": "●", "square": "■", "triangle-up": "▲", "diamond": "◆", "triangle-down": "▼", "cross": "✚"}
"""Vega's name of a shape → how it stands before a kernel's name in text."""

SHAPES = tuple(GLYPHS)
"""With colour, so that nobody needs to see colour; 7 and 6 share no factor, so 42 kernels differ."""

BREAK = ", "
"""Between the parts of a problem's name; at an axis each has a line of its own, so that none is cut off."""

LABEL_PX = 15
"""Height of such a line."""

ROW_PX = 13
"""Height of one kernel's line in a plot by problem."""

INK, QUIET, GRID, RULE = "var(--ink)", "var(--ink-2)", "var(--grid)", "var(--ink-2)"
PAGE, ACCENT, WARN = "var(--page)", "var(--accent)", "var(--warn)"


@dataclass(frozen=True, kw_only=True)
class Mark:
    """A kernel's look."""

    place: int
    """Of the kernel among the run's, from 0: its look is a class of the page's style."""
    colour: str
    shape: str

    @property
    def glyph(self) -> str:
        """Its shape as a character."""
        return GLYPHS[self.shape]


def kernel_marks(f: Figures) -> dict[str, Mark]:
    """By kernel: torch's baseline, limit and floor in greys, every other in a colour and shape of its own."""
    marks: dict[str, Mark] = {}
    free = 0
    for place, kernel in enumerate(f.kernels):
        if kernel in (BASELINE, f.limit):
            colour = "var(--baseline)" if kernel == BASELINE else "var(--limit)"
            marks[kernel] = Mark(place=place, colour=colour, shape="square" if kernel == BASELINE else "cross")
        else:
            colour = f"var(--series-{free % COLOURS})"
            marks[kernel] = Mark(place=place, colour=colour, shape=SHAPES[free % len(SHAPES)])
            free += 1
    if f.floor is not None:
        marks[f.floor] = Mark(place=len(marks), colour="var(--limit)", shape="circle")
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


def dots(
    rows: Sequence[dict[str, Any]], marks: dict[str, Mark], axis: Axis, figures: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """A plot with a band a problem and in it a line a kernel.

    Args:
        rows: one a mark: `problem`, `kernel`, `value`, and where known `low` and `high`; all other entries with text
            are shown on hover under their own name, which holds no dot (Vega would look inside it).
        marks: each kernel's look.
        axis: of the values.
        figures: entries with numbers that are shown on hover too, each with its format.
    """
    present = {row["kernel"] for row in rows}
    looks = {fmt.name(kernel): mark for kernel, mark in marks.items() if kernel in present}
    kernels = list(looks)
    problems = list(dict.fromkeys(row["problem"] for row in rows))
    base = plot([{**row, "kernel": fmt.name(row["kernel"])} for row in rows]).encode(
        y=_bands(problems),
        yOffset=alt.YOffset("kernel:N", scale=alt.Scale(domain=kernels, padding=0.9), sort=None),
        color=_by_kernel(kernels, [looks[k].colour for k in kernels], alt.Color),
        tooltip=tooltips(rows, figures or {}),
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


@dataclass(frozen=True, kw_only=True)
class _Rows:
    """Rows that altair puts into a specification as they are: it would spend seconds on looking at each."""

    rows: Sequence[dict[str, Any]]
    _schema: ClassVar[dict[str, Any]] = {"type": "array"}
    """With `to_dict` what altair takes for a part of a specification."""

    def to_dict(self, **_: Any) -> list[dict[str, Any]]:
        return list(self.rows)


def plot(rows: Sequence[dict[str, Any]]) -> alt.Chart:
    """A plot of rows that stand in the page itself; altair's own limit on rows is for tables of samples."""
    return alt.Chart(alt.Data(values=_Rows(rows=rows)))  # type: ignore[no-untyped-call] # altair leaves it unannotated


@contextmanager
def unchecked() -> Iterator[None]:
    """Altair holds no part against its schema meanwhile, which takes seconds for a page; tests draw every chart."""
    with debug_mode(False):
        yield


def finish(chart: alt.LayerChart | alt.FacetChart | alt.Chart) -> dict[str, Any]:
    """The plot's specification without the address of its schema, which nothing must fetch.

    Not held against that schema, as `unchecked` says.
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


def tooltips(rows: Sequence[dict[str, Any]], figures: Mapping[str, str]) -> list[alt.Tooltip]:
    """Entries that are text, in order of appearance, then `figures` with their formats."""
    said = dict.fromkeys(name for row in rows for name, value in row.items() if isinstance(value, str))
    words = [alt.Tooltip(field=name, type="nominal", title=name) for name in said]
    titles = {name: "against the case" if name == "value" else name for name in figures}
    return words + [
        alt.Tooltip(field=name, type="quantitative", title=titles[name], format=look) for name, look in figures.items()
    ]


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
