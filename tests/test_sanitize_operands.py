"""Operands for a sanitizer: where they end, what lies between their elements, and how a wrong result is told."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from harness.model import Kernel, Layout, Operands, Problem, Role
from harness.problems import whole
from harness.sanitize.operands import Tight, Views, small_views
from kernels.registry import kernels
from tests import planted_dtypes

GAPS = Views(problem=Problem(m=5, k=7, layout=Layout(row_stride=10, first_element=3)), x_stride=3, y_stride=2)
BY_COLUMNS = Views(problem=Problem(m=5, k=7, layout=Layout(order="col", row_stride=8, first_element=1)), x_stride=0)
EMPTY = Views(problem=Problem(m=4, k=0))
INT8 = Views(problem=Problem(m=5, k=7, n=2, dtype="int8", layout=Layout(row_stride=10, first_element=3)))
HALF = Views(problem=Problem(m=5, k=7, n=3, dtype="bfloat16"))
TF32 = Views(problem=Problem(m=5, k=7, dtype="tf32"))
ANY = Kernel(name="any", role=Role.GEMV, summary="", bind=lambda _: lambda: None)


def compute(tight: Tight) -> None:
    planted_dtypes.right_in_double(tight.operands)


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


@pytest.mark.parametrize("views", [GAPS, BY_COLUMNS, EMPTY, INT8, HALF, TF32])
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


def test_operands_of_other_dtypes() -> None:
    """Tokens one after the other, scales in memory of their own, sentinels in A's gaps."""
    o = Tight(INT8, "cpu").operands
    assert (o.a.dtype, o.x.dtype, o.y.dtype, o.scale.dtype) == (torch.int8, *(torch.float16,) * 3)
    assert [whole(each).numel() for each in (o.a, o.x, o.y, o.scale)] == [3 + 4 * 10 + 7, 3 + 14, 10, 5]
    assert (o.a.stride(), o.x.stride(), o.y.stride(), o.scale.shape) == ((10, 1), (1, 7), (1, 5), (5,))
    assert int((whole(o.a) == -128).sum()) == 3 + 4 * 3
    assert int((o.a == -128).sum()) == 0
    assert bool((o.scale > 0).all())
    tf32 = Tight(TF32, "cpu").operands
    assert not (tf32.a.view(torch.int32) & 0x1FFF).any()


@pytest.mark.parametrize("body", [planted_dtypes.ignores_the_scale, planted_dtypes.swaps_tokens])
def test_a_wrong_result_of_another_dtype(body: Callable[[Operands], None]) -> None:
    """Row and token are named."""
    tight = Tight(INT8, "cpu")
    body(tight.operands)
    assert "of 10 wrong, first y[0, 0]: found " in str(tight.fault())


def test_views_of_every_dtype_and_some_tokens() -> None:
    """Of a kernel for two dtypes that takes up to 2 tokens; x and y with gaps in float32 alone."""
    taken = replace(ANY, dtypes=("float16", "float32"), unsupported=lambda problem: "n" if problem.n > 2 else None)
    views = list(small_views(taken))
    assert {(each.problem.dtype, each.problem.n) for each in views} == set(
        itertools.product(("float16", "float32"), (1, 2))
    )
    assert {each.problem.n for each in small_views(ANY)} == {1, 2, 3, 8}
    assert all(each.x_stride == each.y_stride == 1 for each in views if each.problem.dtype != "float32")
    assert all(each.x_stride == each.y_stride == 1 for each in views if each.problem.n > 1)
    assert {each.problem.layout.row_stride for each in views if each.problem.dtype == "float16"} > {None, 2 + 3, 32 + 8}


def test_every_kernel_has_problems_within_its_contract() -> None:
    """Packed operands alone for one that takes no gaps; for one that takes rows, gaps, and x and y with gaps."""
    for kernel in kernels().values():
        views = list(small_views(kernel))
        assert views
        assert all(kernel.unsupported(each.problem) is None for each in views)
    packed = list(small_views(kernels()["sgemv_k32_f32"]))
    assert {(each.problem.layout.row_stride, each.x_stride, each.y_stride) for each in packed} == {(None, 1, 1)}
    assert {each.problem.k % 32 for each in packed} == {0}
    anything = list(small_views(ANY))
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
