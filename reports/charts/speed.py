"""Speed against `torch.matmul` and share of the limit, by problem, one panel a way of timing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from harness.model import Problem
from harness.stats import Interval, speedup
from reports import format as fmt
from reports.charts import Chart, Panel
from reports.figures import BASELINE, FLOOR_MATTERS_NS, Figures, Row, Way
from reports.marks import Axis, dots, kernel_marks
from reports.tables import Cell, Table, number, table, text
from reports.takeaway import is_short

Pick = Callable[[Figures, Way], Iterator[tuple[Row, Problem, Interval]]]
"""Rows by one way of timing that have the figure, each with the problem beside which it stands."""


def _rows(f: Figures, way: Way, pick: Pick, said: Callable[[Interval], str], what: str) -> list[dict[str, Any]]:
    """One entry a row that has the figure, in the plot's units."""
    found = []
    for row, problem, figure in pick(f, way):
        if row.summary is None:
            continue
        entry: dict[str, Any] = {
            "kernel": row.kernel,
            "problem": fmt.problem(problem),
            "value": round(figure.estimate, 5),
            "timer": row.way.label,
            what: said(figure),
            "time": fmt.microseconds_pm(row.summary.median_ns),
        }
        if figure.low is not None and figure.high is not None:
            entry |= {"low": round(figure.low, 5), "high": round(figure.high, 5)}
        found.append(entry)
    return found


def _speedups(f: Figures, way: Way) -> Iterator[tuple[Row, Problem, Interval]]:
    """Of every kernel and the limit; of the floor beside problems that take the baseline so short that it matters."""
    floor = f.floor_row(way)
    for row in f.passed(way):
        baseline = f.find(BASELINE, row.problem, way)
        if row is not baseline and baseline is not None and baseline.summary is not None:
            ratio = row.speedup or speedup(row.measurement, baseline.measurement)
            if ratio is not None:
                yield row, row.problem, ratio
        elif row is baseline and floor is not None and is_short(row):
            ratio = speedup(floor.measurement, row.measurement)
            if ratio is not None:
                yield floor, row.problem, ratio


def _of_limit(f: Figures, way: Way) -> Iterator[tuple[Row, Problem, Interval]]:
    return ((row, row.problem, row.of_limit) for row in f.passed(way) if row.of_limit is not None)


def speed_panels(f: Figures) -> list[Panel]:
    """× torch.matmul, the headline's way of timing first and wide."""
    axis = Axis(
        title=f"× {BASELINE} (right of the line: faster)",
        label="format(datum.value, '.3~g') + '×'",
        reference=1,
        reference_name=BASELINE,
        log=True,
    )
    return _panels(f, _speedups, fmt.times_range, axis, "speed")


def limit_panels(f: Figures) -> list[Panel]:
    """% of the limit kernel's speed."""
    axis = Axis(
        title=f"% of the speed of {fmt.name(f.limit or 'the limit')}",
        label="format(datum.value * 100, '.3~g') + ' %'",
        reference=1,
        reference_name=fmt.name(f.limit or "limit"),
        zero=True,
    )
    return _panels(f, _of_limit, fmt.share_range, axis, "share")


def _panels(f: Figures, pick: Pick, said: Callable[[Interval], str], axis: Axis, what: str) -> list[Panel]:
    """A panel a way of timing and dtype; of several dtypes the first is shown at once."""
    marks, every = kernel_marks(f), f.gemv
    panels = []
    for way in every.charted:
        for dtype in every.dtypes:
            rows = _rows(every.of_dtype(dtype), way, pick, said, what)
            if rows:
                shapes = fmt.count(len({row["problem"] for row in rows}), "problem")
                kernels = fmt.count(len({row["kernel"] for row in rows}), "kernel")
                title = way.label if len(every.dtypes) == 1 else f"{way.label}, {fmt.name(dtype)}"
                description = f"{axis.title}, timed by {title}: {kernels} on {shapes}, with 95 % intervals."
                shown = tuple(dict.fromkeys(row["kernel"] for row in rows))
                folded = way in every.folded or dtype != every.dtypes[0]
                looks = {"wide": way == every.headline and not every.folded and not folded, "folded": folded}
                spec = dots(rows, marks, axis)
                panels.append(Panel(title=title, description=description, spec=spec, kernels=shown, **looks))
    return panels


def speed_tables(f: Figures) -> list[Table]:
    """The speed charts' numbers."""
    return _tables(f, _speedups, fmt.times_figure, f"× {BASELINE}", "")


def limit_tables(f: Figures) -> list[Table]:
    """The limit charts' numbers."""
    return _tables(f, _of_limit, lambda ratio: f"{ratio * 100:.1f}", f"of {fmt.name(f.limit or 'the limit')}", "%")


def _tables(f: Figures, pick: Pick, figure: Callable[[float], str], what: str, unit: str) -> list[Table]:
    found = []
    for way in f.gemv.charted:
        rows: list[list[Cell | str]] = []
        for row, problem, ratio in pick(f.gemv, way):
            known = ratio.low is not None and ratio.high is not None
            ends = [figure(ratio.low), figure(ratio.high)] if known and ratio.low and ratio.high else [fmt.NONE] * 2
            name = Cell(text=fmt.name(row.kernel), kernel=row.kernel)
            rows.append([fmt.problem(problem), name, figure(ratio.estimate), *ends])
        heads = [text("problem"), text("kernel"), number(what, unit), number("95 % from", unit), number("to", unit)]
        if rows:
            found.append(table(f"{what}, timed by {way.label}", heads, rows, group_by=0))
    return found


CHARTS = (
    Chart(
        section="speed",
        title=f"Speed against {BASELINE}, by problem",
        explanation=(
            f"How many times as fast as {BASELINE} on the same problem, by the same timer, from the same cache state, "
            "paired by trial. The bar through a mark is its 95 % interval over the trials; a short one hides behind "
            "the mark. The scale is logarithmic: twice and half are equally far from the line. In grey the bounds: "
            f"read, which only reads A and x, and, where {BASELINE} takes less than "
            f"{FLOOR_MATTERS_NS // 1000}{fmt.NBSP}µs, the empty kernel, than which the timer can read no less."
        ),
        spec=speed_panels,
        table=speed_tables,
    ),
    Chart(
        section="limit",
        title="Share of the limit, by problem",
        explanation=(
            "The limit kernel reads A and x and writes m values, and nothing else: what the memory system allows at "
            "that size. 100 % is its speed by the same timer from the same cache state. A kernel can pass it where "
            "none of the few ways in which the limit reads suits the problem."
        ),
        spec=limit_panels,
        table=limit_tables,
    ),
)
