"""Work and traffic of a problem: the one place that counts operations and bytes.

S. Williams, A. Waterman, D. Patterson: Roofline (CACM 52(4), 2009) is where arithmetic intensity comes from.
"""

from __future__ import annotations

from harness.model import Problem

ITEM_BYTES = {"float64": 8, "float32": 4, "tf32": 4, "float16": 2, "bfloat16": 2, "int8": 1}
"""Bytes an element takes in memory, by dtype."""


def flops(problem: Problem) -> int:
    """Floating-point operations of A (m×k) · x (k×n): a multiplication and an addition a product, 2·m·k·n."""
    return 2 * problem.m * problem.k * problem.n


def least_bytes(problem: Problem) -> int:
    """Fewest bytes that must move: A and x read once, y written once, (m·k + k·n + m·n)·s.

    However A lies in memory: what is between its rows need not be read.
    """
    elements = problem.m * problem.k + problem.k * problem.n + problem.m * problem.n
    return elements * ITEM_BYTES[problem.dtype]


def intensity_flop_per_byte(problem: Problem) -> float:
    """Arithmetic intensity, FLOP per least byte; about 0.5 for a float32 GEMV."""
    return flops(problem) / least_bytes(problem)


def bandwidth_gb_per_s(problem: Problem, ns_per_launch: float) -> float:
    """Least bytes over time, in 10⁹ bytes a second: what the kernel usefully moved."""
    return least_bytes(problem) / ns_per_launch
