"""harness.gate.bounds in every dtype and for several tokens: reference and tolerance by hand, and what they say."""

from __future__ import annotations

import pytest
import torch

from harness.gate import bounds, compare, error_bound, reference, tolerance
from harness.model import Problem
from harness.problems import OperandSets
from tests import planted_dtypes as planted


@pytest.mark.parametrize("dtype", ["tf32", "float16"])
def test_tensor_cores_are_right_in_long_rows(dtype: str) -> None:
    """An error that grew with k, as that of cutting off may, and not with its root, would show: half is left."""
    problem = Problem(m=40, k=65536, dtype=dtype)
    sets = OperandSets(problem, "cpu", 1)
    o = sets.operands()[0]
    planted.right_by_tensor_cores(o, block=16)
    sums, norms = reference(sets.a.values, sets.x.values)
    bound = tolerance(sums, norms, problem.k, dtype)
    fault, error = compare(o.y, sums[0], bound[0])
    assert (fault, error < (0.5 if dtype == "tf32" else 1.0)) == (None, True)


@pytest.mark.parametrize(
    ("dtype", "wanted"),
    [
        ("float32", 8 * 2.0**-24 * 10 * 3),
        ("tf32", 32 * 2.0**-24 * 10 * 3),
        ("float16", 32 * 2.0**-24 * 10 * 3 + 5 * 2.0**-11 + 2.0**-24),
        ("int8", 32 * 2.0**-24 * 10 * 3 + 5 * 2.0**-11 + 2.0**-24),
        ("bfloat16", 32 * 2.0**-24 * 10 * 3 + 5 * 2.0**-8 + 2.0**-133),
    ],
)
def test_tolerance_by_hand(dtype: str, wanted: float) -> None:
    """K = 100, ‖A_i∘x‖₂ = 3, ref = −5."""
    sums, norms = (torch.tensor([value], dtype=torch.float64) for value in (-5.0, 3.0))
    assert float(tolerance(sums, norms, 100, dtype)) == wanted
    assert norms.item() == 3.0
    assert float(error_bound(norms, 100)) == 8 * 2.0**-24 * 10 * 3


def test_reference_by_hand() -> None:
    """[[1, −2], [3, 4]] times two tokens, [10, 1] and [0, 5]; times scales of 1/2 and 2."""
    a = torch.tensor([[[1, -2], [3, 4]]], dtype=torch.int8)
    x = torch.tensor([[[10.0, 0.0], [1.0, 5.0]]], dtype=torch.float16)
    scale = torch.tensor([[[0.5], [2.0]]], dtype=torch.float16)
    sums, norms = reference(a, x, scale)
    assert sums.tolist() == [[[4.0, -5.0], [68.0, 40.0]]]
    squares = [0.25 * 104, 0.25 * 100, 4 * 916, 4 * 400]
    assert norms.square().flatten().tolist() == pytest.approx(squares)
    assert sums.dtype is norms.dtype is torch.float64


def test_reference_in_parts_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows and sets at a time, of several tokens."""
    sets = OperandSets(Problem(m=11, k=7, n=3, dtype="int8"), "cpu", 4)
    whole = reference(sets.a.values, sets.x.values, sets.scale.values)
    for chunk in (1, 40, 200):
        monkeypatch.setattr(bounds, "CHUNK_ELEMENTS", chunk)
        parts = reference(sets.a.values, sets.x.values, sets.scale.values)
        assert all(torch.allclose(one, other, rtol=1e-14) for one, other in zip(whole, parts, strict=True))


def test_compare_names_row_and_token() -> None:
    """In a y that lies token by token."""
    y = torch.zeros(2, 3, dtype=torch.float16).t()
    expected = y.clone()
    y[2, 1] = 2.0**-24
    fault = "1 of 6 wrong, first y[2, 1]: found 5.96046448e-08, wanted 0"
    assert compare(y, expected, None) == (fault, None)
    assert compare(y, expected.double(), torch.full((3, 2), 1e-9, dtype=torch.float64))[0] == fault
