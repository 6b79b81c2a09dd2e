"""The roofline's tables: ceilings, the reference's own case, half-precision and weight-only GEMV kernels."""

from __future__ import annotations

from collections.abc import Sequence

from harness.ceilings import Ceiling
from harness.model import Cache, Problem
from harness.roofline import least_bytes
from harness.stats import Interval
from reports import format as fmt
from reports.datasheet import datasheet
from reports.figures import BASELINE, Figures, Row, Way
from reports.roofline.points import against, median_ns, points, weight_label
from reports.tables import Cell, Table, number, table, text

REFERENCE_WAY = Way(timer="sync-50", cache=Cache.HOT)
REFERENCE_US = {1: 60.0, 16: 60.9, 512: 329.9}
"""The reference's figures in µs by T: RTX 3080, float16, 4096×4096, synchronized host clock, median of 50."""

WEIGHT_ONLY, HALF = "gemv_w8", "hgemv"


def ceilings_table(f: Figures) -> Table:
    """Every ceiling as measured; what the maker publishes stands beside it."""
    sheet = datasheet(f.run.environment.get("gpu_name"))
    rows = [_ceiling_cells(each, _published(f, each)) for each in f.ceilings.every]
    heads = [
        text("ceiling"), number("measured"), number("95 % interval", "± %"), number("spread of trials", "%"),
        number("SM clock", "MHz, mean"), number("datasheet"), number("of datasheet", "%"), text("case"),
    ]  # fmt: skip
    note = (
        "Every roof and share on this page is by the measured column. Timed by graph/cold; peaks on random values, "
        "never zeros. A peak is what so large a product sustains, often at the power limit and so at the clock beside "
        "it: a short product can exceed it. Copy counts the bytes read and those written. "
    )
    note += f"Datasheet: {sheet.source}; dense, no sparsity." if sheet else "Datasheet: none known here for this GPU."
    return table("Ceilings, measured in this run", heads, rows, note=note)


def _published(f: Figures, ceiling: Ceiling) -> float | None:
    sheet = datasheet(f.run.environment.get("gpu_name"))
    if sheet is None:
        return None
    return sheet.bytes_per_s if ceiling.unit == "byte" else sheet.flop_per_s.get(ceiling.what.split()[0])


def rate(ceiling: Ceiling, per_s: float) -> str:
    """In GB/s or TFLOP/s."""
    return fmt.gb_per_s(per_s / 1e9) if ceiling.unit == "byte" else fmt.tflop_per_s(per_s)


def _ceiling_cells(ceiling: Ceiling, published: float | None) -> list[Cell | str]:
    shown = fmt.NONE if published is None else rate(ceiling, published)
    found = ceiling.per_s
    if found is None:
        return [ceiling.what, Cell(text=f"not measured: {fmt.line(ceiling.reason or '')}", mark="quiet", columns=7)]
    half = found.half_width
    return [
        ceiling.what,
        rate(ceiling, found.estimate),
        fmt.NONE if half is None else fmt.percent_figure(half),
        fmt.NONE if ceiling.spread is None or half is None else fmt.percent_figure(ceiling.spread),
        fmt.NONE if ceiling.sm_clock_mhz is None else f"{ceiling.sm_clock_mhz:.0f}",
        Cell(text=shown, mark="quiet"),
        Cell(text=fmt.NONE if published is None else fmt.percent_figure(found.estimate / published), mark="quiet"),
        fmt.line(ceiling.case_id or ""),
    ]


def reference_table(f: Figures) -> Table | None:
    """The reference's own case by its own protocol beside its published figures; None where it was not measured."""
    rows = [r for r in f.suite if r.way == REFERENCE_WAY and r.summary is not None]
    lines: list[list[Cell | str]] = []
    for n, published in REFERENCE_US.items():
        problem = Problem(m=4096, k=4096, n=n, dtype="float16")
        for row in rows:
            if row.problem == problem:
                name = Cell(text=fmt.name(row.kernel), kernel=row.kernel)
                by_graph = f.find(row.kernel, problem, f.headline) if f.headline else None
                device = fmt.NONE if by_graph is None else fmt.microseconds_figure(median_ns(by_graph))
                lines.append([f"T = {n}", name, *_time(row), f"{published:.1f}", device])
    if not lines:
        return None
    heads = [
        text("4096×4096, float16"), text("kernel"), number("here, sync-50/hot", "µs"), number("95 % interval", "± %"),
        number("published, RTX 3080", "µs"), number(f"here, {f.headline.label if f.headline else ''}", "µs"),
    ]  # fmt: skip
    note = (
        "The reference's protocol: 10 warm-ups, then the median of 50 calls, each synchronized, on the host's clock, "
        "with one set of operands. Its figures are of another GPU and without an interval. A synchronized call holds "
        "what the host adds, so the device's time stands beside it."
    )
    return table("The reference's own case, by its own protocol", heads, lines, note=note, group_by=0)


