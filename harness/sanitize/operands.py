"""Operands for a sanitizer: nothing lies behind an operand's last element, and only the host has written them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from harness.dtypes import SCALED, activation_dtype, weight_dtype
from harness.gate import compare, reference, tolerance
from harness.model import Kernel, Layout, Operands, Problem
from harness.problems import INT8_SENTINEL, round_to_tf32, shape_text, whole
from harness.problems.memory import Lines
from harness.roofline import ITEM_BYTES

if TYPE_CHECKING:
    from torch import Generator, Tensor

SHAPES = (
    (1, 1), (2, 7), (3, 16), (9, 31), (5, 32), (33, 33), (4, 0), (7, 128), (130, 16), (17, 130), (2, 4099), (3, 16384),
    (300, 5),
)  # fmt: skip
"""M and K around widths of vectors, warps and blocks; few, since a sanitizer slows a launch down a hundred times."""

TOKENS = (2, 3, 8)
"""N of them in turn, where a kernel takes it."""

LARGEST_SCALE = 2.0**-6
"""That keeps int8's results far from the ends of float16."""


@dataclass(frozen=True, kw_only=True)
class Views:
    """A problem, and how x and y lie."""

    problem: Problem
    """What is computed, with A's layout."""
    x_stride: int = 1
    """Elements from one of x to the next; 0: all are one."""
    y_stride: int = 1
    """Elements from one of y to the next."""
    x_at_boundary: bool = False
    """x begins where its allocation does; else as many elements behind that as A."""

    def __str__(self) -> str:
        """For people."""
        strides = {"x_stride": self.x_stride, "y_stride": self.y_stride}
        return ":".join([shape_text(self.problem), *(f"{name}={n}" for name, n in strides.items() if n != 1)])


def small_views(kernel: Kernel) -> Iterator[Views]:
    """Every shape that a kernel can compute in every dtype that it is made for.

    One token in A's first layout and two others in turn; where it takes several, some of them in one layout. A user's
    kernel is given what a bench may give it: no empty A, and x and y without gaps, from a boundary on.
    """
    own = kernel.file is not None
    for dtype, (number, (m, k)) in itertools.product(kernel.dtypes, enumerate(SHAPES)):
        problem = Problem(m=m, k=k, dtype=dtype)
        several = replace(problem, n=TOKENS[number % len(TOKENS)])
        for each, turns in ((problem, (0, number, number + 4)), (several, (number,))):
            fit = [views for views in dict.fromkeys(_laid_out(each)) if _takes(kernel, views)]
            taken = [replace(views, x_at_boundary=own) for views in fit]
            yield from dict.fromkeys(taken[turn % len(taken)] for turn in turns if taken)


