"""harness.problems: packed operands that refresh exactly, and guards that notice. Views: test_operands_layouts.py."""

from __future__ import annotations

import pytest
import torch

from harness.model import Problem
from harness.problems import GUARD_BYTES, HOT_APART_BYTES, Guarded, OperandSets, whole

GUARD = GUARD_BYTES // 4
"""Elements of float32."""


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
    flat = whole(made.values)
    for entry in made.values:
        first, behind = entry.storage_offset(), entry.storage_offset() + entry.numel()
        assert flat[first - GUARD : first].isnan().all()
        assert flat[behind : behind + GUARD].isnan().all()
        assert not entry.isnan().any()


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize(("entry", "offset"), [(0, -1), (0, -GUARD), (0, 15), (1, -1), (1, 15 + 48)])
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
    near, far = OperandSets(problem, "cpu", 3), OperandSets(problem, "cpu", 3, apart_bytes=HOT_APART_BYTES)
    for name in ("a", "x", "y"):
        first, second, third = (getattr(each, name).storage_offset() * 4 for each in far.operands())
        assert second - first == third - second >= page
        assert len({offset % page for offset in (first, second, third)}) == 3
        assert all(offset % 256 == 0 for offset in (first, second, third))
    assert [getattr(near, name).values.shape for name in "axy"] == [getattr(far, name).values.shape for name in "axy"]


@pytest.mark.parametrize(
    ("name", "words"), [("y", "wrote outside y"), ("a", "wrote outside A"), ("x", "wrote outside x")]
)
@pytest.mark.parametrize("offset", [GUARD + 30, HOT_APART_BYTES // 8, HOT_APART_BYTES // 4])
def test_what_lies_between_sets_apart_is_a_guard(name: str, words: str, offset: int) -> None:
    """A write anywhere in it is noticed, also after a refresh."""
    made = OperandSets(Problem(m=4, k=6), "cpu", 2, apart_bytes=HOT_APART_BYTES)
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
