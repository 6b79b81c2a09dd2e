"""harness.gate.bounds: the reference and its bound by hand, and what compare says of a result held against them."""

from __future__ import annotations

import math

import pytest
import torch

from harness.gate import bounds, compare, error_bound, reference


def test_reference_by_hand() -> None:
    """[[1, 2], [3, −4]] · [10, 1] = [12, 26]; norms √(100 + 4) and √(900 + 16). Two sets at once."""
    a = torch.tensor([[1.0, 2.0], [3.0, -4.0]]).expand(2, 2, 2)
    x = torch.tensor([[10.0], [1.0]]).expand(2, 2, 1)
    sums, norms = reference(a, x)
    assert sums.tolist() == [[[12.0], [26.0]]] * 2
    assert norms.flatten().tolist() == pytest.approx([math.sqrt(104), math.sqrt(916)] * 2)
    assert sums.dtype is torch.float64


def test_reference_in_parts_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Large operands go to float64 a few rows at a time."""
    generator = torch.Generator().manual_seed(5)
    a, x = torch.randn(2, 11, 7, generator=generator), torch.randn(2, 7, 1, generator=generator)
    monkeypatch.setattr(bounds, "CHUNK_ELEMENTS", 21)
    sums, norms = reference(a, x)
    assert torch.allclose(sums, a.double() @ x.double(), rtol=1e-15)
    assert torch.allclose(norms.squeeze(-1), (a.double() * x.double().mT).norm(dim=-1), rtol=1e-14)


def test_one_sum_after_the_other_is_never_refused() -> None:
    """The worst order of summation over many rows: float32, one accumulator a row, column after column."""
    generator = torch.Generator().manual_seed(4)
    a, x = torch.randn(1, 400_000, 128, generator=generator), torch.randn(1, 128, 1, generator=generator)
    y = torch.zeros(400_000, 1)
    for column in range(128):
        y += a[0, :, column : column + 1] * x[0, column]
    sums, norms = reference(a, x)
    fault, error = compare(y, sums[0], error_bound(norms[0], 128))
    assert fault is None
    assert error < 0.75


def test_error_bound_by_hand() -> None:
    """8·2⁻²⁴·√100·3 = 240·2⁻²⁴."""
    assert float(error_bound(torch.tensor([3.0], dtype=torch.float64), 100)) == 240 * 2.0**-24


@pytest.mark.parametrize(
    ("y", "expected", "fault"),
    [
        ([1.0, 2.0], [1.0, 2.0], None),
        ([1.0, 2.5], [1.0, 2.0], "1 of 2 wrong, first y[1]: found 2.5, wanted 2"),
        ([float("nan"), 3.0], [1.0, 2.0], "2 of 2 wrong, first y[0]: found nan, wanted 1"),
        ([0.0, -0.0], [-0.0, 0.0], None),
        ([float("nan"), 0.0], [0.0, 0.0], "1 of 2 wrong, first y[0]: found nan, wanted 0"),
        ([1.0 + 2**-23, 2.0], [1.0, 2.0], "1 of 2 wrong, first y[0]: found 1.00000012, wanted 1"),
    ],
)
def test_compare_for_equality(y: list[float], expected: list[float], fault: str | None) -> None:
    """The last bit counts, the sign of a zero does not, and NaN is never right."""
    found = compare(torch.tensor(y).view(-1, 1), torch.tensor(expected).view(-1, 1), None)
    assert found == (fault, None)


@pytest.mark.parametrize(
    ("y", "fault", "error"),
    [
        ([1.0, 0.0], None, 0.0),
        ([1.25, 0.0], None, 0.5),
        ([0.5, 0.0], None, 1.0),
        ([1.75, 0.0], "1 of 2 wrong, first y[0]: found 1.75, wanted 1", 1.5),
        ([float("inf"), 0.0], "1 of 2 wrong, first y[0]: found inf, wanted 1", None),
        ([float("nan"), 0.0], "1 of 2 wrong, first y[0]: found nan, wanted 1", None),
    ],
)
def test_compare_within_a_bound(y: list[float], fault: str | None, error: float | None) -> None:
    """Error over bound is reported; what JSON cannot hold is None."""
    expected = torch.tensor([[1.0], [0.0]], dtype=torch.float64)
    bound = torch.tensor([[0.5], [0.5]], dtype=torch.float64)
    assert compare(torch.tensor(y).view(-1, 1), expected, bound) == (fault, error)


def test_compare_with_a_bound_of_zero() -> None:
    """A row of zeros must give zero, and does."""
    zero = torch.zeros(1, 1, dtype=torch.float64)
    assert compare(torch.zeros(1, 1), zero, zero) == (None, None)
    assert compare(torch.ones(1, 1), zero, zero) == ("1 of 1 wrong, first y[0]: found 1, wanted 0", None)
