"""Shares of measured ceilings with their intervals, paired by trial."""

from __future__ import annotations

from harness.ceilings import Ceiling
from harness.roofline import flops, least_bytes
from harness.stats import Interval, speedup
from reports.figures import Figures, Row


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


def _share(row: Row, ceiling: Row, work: float) -> Interval | None:
    if row.summary is None:
        return None
    faster = speedup(row.measurement, ceiling.measurement)
    return scaled(faster, work) if faster is not None else None


def scaled(value: Interval, factor: float) -> Interval:
    """All of it times `factor`."""
    ends = [None if end is None else end * factor for end in (value.low, value.high)]
    return Interval(estimate=value.estimate * factor, low=ends[0], high=ends[1])
