"""harness.problems: shapes in words, guards that notice, operands that refresh exactly, and how many of them."""

from __future__ import annotations

import pytest
import torch

from harness.model import Cache, Layout, Problem
from harness.problems import (
    GUARD_ELEMENTS,
    HOT_APART,
    HOT_PLACEMENTS,
    Guarded,
    OperandSets,
    allocation_bytes,
    parse_shape,
    sets_for,
    why_never_cold,
    why_never_hot,
)

MIB, GIB = 2**20, 2**30
H200_CACHE, H200_MEMORY = 60 * MIB, 150_000_000_000


@pytest.mark.parametrize(
    ("text", "m", "k"),
    [
        ("1024x128", 1024, 128),
        ("1X1", 1, 1),
        ("4096×11008", 4096, 11008),
        (" 8x4096\n", 8, 4096),
        ("9999999999999x1", 9_999_999_999_999, 1),
    ],
)
def test_shapes(text: str, m: int, k: int) -> None:
    """Rows first, then columns; an x of any kind."""
    assert parse_shape(text) == Problem(m=m, k=k)


@pytest.mark.parametrize(
    "text",
    ["", "1024", "1024x", "x128", "0x4", "4x0", "-4x4", "4x-4", "1.5x2", "4x4x4", "1e3x4", "4 x 4", "012x3", "axb"],
)
def test_what_is_no_shape(text: str) -> None:
    """What was found, what was wanted, and an example, in one line."""
    with pytest.raises(ValueError, match="wanted MxK") as caught:
        parse_shape(text)
    assert str(caught.value) == (
        f"--shape: found {text!r}, wanted MxK with two whole numbers from 1 on, such as 1024x128"
    )


def guarded(dtype: str = "float32", rows: int = 3, columns: int = 5) -> Guarded:
    """Two entries of random values."""
    made = Guarded(count=2, rows=rows, columns=columns, dtype=dtype, device="cpu")
    made.randomize(torch.Generator().manual_seed(1))
    return made


@pytest.mark.parametrize("columns", [1, 5, 64, 100])
def test_guarded_values_are_packed_and_aligned(columns: int) -> None:
    """Each entry is contiguous and starts at a multiple of 256 bytes from the first guard, as fresh allocations do."""
    made = guarded(columns=columns)
    for entry in made.values:
        assert entry.is_contiguous()
        assert entry.shape == (3, columns)
        assert entry.storage_offset() * 4 % 256 == 0


