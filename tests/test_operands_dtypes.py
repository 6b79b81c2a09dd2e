"""harness.problems: operands of every dtype and of several tokens: what they hold, where they lie, how they refresh."""

from __future__ import annotations

import math

import pytest
import torch

from harness.dtypes import DTYPES, SCALED, activation_dtype, weight_dtype
from harness.model import Cache, Layout, Problem
from harness.problems import (
    GUARD_BYTES,
    HOT_APART_BYTES,
    Guarded,
    OperandSets,
    allocation_bytes,
    parse_shape,
    round_to_tf32,
    sets_for,
    whole,
    why_never_hot,
)
from tests.planted_dtypes import product

EVERY_DTYPE = pytest.mark.parametrize("dtype", DTYPES)


def sets(count: int = 3, **problem: object) -> OperandSets:
    return OperandSets(Problem(**{"m": 4, "k": 6, **problem}), "cpu", count)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("dtype", "weights", "activations"),
    [
        ("float32", torch.float32, torch.float32),
        ("tf32", torch.float32, torch.float32),
        ("float16", torch.float16, torch.float16),
        ("bfloat16", torch.bfloat16, torch.bfloat16),
        ("int8", torch.int8, torch.float16),
    ],
)
def test_what_each_dtype_is_in_memory(dtype: str, weights: torch.dtype, activations: torch.dtype) -> None:
    """Of A, and of x and y; int8 alone has a scale a row, (m,), of the dtype of x."""
    made = sets(dtype=dtype).operands()[1]
    assert (made.a.dtype, made.x.dtype, made.y.dtype) == (weights, activations, activations)
    assert (getattr(torch, weight_dtype(dtype)), getattr(torch, activation_dtype(dtype))) == (weights, activations)
    if dtype in SCALED:
        assert (made.scale.shape, made.scale.dtype, made.scale.is_contiguous()) == ((4,), torch.float16, True)
    else:
        assert made.scale is None


@EVERY_DTYPE
def test_tokens_lie_one_after_the_other(dtype: str) -> None:
    """x.t() and y.t() are row-major and packed where there are several; one is a column as ever."""
    for each in sets(3, n=5, dtype=dtype).operands():
        assert (each.x.shape, each.y.shape) == ((6, 5), (4, 5))
        assert (each.x.stride(), each.y.stride()) == ((1, 6), (1, 4))
        assert each.x.t().is_contiguous()
        assert each.y.t().is_contiguous()
    for each in sets(3, dtype=dtype).operands():
        assert (each.x.shape, each.y.shape) == ((6, 1), (4, 1))
        assert (each.x.stride(), each.y.stride()) == ((1, 1), (1, 1))


@EVERY_DTYPE
@pytest.mark.parametrize("n", [1, 5])
def test_every_part_starts_at_a_boundary(dtype: str, n: int) -> None:
    """At a multiple of 256 bytes, whatever an element takes; sets apart lie on other pages."""
    for apart in (0, HOT_APART_BYTES):
        made = OperandSets(Problem(m=4, k=6, n=n, dtype=dtype), "cpu", 3, apart_bytes=apart)
        for part in (*made.inputs().values(), made.y):
            starts = [entry.storage_offset() * entry.element_size() for entry in part.values]
            assert all(start % GUARD_BYTES == 0 for start in starts)
            assert len({start % 2**21 for start in starts}) == 3
            assert starts[1] - starts[0] > apart


def test_a_view_starts_elements_behind_a_boundary() -> None:
    """Of its own dtype: 3 of int8 are 3 bytes, of float16 6."""
    for dtype, past in (("int8", 3), ("float16", 6)):
        a = sets(dtype=dtype, layout=Layout(first_element=3, row_stride=9)).operands()[2].a
        assert a.storage_offset() * a.element_size() % GUARD_BYTES == past
        assert a.stride() == (9, 1)


