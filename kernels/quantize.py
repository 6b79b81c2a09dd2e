"""Weights as int8 with a float16 scale a row, as `gemv_w8` takes them: w ≈ scale·a, or scale·(a − zero).

|w − scale·(a − zero)| ≤ scale/2 for every weight: scales are rounded up, so that nothing is cut off. A scale is at most
s·(1 + 2⁻¹⁰) + 2⁻²⁴, where s is a row's largest magnitude / 127, with a zero point the range of its values and 0 / 254.
A weight of 0 stays 0, and −128 never occurs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

LARGEST = 127
"""Of a magnitude in int8: −128 is left out, so that a row has as many values below 0 as above it."""

LARGEST_SCALE = 65504.0
"""Of float16."""

CHUNK_ELEMENTS = 1 << 24
"""Weights taken to float64 at once."""

_DTYPES = ("float16", "float32")


def quantize(weights: Tensor, *, symmetric: bool = True) -> tuple[Tensor, Tensor, Tensor | None]:
    """Rounds each row of `weights` to whole multiples of its scale.

    Args:
        weights: (M, K), float16 or float32, finite, on any device.
        symmetric: without a zero point; else with one, which serves rows whose values lie mostly on one side of 0.

    Returns:
        a (M, K) int8, scale (M,) float16, and zero (M,) int8 or, where symmetric, None; row-major, on the same device.
        Of a row of zeros all are 0.

    Raises:
        ValueError: other dimensions or another dtype, a weight that is not finite, or a row whose scale float16 cannot
            hold.
    """
    import torch

    _refuse(weights)
    m, k = weights.shape
    a = torch.empty((m, k), dtype=torch.int8, device=weights.device)
    scale = torch.empty(m, dtype=torch.float16, device=weights.device)
    zero = torch.zeros(m, dtype=torch.int8, device=weights.device)
    rows = max(1, CHUNK_ELEMENTS // max(1, k))
    for first in range(0, m if k else 0, rows):
        here = slice(first, first + rows)
        a[here], scale[here], zero[here] = _quantized(weights[here].double(), first, symmetric=symmetric)
    if k == 0:
        scale.zero_()
    return a, scale, None if symmetric else zero


def _refuse(weights: Tensor) -> None:
    dtype = str(weights.dtype).removeprefix("torch.")
    if weights.dim() != 2:
        raise ValueError(f"weights have {weights.dim()} dimensions, wanted 2: (M, K)")
    if dtype not in _DTYPES:
        raise ValueError(f"weights are {dtype}, wanted {' or '.join(_DTYPES)}; convert them")


def _quantized(rows: Tensor, first: int, *, symmetric: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Of some rows in float64, of which `first` is the number of the first: a, scale, zero."""
    import torch

    low, high = rows.amin(dim=1).clamp(max=0.0), rows.amax(dim=1).clamp(min=0.0)
    steps = torch.maximum(-low, high) / LARGEST if symmetric else (high - low) / (2 * LARGEST)
    _refuse_values(rows, steps, first)
    scale = _rounded_up(steps)
    by = torch.where(scale > 0, scale.double(), 1.0)
    zero = torch.zeros_like(steps) if symmetric else torch.where(scale > 0, -LARGEST - (low / by).round(), 0.0)
    a = (rows / by[:, None]).round() + zero[:, None]
    return a.clamp(-LARGEST, LARGEST).to(torch.int8), scale, zero.to(torch.int8)


def _refuse_values(rows: Tensor, steps: Tensor, first: int) -> None:
    """By the first row with a fault."""
    import torch

    faulty = torch.nonzero(~(steps <= LARGEST_SCALE))  # also where a weight is NaN
    if len(faulty) == 0:
        return
    row = int(faulty[0])
    strange = torch.nonzero(~torch.isfinite(rows[row]))
    if len(strange) > 0:
        column = int(strange[0])
        raise ValueError(f"weights[{first + row}, {column}] is {rows[row, column].item()}, wanted a finite number")
    found = f"{steps[row].item():.6g}, wanted at most {LARGEST_SCALE:g}, float16's largest"
    raise ValueError(f"row {first + row} of the weights needs a scale of {found}; divide the weights")


def _rounded_up(steps: Tensor) -> Tensor:
    """The least float16 that is no smaller; `steps` are from 0 to the largest one."""
    import torch

    near = steps.half()
    above = (near.view(torch.int16) + 1).view(torch.float16)
    return torch.where(near.double() < steps, above, near)
