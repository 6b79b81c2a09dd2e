"""SM clock, temperature and power along the run, with the stretches in which something held the clocks back."""

from __future__ import annotations

from typing import Any

import altair as alt

from harness.environment import ENVIRONMENT_KEYS
from reports import format as fmt
from reports.charts import Chart, Panel
from reports.device import BUCKETS, QUANTITIES, Point, Quantity, device_tables, line, states_of
from reports.figures import Figures
from reports.held_back import growth_times_unix_s
from reports.marks import ACCENT, GRID, QUIET, WARN, finish, plot, tooltips
from reports.tables import Table

LIMITS = {"board power": ("power_limit_mw", 1e3), "SM clock": ("max_sm_clock_mhz", 1.0)}
"""Quantity → the key of its limit in the environment, and what one unit of the quantity is in the key's."""

HEIGHT_PX = 110

HELD_NAME = "held back"


def panels(f: Figures) -> list[Panel]:
    """A panel a quantity that was read and is worth a picture; the memory clock is in the table."""
    states, growth = states_of(f.rows), growth_times_unix_s(f.rows)
    found = []
    for quantity in QUANTITIES:
        points = line(quantity, states, growth)
        if points and quantity.title != "memory clock":
            held = stretches(points)
            description = (
                f"{quantity.title} in {quantity.unit} along the run, {fmt.count(len(points), 'point')}; the clocks "
                f"were held back in {fmt.count(len(held), 'stretch', 'stretches')}."
            )
            spec = _spec(quantity, points, held, _limit(f, quantity))
            title = f"{quantity.title}, {quantity.unit}"
            found.append(Panel(title=title, description=description, spec=spec, wide=True))
    return found


def stretches(points: list[Point]) -> list[tuple[float, float]]:
    """(from, to) in s of neighbouring points in which something held the clocks back."""
    half = (points[-1].seconds - points[0].seconds) / BUCKETS / 2
    found: list[tuple[float, float]] = []
    for before, point in zip([None, *points], points, strict=False):
        if point.held_back and before is not None and before.held_back:
            found[-1] = (found[-1][0], point.seconds + half)
        elif point.held_back:
            found.append((point.seconds - half, point.seconds + half))
    return found


def _limit(f: Figures, quantity: Quantity) -> float | None:
    key, scale = LIMITS.get(quantity.title, ("", 1.0))
    value = f.run.environment.get(key) if key in ENVIRONMENT_KEYS else None
    return value / scale if isinstance(value, int | float) else None


def _spec(
    quantity: Quantity, points: list[Point], held: list[tuple[float, float]], limit: float | None
) -> dict[str, Any]:
    names = [f"{what}, {quantity.unit}" for what in ("lowest", "median", "highest")]
    rows = [_entry(point, names) for point in points]
    along = alt.Axis(title="seconds from the first reading", gridColor=GRID, tickCount=8)
    x = alt.X(field="time, s", type="quantitative", scale=alt.Scale(nice=False), axis=along)
    said = tooltips(rows, {"time, s": ".1f", **dict.fromkeys(names, ",.0f")})
    base = plot(rows).encode(x=x, tooltip=said)
    scale = alt.Scale(zero=min(p.low for p in points) <= 0, nice=True)
    axis = alt.Axis(title=None, format="d", gridColor=GRID, tickCount=4, domain=False, minExtent=34)
    low, middle = (alt.Y(field=name, type="quantitative", scale=scale, axis=axis) for name in names[:2])
    layers = [
        base.mark_area(color=ACCENT, opacity=0.18).encode(y=low, y2=alt.Y2(field=names[2])),
        base.mark_line(color=ACCENT, strokeWidth=1.5).encode(y=middle),
        base.mark_point(opacity=0, size=80).encode(y=middle),
    ]
    if held:
        ends = [{"from": round(start, 2), "to": round(end, 2)} for start, end in held]
        shade = plot(ends).mark_rect(color=WARN, opacity=0.16).encode(x=alt.X("from:Q"), x2="to:Q")
        mark = base.transform_filter(f"datum['{HELD_NAME}'] === 'yes'")
        shape = mark.mark_point(filled=True, size=26, color=WARN, shape="triangle-down", opacity=1)
        layers = [shade, *layers, shape.encode(y=middle)]
    if limit is not None:
        rule = plot([{"at": limit}]).mark_rule(color=QUIET, strokeDash=[4, 3])
        layers.append(rule.encode(y="at:Q"))
    return finish(alt.layer(*layers).properties(width="container", height=HEIGHT_PX))


def _entry(point: Point, names: list[str]) -> dict[str, Any]:
    figures = (point.low, point.middle, point.high)
    return {
        "time, s": round(point.seconds, 1),
        **{name: round(value) for name, value in zip(names, figures, strict=True)},
        HELD_NAME: "yes" if point.held_back else "no",
    }


def tables(f: Figures) -> list[Table]:
    """The device's tables."""
    return list(device_tables(f))


CHARTS = (
    Chart(
        section="device",
        title="Clock, temperature and power along the run",
        explanation=(
            "Line: median of readings that are neighbours in time; band: their lowest and highest; orange stretches "
            "with triangles: something held the clocks back; dashed: the limit in force. Readings exist while a case "
            "is timed only."
        ),
        spec=panels,
        table=tables,
    ),
)
