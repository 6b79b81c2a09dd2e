"""What a problem's dtype means in memory: of what A is, and of what x and y are.

`tf32` is float32 in memory, and every operand has a TF32's bits. `int8` is a weight-only format: A is int8 with a
float16 scale a row, x and y are float16.
"""

from __future__ import annotations

DTYPES = ("float32", "tf32", "float16", "bfloat16", "int8")
"""Of problems."""

SCALED = ("int8",)
"""Those where every row of A has a scale, of the dtype of x."""

_WEIGHTS = {"tf32": "float32"}
_ACTIVATIONS = {"tf32": "float32", "int8": "float16"}


def weight_dtype(dtype: str) -> str:
    """What A is in memory, as torch names it."""
    return _WEIGHTS.get(dtype, dtype)


def activation_dtype(dtype: str) -> str:
    """What x, y and a row's scale are in memory, as torch names it."""
    return _ACTIVATIONS.get(dtype, dtype)
