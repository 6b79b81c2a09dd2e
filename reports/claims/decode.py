"""Claims on a decode step of LLaMA-7B, held against prefill over the same layers."""

from __future__ import annotations

from harness.words import significant
from reports import format as fmt
from reports.claims import Claim, Judged, Word, absent, gpu, percent_range, verdict, within
from reports.figures import Figures, Row
from reports.roofline.llama import DECODE, PREFILL, Step, bound_ns, slower_per_token, step
from reports.roofline.shares import ceiling_row, inverse, scaled, sustained

DTYPE = "float16"
WEIGHT_BYTES = 14e9
LESS = 0.03
"""By which a bound may be missed."""
LAYERS = "every LLaMA-7B layer in float16"


def _rows(f: Figures, *found: Step) -> list[Row]:
    ids = {name for each in found for name in each.case_ids}
    return [row for row in f.rows if row.measurement.case.id in ids]


def _under_one_percent(f: Figures) -> Judged:
    decode, peak = step(f, DTYPE, DECODE), ceiling_row(f, f.ceilings.peak(DTYPE))
    ceiling = f.ceilings.peak(DTYPE)
    if decode is None or peak is None or ceiling is None or ceiling.per_s is None:
        return absent(f"{LAYERS}, T = 1, and the float16 peak", "roofline")
    share = inverse(decode.ns, decode.flops * 1e9 / ceiling.per_s.estimate)
    said = f"a decode step reaches {percent_range(share)} of the measured peak, {sustained(f, DTYPE)} ({_way(f)})"
    return verdict(within(share, high=0.01), said, [*_rows(f, decode), peak])


def _fifty_times(f: Figures) -> Judged:
    decode, prefill = step(f, DTYPE, DECODE), step(f, DTYPE, PREFILL)
    if decode is None or prefill is None:
        return absent(f"{LAYERS}, T = 1 and T = 512", "roofline")
    ratio = slower_per_token(decode, prefill)
    if ratio is None:
        return absent("decode and prefill in the same trials", "roofline")
    said = (
        f"{fmt.times_range(ratio)} the time a token over the same layers: {_ms(decode)} a decode step, {_ms(prefill)} "
        f"for 512 tokens ({_way(f)})"
    )
    return verdict(within(ratio, low=40, high=60), said, _rows(f, decode, prefill))


def _at_least_its_bytes(f: Figures) -> Judged:
    decode, read = step(f, DTYPE, DECODE), f.ceilings.read
    if decode is None or read.per_s is None:
        return absent(f"{LAYERS}, T = 1, and the read bandwidth", "roofline")
    bound = bound_ns(f, decode)
    row = ceiling_row(f, read)
    if bound is None or row is None:
        return absent("the read bandwidth", "roofline")
    over, ms = scaled(decode.ns, 1 / bound), WEIGHT_BYTES / read.per_s.estimate * 1e3
    rule = within(over, low=1 - LESS)
    holds = {Word.CONFIRMED: "holds", Word.REFUTED: "does not hold"}.get(rule, "is undecided")
    said = (
        f"the rule, at least bytes over bandwidth, {holds}: a step moves {decode.bytes / 1e9:.1f}{fmt.NBSP}GB in "
        f"{_ms(decode)}, {fmt.times_range(over)} that bound ({_way(f)}); for 14 GB it is {significant(ms, 3)}"
        f"{fmt.NBSP}ms on {fmt.name(gpu(f))}, at its measured {fmt.gb_per_s(read.per_s.estimate / 1e9)}"
    )
    rows = [*_rows(f, decode), row]
    long_enough = Word.CONFIRMED if ms >= 4.2 * (1 - LESS) else Word.REFUTED
    return verdict(long_enough if rule is Word.CONFIRMED else rule, said, rows)


def _ms(each: Step) -> str:
    return f"{significant(each.ns.estimate / 1e6)}{fmt.NBSP}ms {fmt.plus_minus(each.ns)}"


def _way(f: Figures) -> str:
    return f.headline.label if f.headline else "not timed"


CLAIMS = (
    Claim(
        name="under 1 %",
        place=14,
        says="Decode uses under 1 % of the peak arithmetic",
        source="under 1 %",
        criterion="FLOP/s of one LLaMA-7B decode step in float16 under 1 % of the measured peak",
        measure=_under_one_percent,
    ),
    Claim(
        name="50 times slower",
        place=15,
        says="Decode is «50× slower than prefill»",
        source="50×: a whole model's decode against one layer's prefill",
        criterion="40 to 60 times the time a token, both summed over the same LLaMA-7B layers in float16",
        measure=_fifty_times,
    ),
    Claim(
        name="4.2 ms",
        place=16,
        says="It takes 4.2 ms at least to read 14 GB of weights at 3.35 TB/s",
        source="14 GB / 3.35 TB/s = 4.2 ms, an H100's bandwidth",
        criterion=(
            "on an H100: 14 GB over its measured read bandwidth take 4.2 ms or more, and no decode step is faster than "
            "its bytes over that bandwidth, both less 3 %"
        ),
        measure=_at_least_its_bytes,
        source_gpu="H100",
        of_it_alone=True,
    ),
)