@EVERY_DTYPE
@pytest.mark.parametrize("n", [1, 3])
def test_all_that_is_no_value_is_a_sentinel(dtype: str, n: int) -> None:
    """NaN, of int8 −128; no value is one, neither at first nor after a refresh; a write there is noticed."""
    made = sets(2, n=n, dtype=dtype, layout=Layout(row_stride=9, first_element=1))
    for name, part in {**made.inputs(), "y": made.y}.items():
        flat = whole(part.values)
        marks = flat == -128 if flat.dtype is torch.int8 else flat.isnan()
        values = 0 if name == "y" else part.values.numel()
        assert int(marks.sum()) == flat.numel() - values
    made.refresh()
    assert made.damage() is None
    for name, part in {**made.inputs(), "y": made.y}.items():
        entry = part.values[1]
        for offset in (-1, entry.shape[0] * max(entry.stride())):
            mark = entry.as_strided((1,), (1,), entry.storage_offset() + offset)
            kept = mark.clone()
            mark.fill_(7)
            assert made.damage() == f"wrote outside {name}"
            mark.copy_(kept)
    assert made.damage() is None


@EVERY_DTYPE
def test_any_changed_bit_is_noticed(dtype: str) -> None:
    """Of any input, the least one of the last value."""
    made = sets(3, n=2, dtype=dtype)
    for part in made.inputs().values():
        entry = part.values[2]
        kind = {1: torch.int8, 2: torch.int16, 4: torch.int32}[entry.element_size()]
        words = whole(entry).view(kind)
        place = entry.storage_offset() + entry.numel() - 1
        words[place] ^= 1
        assert made.damage() == "changed A or x or scale" if dtype in SCALED else "changed A or x"
        words[place] ^= 1
    assert made.damage() is None


def test_int8_is_uniform_without_its_least() -> None:
    """All 255 values from −127 to 127, none much more often than another."""
    made = sets(1, m=200, k=500, dtype="int8").a.values
    found, counts = made.unique(return_counts=True)
    assert found.tolist() == list(range(-127, 128))
    assert 250 < int(counts.min()) <= 100_000 / 255 <= int(counts.max()) < 550


@pytest.mark.parametrize("k", [1, 64, 4096, 65536])
def test_scales_bring_y_to_about_one(k: int) -> None:
    """Positive, no two powers of two apart, with all the bits of a float16."""
    made = sets(1, m=300, k=k, dtype="int8")
    scale = made.scale.values.flatten()
    assert float(scale.max()) <= 2 * float(scale.min())
    assert float(scale.min()) >= 2.0**-14
    mantissas = {math.frexp(value)[0] * 2**11 for value in scale.tolist()}
    assert any(value % 2 for value in mantissas)
    assert all(value == int(value) for value in mantissas)
    y = product(made.operands()[0])
    assert 0.25 < float(y.square().mean().sqrt()) < 4.0


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (1.0, 1.0),
        (1 + 2**-10, 1 + 2**-10),
        (1 + 2**-11, 1.0),  # halfway: to the even one
        (1 + 3 * 2**-11, 1 + 2**-9),
        (1 + 2**-11 + 2**-23, 1 + 2**-10),
        (-(1 + 3 * 2**-11), -(1 + 2**-9)),
        (2 - 2**-23, 2.0),
        (0.0, 0.0),
    ],
)
def test_rounding_to_tf32(value: float, wanted: float) -> None:
    """10 bits behind the leading one, to nearest, ties to even."""
    values = torch.tensor([value])
    round_to_tf32(values)
    assert values.item() == wanted


def test_tf32_operands_are_rounded() -> None:
    """The nearest of each float32 value, of all bits that TF32 has and no more, also after a refresh."""
    plain, rounded = sets(2, n=3, seed=5), sets(2, n=3, seed=5, dtype="tf32")
    for _ in range(2):
        for name, part in rounded.inputs().items():
            words = part.values.contiguous().view(torch.int32)
            assert not (words & 0x1FFF).any()
            assert (words & 0x2000).any()
            wide = plain.inputs()[name].values
            assert ((part.values - wide).abs() <= wide.abs() * 2.0**-11).all()
            assert not torch.equal(part.values, wide)
        plain.refresh()
        rounded.refresh()


