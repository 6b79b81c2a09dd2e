"""Operands of a problem with the results that they must give: what a kernel is asked to show."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from harness.gate.bounds import reference, tolerance
from harness.model import Operands, Problem
from harness.problems import Guarded, OperandSets, checksums, inputs, new_a, new_activations, new_scale, touched

if TYPE_CHECKING:
    from torch import Tensor

EXACT_LIMIT = 1 << 24
"""Up to here float32 holds every integer."""

LARGEST_INTEGER = {"float32": EXACT_LIMIT, "tf32": 1 << 11}
"""Of an operand, where sums are as exact as y: up to here the dtype holds every integer."""

SMALL_SUM = {"float16": 1 << 11, "int8": 1 << 11, "bfloat16": 1 << 8}
"""Below it y holds every integer, where it is narrower than the sums."""

SMALL = 3
"""Largest integer of the operands whose sums are to be small."""

MEAN_SQUARE = ((1 + 4 + 9) / 3) ** 2
"""Of a product of two of them."""

LARGEST_INT8 = 127
"""float16 and bfloat16 hold it too."""

ONE_OF_INT8 = 3 << 5
"""Stands for 1 in a one-hot row of int8. Its product with a scale and an x, of 11 bits each, is exact in float32, and
that with a scale alone is not in float16; seldom is one subnormal."""

LARGE_SUM = 1 << 15
"""A float16 holds it with room; an accumulator in float16 rounds what is above 2¹¹, one in bfloat16 above 2⁸."""


@dataclass(frozen=True, kw_only=True)
class Probe:
    """Operands with the result that they must give; bound None: equality."""

    _sums: tuple[int, ...] = field(init=False, default=())

    name: str
    a: Guarded
    x: Guarded
    scale: Guarded | None = None
    """Where A is int8."""
    expected: Tensor
    """(m, n)"""
    bound: Tensor | None = None
    """(m, n), largest allowed |y − expected|, float64."""

    def __post_init__(self) -> None:
        """Take the sums that `touched` compares with."""
        object.__setattr__(self, "_sums", checksums(self.inputs()))

    def inputs(self) -> dict[str, Guarded]:
        """What a launch reads, by name."""
        return inputs(self.a, self.x, self.scale)

    def operands(self, y: Tensor) -> Operands:
        """For a launch that writes `y`."""
        scale = None if self.scale is None else self.scale.values[0, :, 0]
        return Operands(a=self.a.values[0], x=self.x.values[0], y=y, scale=scale)

    def touched(self) -> str | None:
        """What a launch changed of the inputs and their guards, or None."""
        return touched(self.inputs(), self._sums)


def largest_k(dtype: str) -> int:
    """Up to here the sums of the integers are exact in float32, whatever their order."""
    return EXACT_LIMIT // SMALL**2 if dtype in SMALL_SUM else EXACT_LIMIT


class Probes:
    """The probes of one problem on one device, each made when it is asked for."""

    def __init__(self, problem: Problem, device: str) -> None:
        import torch

        self._problem = problem
        self._device = device
        self._values = OperandSets(problem, device, 1)
        self._generator = torch.Generator(device=device).manual_seed(problem.seed)

    def __iter__(self) -> Iterator[Probe]:
        """Every one; the last is the random one."""
        if self._problem.dtype in SMALL_SUM:
            yield self._small_sums()
            yield self._large_sums()
        else:
            yield self._exact_sums()
        yield from self._one_hot_x()
        yield self._one_hot_rows()
        yield self.random

    def _exact_sums(self) -> Probe:
        """Non-zero integers with Σ|a·x| ≤ 2²⁴ in every row, and row 0 of one sign and above 2²³ for one token.

        Of tf32, whose integers end at 2¹¹, above 2²³ from a k of some columns on.
        """
        k, most = self._problem.k, LARGEST_INTEGER[self._problem.dtype]
        largest = min(most, max(1, math.isqrt(EXACT_LIMIT // k)))
        a, x = self._a(), self._x()
        for guarded, normal in ((a, self._values.a), (x, self._values.x)):
            size = guarded.values.copy_(normal.values).abs_()
            size.mul_(largest / 2).floor_().add_(1).clamp_(max=largest).copysign_(normal.values)
        totals = x.values[0].abs().sum(0)
        column = x.values[0, :, int(totals.argmax())]
        a.values[0, 0] = column.sign() * min(most, EXACT_LIMIT // int(totals.max()))
        return self._integers("integers", a, x)

    def _small_sums(self) -> Probe:
        """Integers from 1 to 3 of either sign, with sums that y holds exactly, so that none of them can be missing.

        Σ|a·x| grows with k; the sums do not: column j + k/2 of A and x is column j of A, and of x negated, so that the
        products cancel, but for some elements of A of either half, which are negated at random. There are so few of
        them in a row that a sum is eight standard deviations from `SMALL_SUM`. Any product that is left out or taken
        twice then changes a sum, which was exact.
        """
        half = self._problem.k // 2
        a, x = self._a(), self._x()
        for guarded in (a, x):
            self._draw(guarded, SMALL)
            self._negate_some(guarded.values, 0.5)
        if half:
            left = slice(half)
            right = slice(half, 2 * half)
            a.values[:, :, right] = a.values[:, :, left]
            x.values[:, right] = -x.values[:, left]
            uncancelled = (SMALL_SUM[self._problem.dtype] / 8) ** 2 / (4 * MEAN_SQUARE)
            self._negate_some(a.values[:, :, right], min(0.5, uncancelled / half))
        return self._integers("integers", a, x)

    def _large_sums(self) -> Probe:
        """Positive integers with sums between about 2¹³ and 2¹⁵, of no pattern: what a narrow accumulator rounds.

        Where k is so large that not even ones and twos are small enough, elements of A are 0 at random.
        """
        k = self._problem.k
        a, x = self._a(), self._x()
        largest = min(max(2, math.isqrt(LARGE_SUM // k)), LARGEST_INT8)
        for guarded in (a, x):
            self._draw(guarded, largest)
        zeros = 1.0 - 0.75 * LARGE_SUM / (k * ((1 + largest) / 2) ** 2)
        if zeros > 0.0:
            a.values.masked_fill_(self._uniform(a.values) < zeros, 0)
        return self._integers("large integers", a, x)

    def _one_hot_x(self) -> Iterator[Probe]:
        """Every token picks a column of A: the first of them the first, the middle and the last one of all."""
        import torch

        k, n = self._problem.k, self._problem.n
        a, scale = self._values.a, self._values.scale
        tokens = torch.arange(n, device=self._device)
        for column in sorted({0, k // 2, k - 1}):
            picks = (tokens + column) % k
            one = self._x()
            one.values.zero_()
            one.values[0, picks, tokens] = 1.0
            expected = self._scaled(a.values[0][:, picks], scale)
            yield Probe(name=f"one-hot x at {column}", a=a, x=one, scale=scale, expected=expected)

    def _one_hot_rows(self) -> Probe:
        """Every row of A picks an element of each token."""
        import torch

        m, k = self._problem.m, self._problem.k
        x, scale = self._values.x, self._values.scale
        picks = torch.randint(k, (m,), device=self._device, generator=self._generator)
        picks[0], picks[-1] = 0, k - 1
        one = 1 if scale is None else ONE_OF_INT8
        rows = self._a()
        rows.values.zero_()
        rows.values[0].scatter_(1, picks.unsqueeze(1), one)
        expected = self._scaled(x.values[0][picks], scale, times=one)
        return Probe(name="one-hot rows of A", a=rows, x=x, scale=scale, expected=expected)

    @cached_property
    def random(self) -> Probe:
        """The one of random values, full mantissa, and a sum in float64."""
        values, k, dtype = self._values, self._problem.k, self._problem.dtype
        scale = None if values.scale is None else values.scale.values
        sums, norms = reference(values.a.values, values.x.values, scale)
        bound = tolerance(sums[0], norms[0], k, dtype)
        return Probe(name="random", a=values.a, x=values.x, scale=values.scale, expected=sums[0], bound=bound)

    def _integers(self, name: str, a: Guarded, x: Guarded) -> Probe:
        """The probe of exact sums, each rounded once to y's dtype."""
        scale = self._powers_of_two()
        sums, _ = reference(a.values, x.values, None if scale is None else scale.values)
        return Probe(name=name, a=a, x=x, scale=scale, expected=sums[0].to(x.values.dtype))

    def _powers_of_two(self) -> Guarded | None:
        """Scales of 1/8, 1/4 and 1/2 at random, which change no bit of a sum; none where A has no scales."""
        scale = new_scale(self._problem, self._device)
        if scale is None:
            return None
        scale.values.copy_(2.0 ** -(self._uniform(scale.values) * 3).floor_().add_(1))
        return scale

    def _scaled(self, values: Tensor, scale: Guarded | None, times: int = 1) -> Tensor:
        """Each `times` the row's scale, where there is one: exact in float32, then rounded once."""
        if scale is None:
            return values.clone()
        return (values.float() * times * scale.values[0].float()).to(scale.values.dtype)

    def _negate_some(self, values: Tensor, share: float) -> None:
        import torch

        values.copy_(torch.where(self._uniform(values) < share, -values, values))

    def _draw(self, guarded: Guarded, largest: int) -> None:
        """Integers from 1 to `largest`, at random."""
        guarded.values.copy_(self._uniform(guarded.values).mul_(largest).floor_().add_(1).clamp_(max=largest))

    def _uniform(self, like: Tensor) -> Tensor:
        """From 0 to 1, float32, of the shape of `like`."""
        import torch

        return torch.rand(like.shape, generator=self._generator, device=self._device)

    def _a(self) -> Guarded:
        return new_a(self._problem, self._device)

    def _x(self) -> Guarded:
        return new_activations(self._problem, self._device, self._problem.k)
