"""harness.roofline: operations, bytes and intensity against figures worked out by hand."""

from __future__ import annotations

import pytest

from harness.errors import CommandError, Exit
from harness.model import Problem
from harness.roofline import (
    ITEM_BYTES,
    Bound,
    activation_bytes,
    attainable_flop_per_s,
    bandwidth_gb_per_s,
    bound_by,
    flops,
    intensity_flop_per_byte,
    least_bytes,
    ridge_flop_per_byte,
    tflop_per_s,
)

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


def test_int8_has_scales_and_wide_vectors() -> None:
    """3·5 weights of a byte, 3 scales, 5·2 elements of x and 3·2 of y of 2 bytes each: 15 + 6 + 32."""
    assert least_bytes(Problem(m=3, k=5, n=2, dtype="int8")) == 53
    assert flops(Problem(m=3, k=5, n=2, dtype="int8")) == 60


@pytest.mark.parametrize(
    ("dtype", "wanted"),
    [
        ("float32", 33_554_432 / 67_141_632),  # 0.49976
        ("tf32", 33_554_432 / 67_141_632),
        ("float16", 33_554_432 / 33_570_816),  # 0.99951
        ("bfloat16", 33_554_432 / 33_570_816),
        ("int8", 33_554_432 / 16_801_792),  # 1.99708: scales, x and y are 3·4096·2 bytes
    ],
)
def test_a_gemv_s_intensity_by_dtype(dtype: str, wanted: float) -> None:
    """4096×4096: about two operations for each element of A."""
    assert intensity_flop_per_byte(Problem(m=4096, k=4096, dtype=dtype)) == pytest.approx(wanted, rel=1e-12)


PEAK, BANDWIDTH = 800e12, 4e12
"""Round figures: 800 TFLOP/s over 4 TB/s are 200 FLOP/byte."""


def test_the_ridge_by_hand() -> None:
    """Peak over bandwidth."""
    assert ridge_flop_per_byte(peak_flop_per_s=PEAK, bandwidth_byte_per_s=BANDWIDTH) == 200.0


@pytest.mark.parametrize(
    ("tokens", "attainable", "bound"),
    [
        (1, 4e12 * 4096 / 4098, Bound.BANDWIDTH),
        (16, 63.504e12, Bound.BANDWIDTH),  # 15.876 FLOP/byte times 4 TB/s
        (128, 4e12 * 524288 / 4352, Bound.BANDWIDTH),  # 120.47
        (512, 800e12, Bound.COMPUTE),  # 409.6
    ],
)
def test_attainable_by_hand(tokens: int, attainable: float, bound: Bound) -> None:
    """The lower of the two roofs over 4096×4096 in float16."""
    problem = Problem(m=4096, k=4096, n=tokens, dtype="float16")
    found = attainable_flop_per_s(problem, peak_flop_per_s=PEAK, bandwidth_byte_per_s=BANDWIDTH)
    assert found == pytest.approx(attainable, rel=5e-5)
    assert bound_by(problem, peak_flop_per_s=PEAK, bandwidth_byte_per_s=BANDWIDTH) is bound


def test_at_the_ridge_arithmetic_bounds() -> None:
    """Both roofs are as low; 12 bytes and 2 operations have an intensity of 1/6."""
    problem = Problem(m=1, k=1)
    assert bound_by(problem, peak_flop_per_s=1.0, bandwidth_byte_per_s=6.0) is Bound.COMPUTE
    assert bound_by(problem, peak_flop_per_s=1.0, bandwidth_byte_per_s=5.9) is Bound.BANDWIDTH
    assert attainable_flop_per_s(problem, peak_flop_per_s=1.0, bandwidth_byte_per_s=6.0) == 1.0


def test_rate_is_operations_over_ns() -> None:
    """2·8192³ = 1.0995e12 FLOP in 2 ms are 549.76 TFLOP/s."""
    assert tflop_per_s(Problem(m=8192, k=8192, n=8192, dtype="float16"), 2e6) == pytest.approx(549.755813888)


def test_bandwidth_is_bytes_over_ns() -> None:
    """12 bytes in 6 ns are 2 GB/s."""
    assert bandwidth_gb_per_s(Problem(m=1, k=1), 6.0) == 2.0


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16", "int8"])
def test_item_sizes_are_torchs(dtype: str) -> None:
    """Torch knows them too."""
    import torch

    assert ITEM_BYTES[dtype] == torch.empty(0, dtype=getattr(torch, dtype)).element_size()


def test_items_of_x_and_y() -> None:
    """As those of A, but for int8."""
    found = {dtype: activation_bytes(dtype) for dtype in ("float32", "tf32", "float16", "bfloat16", "int8")}
    assert found == {"float32": 4, "tf32": 4, "float16": 2, "bfloat16": 2, "int8": 2}


def test_an_unknown_dtype_is_an_error() -> None:
    """Never a silent 4 bytes: it is of a run that a later version wrote."""
    with pytest.raises(CommandError, match="dtype float8: wanted one of float64, float32,") as caught:
        least_bytes(Problem(m=1, k=1, dtype="float8"))
    assert caught.value.code is Exit.RUN
