"""SGEMV kernels against `torch.matmul`: the reference's two shapes, few rows, a square and LLaMA-7B's layers."""

from __future__ import annotations

from collections.abc import Callable

from harness.model import Case
from harness.problems import parse_shape

PROBLEMS = tuple(
    parse_shape(shape)
    for shape in (
        "1024x16",
        "1024x128",
        "1024x1024",
        "8x4096",
        "4096x4096",
        "11008x4096",
        "4096x11008",
        "32000x4096",
    )
)
"""What is measured unless --shape says otherwise."""


def test_sgemv(measure: Callable[[Case], None], case: Case) -> None:
    """The kernel's output is right and its device time is in the run."""
    measure(case)