@EVERY_DTYPE
@pytest.mark.parametrize("n", [1, 3])
def test_refresh_gives_exactly_four_times_the_result(dtype: str, n: int) -> None:
    """Other values of every input in place, and the first ones again; every y is NaN."""
    made = sets(2, m=20, k=50, n=n, dtype=dtype)
    first = {name: part.values.clone() for name, part in made.inputs().items()}
    addresses = [part.values.data_ptr() for part in made.inputs().values()]
    results = [product(each) for each in made.operands()]
    for _ in range(2):
        made.y.values.fill_(1.0)
        assert made.refresh() == 4.0
        assert made.damage() is None
        assert made.y.values.isnan().all()
        for name, part in made.inputs().items():
            assert ((part.values != first[name]) | (first[name] == 0)).all()
        for each, result in zip(made.operands(), results, strict=True):
            assert torch.equal(product(each), 4 * result)
        assert made.refresh() == 1.0
        assert made.damage() is None
        assert all(torch.equal(part.values, first[name]) for name, part in made.inputs().items())
    assert [part.values.data_ptr() for part in made.inputs().values()] == addresses


@EVERY_DTYPE
def test_operands_are_random_by_the_seed(dtype: str) -> None:
    """The same bits again; others by another seed, in another set and for another token."""
    one, same, other = (sets(2, n=2, dtype=dtype, seed=seed) for seed in (0, 0, 1))
    for name, part in one.inputs().items():
        assert torch.equal(part.values, same.inputs()[name].values)
        assert not torch.equal(part.values, other.inputs()[name].values)
        assert not torch.equal(part.values[0], part.values[1])
    assert not torch.equal(one.x.values[0, :, 0], one.x.values[0, :, 1])


def test_the_checksum_of_any_item_size() -> None:
    """64 bits at a time, whatever an element takes: its bit counts where it stands in its 8 bytes."""
    made = Guarded(count=1, rows=3, columns=5, dtype="int8", device="cpu")
    sentinels = made.checksum()
    made.values[0, 0, 1] ^= 1  # −128 becomes −127: one more at byte 1
    assert made.checksum() - sentinels == 256


@pytest.mark.parametrize(
    "shape",
    ["3x5:int8", "64x64x7:float16", "1000x37x3:bfloat16:first=9", "300x5x2:int8:row_stride=7:first=1", "20x30x4:tf32"],
)
def test_allocation_is_no_more_than_foretold(shape: str) -> None:
    """An upper bound that is close."""
    made = OperandSets(parse_shape(shape), "cpu", 3)
    parts = (*made.inputs().values(), made.y)
    real = sum(part.values.untyped_storage().nbytes() for part in parts)
    assert real <= allocation_bytes(made.problem, 3) <= real + 3 * len(parts) * 2 * GUARD_BYTES


@pytest.mark.parametrize(
    ("shape", "wanted"),
    [
        # 4 × 60 MiB = 251,658,240 bytes over a set's, rounded up; placements where 3.75 GB hold them
        ("1024x128:float16", 952),  # (131072 + 1152)·2 = 264,448 bytes
        ("1024x128:int8", 1859),  # 131072 + 2·1024 + 2·1152 = 135,424
        ("4096x4096x512:float16", 16),  # 41,943,040: the cache needs 6, placements 16
        ("32000x4096:int8", 16),  # 131,208,192: 3.75 GB hold 28
    ],
)
def test_cold_sets_by_hand(shape: str, wanted: int) -> None:
    """From the bytes of the dtype, x and y of every token and the scales among them."""
    found = sets_for(parse_shape(shape), Cache.COLD, cache_bytes=60 * 2**20, memory_bytes=150_000_000_000)
    assert found == wanted


def test_what_is_hot_by_its_dtype() -> None:
    """4096×4096 of int8: 16,777,216 + 4·4096 + 2·4096 bytes; half of a cache can be hot."""
    taken = 16_801_792
    assert why_never_hot(parse_shape("4096x4096:int8"), 2 * taken) is None
    assert why_never_hot(parse_shape("4096x4096:int8"), 2 * taken - 1) is not None
    assert why_never_hot(parse_shape("4096x4096:float16"), 2 * taken) is not None
