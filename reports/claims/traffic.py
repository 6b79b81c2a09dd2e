"""Claims on bytes: attention as GEMV, least bytes against DRAM bytes, fewer bytes by quantized weights."""

from __future__ import annotations

import math
from collections.abc import Iterable

from harness.model import Cache, Problem
from harness.roofline import intensity_flop_per_byte, least_bytes
from harness.stats import Interval, log_t_interval, trial_medians_ns
from harness.words import significant
from reports import format as fmt
from reports.claims import Claim, Judged, Word, absent, percent_range, verdict, within
from reports.figures import Figures, Row
from reports.roofline.points import points
from reports.roofline.shares import of_bandwidth, of_peak
from reports.roofline.tables import HALF, WEIGHT_ONLY, byte_ratio, weight_only_pairs

HEAD_DIM = 128
LARGE = 64 * 2**20
"""Bytes of float16 weights from which on a product is about its bytes."""


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
        f"peak, {fmt.name(row.kernel)} on {fmt.problem(row.problem)} ({row.way.label})"
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
    pairs = [(own, half) for own, half in weight_only_pairs(f, 1) if least_bytes(half.problem) >= LARGE]
    kept = _kept(pairs)
    if kept is None:
        return absent(f"{WEIGHT_ONLY} and {HALF} on weights of {fmt.data_bytes(LARGE)} or more, T = 1", "roofline")
    bytes_ = math.exp(sum(math.log(byte_ratio(*pair)) for pair in pairs) / len(pairs))
    faster = kept.estimate * bytes_
    said = (
        f"{fmt.times_figure(bytes_)}× fewer bytes, {fmt.times_figure(faster)}× as fast: {percent_range(kept)} of the "
        f"byte ratio, geometric mean over {fmt.count(len(pairs), 'weight')}, scales and dequantization included "
        f"({pairs[0][0].way.label})"
    )
    return verdict(within(kept, low=0.9), said, [row for pair in pairs for row in pair])


def _kept(pairs: Iterable[tuple[Row, Row]]) -> Interval | None:
    """Speed-up over byte ratio, geometric mean over the weights within each trial."""
    by_trial: dict[int, list[float]] = {}
    found = list(pairs)
    for own, half in found:
        ours, theirs = trial_medians_ns(own.measurement), trial_medians_ns(half.measurement)
        for trial in ours.keys() & theirs.keys():
            by_trial.setdefault(trial, []).append(math.log(theirs[trial] / ours[trial] / byte_ratio(own, half)))
    logs = [sum(each) / len(each) for _, each in sorted(by_trial.items()) if len(each) == len(found)]
    return log_t_interval(logs) if logs else None


CLAIMS = (
    Claim(
        name="attention",
        place=18,
        says="Attention in decode (q·Kᵀ, s·V) is GEMV too",
        source="no figure",
        criterion="at most 1 FLOP/byte, and no kernel above 1 % of the measured peak: bandwidth and launches bound it",
        judge=_attention,
    ),
    Claim(
        name="DRAM bytes",
        place=19,
        says="Least bytes are not DRAM bytes",
        source="no figure",
        criterion="some case, hot, takes its least bytes faster than the measured read bandwidth gives them",
        judge=_not_dram_bytes,
    ),
    Claim(
        name="weight-only",
        place=20,
        says="Weight-only quantization speeds decode up by its byte ratio",
        source="the ratio of the bytes",
        criterion="gemv_w8 against hgemv at T = 1, weights of 64 MiB in float16 or more: 90 % of the byte ratio",
        judge=_by_its_bytes,
    ),
)
