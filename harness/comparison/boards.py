"""What two boards of one model differ by: no change of the code, and more than trials on one of them scatter."""

from __future__ import annotations

from dataclasses import dataclass

from harness.model import Case, Run

BOARD = "gpu_uuid"
"""The environment's key that tells boards apart."""


@dataclass(frozen=True, kw_only=True)
class Apart:
    """What is allowed for between two boards, as fractions of a time."""

    spread: float
    """Standard deviation of the logarithm of a case's ratio where nothing changed: root mean square over pairs of
    boards, by `graph` cold."""
    least: float
    """A smaller change is none of the code's for sure: one in a hundred of those ratios is larger."""


FLOAT32 = Apart(spread=0.011, least=0.04)
"""By 1,200 pairs of cases on 20 H200. The largest is 6.2 %, of a product that the power limit holds back."""

OTHERS = Apart(spread=0.032, least=0.08)
"""By 340 pairs of cases of torch's products by tensor cores, in float16, bfloat16 and TF32; the largest is 9.9 %. Our
own kernels of these dtypes differ by less, 1.4 %, at most 4 %; but what others do with tensor cores is not known."""

TOGETHER = Apart(spread=0.0, least=0.0)
"""On one board, minutes apart, no such spread was seen."""


def apart(case: Case, *, two_boards: bool) -> Apart:
    """What to allow for of a case."""
    if not two_boards:
        return TOGETHER
    return FLOAT32 if case.problem.dtype == "float32" else OTHERS


def are_two_boards(base: Run, new: Run) -> bool:
    """Whether the runs are of two boards, or of ones that are not known; a CPU is none."""
    if base.options.device_type != "cuda":
        return False
    boards = [run.environment.get(BOARD) for run in (base, new)]
    return boards[0] is None or boards[0] != boards[1]


def allowance() -> str:
    """What that means for a reader, in a sentence."""
    spread, least = (
        f"{100 * getattr(FLOAT32, name):g} % in float32, {100 * getattr(OTHERS, name):g} % in other dtypes"
        for name in ("spread", "least")
    )
    return (
        "The runs are of two boards, or of ones that are not known: what two of one model differ by without a change "
        f"(standard deviation {spread}, seen on 20 H200) is allowed for in every interval, and slower or faster is "
        f"said from {least} on."
    )