@pytest.mark.parametrize("columns", [1, 5, 64, 100])
def test_guarded_has_guards_on_both_sides(columns: int) -> None:
    """At least 64 NaNs before and behind each entry, and none inside."""
    made = guarded(columns=columns)
    flat = made.values.as_strided((made.values.untyped_storage().nbytes() // 4,), (1,), 0)
    for entry in made.values:
        first, behind = entry.storage_offset(), entry.storage_offset() + entry.numel()
        assert flat[first - GUARD_ELEMENTS : first].isnan().all()
        assert flat[behind : behind + GUARD_ELEMENTS].isnan().all()
        assert not entry.isnan().any()


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize(("entry", "offset"), [(0, -1), (0, -GUARD_ELEMENTS), (0, 15), (1, -1), (1, 15 + 48)])
def test_a_written_guard_is_noticed(dtype: str, entry: int, offset: int) -> None:
    """One element, right beside the values or as far as the guard goes."""
    made = guarded(dtype)
    assert made.intact()
    made.values.as_strided((1,), (1,), made.values[entry].storage_offset() + offset).fill_(0.0)
    assert not made.intact()


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_the_checksum_notices_any_bit(dtype: str) -> None:
    """The least change of one value, its sign, and a guard's NaN turned into another NaN."""
    made = guarded(dtype)
    words = made.values[1].view(torch.int32 if dtype == "float32" else torch.int16)
    before = made.checksum()
    for flip in (1, -(2 ** (words.element_size() * 8 - 1))):
        words[2, 4] ^= flip
        assert made.checksum() != before
        words[2, 4] ^= flip
    assert made.checksum() == before
    guard = made.values.as_strided((1,), (1,), made.values.storage_offset() - 1)
    guard.view(words.dtype).bitwise_xor_(1)
    assert made.intact()
    assert made.checksum() != before


def test_poison_is_everywhere() -> None:
    """Values and guards."""
    made = guarded()
    made.poison()
    assert made.values.isnan().all()
    assert made.intact()


def sets(count: int = 3, **problem: object) -> OperandSets:
    return OperandSets(Problem(**{"m": 4, "k": 6, **problem}), "cpu", count)  # type: ignore[arg-type]


def test_operands_are_random_by_the_seed() -> None:
    """The same seed gives the same bits, another seed others; sets differ; y is NaN."""
    one, same, other = sets(), sets(), sets(seed=1)
    assert torch.equal(one.a.values, same.a.values)
    assert torch.equal(one.x.values, same.x.values)
    assert not torch.equal(one.a.values, other.a.values)
    assert not torch.equal(one.a.values[0], one.a.values[1])
    assert one.y.values.isnan().all()


def test_operands_use_the_whole_mantissa() -> None:
    """Otherwise operands rounded to TF32 or half would not show: none of 24 values survives the rounding."""
    a = sets(1).a.values[0]
    assert (a.half().float() != a).all()


def test_operands_have_the_shapes_of_the_problem() -> None:
    """(m, k), (k, n), (m, n), one of each a set."""
    shapes = [(o.a.shape, o.x.shape, o.y.shape) for o in sets(3, n=2).operands()]
    assert shapes == [((4, 6), (6, 2), (4, 2))] * 3


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_refresh_is_exact(dtype: str) -> None:
    """Values times −2, then back to the first bits, and so on; the result must be 4 and 1 times the first one."""
    made = sets(2, dtype=dtype)
    a, x = made.a.values.clone(), made.x.values.clone()
    for _ in range(3):
        assert made.refresh() == 4.0
        assert torch.equal(made.a.values, a * -2)
        assert torch.equal(made.x.values, x * -2)
        assert made.refresh() == 1.0
        assert torch.equal(made.a.values, a)
        assert torch.equal(made.x.values, x)
    assert made.damage() is None


def test_refresh_gives_exactly_four_times_the_result() -> None:
    """In any order of summation: a power of two changes no rounding."""
    made = sets(1)
    operands = made.operands()[0]
    first = operands.a @ operands.x
    made.refresh()
    assert torch.equal(operands.a @ operands.x, 4 * first)


def test_refresh_writes_where_the_operands_are() -> None:
    """A graph that was captured before holds these addresses; every y is NaN again."""
    made = sets()
    operands = made.operands()
    for each in operands:
        each.y.fill_(1.0)
    addresses = [(o.a.data_ptr(), o.x.data_ptr(), o.y.data_ptr()) for o in operands]
    before = operands[2].a.clone()
    made.refresh()
    assert [(o.a.data_ptr(), o.x.data_ptr(), o.y.data_ptr()) for o in made.operands()] == addresses
    assert torch.equal(operands[2].a, before * -2)
    assert all(each.y.isnan().all() for each in operands)


def test_sets_apart_lie_on_other_pages() -> None:
    """Further than 2 MiB from each other, at other places of a page, still aligned; the values are the same."""
    problem, page = Problem(m=4, k=6), 2**21
    near, far = OperandSets(problem, "cpu", 3), OperandSets(problem, "cpu", 3, apart=HOT_APART)
    for name in ("a", "x", "y"):
        first, second, third = (getattr(each, name).storage_offset() * 4 for each in far.operands())
        assert second - first == third - second >= page
        assert len({offset % page for offset in (first, second, third)}) == 3
        assert all(offset % 256 == 0 for offset in (first, second, third))
    assert [getattr(near, name).values.shape for name in "axy"] == [getattr(far, name).values.shape for name in "axy"]


@pytest.mark.parametrize(
    ("name", "words"), [("y", "wrote outside y"), ("a", "wrote outside A"), ("x", "wrote outside x")]
)
@pytest.mark.parametrize("offset", [GUARD_ELEMENTS + 30, HOT_APART // 2, HOT_APART])
def test_what_lies_between_sets_apart_is_a_guard(name: str, words: str, offset: int) -> None:
    """A write anywhere in it is noticed, also after a refresh."""
    made = OperandSets(Problem(m=4, k=6), "cpu", 2, apart=HOT_APART)
    assert made.damage() is None
    made.refresh()
    assert made.damage() is None
    write(getattr(made.operands()[0], name), offset)
    assert made.damage() == words


def write(tensor: torch.Tensor, offset: int) -> None:
    tensor.as_strided((1,), (1,), tensor.storage_offset() + offset).fill_(7.0)


@pytest.mark.parametrize(
    ("name", "offset", "words"),
    [
        ("y", -1, "wrote outside y"),
        ("y", 4, "wrote outside y"),
        ("a", -1, "wrote outside A"),
        ("a", 24, "wrote outside A"),
        ("x", 6, "wrote outside x"),
        ("a", 23, "changed A or x"),
        ("x", 0, "changed A or x"),
    ],
)
@pytest.mark.parametrize("refreshed", [False, True])
def test_damage_of_each_kind(name: str, offset: int, words: str, *, refreshed: bool) -> None:
    """Before and after a refresh, in the last set."""
    made = sets()
    if refreshed:
        made.refresh()
    assert made.damage() is None
    write(getattr(made.operands()[-1], name), offset)
    assert made.damage() == words


def test_writing_y_is_no_damage() -> None:
    """That is what a kernel is for."""
    made = sets()
    for each in made.operands():
        each.y.fill_(1.0)
    assert made.damage() is None


@pytest.mark.parametrize("layout", [Layout(order="col"), Layout(row_stride=8), Layout(first_element=1)])
def test_other_layouts_are_refused(layout: Layout) -> None:
    """Never measured as something that they are not."""
    with pytest.raises(ValueError, match="wanted packed row-major"):
        sets(layout=layout)


@pytest.mark.parametrize(
    ("m", "k", "wanted"),
    [
        # 4 × 60 MiB = 251,658,240 bytes, over (m·k + k + m)·4 rounded up, and 16 where 2.5 % of 150 GB hold them.
        (1, 1, 20_971_520),  # 12 bytes a set
        (1024, 128, 476),  # 528,896 bytes
        (4096, 4096, 16),  # 67,141,632 bytes: the cache needs 4, placements 16
        (11008, 4096, 16),  # 180,415,488 bytes: 3.75 GB hold 20
        (32000, 4096, 7),  # 524,432,384 bytes: 3.75 GB hold 7
        (65536, 16384, 1),  # 4.3 GB: one A alone is more than 4 caches, and more than the share of memory
    ],
)
def test_cold_sets_by_hand(m: int, k: int, wanted: int) -> None:
    """Four caches of bytes at least, sixteen placements where memory allows."""
    found = sets_for(Problem(m=m, k=k), Cache.COLD, cache_bytes=H200_CACHE, memory_bytes=H200_MEMORY)
    assert found == wanted


@pytest.mark.parametrize(("m", "k"), [(1, 1), (1024, 128), (4096, 4096)])
def test_one_set_is_hot(m: int, k: int) -> None:
    """Every launch reads what the one before it read."""
    problem = Problem(m=m, k=k)
    assert sets_for(problem, Cache.HOT, cache_bytes=H200_CACHE, memory_bytes=H200_MEMORY) == HOT_PLACEMENTS
    assert sets_for(problem, Cache.HOT, cache_bytes=H200_CACHE, memory_bytes=0) == 1


def test_what_does_not_fit_is_never_hot() -> None:
    """4096×4096 is 67 MB; a cache of 60 MiB is 63 MB. Half of a cache can be hot."""
    problem = Problem(m=4096, k=4096)
    assert why_never_hot(problem, H200_CACHE) == "never hot: its operands do not stay in a cache of 63 MB; see cold"
    assert why_never_hot(problem, 2 * 67_141_632) is None
    assert why_never_hot(problem, 2 * 67_141_631) is not None


@pytest.mark.parametrize(("m", "k", "dtype"), [(3, 5, "float32"), (64, 64, "float32"), (1000, 37, "float16")])
def test_allocation_is_no_more_than_foretold(m: int, k: int, dtype: str) -> None:
    """The figure in an out-of-memory message: an upper bound that is close for large problems."""
    made = OperandSets(Problem(m=m, k=k, dtype=dtype), "cpu", 3)
    real = sum(part.values.untyped_storage().nbytes() for part in (made.a, made.x, made.y))
    foretold = allocation_bytes(made.problem, 3)
    assert real <= foretold <= real + 3 * 3 * 2 * GUARD_ELEMENTS * 4


def test_a_problem_too_small_to_be_cold_says_so() -> None:
    """One of 8×8 is 320 bytes: 4·60 MiB take 786,432 of them. 64×64 takes 14,895, which a graph can hold."""
    small = why_never_cold(Problem(m=8, k=8), 60 * 2**20)
    assert small == "never cold: it would take 786432 operand sets, more than 16384, to fill the cache; see hot"
    assert why_never_cold(Problem(m=64, k=64), 60 * 2**20) is None
