"""Claims on arithmetic intensity and the ridge of a roofline."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from harness.roofline import intensity_flop_per_byte
from harness.stats import Interval
from harness.words import significant
from reports import format as fmt
from reports.claims import Claim, Judged, Word, absent, all_of, gpu, percent_range, verdict, within
from reports.datasheet import datasheet
from reports.figures import Figures, Row
from reports.roofline.llama import LAYERS, PREFILL, step
from reports.roofline.points import fastest_product, of_weight, points
from reports.roofline.shares import ceiling_row, inverse, of_bandwidth, of_peak, sustained

DTYPE = "float16"
EVERY = "every LLaMA-7B layer in float16"
SQUARE = (4096, 4096)
H100_RIDGE = 295.0
NEAR = 2.0
"""A factor: nearer than that to the ridge is near."""


def _best(f: Figures, weight: tuple[int, int], n: int) -> Row | None:
    rows = [r for r in of_weight(points(f), weight) if (r.problem.dtype, r.problem.n) == (DTYPE, n)]
    return fastest_product(rows)


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
    said = f"measured ridge of {fmt.name(gpu(f))} in float16: {significant(ridge, 3)} FLOP/byte (graph/cold)"
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


def _layers(f: Figures, n: int) -> tuple[Row, ...]:
    """The fastest on each LLaMA-7B layer; none where one is missing."""
    rows = [r for layer in LAYERS if (r := _best(f, layer.weight, n)) is not None]
    return tuple(rows) if len(rows) == len(LAYERS) else ()


def _compute_bound(f: Figures) -> Judged:
    found, rows, drawn = _ridge(f), _layers(f, PREFILL), []
    if found is not None:
        drawn = [(share, r) for r in rows if (share := of_bandwidth(f, r)) is not None]
    if found is None or not drawn or len(drawn) < len(rows):
        return absent(f"{EVERY}, T = {PREFILL}, the read bandwidth and the float16 peak", "roofline")
    ridge, ceilings = found
    at = sorted(intensity_flop_per_byte(r.problem) for r in rows)
    most, row = max(drawn, key=lambda pair: pair[0].estimate)
    said = (
        f"{significant(at[0], 3)} to {significant(at[-1], 3)}{fmt.NBSP}FLOP/byte, the measured ridge "
        f"{significant(ridge, 3)}{fmt.NBSP}FLOP/byte; least bytes at {percent_range(most)} of the read bandwidth at "
        f"most, on {fmt.problem(row.problem)} ({row.way.label})"
    )
    words = (Word.CONFIRMED if at[0] >= ridge else Word.REFUTED, *(within(share, high=1) for share, _ in drawn))
    return verdict(all_of(words), said, (*rows, *ceilings))


def _share(n: int, low: float, high: float) -> Callable[[Figures], Judged]:
    """Judges the share of the datasheet's peak, which the source used, that T = `n` reaches over LLaMA-7B's layers."""

    def judge(f: Figures) -> Judged:
        rows, whole, sheet = _layers(f, n), step(f, DTYPE, n), datasheet(f.run.environment.get("gpu_name"))
        shares = [(share, r) for r in rows if (share := of_peak(f, r)) is not None]
        if whole is None or not shares or len(shares) < len(rows):
            return absent(f"{EVERY}, T = {n}, and the float16 peak", "roofline")
        beside = f"{_ends(shares)} of the measured peak, {sustained(f, DTYPE)} ({rows[0].way.label})"
        if sheet is None:
            why = f"the source's peak is a datasheet's, and none is known here of {fmt.name(gpu(f))}; {beside}"
            return Judged(word=Word.CANNOT, measured=why, rows=rows)
        peak = sheet.flop_per_s[DTYPE]
        share = inverse(whole.ns, whole.flops * 1e9 / peak)
        said = f"{percent_range(share)} of the datasheet's {fmt.tflop_per_s(peak)}, summed over the layers; by layer "
        return verdict(within(share, low=low, high=high), f"{said}{beside}", rows)

    return judge


def _ends(shares: Sequence[tuple[Interval, Row]]) -> str:
    """The least and the most, each with its problem."""
    ends = [pick(shares, key=lambda pair: pair[0].estimate) for pick in (min, max)]
    return " to ".join(f"{percent_range(share)} on {fmt.problem(r.problem)}" for share, r in ends)


CLAIMS = (
    Claim(
        name="intensity",
        place=7,
        says="GEMV's intensity is «about 2», «about 1»",
        source="2 and 1, without a unit",
        criterion="2 FLOP an element; within 5 % of 1 FLOP/byte in float16 at 4096×4096",
        measure=_about_one,
    ),
    Claim(
        name="ridge",
        place=8,
        says="The ridge of an H100 is at 295 FLOP/byte",
        source="295 FLOP/byte, from its datasheet",
        criterion="on an H100: measured float16 peak over measured read bandwidth within 10 % of it",
        measure=_h100_ridge,
        source_gpu="H100",
        of_it_alone=True,
    ),
    Claim(
        name="T = 8 near the ridge",
        place=9,
        says="T = 8 is «near the ridge»",
        source="no figure",
        criterion="its intensity lies within a factor of 2 of the measured float16 ridge",
        measure=_place(8, lambda share: 1 / NEAR <= share <= NEAR),
    ),
    Claim(
        name="T = 64 compute-bound",
        place=10,
        says="T = 64 is compute-bound",
        source="no figure",
        criterion="its intensity is at or above the measured float16 ridge",
        measure=_place(64, lambda share: share >= 1),
    ),
    Claim(
        name="T = 512 compute-bound",
        place=11,
        says="Prefill (T = 512) is compute-bound",
        source="no figure",
        criterion=(
            "every LLaMA-7B layer in float16: intensity at or above the measured ridge, and its least bytes below the "
            "measured read bandwidth"
        ),
        measure=_compute_bound,
    ),
    Claim(
        name="T = 512 at 70 %",
        place=12,
        says="Prefill (T = 512) reaches about 70 % of peak",
        source="70 %, of a datasheet's peak",
        criterion="LLaMA-7B's layers in float16, summed, at 60 to 80 % of the datasheet's peak; the measured beside it",
        measure=_share(PREFILL, 0.6, 0.8),
    ),
    Claim(
        name="T = 8 at 10 to 20 %",
        place=13,
        says="T = 8 reaches 10–20 % of peak",
        source="10–20 %, of a datasheet's peak",
        criterion="LLaMA-7B's layers in float16, summed, at 10 to 20 % of the datasheet's peak; the measured beside it",
        measure=_share(8, 0.1, 0.2),
    ),
)
