"""harness.problems: operands in any layout lie as it says, refresh exactly, and their gaps notice what is written."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from harness.model import Layout, Problem
from harness.problems import GUARD_BYTES, HOT_APART_BYTES, Guarded, OperandSets, parse_shape, whole

GUARD = GUARD_BYTES // 4
"""Elements of float32."""
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


def sets(layout: Layout) -> OperandSets:
    """Three of a 4×6 problem."""
    return OperandSets(Problem(m=4, k=6, layout=layout), "cpu", 3)


def places(part: Guarded) -> set[int]:
    """Where the values are in it, counted out one by one."""
    return {
        entry.storage_offset() + row * entry.stride(0) + column * entry.stride(1)
        for entry in part.values
        for row in range(4)
        for column in range(6)
    }


@EVERY_LAYOUT
@pytest.mark.parametrize("apart", [0, HOT_APART_BYTES])
def test_a_lies_as_the_problem_says(layout: Layout, strides: tuple[int, int], past: int, apart: int) -> None:
    """Every A: its strides and where it begins; x and y are packed and begin at a boundary, whatever A does."""
    made = OperandSets(Problem(m=4, k=6, layout=layout), "cpu", 3, apart_bytes=apart)
    for each in made.operands():
        assert (each.a.shape, each.a.stride()) == ((4, 6), strides)
        assert each.a.storage_offset() % GUARD == past
        for vector in (each.x, each.y):
            assert vector.is_contiguous()
            assert vector.storage_offset() % GUARD == 0


@EVERY_LAYOUT
def test_all_that_is_no_value_is_nan(layout: Layout, strides: tuple[int, int], past: int) -> None:
    """Between the lines, before and behind; from the start, after every refresh, and 64 elements at least each side."""
    made = sets(layout)
    flat, inside = whole(made.a.values), places(made.a)
    assert len(inside) == 3 * 24
    assert min(inside) >= GUARD + past
    assert max(inside) < len(flat) - GUARD
    assert made.a.values[0].stride() == strides
    for _ in range(3):
        assert set(flat.isnan().logical_not().nonzero().flatten().tolist()) == inside
        made.refresh()


@EVERY_LAYOUT
def test_a_write_anywhere_else_is_noticed(layout: Layout, strides: tuple[int, int], past: int) -> None:
    """Every single element around and between the values of two matrices, and no value."""
    made = Guarded(count=2, rows=4, columns=6, dtype="float32", device="cpu", layout=layout)
    made.randomize(torch.Generator().manual_seed(1))
    flat, inside, before = whole(made.values), places(made), made.checksum()
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
    made = sets(layout)
    first = made.a.values.clone()
    address = made.operands()[2].a.data_ptr()
    assert made.refresh() == 4.0
    assert torch.equal(made.a.values, first * -2)
    assert made.refresh() == 1.0
    assert torch.equal(made.a.values, first)
    assert made.operands()[2].a.data_ptr() == address
    assert made.operands()[2].a.storage_offset() % GUARD == past
    assert made.damage() is None
    if max(strides) > 6:
        a = made.operands()[1].a
        whole(a)[a.storage_offset() + max(strides) - 1] = 7.0
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
        sets(layout)
    assert str(caught.value) == words
