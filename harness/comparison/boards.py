"""What two boards of one model differ by: no change of the code, and more than trials on one of them scatter."""

from __future__ import annotations

from harness.model import Run

BOARD = "gpu_uuid"
"""The environment's key that tells boards apart."""

BOARD_SPREAD = 0.004
"""Standard deviation of a case's logarithm of the ratio between two boards where nothing changed: root mean square over
216 pairs of cases by `graph` cold on four H200, 1.6 % at most. On one board, minutes apart, no such spread was seen."""


def allowance(spread: float) -> str:
    """What a spread above 0 means for a reader, in a sentence."""
    return (
        "The runs are of two boards, or of ones that are not known: what two of one model differ by without a change "
        f"({100 * spread:g} % standard deviation, seen on H200) is allowed for in every interval and word."
    )


def board_spread(base: Run, new: Run) -> float:
    """What to allow for, as a standard deviation of the ratio's logarithm; 0 on one board, and on a CPU.

    A board that one of the runs does not know may be another.
    """
    if base.options.device_type != "cuda":
        return 0.0
    boards = [run.environment.get(BOARD) for run in (base, new)]
    return 0.0 if boards[0] == boards[1] and boards[0] is not None else BOARD_SPREAD
