"""Operands with infinities, NaN and subnormals, and the results that IEEE 754 leaves no choice about."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

INFINITY = math.inf
LEAST = 2.0**-149
"""The smallest float32 above zero; all products and sums below are small multiples of it, hence exact in any order."""


class Special(NamedTuple):
    """One problem, float32."""

    name: str
    a: Tensor
    """(m, k)"""
    x: Tensor
    """(k, 1)"""
    wanted: Tensor
    """(m, 1)"""


def specials(k: int) -> Iterator[Special]:
    """Problems with `k` >= 1 columns, each special value in columns at both ends and in the middle."""
    tried = sorted({j for j in (*range(9), k // 2, k // 2 + 1, *range(k - 9, k)) if 0 <= j < k})
    yield _in_a(k, tried)
    yield _infinity_times_zero(k, tried)
    for column in (tried[0], tried[len(tried) // 2], tried[-1]):
        for value in (math.nan, INFINITY, -INFINITY):
            yield _in_x(k, column, value)
    yield _subnormal_a(k, tried)
    yield _subnormal_product(k, tried)
    yield _subnormal_x(k)


def faults(special: Special, y: Tensor) -> str | None:
    """The first row of `y` (m, 1) that is not as wanted."""
    y = y.cpu()
    right = (y == special.wanted) | (y.isnan() & special.wanted.isnan())
    if bool(right.all()):
        return None
    row = int((~right).view(-1).nonzero()[0])
    return f"{special.name}, y[{row}]: found {y[row].item()!r}, wanted {special.wanted[row].item()!r}"


def _signs(k: int) -> Tensor:
    """Every third one negative: 1, -1, 1, 1, -1, 1 and so on."""
    return torch.tensor([-1.0 if j % 3 == 1 else 1.0 for j in range(k)]).view(k, 1)


def _in_a(k: int, tried: list[int]) -> Special:
    """One NaN or infinity in a row of ones; two infinities in a row; none."""
    x = _signs(k)
    rows, wanted = [torch.ones(k)], [x.sum().item()]
    for column in tried:
        sign = x[column].item()
        for value in (math.nan, INFINITY, -INFINITY):
            rows.append(torch.ones(k).index_fill_(0, torch.tensor(column), value))
            wanted.append(value * sign)
    for first, second in itertools.pairwise(tried):
        for meet in (1.0, -1.0):  # the two products are infinities of the same sign, or of both
            row = torch.ones(k)
            row[first], row[second] = INFINITY * x[first].item(), meet * INFINITY * x[second].item()
            rows.append(row)
            wanted.append(INFINITY if meet > 0 else math.nan)
    return Special("NaN and infinity in A", torch.stack(rows), x, torch.tensor(wanted).view(-1, 1))


def _infinity_times_zero(k: int, tried: list[int]) -> Special:
    a = torch.ones(len(tried) + 1, k)
    for row, column in enumerate(tried):
        a[row, column] = INFINITY
    wanted = torch.full((len(tried) + 1, 1), math.nan)
    wanted[-1] = 0.0
    return Special("infinity times zero", a, torch.zeros(k, 1), wanted)


def _in_x(k: int, column: int, value: float) -> Special:
    """Rows that meet it with 2, -2 and 0, of elements 1 else."""
    a = torch.ones(3, k)
    a[:, column] = torch.tensor([2.0, -2.0, 0.0])
    x = _signs(k)
    x[column] = value
    wanted = torch.tensor([[value], [-value], [math.nan]])
    return Special(f"x[{column}] = {value}", a, x, wanted)


def _one_each(k: int, tried: list[int], values: Tensor) -> Tensor:
    """A row for each tried column, zero but there."""
    a = torch.zeros(len(tried), k)
    a[torch.arange(len(tried)), torch.tensor(tried)] = values
    return a


def _subnormal_a(k: int, tried: list[int]) -> Special:
    values = (torch.arange(len(tried)) + 1.0) * LEAST
    signs = _signs(k)
    wanted = values * signs[tried].view(-1)
    return Special("subnormal A", _one_each(k, tried, values), signs, wanted.view(-1, 1))


def _subnormal_product(k: int, tried: list[int]) -> Special:
    """2⁻¹⁰⁰ times an odd multiple of 2⁻⁴⁹."""
    odd = torch.arange(len(tried)) * 2.0 + 1.0
    a = _one_each(k, tried, odd * 2.0**-49)
    return Special("subnormal product", a, torch.full((k, 1), 2.0**-100), (odd * LEAST).view(-1, 1))


def _subnormal_x(k: int) -> Special:
    """Small whole numbers times small multiples of the least."""
    a = torch.stack([(torch.arange(k) * row + row) % 5.0 - 2.0 for row in range(1, 6)])
    multiples = torch.arange(k) % 3.0 + 1.0
    wanted = (a * multiples).sum(1, keepdim=True)  # whole numbers far below 2²⁴
    return Special("subnormal x", a, (multiples * LEAST).view(k, 1), wanted * LEAST)
