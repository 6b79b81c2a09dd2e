"""Claims on arithmetic intensity and the ridge of a roofline."""

from __future__ import annotations

from collections.abc import Callable

from harness.roofline import intensity_flop_per_byte
from harness.words import significant
from reports import format as fmt
from reports.claims import Claim, Judged, Word, absent, percent_range, verdict, within
from reports.figures import Figures, Row
from reports.roofline.llama import LAYERS
from reports.roofline.points import fastest, of_weight, points
from reports.roofline.shares import ceiling_row, of_peak

DTYPE = "float16"
SQUARE = (4096, 4096)
H100_RIDGE = 295.0
NEAR = 2.0
"""A factor: nearer than that to the ridge is near."""


def _best(f: Figures, weight: tuple[int, int], n: int) -> Row | None:
    rows = [r for r in of_weight(points(f), weight) if (r.problem.dtype, r.problem.n) == (DTYPE, n)]
    return fastest(rows)


def _about_one(f: Figures) -> Judged:
    row = _best(f, SQUARE, 1)
    if row is None:
        return absent("4096×4096 in float16, T = 1", "roofline")
    per_byte = intensity_flop_per_byte(row.problem)
    said = (
        f"2 FLOP for each element of A whatever its dtype, and {significant(per_byte)} FLOP/byte in float16, about "
        "half of that in float32 and twice that with 1-byte weights: the unit decides (counted, not timed)"
    )
    return Judged(word=Word.CONFIRMED if abs(per_byte - 1) < 0.05 else Word.REFUTED, measured=said, rows=(row,))


def _ridge(f: Figures) -> tuple[float, tuple[Row, ...]] | None:
    """The measured ridge in FLOP/byte, and the ceilings that it comes from."""
    ridge = f.ceilings.ridge_flop_per_byte(DTYPE)
    rows = (ceiling_row(f, f.ceilings.read), ceiling_row(f, f.ceilings.peak(DTYPE)))
    return None if ridge is None else (ridge, tuple(r for r in rows if r is not None))


NO_RIDGE = absent("the read bandwidth and the float16 peak", "roofline")


def _h100_ridge(f: Figures) -> Judged:
    found = _ridge(f)
    if found is None:
        return NO_RIDGE
    ridge, rows = found
    gpu = str(f.run.environment.get("gpu_name") or "this device")
    said = f"measured ridge of {fmt.name(gpu)} in float16: {significant(ridge, 3)} FLOP/byte (graph/cold)"
    if "H100" not in gpu:
        return Judged(word=Word.CANNOT, measured=f"the claim is on an H100; {said}", rows=rows)
    word = Word.CONFIRMED if abs(ridge / H100_RIDGE - 1) <= 0.1 else Word.REFUTED
    return Judged(word=word, measured=said, rows=rows)


def _place(n: int, holds: Callable[[float], bool]) -> Callable[[Figures], Judged]:
    """Judges where T = `n` stands: `holds` gets its intensity over the ridge."""

    def judge(f: Figures) -> Judged:
        found, row = _ridge(f), _best(f, SQUARE, n)
        if found is None or row is None:
            return absent(f"4096×4096 in float16, T = {n}, the read bandwidth and the float16 peak", "roofline")
        ridge, rows = found
        at = intensity_flop_per_byte(row.problem)
        beside = f"the measured ridge: {significant(ridge, 3)}{fmt.NBSP}FLOP/byte (graph/cold)"
        said = f"T = {n}: {significant(at, 3)}{fmt.NBSP}FLOP/byte; {beside}"
        word = Word.CONFIRMED if holds(at / ridge) else Word.REFUTED
        return Judged(word=word, measured=said, rows=(row, *rows))

    return judge


def _share(n: int, low: float, high: float) -> Callable[[Figures], Judged]:
    """Judges the share of the peak that the fastest kernel reaches with T = `n` on every LLaMA-7B layer."""

    def judge(f: Figures) -> Judged:
        rows = [r for layer in LAYERS if (r := _best(f, layer.weight, n)) is not None]
        shares = [(share, r) for r in rows if (share := of_peak(f, r)) is not None]
        if len(shares) < len(LAYERS):
            return absent(f"every LLaMA-7B layer in float16, T = {n}, and the float16 peak", "roofline")
        ends = [min(shares, key=lambda pair: pair[0].estimate), max(shares, key=lambda pair: pair[0].estimate)]
        words = [within(share, low=low, high=high) for share, _ in ends]
        order = (Word.REFUTED, Word.CANNOT, Word.CONFIRMED)
        said = " to ".join(f"{percent_range(share)} on {fmt.problem(r.problem)}" for share, r in ends)
        return verdict(min(words, key=order.index), f"{said} of the measured peak (graph/cold)", [r for _, r in shares])

    return judge


CLAIMS = (
    Claim(
        name="intensity",
        place=7,
        says="GEMV's intensity is «about 2», «about 1»",
        source="2 and 1, without a unit",
        criterion="2 FLOP an element; within 5 % of 1 FLOP/byte in float16 at 4096×4096",
        judge=_about_one,
    ),
    Claim(
        name="ridge",
        place=8,
        says="The ridge of an H100 is at 295 FLOP/byte",
        source="295 FLOP/byte, from its datasheet",
        criterion="on an H100: measured float16 peak over measured read bandwidth within 10 % of it",
        judge=_h100_ridge,
    ),
    Claim(
        name="T = 8 near the ridge",
        place=9,
        says="T = 8 is «near the ridge»",
        source="no figure",
        criterion="its intensity lies within a factor of 2 of the measured float16 ridge",
        judge=_place(8, lambda share: 1 / NEAR <= share <= NEAR),
    ),
    Claim(
        name="T = 64 compute-bound",
        place=10,
        says="T = 64 is compute-bound",
        source="no figure",
        criterion="its intensity is at or above the measured float16 ridge",
        judge=_place(64, lambda share: share >= 1),
    ),
    Claim(
        name="T = 512 at 70 %",
        place=11,
        says="Prefill (T = 512) is compute-bound at about 70 % of peak",
        source="70 %",
        criterion="every LLaMA-7B layer in float16 at 60 to 80 % of the measured peak",
        judge=_share(512, 0.6, 0.8),
    ),
    Claim(
        name="T = 8 at 10 to 20 %",
        place=12,
        says="T = 8 reaches 10–20 % of peak",
        source="10–20 %",
        criterion="every LLaMA-7B layer in float16 at 10 to 20 % of the measured peak",
        judge=_share(8, 0.1, 0.2),
    ),
)
