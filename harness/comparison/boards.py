"""What two boards of one model differ by: no change of the code, and more than trials on one of them scatter."""

from __future__ import annotations

from harness.model import Run

BOARD = "gpu_uuid"
"""The environment's key that tells boards apart."""

BOARD_SPREAD = 0.004
"""Standard deviation of a case's logarithm of the ratio between two boards where nothing changed: root mean square over
400 pairs of cases by `graph` cold on five H200. On one board, minutes apart, no such spread was seen."""

BOARD_REACH = 0.025
"""Between two boards a smaller change is none of the code's for sure, as a fraction: 1.9 % was the most that was seen,
of a warp-a-row kernel on 4096×4096, whose A is about as large as the L2, and a few trials add their own scatter."""


def allowance(spread: float) -> str:
    """What a spread above 0 means for a reader, in a sentence."""
    return (
        "The runs are of two boards, or of ones that are not known: what two of one model differ by without a change "
        f"(standard deviation {100 * spread:g} %, at most 1.9 %, seen on five H200) is allowed for in every interval, "
        f"and slower or faster is said from {100 * BOARD_REACH:g} % on."
    )


def board_reach(spread: float) -> float:
    """From which change on `slower` and `faster` may be said, whatever the threshold; 0 on one board."""
    return BOARD_REACH if spread else 0.0


def board_spread(base: Run, new: Run) -> float:
    """What to allow for, as a standard deviation of the ratio's logarithm; 0 on one board, and on a CPU.

    A board that one of the runs does not know may be another.
    """
    if base.options.device_type != "cuda":
        return 0.0
    boards = [run.environment.get(BOARD) for run in (base, new)]
    return 0.0 if boards[0] == boards[1] and boards[0] is not None else BOARD_SPREAD
