"""Problems: how they are typed, what they take in memory, and the operands that they need on a device."""

from harness.problems.files import FILE, read_shapes
from harness.problems.memory import (
    COLD_FACTOR,
    GUARD_BYTES,
    HOT_APART_BYTES,
    HOT_PLACEMENTS,
    allocation_bytes,
    sets_for,
    why_never_cold,
    why_never_hot,
)
from harness.problems.operands import (
    INT8_SENTINEL,
    PACKED,
    Guarded,
    OperandSets,
    checksums,
    inputs,
    new_a,
    new_activations,
    new_scale,
    round_to_tf32,
    touched,
    whole,
)
from harness.problems.shapes import SHAPE, laid_out, parse_shape, parse_shapes, shape_text

__all__ = [
    "COLD_FACTOR",
    "FILE",
    "GUARD_BYTES",
    "HOT_APART_BYTES",
    "HOT_PLACEMENTS",
    "INT8_SENTINEL",
    "PACKED",
    "SHAPE",
    "Guarded",
    "OperandSets",
    "allocation_bytes",
    "checksums",
    "inputs",
    "laid_out",
    "new_a",
    "new_activations",
    "new_scale",
    "parse_shape",
    "parse_shapes",
    "read_shapes",
    "round_to_tf32",
    "sets_for",
    "shape_text",
    "touched",
    "whole",
    "why_never_cold",
    "why_never_hot",
]
