"""Claims on how a warp reads A and x: what a run can bound from its bytes and times, and what needs counters."""

from __future__ import annotations

import math

from harness.model import Cache, Problem, Role
from reports import format as fmt
from reports.claims import BOTH, Claim, Judged, Word, absent, percent_range, within
from reports.device_kernels import named
from reports.figures import Figures, Row, Way
from reports.roofline.shares import of_bandwidth

COLD = Way(timer="graph", cache=Cache.COLD)
NARROW = "sgemv_k16_f32"
LINE, ELEMENT, WARP = 128, 4, 32
"""Bytes of a cache line and of a float32, lanes of a warp."""
SQUARE = Problem(m=4096, k=4096)
FREE = 0.95


def _half_lines(f: Figures) -> Judged:
    """By counting: which lines the rows of a warp lie in."""
    rows = [r for r in f.passed(COLD) if r.kernel == NARROW and r.problem.layout.order == "row"]
    row = max(rows, key=lambda r: r.problem.m, default=None)
    if row is None:
        return absent(f"{NARROW} on a K = 16 problem by graph, cold", BOTH)
    a_warp = _rows_a_warp(row)
    if a_warp is None:
        return Judged(word=Word.CANNOT, measured="needs the launch's grid, which this run lacks", rows=(row,))
    lines, used = _lines(row.problem, a_warp)
    said = (
        f"{NARROW} on {fmt.problem(row.problem)}, from its grid: {fmt.count(a_warp, 'row')} of "
        f"{row.problem.k * ELEMENT} bytes a warp, in {fmt.count(lines, 'line')} of {LINE} bytes, of which it uses "
        f"{fmt.percent(used)} (counted)"
    )
    share = of_bandwidth(f, row)
    if share is not None:
        said += f"; least bytes at {percent_range(share)} of the read bandwidth ({row.way.label})"
    word = Word.CONFIRMED if lines == 2 and used <= 0.5 else Word.REFUTED
    return Judged(word=word, measured=said, rows=(row,))


def _rows_a_warp(row: Row) -> int | None:
    """Rows over the warps of the launch; None where its grid is unknown."""
    launched = named(row)
    if not launched:
        return None
    return max(1, round(row.problem.m * WARP / math.prod((*launched[0].grid, *launched[0].block))))


def _lines(problem: Problem, rows: int) -> tuple[int, float]:
    """Lines of the first warp's rows, in row order from a boundary of 256 bytes; the share of their bytes it uses."""
    stride = (problem.layout.row_stride or problem.k) * ELEMENT
    starts = [problem.layout.first_element * ELEMENT + i * stride for i in range(rows)]
    width = problem.k * ELEMENT
    lines = {line for start in starts for line in range(start // LINE, (start + width - 1) // LINE + 1)}
    return len(lines), rows * width / (len(lines) * LINE)


def _free_x(f: Figures) -> Judged:
    rows = [r for r in f.passed(COLD) if r.problem == SQUARE and r.role is Role.GEMV and r.of_limit is not None]
    own = [r for r in rows if r.written_here]
    if not own:
        return absent("a hand-written kernel and the limit on 4096×4096 by graph, cold", BOTH)
    best = max(own, key=_limit_share)
    if best.of_limit is None:
        raise ValueError(f"{best.measurement.case.id}: has no share of the limit")
    said = (
        f"{fmt.name(best.kernel)} reads x again for every row and takes {fmt.share_range(best.of_limit)} of the speed "
        f"of {fmt.name(f.limit or 'the limit')}, which reads it once ({best.way.label}); this is of float32 on "
        "4096×4096 alone"
    )
    if within(best.of_limit, low=FREE) is Word.CONFIRMED:
        return Judged(word=Word.CONFIRMED, measured=said, rows=(best,))
    return Judged(word=Word.CANNOT, measured=f"{said}; what of the rest is due to x needs counters", rows=(best,))


def _limit_share(row: Row) -> float:
    return row.of_limit.estimate if row.of_limit is not None else 0.0


CLAIMS = (
    Claim(
        name="half lines",
        place=5,
        says="K = 16: a warp's access «crosses two cache lines and uses half of each»",
        source="no figure",
        criterion=(
            "by counting, from where the launch's grid puts a warp's rows: two lines and half of each used; A starts "
            "at a boundary of 256 bytes"
        ),
        measure=_half_lines,
    ),
    Claim(
        name="x is free",
        place=6,
        says="x stays in cache, «as good as free»",
        source="no figure",
        criterion="on 4096×4096 in float32, nothing else, the fastest kernel reaches 95 % of the limit's speed, cold",
        measure=_free_x,
    ),
)
