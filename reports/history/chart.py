"""The chart of one case, without its data: the page's script puts them in when the case is opened."""

from __future__ import annotations

from typing import Any

import altair as alt

from reports.marks import GRID, INK, QUIET, finish

HEIGHT = 260
"""Of the plot, in px."""

LINE, BAD, PAGE, BEGAN = "var(--accent)", "var(--bad)", "var(--page)", "var(--warn)"

LABEL_PX = 14
"""Between two lines of labels above the plot."""


def chart() -> dict[str, Any]:
    """A Vega-Lite specification that waits for data sets and parameters.

    Data sets: `points` (run, us, low, high, stretch, hollow, outside and words for the tooltip), `failures` (run,
    failed, reason), `changes` (run, kind, label, level, align, text), `picked` (run, us, name). Parameters: `dates` by
    run, `first` and `last` run, `low` and `high` in µs, `dot` (a point's area in px²).
    """
    layers = [*_changes(), *_points(), _failures(), *_picked()]
    return finish(alt.layer(*layers).properties(width="container", height=HEIGHT))


def _of(name: str) -> alt.Chart:
    of: alt.Chart = alt.Chart(alt.NamedData(name=name)).encode(x=_x())
    return of


def _x() -> alt.X:
    ends = [alt.ExprRef("first - 0.5"), alt.ExprRef("last + 0.5")]
    scale = alt.Scale(domain=ends, nice=False, zero=False)
    axis = alt.Axis(
        title=None,
        labelExpr="dates[datum.value] || ''",
        tickMinStep=1,
        tickCount=7,
        grid=False,
        labelOverlap="greedy",
        labelSeparation=14,
        labelFlush=False,
    )
    return alt.X("run:Q", scale=scale, axis=axis)


def _y(field: str = "us") -> alt.Y:
    scale = alt.Scale(domain=[alt.ExprRef("low"), alt.ExprRef("high")], nice=False, zero=False, clamp=True)
    axis = alt.Axis(title="time, µs per launch", tickCount=5, gridColor=GRID, domain=False, format="~r")
    return alt.Y(f"{field}:Q", scale=scale, axis=axis)


def _points() -> list[alt.Chart]:
    base = _of("points")
    spread = base.mark_rule(color=LINE, opacity=0.35, clip=True).encode(y=_y("low"), y2="high:Q")
    line = base.mark_line(color=LINE, strokeWidth=1, opacity=0.5).encode(y=_y(), detail="stretch:N")
    said = [alt.Tooltip(f"{field}:N", title=title) for field, title in _SAID]
    look: dict[str, Any] = {"size": alt.ExprRef("dot"), "strokeWidth": 1.3, "stroke": LINE}
    # A figure outside the scale stands at its edge, as a triangle.
    shape = alt.Shape("outside:N", legend=None, scale=alt.Scale(domain=_OUTSIDE, range=_SHAPES))
    filled = base.transform_filter("!datum.hollow").mark_point(filled=True, fill=LINE, opacity=1, **look)
    hollow = base.transform_filter("datum.hollow").mark_point(filled=True, fill=PAGE, opacity=1, **look)
    return [spread, line, *(each.encode(y=_y(), shape=shape, tooltip=said) for each in (filled, hollow))]


_OUTSIDE, _SHAPES = ["no", "above", "below"], ["circle", "triangle-up", "triangle-down"]

_SAID = (
    ("when", "run"),
    ("time", "time"),
    ("before", "step"),
    ("held", "held back"),
    ("changed", "changed"),
)
"""Words of a point and their names in its tooltip."""


def _failures() -> alt.Chart:
    """Runs without a figure: failures, and in grey what could not be measured."""
    shown = _of("failures").mark_text(text="×", fontSize=18, fontWeight=700, dy=-9)
    colour = alt.condition("datum.failed", alt.value(BAD), alt.value(QUIET))
    said = [alt.Tooltip("when:N", title="run"), alt.Tooltip("reason:N", title="no figure")]
    failures: alt.Chart = shown.encode(y=alt.value(HEIGHT), color=colour, tooltip=said)
    return failures


def _changes() -> list[alt.Chart]:
    """Lines with a label for what changes rarely, ticks at the lower edge for commits and code."""
    base = _of("changes")
    said = [alt.Tooltip("when:N", title="run"), alt.Tooltip("text:N", title="changed")]
    large = base.transform_filter("datum.large")
    rule = large.mark_rule(color=QUIET, strokeDash=[3, 3], strokeWidth=1.2, opacity=0.8).encode(tooltip=said)
    label = large.transform_filter("datum.level >= 0").mark_text(
        color=INK,
        fontSize=11.5,
        baseline="bottom",
        align=alt.ExprRef("datum.align"),
        dx=alt.ExprRef("datum.align == 'left' ? -1 : 1"),
        dy=alt.ExprRef(f"-4 - {LABEL_PX} * datum.level"),
    )
    ticks = base.transform_filter("!datum.large").mark_tick(
        color=QUIET, orient="vertical", size=9, thickness=1.2, opacity=0.7, yOffset=-5
    )
    return [
        rule,
        label.encode(text="label:N", y=alt.value(0), tooltip=said),
        ticks.encode(y=alt.value(HEIGHT), tooltip=said),
    ]


def _picked() -> list[alt.Chart]:
    """The best run and the newest in rings, and a line where what the newest shows began."""
    base = _of("picked")
    began = base.transform_filter("datum.name == 'began'")
    others = base.transform_filter("datum.name != 'began'")
    ring = others.mark_point(filled=False, size=130, stroke=INK, strokeWidth=1.4, opacity=1).encode(y=_y())
    name = others.mark_text(
        dy=alt.ExprRef("datum.name == 'best' || datum.us > high - 0.15 * (high - low) ? 18 : -16"),
        align=alt.ExprRef("datum.run > last - 0.08 * (last - first) ? 'right' : 'center'"),
        dx=alt.ExprRef("datum.run > last - 0.08 * (last - first) ? 7 : 0"),
        color=INK,
        fontSize=11.5,
        fontWeight=600,
    ).encode(y=_y(), text="name:N")
    return [
        began.mark_rule(color=BEGAN, strokeWidth=2, opacity=0.9),
        began.mark_text(color=BEGAN, fontSize=11.5, fontWeight=600, align="right", dx=-5, baseline="top").encode(
            y=alt.value(3), text=alt.value("began")
        ),
        ring,
        name,
    ]
