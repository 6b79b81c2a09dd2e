"""Claims on bytes: attention as GEMV, least bytes against DRAM bytes, fewer bytes by quantized weights."""

from __future__ import annotations

from harness.model import Cache, Problem
from harness.roofline import intensity_flop_per_byte
from harness.words import significant
from reports import format as fmt
from reports.claims import Claim, Judged, Word, absent, percent_range, verdict, within
from reports.figures import Figures
from reports.roofline.llama import DECODE, LAYERS, slower_per_token, step
from reports.roofline.points import against, points, weight_label
from reports.roofline.shares import of_bandwidth, of_peak, scaled, sustained
from reports.roofline.tables import HALF, WEIGHT_ONLY, byte_ratio, weight_only_pairs

HEAD_DIM = 128


def is_attention(problem: Problem) -> bool:
    """q·Kᵀ or s·V of one head in decode: one token, one side the head's 128 elements, the other a longer context."""
    small, large = sorted((problem.m, problem.k))
    return problem.n == 1 and small == HEAD_DIM < large and problem.dtype in ("float16", "bfloat16")


def _attention(f: Figures) -> Judged:
    rows = [r for r in points(f) if is_attention(r.problem)]
    shares = [(share, r) for r in rows if (share := of_peak(f, r)) is not None]
    if not shares:
        return absent("decode attention (128 elements a head, one token) in half precision, and its peak", "roofline")
    share, row = max(shares, key=lambda pair: pair[0].estimate)
    highest = max(intensity_flop_per_byte(r.problem) for r in rows)
    problems = fmt.count(len({r.problem for r in rows}), "shape")
    said = (
        f"{problems} at {significant(highest, 3)} FLOP/byte or less; at most {percent_range(share)} of the measured "
        f"peak, {sustained(f, row.problem.dtype)}: {fmt.name(row.kernel)} on {fmt.problem(row.problem)} "
        f"({row.way.label})"
    )
    return verdict(within(share, high=0.01) if highest <= 1 else Word.REFUTED, said, [r for _, r in shares])


def _not_dram_bytes(f: Figures) -> Judged:
    """Bytes that come faster than memory can give them did not come from memory."""
    rows = [r for r in f.rows if r.way.cache is Cache.HOT and r.summary is not None and r.way.timer == "graph"]
    shares = [(share, r) for r in rows if (share := of_bandwidth(f, r)) is not None]
    why = "DRAM bytes are counters, which need Nsight Compute: nox -s profile"
    if not shares:
        return Judged(word=Word.CANNOT, measured=f"{why}; no case by graph, hot, bounds them in this run")
    share, row = max(shares, key=lambda pair: pair[0].estimate)
    said = (
        f"hot, {fmt.name(row.kernel)} on {fmt.problem(row.problem)} takes its least bytes at {percent_range(share)} of "
        f"the read bandwidth ({row.way.label})"
    )
    if within(share, low=1.0) is Word.CONFIRMED:
        return Judged(word=Word.CONFIRMED, measured=f"{said}: they did not all come from DRAM", rows=(row,))
    return Judged(word=Word.CANNOT, measured=f"{said}, which DRAM could give; {why}", rows=(row,))


def _by_its_bytes(f: Figures) -> Judged:
    """What the claim is about: a whole step, in which every weight counts as often and as much as it takes."""
    own, half = step(f, "int8", DECODE, kernel=WEIGHT_ONLY), step(f, "float16", DECODE)
    faster = slower_per_token(half, own) if own is not None and half is not None else None
    if own is None or half is None or faster is None:
        return absent(f"every LLaMA-7B layer, T = 1, by {WEIGHT_ONLY} and in float16", "roofline")
    bytes_ = half.bytes / own.bytes
    kept = scaled(faster, 1 / bytes_)
    said = (
        f"LLaMA-7B's decode step by {WEIGHT_ONLY} against the fastest float16: {fmt.times_range(faster)} as fast with "
        f"{fmt.times_figure(bytes_)}× fewer bytes, {percent_range(kept)} of the byte ratio, scales and dequantization "
        f"included ({f.headline.label if f.headline else 'not timed'}){_by_weight(f)}"
    )
    ids = {*own.case_ids, *half.case_ids}
    return verdict(within(kept, low=0.9), said, [row for row in f.rows if row.measurement.case.id in ids])


def _by_weight(f: Figures) -> str:
    """The least and the most of the byte ratio that a single weight keeps."""
    own = {layer.weight for layer in LAYERS}
    pairs = [(against(*p), p) for p in weight_only_pairs(f, 1) if (p[0].problem.m, p[0].problem.k) in own]
    kept = [(ratio.estimate / byte_ratio(*pair), pair[0]) for ratio, pair in pairs if ratio is not None]
    if len(kept) < 2:
        return ""
    ends = [pick(kept, key=lambda each: each[0]) for pick in (min, max)]
    said = [f"{fmt.percent(share)} on {weight_label((row.problem.m, row.problem.k))}" for share, row in ends]
    return f"; by weight against {HALF} {' to '.join(said)}"


CLAIMS = (
    Claim(
        name="attention",
        place=19,
        says="Attention in decode (q·Kᵀ, s·V) is GEMV too",
        source="no figure",
        criterion="at most 1 FLOP/byte, and no kernel above 1 % of the measured peak: bandwidth and launches bound it",
        measure=_attention,
    ),
    Claim(
        name="DRAM bytes",
        place=20,
        says="Least bytes are not DRAM bytes",
        source="no figure",
        criterion="some case, hot, takes its least bytes faster than the measured read bandwidth gives them",
        measure=_not_dram_bytes,
    ),
    Claim(
        name="weight-only",
        place=21,
        says="Weight-only quantization speeds decode up by its byte ratio",
        source="the ratio of the bytes",
        criterion="LLaMA-7B's decode step by gemv_w8 against the fastest float16: at least 90 % of the byte ratio",
        measure=_by_its_bytes,
    ),
)
