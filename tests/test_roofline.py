"""harness.roofline: operations, bytes and intensity against figures worked out by hand."""

from __future__ import annotations

import pytest

from harness.model import Problem
from harness.roofline import ITEM_BYTES, bandwidth_gb_per_s, flops, intensity_flop_per_byte, least_bytes

FIRST_ROW = Problem(m=4096, k=4096, n=1, dtype="float16")


def test_one_token_by_hand() -> None:
    """2·4096² = 33,554,432 FLOP; (4096² + 2·4096)·2 = 33,570,816 bytes, which are 32.015625 MiB: 0.9995 FLOP a byte."""
    assert flops(FIRST_ROW) == 33_554_432
    assert least_bytes(FIRST_ROW) == 33_570_816
    assert least_bytes(FIRST_ROW) / 2**20 == 32.015625
    assert intensity_flop_per_byte(FIRST_ROW) == pytest.approx(0.99951, abs=5e-6)


@pytest.mark.parametrize(
    ("tokens", "wanted"),
    [
        (1, 4096 / 4098),
        (16, 15.876),  # T·4096/(4096 + 2·T) = 65536/4128
        (512, 409.6),  # 2097152/5120
        (4096, 4096 / 3),  # square: n/3 in half precision
    ],
)
def test_intensity_grows_with_tokens(tokens: int, wanted: float) -> None:
    """T·4096/(4096 + 2·T) for a 4096×4096 layer in half precision: weights are read once for all T tokens."""
    problem = Problem(m=4096, k=4096, n=tokens, dtype="float16")
    assert intensity_flop_per_byte(problem) == pytest.approx(wanted, rel=4e-5)


@pytest.mark.parametrize(("m", "k"), [(4096, 4096), (32000, 4096), (1024, 1024)])
def test_a_float32_gemv_is_near_a_half(m: int, k: int) -> None:
    """2 operations for each 4-byte element of A, and a little less for x and y."""
    assert 0.498 < intensity_flop_per_byte(Problem(m=m, k=k)) < 0.5


def test_the_smallest_problem() -> None:
    """One product: A, x and y are 4 bytes each."""
    assert flops(Problem(m=1, k=1)) == 2
    assert least_bytes(Problem(m=1, k=1)) == 12


def test_a_problem_beyond_32_bits() -> None:
    """65536·40000 = 2,621,440,000 elements; with 40000 + 65536 more, times 4 bytes."""
    assert least_bytes(Problem(m=65536, k=40000)) == 10_486_182_144


def test_bandwidth_is_bytes_over_ns() -> None:
    """12 bytes in 6 ns are 2 GB/s."""
    assert bandwidth_gb_per_s(Problem(m=1, k=1), 6.0) == 2.0


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16", "int8"])
def test_item_sizes_are_torchs(dtype: str) -> None:
    """Torch knows them too."""
    import torch

    assert ITEM_BYTES[dtype] == torch.empty(0, dtype=getattr(torch, dtype)).element_size()


def test_an_unknown_dtype_is_an_error() -> None:
    """Never a silent 4 bytes."""
    with pytest.raises(KeyError, match="float8"):
        least_bytes(Problem(m=1, k=1, dtype="float8"))
