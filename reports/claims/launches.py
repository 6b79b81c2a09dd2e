"""Claims on the reference's first shape, 1024×128, and on how many SMs a launch keeps busy."""

from __future__ import annotations

from harness.model import Cache, Problem
from harness.stats import Interval, speedup
from reports import format as fmt
from reports.claims import BOTH, Claim, Judged, Word, absent, percent_range, verdict, within
from reports.device_kernels import named
from reports.figures import BASELINE, Figures, Row, Way
from reports.roofline.shares import of_bandwidth

PROBLEM = Problem(m=1024, k=128)
SCALAR, FLOAT4 = "sgemv_k32_f32", "sgemv_k128_f32x4"
RATE, DEVICE = Way(timer="async", cache=Cache.HOT), Way(timer="graph", cache=Cache.HOT)
FULL = 0.5
"""From this share of the read bandwidth on the device counts as filled."""


def _rows(f: Figures, kernel: str) -> tuple[Row, Row] | None:
    """By the rate of launches and by the device's time."""
    by_rate, by_device = f.find(kernel, PROBLEM, RATE), f.find(kernel, PROBLEM, DEVICE)
    if by_rate is None or by_device is None or by_rate.summary is None or by_device.summary is None:
        return None
    return by_rate, by_device


def _faster(f: Figures) -> Judged:
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
    return verdict(within(by_device, low=0.9 * 2.7), said, (device, rate))


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
    words = {within(by_rate, low=0.95, high=1.05), within(by_device, low=1.05)}
    order = (Word.REFUTED, Word.CANNOT, Word.CONFIRMED)
    return verdict(min(words, key=order.index), said, (*scalar, *float4))


def _fills(f: Figures) -> Judged:
    rows = [r for k in (SCALAR, FLOAT4) if (r := f.find(k, PROBLEM, Way(timer="graph", cache=Cache.COLD)))]
    shares = [(share, r) for r in rows if (share := of_bandwidth(f, r)) is not None]
    if not shares:
        return absent(f"{SCALAR} or {FLOAT4} on 1024×128 by graph, cold, and the read bandwidth", BOTH)
    share, row = max(shares, key=lambda pair: pair[0].estimate)
    said = f"{fmt.name(row.kernel)} draws {percent_range(share)} of the measured read bandwidth ({row.way.label})"
    return verdict(within(share, low=FULL), said, (row,))


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
    return launched[0].grid[0] * launched[0].grid[1] * launched[0].grid[2] if launched else None


CLAIMS = (
    Claim(
        name="2.7 times",
        place=1,
        says="Hand-written kernels beat torch.matmul 2.7× at 1024×128",
        source="2.7×, RTX 4090, rate of launches",
        criterion="by device time at least 2.43× (2.7 less 10 %); the rate of launches stands beside it",
        judge=_faster,
    ),
    Claim(
        name="float4",
        place=2,
        says="float4 loads are only 2 % faster than scalar ones at that size, because launches dominate",
        source="2.76 against 2.83 µs, RTX 4090, rate of launches",
        criterion="within 5 % by the rate of launches, and more than 5 % faster by device time",
        judge=_float4,
    ),
    Claim(
        name="256 blocks",
        place=3,
        says="256 blocks on 128 SMs «fill» the GPU",
        source="1024×128, RTX 4090",
        criterion="at least 50 % of the measured read bandwidth, cold",
        judge=_fills,
    ),
    Claim(
        name="two blocks",
        place=4,
        says="At M = 8 two blocks use two SMs",
        source="2 of 128 SMs",
        criterion="a grid of 2 blocks, and at most 10 % of the measured read bandwidth",
        judge=_few_rows,
    ),
)
