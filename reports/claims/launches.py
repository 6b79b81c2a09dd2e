"""Claims on the reference's first shape, 1024×128, and on how many SMs a launch keeps busy."""

from __future__ import annotations

import math
from functools import partial

from harness.model import Cache, Problem
from harness.stats import Interval, speedup
from reports import format as fmt
from reports.claims import BOTH, Claim, Judged, Word, absent, all_of, gpu, is_a, percent_range, verdict, within
from reports.device_kernels import named
from reports.figures import BASELINE, Figures, Row, Way
from reports.roofline.shares import of_bandwidth

PROBLEM = Problem(m=1024, k=128)
SCALAR, FLOAT4 = "sgemv_k32_f32", "sgemv_k128_f32x4"
RATE, DEVICE = Way(timer="async", cache=Cache.HOT), Way(timer="graph", cache=Cache.HOT)
FULL = 0.5
"""From this share of its warp slots on the device counts as filled."""
WARP_SLOTS = {
    "7.0": 64, "7.5": 32, "8.0": 64, "8.6": 48, "8.7": 48, "8.9": 48, "9.0": 64, "10.0": 64, "10.3": 64, "12.0": 48,
}  # fmt: skip
"""Resident warps an SM at most, by compute capability (CUDA C++ Programming Guide, technical specifications)."""
SOURCE = "RTX 4090"
SOURCE_SMS, SOURCE_CAPABILITY = 128, "8.9"
TWO_PERCENT = 1.02


def _rows(f: Figures, kernel: str) -> tuple[Row, Row] | None:
    """By the rate of launches and by the device's time."""
    by_rate, by_device = f.find(kernel, PROBLEM, RATE), f.find(kernel, PROBLEM, DEVICE)
    if by_rate is None or by_device is None or by_rate.summary is None or by_device.summary is None:
        return None
    return by_rate, by_device


def _faster(f: Figures, low: float) -> Judged:
    """Whether the fastest is at least `low` times as fast as the baseline by device time."""
    found = [pair for kernel in (SCALAR, FLOAT4) if (pair := _rows(f, kernel)) is not None]
    usable = [(rate, device) for rate, device in found if rate.speedup is not None and device.speedup is not None]
    if not usable:
        return absent(f"{SCALAR} or {FLOAT4} and {BASELINE} on 1024×128 by async and graph, hot", BOTH)
    rate, device = max(usable, key=lambda pair: _estimate(pair[1].speedup))
    by_rate, by_device = rate.speedup, device.speedup
    if by_rate is None or by_device is None:
        raise ValueError(f"{device.measurement.case.id}: has no speed-up")
    said = (
        f"{fmt.name(device.kernel)}: {fmt.times_range(by_device)} by device time ({DEVICE.label}), "
        f"{fmt.times_range(by_rate)} by the rate of launches ({RATE.label})"
    )
    return verdict(within(by_device, low=low), said, (device, rate))


def _estimate(ratio: Interval | None) -> float:
    return ratio.estimate if ratio is not None else 0.0


def _float4(f: Figures) -> Judged:
    scalar, float4 = _rows(f, SCALAR), _rows(f, FLOAT4)
    if scalar is None or float4 is None:
        return absent(f"{SCALAR} and {FLOAT4} on 1024×128 by async and graph, hot", BOTH)
    by_rate = speedup(float4[0].measurement, scalar[0].measurement)
    by_device = speedup(float4[1].measurement, scalar[1].measurement)
    if by_rate is None or by_device is None:
        return absent(f"{SCALAR} and {FLOAT4} in the same trials", BOTH)
    said = (
        f"float4 against scalar: {fmt.times_range(by_rate)} by the rate of launches ({RATE.label}), "
        f"{fmt.times_range(by_device)} by device time ({DEVICE.label})"
    )
    words = (within(by_rate, low=1.0, high=2 * TWO_PERCENT - 1), within(by_device, low=TWO_PERCENT))
    return verdict(all_of(words), said, (*scalar, *float4))


