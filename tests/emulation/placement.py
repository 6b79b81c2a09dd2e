"""Where the operands of an emulated launch lie, whatever the tensors that hold their values do."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Placement:
    """How operands lie in memory, whatever the tensors that hold their values do; what lies between elements is NaN."""

    a: int = 0
    """Where A starts: elements past a multiple of 16 bytes (or of what the kernel declares), never of more."""
    x: int = 0
    y: int = 1
    by_columns: bool = False
    """Whether A is column-major."""
    gap: int = 0
    """Elements from a row's (column's) end to the next one's start; negative: they overlap, and must agree."""
    x_stride: int = 1
    """0: one element, which all of x must be equal to."""
    y_stride: int = 1

    def strides(self, m: int, k: int) -> tuple[int, int, int]:
        """Of A, x and y, as csrc/op.h's Args have them; without meaning, they are those of packed operands."""
        run, count = (m, k) if self.by_columns else (k, m)
        a_stride = run + self.gap if count > 1 and run > 0 else run
        return a_stride, self.x_stride if k > 1 else 1, self.y_stride if m > 1 else 1


@dataclass(frozen=True, kw_only=True)
class TokenPlacement:
    """How the operands of a kernel for tokens lie, in elements; what lies between rows and tokens is NaN (int8: -1)."""

    a: int = 0
    """Where A starts, past a multiple of 16 bytes, never of more."""
    x: int = 0
    y: int = 1
    a_gap: int = 0
    """From a row's end to the next one's start."""
    x_gap: int = 0
    """From a token's end to the next one's start."""
    y_gap: int = 0
