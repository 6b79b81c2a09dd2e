"""How far a right result may be from the sum in float64: the one place that says so, by dtype and k.

A result is a sum in float32, rounded once more where y is narrower than that:

    |y − ref| ≤ factor·u·√k·‖A_i∘x‖₂ + u_y·|ref| + s_y,   u = 2⁻²⁴

| dtype | factor | u_y | s_y |
|---|---|---|---|
| float32 | 8 | 0 | 0 |
| tf32 | 32 | 0 | 0 |
| float16, int8 (its y is float16) | 32 | 2⁻¹¹ | 2⁻²⁴ |
| bfloat16 | 32 | 2⁻⁸ | 2⁻¹³³ |

u_y is y's unit roundoff and s_y its least subnormal. Of int8, ref and ‖A_i∘x‖₂ are those of the row times its scale,
and the product with the scale is rounded as one more addition is.

The √k is that of N. Higham and T. Mary, A new approach to probabilistic rounding error analysis (SISC 41(5), 2019).
Factor 8 was found by trying: one addition after the other in float32, the worst order, went beyond 4 in about one row
of 10⁷ at k = 128.

Tensor cores may compute all but float32. They align the products of a block of 4 to 16 with the accumulator, cut off
what is below its last bit, and cut the sum off too (M. Fasi, N. Higham, M. Mikaitis, S. Pranesh, Numerical behavior of
NVIDIA tensor cores, PeerJ CS 7, 2021); P. Blanchard, N. Higham, F. Lopez, T. Mary, S. Pranesh, Mixed precision block
fused multiply-add (SISC 42(3), 2020), has the bounds for that. A cut costs up to 2u, not u, and every product has its
own. An emulation of it reached 5.6·u·√k·‖A_i∘x‖₂ in 1000 rows at k up to 131072, where rounding to nearest reached
1.2; factor 32 leaves room for the rows of the largest problems. What is wrong is far outside: adding up in float16 is
off by 0.15·2⁻¹¹·√k·‖A_i∘x‖₂ in the median row, 38 times the first term, and exceeds the tolerance in 76 % of the rows
at k = 128 and in 96 % at 65536; adding up 8 products at a time in float16 does in 47 % and 13 %.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

UNIT_ROUNDOFF = 2.0**-24
"""Of float32."""

ERROR_FACTOR = 8.0
"""Of float32, times √k·u·‖A_i∘x‖₂; no right kernel of any order of summation may be refused, however many rows."""

TENSOR_CORE_FACTOR = 32.0
"""The same of every other dtype."""

RESULT_ROUNDOFF = {"float16": 2.0**-11, "int8": 2.0**-11, "bfloat16": 2.0**-8}
"""Unit roundoff of y where it is narrower than float32."""

LEAST_SUBNORMAL = {"float16": 2.0**-24, "int8": 2.0**-24, "bfloat16": 2.0**-133}
"""Of y where it is narrower than float32."""

CHUNK_ELEMENTS = 1 << 24
"""Elements of a matrix taken to float64 at once."""


def reference(a: Tensor, x: Tensor, scale: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """A·x and ‖A_i∘x‖₂ by row and token, each times the row's scale where there is one.

    Args:
        a: (count, m, k)
        x: (count, k, n)
        scale: (count, m, 1), or None for 1.

    Returns:
        Both float64 (count, m, n).
    """
    import torch

    count, m, k = a.shape
    n = x.shape[2]
    sums = torch.empty((count, m, n), dtype=torch.float64, device=a.device)
    squares = torch.empty_like(sums)
    sets = max(1, CHUNK_ELEMENTS // max(m * k, k * n, m * n))
    rows = max(1, CHUNK_ELEMENTS // max(k, n))
    for first in range(0, count, sets):
        here = slice(first, first + sets)
        wide_x = x[here].double()
        square_x = wide_x.square()
        for top in range(0, m, rows):
            wide = a[here, top : top + rows].double()
            sums[here, top : top + rows] = wide @ wide_x
            squares[here, top : top + rows] = wide.square_() @ square_x
    norms = squares.sqrt_()
    if scale is not None:
        wide_scale = scale.double()
        sums.mul_(wide_scale)
        norms.mul_(wide_scale)
    return sums, norms


def error_bound(norms: Tensor, k: int, dtype: str = "float32") -> Tensor:
    """Largest allowed error of a sum in float32 in rows with ‖A_i∘x‖₂ = norms, of a problem of `dtype`."""
    factor = ERROR_FACTOR if dtype == "float32" else TENSOR_CORE_FACTOR
    return factor * UNIT_ROUNDOFF * math.sqrt(k) * norms


def tolerance(sums: Tensor, norms: Tensor, k: int, dtype: str) -> Tensor:
    """Largest allowed |y − sums|, of the shape of `sums` and `norms` as `reference` gives them."""
    bound = error_bound(norms, k, dtype)
    if dtype in RESULT_ROUNDOFF:
        bound.add_(sums.abs(), alpha=RESULT_ROUNDOFF[dtype]).add_(LEAST_SUBNORMAL[dtype])
    return bound
