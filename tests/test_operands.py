"""harness.problems: operands that refresh exactly, in any layout, and guards and gaps that notice."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from harness.model import Layout, Problem
from harness.problems import GUARD_ELEMENTS, HOT_APART, Guarded, OperandSets, parse_shape


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


LAYOUTS = {
    "rows": (Layout(), (6, 1), 0),
    "columns": (Layout(order="col"), (1, 4), 0),
    "rows apart": (Layout(row_stride=9), (9, 1), 0),
    "columns apart": (Layout(order="col", row_stride=7), (1, 7), 0),
    "from element 1": (Layout(first_element=1), (6, 1), 1),
    "all at once": (Layout(order="col", row_stride=11, first_element=67), (1, 11), 3),
}
"""Layouts of a 4×6 matrix, with its strides and the elements that it begins behind a boundary."""
EVERY_LAYOUT = pytest.mark.parametrize(("layout", "strides", "past"), LAYOUTS.values(), ids=LAYOUTS)


def storage(part: Guarded) -> torch.Tensor:
    """All elements of one allocation."""
    return part.values.as_strided((part.values.untyped_storage().nbytes() // 4,), (1,), 0)


def places(part: Guarded) -> set[int]:
    """Where the values are in it, counted out one by one."""
    return {
        entry.storage_offset() + row * entry.stride(0) + column * entry.stride(1)
        for entry in part.values
        for row in range(4)
        for column in range(6)
    }


@EVERY_LAYOUT
@pytest.mark.parametrize("apart", [0, HOT_APART])
def test_a_lies_as_the_problem_says(layout: Layout, strides: tuple[int, int], past: int, apart: int) -> None:
    """Every A: its strides and where it begins; x and y are packed and begin at a boundary, whatever A does."""
    made = OperandSets(Problem(m=4, k=6, layout=layout), "cpu", 3, apart=apart)
    for each in made.operands():
        assert (each.a.shape, each.a.stride()) == ((4, 6), strides)
        assert each.a.storage_offset() % GUARD_ELEMENTS == past
        for vector in (each.x, each.y):
            assert vector.is_contiguous()
            assert vector.storage_offset() % GUARD_ELEMENTS == 0


@EVERY_LAYOUT
def test_all_that_is_no_value_is_nan(layout: Layout, strides: tuple[int, int], past: int) -> None:
    """Between the lines, before and behind; from the start, after every refresh, and 64 elements at least each side."""
    made = sets(layout=layout)
    flat, inside = storage(made.a), places(made.a)
    assert len(inside) == 3 * 24
    assert min(inside) >= GUARD_ELEMENTS + past
    assert max(inside) < len(flat) - GUARD_ELEMENTS
    assert made.a.values[0].stride() == strides
    for _ in range(3):
        assert set(flat.isnan().logical_not().nonzero().flatten().tolist()) == inside
        made.refresh()


@EVERY_LAYOUT
def test_a_write_anywhere_else_is_noticed(layout: Layout, strides: tuple[int, int], past: int) -> None:
    """Every single element around and between the values of two matrices, and no value."""
    made = Guarded(count=2, rows=4, columns=6, dtype="float32", device="cpu", layout=layout)
    made.randomize(torch.Generator().manual_seed(1))
    flat, inside, before = storage(made), places(made), made.checksum()
    assert (made.values[1].stride(), made.values[1].storage_offset() % 64) == (strides, past)
    for place in range(len(flat)):
        kept = flat[place].clone()
        flat[place] = 7.0
        assert made.intact() is (place in inside)
        assert made.checksum() != before
        flat[place] = kept
    assert made.intact()
    assert made.checksum() == before


@EVERY_LAYOUT
def test_any_layout_refreshes_exactly(layout: Layout, strides: tuple[int, int], past: int) -> None:
    """In place, times −2 and back; the gap behind the first line is a guard all along."""
    made = sets(layout=layout)
    first = made.a.values.clone()
    address = made.operands()[2].a.data_ptr()
    assert made.refresh() == 4.0
    assert torch.equal(made.a.values, first * -2)
    assert made.refresh() == 1.0
    assert torch.equal(made.a.values, first)
    assert made.operands()[2].a.data_ptr() == address
    assert made.operands()[2].a.storage_offset() % GUARD_ELEMENTS == past
    assert made.damage() is None
    if max(strides) > 6:
        write(made.operands()[1].a, max(strides) - 1)
        assert made.damage() == "wrote outside A"


def copied_bytes(compute: Callable[[], object]) -> int:
    """What torch allocates while it computes."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
        compute()
    return sum(max(0, each.self_cpu_memory_usage) for each in profile.key_averages())


@pytest.mark.parametrize("shape", ["64x96:col", "64x96:row_stride=100", "64x96:col:row_stride=100:first=1"])
def test_torch_reads_a_view_where_it_lies(shape: str) -> None:
    """The time of a copy would be in torch's figure. What no layout here is, every second column, it does copy."""
    o = OperandSets(parse_shape(shape), "cpu", 1).operands()[0]
    for compute in (
        lambda: torch.matmul(o.a, o.x, out=o.y),
        lambda: torch.mv(o.a, o.x.view(-1), out=o.y.view(-1)),
    ):
        assert copied_bytes(compute) < o.a.numel() * 4
        assert not o.y.isnan().any()
    thin = o.a.new_ones(64, 400)[::2, ::2]
    assert copied_bytes(lambda: torch.matmul(thin, o.a.new_ones(200, 1))) >= thin.numel() * 4


@pytest.mark.parametrize(
    ("layout", "words"),
    [
        (Layout(order="diagonal"), "layout.order: found 'diagonal', wanted 'row' or 'col'"),
        (Layout(row_stride=5), "layout.row_stride: found 5, wanted 6 or more"),
        (Layout(order="col", row_stride=3), "layout.row_stride: found 3, wanted 4 or more"),
    ],
)
def test_what_is_no_layout(layout: Layout, words: str) -> None:
    """Rows that overlap, or an order that nothing has."""
    with pytest.raises(ValueError, match="layout") as caught:
        sets(layout=layout)
    assert str(caught.value) == words
