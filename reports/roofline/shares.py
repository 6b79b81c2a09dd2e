"""Shares of measured ceilings with their intervals, paired by trial."""

from __future__ import annotations

from harness.ceilings import Ceiling
from harness.roofline import flops, least_bytes
from harness.stats import Interval, speedup
from reports import format as fmt
from reports.figures import Figures, Row
from reports.held_back import held_ns

POWER_LIMIT = "sw_power_cap"
"""NVML's name of the limit that large products usually run into."""


def ceiling_row(f: Figures, ceiling: Ceiling | None) -> Row | None:
    """The case that a ceiling was measured by; None where it was not."""
    if ceiling is None or ceiling.case_id is None:
        return None
    return next((r for r in f.rows if r.measurement.case.id == ceiling.case_id), None)


def of_bandwidth(f: Figures, row: Row) -> Interval | None:
    """Least bytes a second as a fraction of the measured read bandwidth."""
    read = ceiling_row(f, f.ceilings.read)
    return _share(row, read, least_bytes(row.problem) / least_bytes(read.problem)) if read is not None else None


def of_peak(f: Figures, row: Row) -> Interval | None:
    """FLOP a second as a fraction of the dtype's measured peak."""
    peak = ceiling_row(f, f.ceilings.peak(row.problem.dtype))
    return _share(row, peak, flops(row.problem) / flops(peak.problem)) if peak is not None else None


def sustained(f: Figures, dtype: str) -> str:
    """What the dtype's measured peak is: `what a product of 8192³ sustains at the power limit, at an SM clock of …`."""
    peak = f.ceilings.peak(dtype)
    row = ceiling_row(f, peak)
    if peak is None or row is None:
        return "not measured"
    limited = " at the power limit" if held_ns([row]).get(POWER_LIMIT) else ""
    clock = "" if peak.sm_clock_mhz is None else f", at an SM clock of {peak.sm_clock_mhz:.0f}{fmt.NBSP}MHz"
    return f"what a product of {row.problem.m}³ sustains{limited}{clock}"


def _share(row: Row, ceiling: Row, work: float) -> Interval | None:
    if row.summary is None:
        return None
    faster = speedup(row.measurement, ceiling.measurement)
    return scaled(faster, work) if faster is not None else None


def inverse(ns: Interval, factor: float) -> Interval:
    """`factor` over a time, with its interval."""
    low, high = ns.low, ns.high
    return Interval(
        estimate=factor / ns.estimate,
        low=None if high is None else factor / high,
        high=None if low is None else factor / low,
    )


def scaled(value: Interval, factor: float) -> Interval:
    """All of it times `factor`."""
    ends = [None if end is None else end * factor for end in (value.low, value.high)]
    return Interval(estimate=value.estimate * factor, low=ends[0], high=ends[1])
