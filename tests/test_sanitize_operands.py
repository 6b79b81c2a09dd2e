"""Operands for a sanitizer: where they end, what lies between their elements, and how a wrong result is told."""

from __future__ import annotations

import pytest
import torch

from harness.model import Layout, Problem
from harness.problems import whole
from harness.sanitize.operands import Tight, Views, small_views
from kernels.registry import kernels

GAPS = Views(problem=Problem(m=5, k=7, layout=Layout(row_stride=10, first_element=3)), x_stride=3, y_stride=2)
BY_COLUMNS = Views(problem=Problem(m=5, k=7, layout=Layout(order="col", row_stride=8, first_element=1)), x_stride=0)
EMPTY = Views(problem=Problem(m=4, k=0))


def compute(tight: Tight) -> None:
    o = tight.operands
    o.y.copy_(o.a.double() @ o.x.double())


@pytest.mark.parametrize(
    ("views", "elements"),
    [(GAPS, (3 + 4 * 10 + 7, 3 + 6 * 3 + 1, 9)), (BY_COLUMNS, (1 + 6 * 8 + 5, 2, 5)), (EMPTY, (0, 0, 4))],
)
def test_memory_ends_with_the_last_element(views: Views, elements: tuple[int, int, int]) -> None:
    """By hand: first element, strides, and nothing behind; each operand has memory of its own."""
    o = Tight(views, "cpu").operands
    assert tuple(whole(each).numel() for each in (o.a, o.x, o.y)) == elements
    assert len({each.untyped_storage().data_ptr() for each in (o.a, o.x, o.y) if each.numel()}) == sum(
        map(bool, elements)
    )
    assert (o.a.shape, o.x.shape, o.y.shape) == (
        (views.problem.m, views.problem.k), (views.problem.k, 1), (views.problem.m, 1),
    )  # fmt: skip


def test_all_between_the_elements_is_nan() -> None:
    """And nothing of A and x is."""
    o = Tight(GAPS, "cpu").operands
    assert (o.a.stride(), o.x.stride(0), o.y.stride(0)) == ((10, 1), 3, 2)
    assert not o.a.isnan().any()
    assert not o.x.isnan().any()
    assert int(whole(o.a).isnan().sum()) == 3 + 4 * 3
    assert bool(whole(o.y).isnan().all())


@pytest.mark.parametrize("views", [GAPS, BY_COLUMNS, EMPTY])
def test_a_right_result_has_no_fault(views: Views) -> None:
    """Whatever the layout; also the sum of nothing."""
    tight = Tight(views, "cpu")
    compute(tight)
    assert tight.fault() is None


def test_each_wrong_result_is_told() -> None:
    """Unwritten, wrong, written between its elements, and no 0 where there is nothing to add."""
    assert "5 of 5 wrong, first y[0]: found nan" in str(Tight(GAPS, "cpu").fault())
    tight = Tight(GAPS, "cpu")
    compute(tight)
    tight.operands.y[3] += 1e-3
    assert "1 of 5 wrong, first y[3]: found " in str(tight.fault())
    compute(tight)
    whole(tight.operands.y)[1] = 0.0
    assert tight.fault() == "wrote between the elements of y"
    assert Tight(EMPTY, "cpu").fault() == "y is not 0, the sum of nothing"


def test_every_kernel_has_problems_within_its_contract() -> None:
    """Packed operands alone for one that takes no gaps; for one that takes rows, gaps, and x and y with gaps."""
    for kernel in kernels().values():
        views = list(small_views(kernel.unsupported))
        assert views
        assert all(kernel.unsupported(each.problem) is None for each in views)
    packed = list(small_views(kernels()["sgemv_k32_f32"].unsupported))
    assert {(each.problem.layout.row_stride, each.x_stride, each.y_stride) for each in packed} == {(None, 1, 1)}
    assert {each.problem.k % 32 for each in packed} == {0}
    anything = list(small_views(lambda _: None))
    assert {each.problem.layout.order for each in anything} == {"row", "col"}
    assert {each.x_stride for each in anything} == {0, 1, 3}
    strides = {(each.problem, each.problem.layout.row_stride) for each in anything if each.problem.layout.row_stride}
    lengths = {problem: problem.k if problem.layout.order == "row" else problem.m for problem, _ in strides}
    assert all(stride > lengths[problem] for problem, stride in strides)
    assert {stride % 4 == 0 for _, stride in strides} == {True, False}
    assert {each.problem.layout.first_element for each in anything} == {0, 1, 3}
    assert {each.problem.k for each in anything} >= {0, 1, 31, 32, 33, 4099, 16384}


def test_views_are_said_as_shapes_are_typed() -> None:
    """With what a shape cannot say behind it."""
    assert str(GAPS) == "5x7:row_stride=10:first=3:x_stride=3:y_stride=2"
    assert str(EMPTY) == "4x0"
    assert torch.equal(Tight(GAPS, "cpu").operands.a, Tight(GAPS, "cpu").operands.a)
