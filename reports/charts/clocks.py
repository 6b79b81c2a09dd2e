"""SM clock, temperature and power along the run, with the stretches in which something held the clocks back."""

from __future__ import annotations

from typing import Any

import altair as alt

from harness.environment import ENVIRONMENT_KEYS
from reports import format as fmt
from reports.charts import Chart, Panel
from reports.device import QUANTITIES, Point, Quantity, device_tables, line, states_of
from reports.figures import Figures
from reports.held_back import growth_times_unix_s
from reports.marks import GRID, QUIET, finish, plot
from reports.tables import Table

LIMITS = {"board power": ("power_limit_mw", 1e3), "SM clock": ("max_sm_clock_mhz", 1.0)}
"""Quantity → the key of its limit in the environment, and what one unit of the quantity is in the key's."""

HEIGHT_PX = 130

ACCENT = "var(--accent)"


def panels(f: Figures) -> list[Panel]:
    """A panel a quantity that was read and varies enough to be worth a picture; the memory clock is in the table."""
    states, growth = states_of(f.rows), growth_times_unix_s(f.rows)
    found = []
    for quantity in QUANTITIES:
        points = line(quantity, states, growth)
        if points and quantity.title != "memory clock":
            description = f"{quantity.title} in {quantity.unit} along the run, {fmt.count(len(points), 'point')}."
            spec = _spec(quantity, points, _limit(f, quantity))
            found.append(Panel(title=f"{quantity.title}, {quantity.unit}", description=description, spec=spec))
    return found


def _limit(f: Figures, quantity: Quantity) -> float | None:
    key, scale = LIMITS.get(quantity.title, ("", 1.0))
    value = f.run.environment.get(key) if key in ENVIRONMENT_KEYS else None
    return value / scale if isinstance(value, int | float) else None


def _spec(quantity: Quantity, points: list[Point], limit: float | None) -> dict[str, Any]:
    rows = [_entry(quantity, point) for point in points]
    floor = min(p.low for p in points)
    base = plot(rows).encode(
        x=alt.X("seconds:Q", axis=alt.Axis(title="seconds from the first reading", gridColor=GRID, tickCount=5)),
        tooltip=[alt.Tooltip(f"{name}:N", title=name) for name in ("time", quantity.title, "held back")],
    )
    scale = alt.Scale(zero=floor <= 0, nice=True)
    axis = alt.Axis(title=None, format="d", gridColor=GRID, tickCount=4, domain=False)
    held = base.transform_filter("datum.held")
    low, middle = alt.Y("low:Q", scale=scale, axis=axis), alt.Y("middle:Q")
    layers = [
        base.mark_area(color=ACCENT, opacity=0.18).encode(y=low, y2="high:Q"),
        base.mark_line(color=ACCENT, strokeWidth=1.5).encode(y=middle),
    ]
    if any(point.held_back for point in points):
        layers.append(
            held.mark_point(filled=True, size=34, color="var(--warn)", shape="triangle-down").encode(y=middle)
        )
    if limit is not None:
        rule = plot([{"at": limit}]).mark_rule(color=QUIET, strokeDash=[4, 3])
        layers.append(rule.encode(y="at:Q"))
    return finish(alt.layer(*layers).properties(width="container", height=HEIGHT_PX))


def _entry(quantity: Quantity, point: Point) -> dict[str, Any]:
    figures = f"{point.middle:.0f}{fmt.NBSP}{quantity.unit}"
    if point.low != point.high:
        figures += f" ({point.low:.0f}–{point.high:.0f})"
    return {
        "seconds": round(point.seconds, 2),
        "low": point.low,
        "middle": point.middle,
        "high": point.high,
        "held": point.held_back,
        "time": f"{point.seconds:.1f}{fmt.NBSP}s",
        quantity.title: figures,
        "held back": "yes" if point.held_back else "no",
    }


def tables(f: Figures) -> list[Table]:
    """The device's tables."""
    return list(device_tables(f))


CHARTS = (
    Chart(
        section="device",
        title="Clock, temperature and power along the run",
        explanation=(
            "Line: median of readings that are neighbours in time; band: their lowest and highest; orange triangle: "
            "something held the clocks back; dashed: the limit in force. Readings exist while a case is timed only."
        ),
        spec=panels,
        table=tables,
    ),
)
