"""Operands for a sanitizer: nothing lies behind an operand's last element, and only the host has written them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from harness.gate import compare, error_bound, reference
from harness.model import Layout, Operands, Problem
from harness.problems import shape_text, whole
from harness.problems.memory import Lines

if TYPE_CHECKING:
    from torch import Tensor

SHAPES = (
    (1, 1), (2, 7), (3, 16), (9, 31), (5, 32), (33, 33), (4, 0), (7, 128), (130, 16), (17, 130), (2, 4099), (3, 16384),
    (300, 5),
)  # fmt: skip
"""M and K around widths of vectors, warps and blocks; few, since a sanitizer slows a launch down a hundred times."""


@dataclass(frozen=True, kw_only=True)
class Views:
    """A problem, and how x and y lie."""

    problem: Problem
    """What is computed, with A's layout."""
    x_stride: int = 1
    """Elements from one of x to the next; 0: all are one."""
    y_stride: int = 1
    """Elements from one of y to the next."""

    def __str__(self) -> str:
        """For people."""
        strides = {"x_stride": self.x_stride, "y_stride": self.y_stride}
        return ":".join([shape_text(self.problem), *(f"{name}={n}" for name, n in strides.items() if n != 1)])


def small_views(unsupported: Callable[[Problem], str | None]) -> Iterator[Views]:
    """Every shape that a kernel can compute, in its first layout and two others in turn."""
    for number, (m, k) in enumerate(SHAPES):
        taken = [views for views in _laid_out(m, k) if _takes(unsupported, views)]
        if taken:
            yield from dict.fromkeys((taken[0], taken[number % len(taken)], taken[(number + 4) % len(taken)]))


def _laid_out(m: int, k: int) -> Iterator[Views]:
    """Packed, from elsewhere too, with gaps that keep 16 bytes' alignment and that do not; by rows and by columns."""
    for order, length in (("row", k), ("col", m)):
        aligned = -(-length // 4) * 4 + 4
        layouts = (
            (Layout(order=order), 1, 1),
            (Layout(order=order, row_stride=length + 3, first_element=1), 3, 2),
            (Layout(order=order, first_element=3), 1, 1),
            (Layout(order=order, row_stride=aligned), 1, 1),
            (Layout(order=order, row_stride=aligned), 0, 1),
        )
        for layout, x_stride, y_stride in layouts:
            yield Views(problem=Problem(m=m, k=k, layout=layout), x_stride=x_stride, y_stride=y_stride)


def _takes(unsupported: Callable[[Problem], str | None], views: Views) -> bool:
    """Whether a kernel does: x and y may have gaps where A may."""
    problem = views.problem
    with_gaps = replace(problem, layout=Layout(order=problem.layout.order, row_stride=problem.m + problem.k))
    packed = views.x_stride == views.y_stride == 1
    return unsupported(problem) is None and (packed or unsupported(with_gaps) is None)


class Tight:
    """Operands on a device, each in an allocation of its own that ends with its last element; NaN in every gap.

    All is written on the host and copied, so that on the device no kernel runs but the one in question.
    """

    def __init__(self, views: Views, device: str) -> None:
        import torch

        problem = views.problem
        generator = torch.Generator().manual_seed(problem.seed)
        lines = Lines.of(problem.m, problem.k, problem.layout)
        strides = (1, lines.stride) if lines.by_columns else (lines.stride, 1)
        a = _host((problem.m, problem.k), strides, problem.layout.first_element)
        x = _host((problem.k, 1), (views.x_stride, 1), problem.layout.first_element)
        y = _host((problem.m, 1), (views.y_stride, 1), 0)
        for view in (a, x if views.x_stride else x[:1]):
            view.copy_(torch.randn(view.shape, generator=generator))
        self._on_host = a, x
        self.operands = Operands(a=_copy(a, device), x=_copy(x, device), y=_copy(y, device))

    def fault(self) -> str | None:
        """What is wrong with y and its gaps after a launch that should have written A·x into it; or None."""
        y = _copy(self.operands.y, "cpu")
        fault = self._wrong(y)
        y.fill_(float("nan"))
        return fault if fault is not None or bool(whole(y).isnan().all()) else "wrote between the elements of y"

    def _wrong(self, y: Tensor) -> str | None:
        a, x = self._on_host
        if a.shape[1] == 0:
            return "y is not 0, the sum of nothing" if bool((y != 0).any()) else None
        sums, norms = reference(a.unsqueeze(0), x.unsqueeze(0))
        return compare(y, sums[0], error_bound(norms[0], a.shape[1]))[0]


def _host(shape: tuple[int, int], strides: tuple[int, int], first: int) -> Tensor:
    """A view of memory on the host that is NaN and ends with the view's last element."""
    import torch

    last = sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
    elements = first + 1 + last if 0 not in shape else first
    return torch.full((elements,), float("nan")).as_strided(shape, strides, first)


def _copy(view: Tensor, device: str) -> Tensor:
    """The same view of a copy of its memory, gaps included."""
    return whole(view).to(device, copy=True).as_strided(view.shape, view.stride(), view.storage_offset())
