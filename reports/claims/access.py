"""Claims on how a warp reads A and x: what a run can bound from its bytes and times, and what needs counters."""

from __future__ import annotations

from harness.model import Cache, Problem, Role
from harness.roofline import least_bytes
from reports import format as fmt
from reports.claims import BOTH, Claim, Judged, Word, absent, percent_range, within
from reports.figures import Figures, Row, Way
from reports.roofline.shares import of_bandwidth

COLD = Way(timer="graph", cache=Cache.COLD)
NARROW = "sgemv_k16_f32"
LEAST_BYTES = 16 * 2**20
"""Of a K = 16 problem whose time is about its bytes."""
SQUARE = Problem(m=4096, k=4096)
FREE = 0.95
COUNTERS = "sectors are counters, which need Nsight Compute: nox -s profile"


def _half_lines(f: Figures) -> Judged:
    """If half of every line were wasted, twice the least bytes would move, and no kernel passes half the ceiling."""
    rows = [r for r in f.passed(COLD) if r.kernel == NARROW and least_bytes(r.problem) >= LEAST_BYTES]
    shares = [(share, r) for r in rows if (share := of_bandwidth(f, r)) is not None]
    if not shares:
        large = f"{NARROW} on a K = 16 problem of {fmt.data_bytes(LEAST_BYTES)} or more by graph, cold"
        return absent(f"{large}, and the read bandwidth", BOTH)
    share, row = max(shares, key=lambda pair: pair[0].estimate)
    said = f"{fmt.problem(row.problem)}: least bytes at {percent_range(share)} of the read bandwidth ({row.way.label})"
    if within(share, low=0.5) is Word.CONFIRMED:
        said += "; with half of each line unused it could not pass 50 %"
        return Judged(word=Word.REFUTED, measured=said, rows=(row,))
    return Judged(word=Word.CANNOT, measured=f"{said}, which does not rule it out; {COUNTERS}", rows=(row,))


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
        f"of {fmt.name(f.limit or 'the limit')}, which reads it once ({best.way.label})"
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
            "refuted where the least bytes pass 50 % of the read bandwidth: two rows of 64 bytes are 128 contiguous "
            "ones; to confirm it takes counters"
        ),
        judge=_half_lines,
    ),
    Claim(
        name="x is free",
        place=6,
        says="x stays in cache, «as good as free»",
        source="no figure",
        criterion="on 4096×4096 the fastest kernel reaches 95 % of the limit's speed, cold",
        judge=_free_x,
    ),
)