def _fills(f: Figures) -> Judged:
    """A launch this short is over before bandwidth could tell, so its warps are counted."""
    rows = [r for k in (SCALAR, FLOAT4) if (r := f.find(k, PROBLEM, Way(timer="graph", cache=Cache.COLD)))]
    if not rows:
        return absent(f"{SCALAR} or {FLOAT4} on 1024×128 by graph, cold", BOTH)
    row = next((r for r in rows if named(r)), rows[0])
    if not named(row):
        return Judged(word=Word.CANNOT, measured="needs the launch's grid, which this run lacks", rows=(row,))
    blocks, warps = _blocks(row) or 0, -(-math.prod(named(row)[0].block) // 32)
    slots = WARP_SLOTS[SOURCE_CAPABILITY]
    share = blocks * warps / (SOURCE_SMS * slots)
    said = (
        f"{fmt.name(row.kernel)}: {blocks} blocks of {fmt.count(warps, 'warp')} are {fmt.percent(share)} of the "
        f"{SOURCE_SMS} × {slots} warp slots of the {SOURCE} (counted){_filled_here(f, blocks * warps)}"
    )
    drawn = of_bandwidth(f, row)
    if drawn is not None:
        said += f"; it draws {percent_range(drawn)} of the read bandwidth measured here ({row.way.label})"
    word = Word.CONFIRMED if share >= FULL else Word.REFUTED
    return Judged(word=word, measured=said, rows=(row,), counted=True)


def _filled_here(f: Figures, warps: int) -> str:
    """The same count for the run's GPU, where its SMs and their warp slots are known."""
    sms, capability = (f.run.environment.get(name) for name in ("sm_count", "compute_capability"))
    slots = WARP_SLOTS.get(str(capability))
    if is_a(SOURCE, f) or slots is None or not isinstance(sms, int):
        return ""
    return f", {fmt.percent(warps / (sms * slots))} of the {sms} × {slots} of {fmt.name(gpu(f))}"


def _few_rows(f: Figures) -> Judged:
    cold = Way(timer="graph", cache=Cache.COLD)
    rows = [r for r in f.passed(cold) if r.problem.m == 8 and r.problem.n == 1 and r.kernel in (SCALAR, FLOAT4)]
    if not rows:
        return absent(f"{SCALAR} or {FLOAT4} with 8 rows by graph, cold", BOTH)
    shares = [(share, r) for r in rows if (share := of_bandwidth(f, r)) is not None]
    if not shares:
        return absent("the read bandwidth", "roofline")
    share, row = max(shares, key=lambda pair: pair[0].estimate)
    blocks = _blocks(row)
    grid = f"{blocks} blocks" if blocks is not None else "an unknown grid"
    said = f"{fmt.name(row.kernel)} on {fmt.problem(row.problem)}: {grid}, {percent_range(share)} of the read bandwidth"
    word = within(share, high=0.1)
    if word is Word.CONFIRMED and blocks != 2:
        word = Word.CANNOT if blocks is None else Word.REFUTED
    return verdict(word, f"{said} ({row.way.label})", (row,))


def _blocks(row: Row) -> int | None:
    launched = named(row)
    return math.prod(launched[0].grid) if launched else None


CLAIMS = (
    Claim(
        name="faster",
        place=0,
        says="Hand-written kernels beat torch.matmul at 1024×128",
        source="2.76 against 7.66 µs, RTX 4090, rate of launches",
        criterion="by device time more than 1×; the rate of launches stands beside it",
        measure=partial(_faster, low=1.0),
        source_gpu=SOURCE,
    ),
    Claim(
        name="2.7 times",
        place=1,
        says="Hand-written kernels beat torch.matmul 2.7× at 1024×128",
        source="2.7×, RTX 4090, rate of launches",
        criterion="on an RTX 4090: by device time at least 2.43× (2.7 less 10 %); the rate of launches beside it",
        measure=partial(_faster, low=0.9 * 2.7),
        source_gpu=SOURCE,
        of_it_alone=True,
    ),
    Claim(
        name="float4",
        place=2,
        says="float4 loads are only 2 % faster than scalar ones at that size, because launches dominate",
        source="2.76 against 2.83 µs, RTX 4090, rate of launches",
        criterion=(
            "on an RTX 4090: 2 % give or take 2, that is 1.00 to 1.04×, by the rate of launches; and more than "
            "those 2 % by device time, which launches would then hide"
        ),
        measure=_float4,
        source_gpu=SOURCE,
        of_it_alone=True,
    ),
    Claim(
        name="256 blocks",
        place=3,
        says="256 blocks on 128 SMs «fill» the GPU",
        source="1024×128, RTX 4090",
        criterion=(
            "by counting, for an RTX 4090: the grid's warps take half or more, though «fill» says all, of the warp "
            "slots of its 128 SMs, 48 each by compute capability 8.9 (CUDA C++ Programming Guide, table of technical "
            "specifications)"
        ),
        measure=_fills,
        source_gpu=SOURCE,
        of_it_alone=True,
    ),
    Claim(
        name="two blocks",
        place=4,
        says="At M = 8 two blocks use two SMs",
        source="2 of 128 SMs, RTX 4090",
        criterion="a grid of 2 blocks, and at most 10 % of the measured read bandwidth",
        measure=_few_rows,
        source_gpu=SOURCE,
    ),
)