def _time(row: Row) -> list[Cell | str]:
    median = row.summary.median_ns if row.summary else None
    half = median.half_width if median else None
    figure = fmt.NONE if median is None else fmt.microseconds_figure(median.estimate)
    return [figure, fmt.NONE if half is None else fmt.percent_figure(half)]


def own_table(f: Figures) -> Table | None:
    """Hand-written kernels of other dtypes than float32 at T = 1, against torch and the limit on the same problem."""
    rows = [r for r in points(f) if r.written_here and r.problem.dtype != "float32" and r.problem.n == 1]
    if not rows:
        return None
    lines = [
        [
            fmt.problem(r.problem),
            Cell(text=fmt.name(r.kernel), kernel=r.kernel),
            *_time(r),
            fmt.NONE if r.gb_per_s is None else fmt.gb_per_s_figure(r.gb_per_s),
            *_ratio(r.speedup),
            *_share(r.of_limit),
        ]
        for r in rows
    ]
    heads = [
        text("problem"), text("kernel"), number("time", "µs"), number("95 % interval", "± %"),
        number("bandwidth", "GB/s"), number(f"× {BASELINE}"), number("95 % interval", "± %"),
        number(f"of {f.limit or 'limit'}", "%"), number("95 % interval", "± %"),
    ]  # fmt: skip
    note = f"Timed by {f.headline.label if f.headline else ''}; the limit reads the same bytes of the same problem."
    return table("One token: half-precision and weight-only kernels", heads, lines, note=note)


def _ratio(ratio: Interval | None) -> list[Cell | str]:
    if ratio is None:
        return [fmt.NONE, fmt.NONE]
    half = ratio.half_width
    mark = "best" if ratio.low is not None and ratio.low > 1 else ""
    return [
        Cell(text=fmt.times_figure(ratio.estimate), mark=mark),
        fmt.NONE if half is None else fmt.percent_figure(half),
    ]


def _share(ratio: Interval | None) -> list[Cell | str]:
    if ratio is None:
        return [fmt.NONE, fmt.NONE]
    half = ratio.half_width
    return [f"{ratio.estimate * 100:.1f}", fmt.NONE if half is None else fmt.percent_figure(half)]


def weight_only_pairs(f: Figures, n: int | None = None) -> tuple[tuple[Row, Row], ...]:
    """(weight-only, half-precision) on the same shape with as many tokens; `n`: with so many alone."""
    half = {_shape(r.problem): r for r in points(f) if r.kernel == HALF and r.problem.dtype == "float16"}
    own = [r for r in points(f) if r.kernel == WEIGHT_ONLY and (n is None or r.problem.n == n)]
    return tuple((r, half[_shape(r.problem)]) for r in own if _shape(r.problem) in half)


def _shape(problem: Problem) -> tuple[int, int, int]:
    return problem.m, problem.k, problem.n


def byte_ratio(weight_only: Row, half: Row) -> float:
    """Least bytes of the half-precision product over those of the weight-only one."""
    return least_bytes(half.problem) / least_bytes(weight_only.problem)


def weight_only_tables(f: Figures) -> tuple[Table, ...]:
    """«Fewer bytes, faster» as measured, for one token, then for several; none where no shape has both."""
    pairs = weight_only_pairs(f)
    one, more = [p for p in pairs if p[0].problem.n == 1], [p for p in pairs if p[0].problem.n > 1]
    names = f"{WEIGHT_ONLY} against {HALF}"
    tables = (_weight_only(f, f"One token: {names}", one), _weight_only(f, f"Several tokens: {names}", more))
    return tuple(table for table in tables if table.rows)


def _weight_only(f: Figures, caption: str, pairs: Sequence[tuple[Row, Row]]) -> Table:
    lines: list[list[Cell | str]] = []
    for own, half in pairs:
        ratio, bytes_ = against(own, half), byte_ratio(own, half)
        shape = weight_label((own.problem.m, own.problem.k))
        kept = fmt.NONE if ratio is None else fmt.percent_figure(ratio.estimate / bytes_)
        lines.append(
            [shape, str(own.problem.n), *_time(own), *_time(half), fmt.times_figure(bytes_), *_ratio(ratio), kept]
        )
    heads = [
        text("weight"), number("T"), number(WEIGHT_ONLY, "µs"), number("95 % interval", "± %"), number(HALF, "µs"),
        number("95 % interval", "± %"), number("fewer bytes", "×"), number("faster", "×"),
        number("95 % interval", "± %"), number("faster over fewer bytes", "%"),
    ]  # fmt: skip
    note = f"Least bytes, scales included. Timed by {f.headline.label if f.headline else ''}, paired by trial."
    return table(caption, heads, lines, note=note, group_by=0)