def _laid_out(problem: Problem) -> Iterator[Views]:
    """Packed, from elsewhere too, with gaps that keep 16 bytes' alignment and that do not; by rows and by columns.

    x and y have gaps only where there is one token of float32: other kernels take tokens in one piece.
    """
    one_piece = problem.n > 1 or problem.dtype != "float32"
    step = 16 // ITEM_BYTES[problem.dtype]
    for order, length in (("row", problem.k), ("col", problem.m)):
        aligned = -(-length // step) * step + step
        layouts = (
            (Layout(order=order), 1, 1),
            (Layout(order=order, row_stride=length + 3, first_element=1), 3, 2),
            (Layout(order=order, first_element=3), 1, 1),
            (Layout(order=order, row_stride=aligned), 1, 1),
            (Layout(order=order, row_stride=aligned), 0, 1),
        )
        for layout, x_stride, y_stride in layouts:
            strides = (1, 1) if one_piece else (x_stride, y_stride)
            yield Views(problem=replace(problem, layout=layout), x_stride=strides[0], y_stride=strides[1])


def _takes(kernel: Kernel, views: Views) -> bool:
    """Whether a kernel does: x and y may have gaps where A may."""
    problem = views.problem
    with_gaps = replace(problem, layout=Layout(order=problem.layout.order, row_stride=problem.m + problem.k))
    packed = views.x_stride == views.y_stride == 1
    if kernel.file is not None and not (packed and problem.k):
        return False
    return kernel.unsupported(problem) is None and (packed or kernel.unsupported(with_gaps) is None)


class Tight:
    """Operands on a device, each in an allocation of its own that ends with its last element; a sentinel in every gap.

    All is written on the host and copied, so that on the device no kernel runs but the one in question.
    """

    def __init__(self, views: Views, device: str) -> None:
        import torch

        problem = views.problem
        self._problem = problem
        generator = torch.Generator().manual_seed(problem.seed)
        lines = Lines.of(problem.m, problem.k, problem.layout)
        strides = (1, lines.stride) if lines.by_columns else (lines.stride, 1)
        kind = activation_dtype(problem.dtype)
        a = _host((problem.m, problem.k), strides, problem.layout.first_element, weight_dtype(problem.dtype))
        x_first = 0 if views.x_at_boundary else problem.layout.first_element
        x = _host((problem.k, problem.n), (views.x_stride, problem.k), x_first, kind)
        y = _host((problem.m, problem.n), (views.y_stride, problem.m), 0, kind)
        for view in (a, x if views.x_stride else x[:1]):
            view.copy_(_values(view, generator))
            if problem.dtype == "tf32":
                round_to_tf32(view)
        self._on_host = a, x, _scale(problem, generator)
        scale = self._on_host[2]
        self.operands = Operands(
            a=_copy(a, device), x=_copy(x, device), y=_copy(y, device),
            scale=None if scale is None else _copy(scale, device),
        )  # fmt: skip

    def fault(self) -> str | None:
        """What is wrong with y and its gaps after a launch that should have written A·x into it; or None."""
        y = _copy(self.operands.y, "cpu")
        fault = self._wrong(y)
        y.fill_(math.nan)
        return fault if fault is not None or bool(whole(y).isnan().all()) else "wrote between the elements of y"

    def _wrong(self, y: Tensor) -> str | None:
        a, x, scale = self._on_host
        if a.shape[1] == 0:
            return "y is not 0, the sum of nothing" if bool((y != 0).any()) else None
        sums, norms = reference(a.unsqueeze(0), x.unsqueeze(0), None if scale is None else scale.view(1, -1, 1))
        bound = tolerance(sums[0], norms[0], a.shape[1], self._problem.dtype)
        return compare(y, sums[0], bound)[0]


def _values(like: Tensor, generator: Generator) -> Tensor:
    """Random, of the shape and dtype of `like`: normal, of int8 uniform without the sentinel."""
    import torch

    if like.is_floating_point():
        return torch.randn(like.shape, generator=generator).to(like.dtype)
    return torch.randint(-127, 128, like.shape, generator=generator, dtype=like.dtype)


def _scale(problem: Problem, generator: Generator) -> Tensor | None:
    """(m,), positive; None where A has none."""
    import torch

    if problem.dtype not in SCALED:
        return None
    scale = _host((problem.m, 1), (1, 1), 0, activation_dtype(problem.dtype))
    return scale.copy_(torch.rand(scale.shape, generator=generator).add_(1.0).mul_(LARGEST_SCALE / 2)).view(-1)


def _host(shape: tuple[int, int], strides: tuple[int, int], first: int, dtype: str) -> Tensor:
    """A view of memory on the host that is all sentinels and ends with the view's last element."""
    import torch

    kind: torch.dtype = getattr(torch, dtype)
    last = sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
    elements = first + 1 + last if 0 not in shape else first
    sentinel = math.nan if kind.is_floating_point else INT8_SENTINEL
    return torch.full((elements,), sentinel, dtype=kind).as_strided(shape, strides, first)


def _copy(view: Tensor, device: str) -> Tensor:
    """The same view of a copy of its memory, gaps included."""
    return whole(view).to(device, copy=True).as_strided(view.shape, view.stride(), view.storage_offset())
