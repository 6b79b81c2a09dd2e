"""Problems: how they are typed, what they take in memory, and the operands that they need on a device."""

from harness.problems.memory import (
    COLD_FACTOR,
    GUARD_ELEMENTS,
    HOT_APART,
    HOT_PLACEMENTS,
    allocation_bytes,
    sets_for,
    why_never_cold,
    why_never_hot,
)
from harness.problems.operands import PACKED, Guarded, OperandSets, touched, whole
from harness.problems.shapes import SHAPE, laid_out, parse_shape, parse_shapes, shape_text

__all__ = [
    "COLD_FACTOR",
    "GUARD_ELEMENTS",
    "HOT_APART",
    "HOT_PLACEMENTS",
    "PACKED",
    "SHAPE",
    "Guarded",
    "OperandSets",
    "allocation_bytes",
    "laid_out",
    "parse_shape",
    "parse_shapes",
    "sets_for",
    "shape_text",
    "touched",
    "whole",
    "why_never_cold",
    "why_never_hot",
]
