"""The quantizer: its error against the bound that it documents, in float64, and what it refuses."""

from __future__ import annotations

import pytest
import torch

from kernels import quantize as module
from kernels.quantize import quantize

STEP = 2.0**-24
"""Of float16's subnormal numbers."""


def dequantized(a: torch.Tensor, scale: torch.Tensor, zero: torch.Tensor | None) -> torch.Tensor:
    """In float64: of two bytes and three there is no rounding."""
    zeros = torch.zeros(len(a)) if zero is None else zero
    return scale.double()[:, None] * (a.double() - zeros.double()[:, None])


def rows(name: str, dtype: torch.dtype) -> torch.Tensor:
    generator = torch.Generator().manual_seed(7)
    normal = torch.randn(40, 257, generator=generator)
    made = {
        "normal": normal,
        "one side": normal.abs() + 3.0,
        "other side": -normal.abs() - 0.25,
        "tiny": normal * 1e-6,
        "subnormal scales": normal * 2e-7,
        "large": normal * 1e4,
        "an outlier": normal.index_fill(1, torch.tensor([100]), 500.0),
        "one column": normal[:, :1],
        "zeros in between": normal * (normal > 0.5),
    }
    return made[name].to(dtype)


NAMES = (
    "normal", "one side", "other side", "tiny", "subnormal scales", "large", "an outlier", "one column",
    "zeros in between",
)  # fmt: skip


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
@pytest.mark.parametrize("name", NAMES)
def test_no_weight_is_off_by_more_than_half_a_scale(name: str, dtype: torch.dtype, *, symmetric: bool) -> None:
    """And scales are no larger than they must be; -128 never occurs, and 0 stays 0."""
    weights = rows(name, dtype)
    a, scale, zero = quantize(weights, symmetric=symmetric)
    assert (a.dtype, scale.dtype, a.shape, scale.shape) == (torch.int8, torch.float16, weights.shape, (len(weights),))
    wide = weights.double()
    found = dequantized(a, scale, zero)
    assert bool(((wide - found).abs() <= scale.double()[:, None] / 2).all())
    low, high = wide.amin(dim=1).clamp(max=0), wide.amax(dim=1).clamp(min=0)
    least = wide.abs().amax(dim=1) / 127 if symmetric else (high - low) / 254
    assert bool((scale.double() >= least).all())
    assert bool((scale.double() <= least * (1 + 2**-10) + STEP).all())
    assert int(a.min()) >= -127
    assert bool((found[wide == 0] == 0).all())
    assert (zero is None) == symmetric


def test_worked_out_by_hand() -> None:
    """254 steps of 1/2: symmetric the largest magnitude is 127/2; with a zero point the range 127 has 254 steps."""
    weights = torch.tensor([[63.5, -63.5, 0.5, 0.0, 0.7], [127.0, 0.0, 63.5, 0.5, 1.0]])
    a, scale, zero = quantize(weights)
    assert (a[0].tolist(), scale.tolist(), zero) == ([127, -127, 1, 0, 1], [0.5, 1.0], None)
    a, scale, zero = quantize(weights, symmetric=False)
    assert zero is not None
    assert (a[1].tolist(), scale.tolist(), zero.tolist()) == ([127, -127, 0, -126, -125], [0.5, 0.5], [0, -127])


@pytest.mark.parametrize("symmetric", [True, False])
def test_ties_at_both_ends_stay_in_range(*, symmetric: bool) -> None:
    """Both ends between two whole multiples: rounded apart they would be 255 steps from each other."""
    weights = torch.tensor([[-153.5, 100.5, 0.0, 1.0], [-100.5, 153.5, 0.0, 1.0]])
    a, scale, zero = quantize(weights, symmetric=symmetric)
    assert bool(((weights.double() - dequantized(a, scale, zero)).abs() <= scale.double()[:, None] / 2).all())


@pytest.mark.parametrize("symmetric", [True, False])
def test_a_row_of_zeros_is_all_zero(*, symmetric: bool) -> None:
    """No division by 0; its neighbours are as without it. So is a row without columns."""
    weights = torch.tensor([[0.0, -0.0, 0.0], [1.0, -2.0, 0.5]])
    a, scale, zero = quantize(weights, symmetric=symmetric)
    assert (a[0].tolist(), scale[0].item(), 0 if zero is None else zero[0].item()) == ([0, 0, 0], 0.0, 0)
    alone, scale_alone, _ = quantize(weights[1:], symmetric=symmetric)
    assert (a[1].tolist(), scale[1].item()) == (alone[0].tolist(), scale_alone[0].item())
    a, scale, zero = quantize(torch.empty(3, 0), symmetric=symmetric)
    assert (a.shape, scale.tolist()) == ((3, 0), [0.0] * 3)
    assert quantize(torch.empty(0, 5), symmetric=symmetric)[0].shape == (0, 5)


def test_chunks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are taken some at a time; the row of a fault is counted from the first of all."""
    weights = rows("normal", torch.float32)
    whole = quantize(weights, symmetric=False)
    monkeypatch.setattr(module, "CHUNK_ELEMENTS", 3 * weights.shape[1])
    for one, other in zip(whole, quantize(weights, symmetric=False), strict=True):
        assert one is not None
        assert other is not None
        assert torch.equal(one, other)
    weights[38, 200] = torch.inf
    with pytest.raises(ValueError, match=r"^weights\[38, 200\] is inf, wanted a finite number$"):
        quantize(weights)


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize(("value", "words"), [(torch.inf, "inf"), (-torch.inf, "-inf"), (torch.nan, "nan")])
def test_what_is_not_finite_is_refused(value: float, words: str, *, symmetric: bool) -> None:
    """By its place."""
    weights = torch.ones(4, 5)
    weights[2, 3] = value
    with pytest.raises(ValueError, match=rf"^weights\[2, 3\] is {words}, wanted a finite number$"):
        quantize(weights, symmetric=symmetric)


def test_a_row_beyond_float16s_scales_is_refused() -> None:
    """127 · 65504 = 8319008 is the largest weight of float32 that has one."""
    assert quantize(torch.tensor([[8319008.0]]))[1].item() == 65504.0
    words = "row 1 of the weights needs a scale of 65504.5, wanted at most 65504, float16's largest; divide the weights"
    with pytest.raises(ValueError, match=f"^{words}$"):
        quantize(torch.tensor([[1.0], [8319071.5]]))


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        (torch.ones(3), r"weights have 1 dimensions, wanted 2: \(M, K\)"),
        (torch.ones(3, 3).double(), "weights are float64, wanted float16 or float32; convert them"),
        (torch.ones(3, 3).int(), "weights are int32, wanted float16 or float32; convert them"),
    ],
)
def test_other_tensors_are_refused(weights: torch.Tensor, words: str) -> None:
    """In one line."""
    with pytest.raises(ValueError, match=f"^{words}$"):
        quantize(weights)
