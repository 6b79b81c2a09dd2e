"""Work and traffic of a problem, and what a device can do with them: the one place that counts operations and bytes.

S. Williams, A. Waterman, D. Patterson: Roofline (CACM 52(4), 2009) is where arithmetic intensity and the two roofs come
from.
"""

from __future__ import annotations

from enum import StrEnum

from harness.dtypes import SCALED, activation_dtype
from harness.errors import CommandError, Exit
from harness.model import Problem
from harness.words import visible

ITEM_BYTES = {"float64": 8, "float32": 4, "tf32": 4, "float16": 2, "bfloat16": 2, "int8": 1}
"""Bytes that an element of A takes in memory, by dtype."""


class Bound(StrEnum):
    """The roof that a problem is under."""

    BANDWIDTH = "bandwidth"
    """Its bytes take longer than its operations."""
    COMPUTE = "compute"
    """Its operations take at least as long as its bytes."""


def activation_bytes(dtype: str) -> int:
    """Bytes that an element of x or y takes in memory, and a row's scale where A has them."""
    return ITEM_BYTES[activation_dtype(dtype)]


def flops(problem: Problem) -> int:
    """Floating-point operations of A (m×k) · x (k×n): a multiplication and an addition a product, 2·m·k·n."""
    return 2 * problem.m * problem.k * problem.n


def least_bytes(problem: Problem) -> int:
    """Fewest bytes that must move: A, its scales where it has them, and x read once, y written once.

    (m·k + k·n + m·n)·s with s bytes an element; int8: m·k + 2·m + 2·(k·n + m·n). However A lies in memory: what is
    between its rows need not be read.

    Raises:
        CommandError: its dtype is of a later version than this program's (RUN).
    """
    if problem.dtype not in ITEM_BYTES:
        known = ", ".join(ITEM_BYTES)
        raise CommandError(f"dtype {visible(problem.dtype)}: wanted one of {known}: update this project", Exit.RUN)
    m, k, n = problem.m, problem.k, problem.n
    scales = m if problem.dtype in SCALED else 0
    return m * k * ITEM_BYTES[problem.dtype] + (k * n + m * n + scales) * activation_bytes(problem.dtype)


def intensity_flop_per_byte(problem: Problem) -> float:
    """Arithmetic intensity, FLOP per least byte; of a GEMV about 0.5 in float32, 1 in float16, 2 in int8."""
    return flops(problem) / least_bytes(problem)


def bandwidth_gb_per_s(problem: Problem, ns_per_launch: float) -> float:
    """Least bytes over time, in 10⁹ bytes a second: what the kernel usefully moved."""
    return least_bytes(problem) / ns_per_launch


def tflop_per_s(problem: Problem, ns_per_launch: float) -> float:
    """Operations over time, in 10¹² FLOP a second."""
    return flops(problem) / ns_per_launch / 1e3


def ridge_flop_per_byte(*, peak_flop_per_s: float, bandwidth_byte_per_s: float) -> float:
    """Intensity at which the two roofs meet: above it a problem is bound by arithmetic."""
    return peak_flop_per_s / bandwidth_byte_per_s


def attainable_flop_per_s(problem: Problem, *, peak_flop_per_s: float, bandwidth_byte_per_s: float) -> float:
    """The lower roof over a problem: its intensity times the bandwidth, and no more than the peak."""
    return min(peak_flop_per_s, intensity_flop_per_byte(problem) * bandwidth_byte_per_s)


def bound_by(problem: Problem, *, peak_flop_per_s: float, bandwidth_byte_per_s: float) -> Bound:
    """Which roof that is."""
    ridge = ridge_flop_per_byte(peak_flop_per_s=peak_flop_per_s, bandwidth_byte_per_s=bandwidth_byte_per_s)
    return Bound.COMPUTE if intensity_flop_per_byte(problem) >= ridge else Bound.BANDWIDTH
