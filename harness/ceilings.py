"""What a run says its device can do at most: ceilings are ordinary cases, named here.

Read bandwidth: `read` over several GiB. Copy bandwidth: y = A·x of one column, which reads A once and writes it once.
Matrix peaks: `torch.matmul` on large square matrices of random values, never of zeros, which take less power.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from harness.model import Cache, Measurement, Problem, Role, Run
from harness.roofline import attainable_flop_per_s, flops, least_bytes, ridge_flop_per_byte
from harness.stats import Interval, log_t_interval, summarize, trial_medians_ns
from harness.timing import HEADLINE

READ = Problem(m=65536, k=16384)
"""4 GiB of A."""

COPY = Problem(m=1 << 28, k=1)
"""1 GiB read and 1 GiB written, by the kernel `COPY_KERNEL`; its checks in float64 take ten times as much."""

COPY_KERNEL = "sgemv_k1"

PEAK_KERNEL = "torch.matmul"

PEAK_DTYPES = ("float32", "tf32", "float16", "bfloat16")
PEAKS = {dtype: Problem(m=8192, k=8192, n=8192, dtype=dtype) for dtype in PEAK_DTYPES}
"""1.1 TFLOP each."""

COMPUTED_IN = {"int8": "float16"}
"""Dtypes that have no peak of their own here: int8 weights are multiplied as float16."""

PROBLEMS = (READ, COPY, *PEAKS.values())
"""All that ceilings are measured on."""


@dataclass(frozen=True, kw_only=True)
class Ceiling:
    """One bound of the device, as measured; every figure is None where it was not."""

    what: str
    """In words: `read bandwidth`, `copy bandwidth`, `float16 peak`."""
    unit: str
    """Of `per_s`: `byte` or `FLOP`."""
    per_s: Interval | None = None
    """Bytes or FLOP a second, with its interval over the trials."""
    spread: float | None = None
    """(max − min) / median of the trials' medians, as a fraction."""
    sm_clock_mhz: float | None = None
    """Mean SM clock over all samples; None where no sample's was read."""
    case_id: str | None = None
    """The case that it was measured by."""
    reason: str | None = None
    """Why it was not measured; None if it was."""


@dataclass(frozen=True, kw_only=True)
class Ceilings:
    """What a run measured of its device's bounds, cold, by the headline timer."""

    read: Ceiling
    """Bytes a second, A read and next to nothing written."""
    copy: Ceiling
    """Bytes a second, as many written as read; read and written bytes are both counted."""
    peaks: dict[str, Ceiling]
    """FLOP a second by dtype, for each of `PEAK_DTYPES`."""

    @property
    def every(self) -> tuple[Ceiling, ...]:
        """All of them, bandwidths first."""
        return self.read, self.copy, *self.peaks.values()

    @property
    def measured(self) -> bool:
        """Whether there is any."""
        return any(ceiling.per_s is not None for ceiling in self.every)

    def peak(self, dtype: str) -> Ceiling | None:
        """The roof that products of `dtype` are held against; None for a dtype that has none."""
        return self.peaks.get(COMPUTED_IN.get(dtype, dtype))

    def ridge_flop_per_byte(self, dtype: str) -> float | None:
        """Arithmetic intensity at which the bandwidth's slope meets the dtype's roof; None where either is unknown."""
        roofs = self._roofs(dtype)
        return None if roofs is None else ridge_flop_per_byte(peak_flop_per_s=roofs[0], bandwidth_byte_per_s=roofs[1])

    def attainable_flop_per_s(self, problem: Problem) -> float | None:
        """min(peak, intensity · read bandwidth), by measured ceilings; None where either is unknown."""
        roofs = self._roofs(problem.dtype)
        if roofs is None:
            return None
        return attainable_flop_per_s(problem, peak_flop_per_s=roofs[0], bandwidth_byte_per_s=roofs[1])

    def _roofs(self, dtype: str) -> tuple[float, float] | None:
        """(FLOP a second, bytes a second)."""
        peak = self.peak(dtype)
        if self.read.per_s is None or peak is None or peak.per_s is None:
            return None
        return peak.per_s.estimate, self.read.per_s.estimate


def ceilings(run: Run) -> Ceilings:
    """The ceilings that `run` measured.

    Args:
        run: with samples, as `harness.store.load` gives it.
    """
    cold = [m for m in run.measurements if m.case.timer == HEADLINE and m.case.cache is Cache.COLD]
    reads = (m for m in cold if m.case.role is Role.LIMIT and m.case.problem == READ)
    copies = (m for m in cold if m.case.kernel == COPY_KERNEL and m.case.problem == COPY)
    peaks = {
        dtype: _ceiling(
            (m for m in cold if m.case.kernel == PEAK_KERNEL and m.case.problem == problem),
            Ceiling(what=f"{dtype} peak", unit="FLOP"),
            flops,
        )
        for dtype, problem in PEAKS.items()
    }
    return Ceilings(
        read=_ceiling(reads, Ceiling(what="read bandwidth", unit="byte"), least_bytes),
        copy=_ceiling(copies, Ceiling(what="copy bandwidth", unit="byte"), least_bytes),
        peaks=peaks,
    )


def _ceiling(found: Iterable[Measurement], blank: Ceiling, amount: Callable[[Problem], int]) -> Ceiling:
    """The fastest of what measured it."""
    measured = list(found)
    rates = [(_per_s(m, amount(m.case.problem)), m) for m in measured]
    passed = [(rate, m) for rate, m in rates if rate is not None]
    if not passed:
        return Ceiling(what=blank.what, unit=blank.unit, reason=_reason(measured))
    rate, best = max(passed, key=lambda pair: pair[0].estimate)
    summary = summarize(best)
    clocks = best.sample_clocks_mhz
    return Ceiling(
        what=blank.what,
        unit=blank.unit,
        per_s=rate,
        spread=summary.spread if summary else None,
        sm_clock_mhz=statistics.fmean(clocks) if clocks else None,
        case_id=best.case.id,
    )


def _per_s(measurement: Measurement, amount: int) -> Interval | None:
    """`amount` a launch as a rate; None unless every trial passed."""
    medians = trial_medians_ns(measurement) if measurement.trials else {}
    return log_t_interval([math.log(amount * 1e9 / ns) for ns in medians.values()]) if medians else None


def _reason(measured: list[Measurement]) -> str:
    if not measured:
        return f"not in this run by {HEADLINE}, cold: nox -s roofline measures it"
    worst = measured[0]
    reason = worst.verdict.reason if worst.trials else "no trial of it ended"
    return f"{worst.case.id}: {reason or 'it has no samples'}"
