"""SGEMV kernels against `torch.matmul`: the reference's two shapes, few rows, a square and LLaMA-7B's layers."""

from __future__ import annotations

from collections.abc import Callable

from harness.cases import Grid
from harness.model import Case
from harness.problems import parse_shapes
from suites.suite import Suite

PROBLEMS = parse_shapes(
    ["1024x16", "1024x128", "1024x1024", "8x4096", "4096x4096", "11008x4096", "4096x11008", "32000x4096"]
)
"""What is measured unless --shape or --regimes says otherwise."""

FEW_ROWS = ["1x65536", "8x4096", "8x65536", "32x16384", "132x8192"]
SHORT_ROWS = ["1024x16", "1024x128", "262144x32", "1048576x16", "1000000x128"]
ODD = ["300000x7", "1000x1000", "1023x1025", "2048x2047", "4096x4096:first=1"]
SQUARE_AND_LONG = ["1024x1024", "4096x4096", "11008x4096", "4096x11008", "32000x4096"]
BEYOND_2_GB = ["128256x8192", "65536x16384", "65536x40000"]
BY_COLUMNS = ["4096x4096:col", "11008x4096:col"]
REGIMES = parse_shapes([*FEW_ROWS, *SHORT_ROWS, *ODD, *SQUARE_AND_LONG, *BEYOND_2_GB, *BY_COLUMNS])
"""What --regimes measures: something of everything that a GEMV can be limited by."""

SUITE = Suite(grids=(Grid(problems=tuple(PROBLEMS)),), regimes=(Grid(problems=tuple(REGIMES)),))


def test_sgemv(measure: Callable[[Case], None], case: Case) -> None:
    """The kernel's output is right and its device time is in the run."""
    measure(case)
