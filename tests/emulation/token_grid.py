"""Which problems a kernel for tokens is tried on, how their operands lie, and values whose results leave no choice."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from harness.model import Operands
from kernels.declarations import Declaration
from tests.emulation.placement import TokenPlacement

HALF = {"float16": torch.float16, "bfloat16": torch.bfloat16, "int8": torch.float16}
"""Of x and y, by the dtype of A."""
ITEMS = {"float16": 8, "bfloat16": 8, "int8": 16}
"""Elements of A in 16 bytes."""
ROWS = (*range(1, 10), 15, 16, 17, 24, 31, 32, 33, 63, 64, 65, 129)
"""Blocks have 1, 2, 4 or 16 rows; 8 or 16 rows apart are the two, or four, of a thread."""
AROUND = (256, 512, 1024, 2048, 4096)
"""Columns that a row's threads read at once, or several times that."""
LONG = (5000, 10007)
"""Columns of few rows."""
BLOCKS = (9, 16, 17, 32, 33)
"""Rows of whole tiles and of begun ones, ..."""
ROUNDS = (300, 2053, 4099, 5000)
"""... by vectors, over columns that a ring of loads goes round for, with a tail."""


@dataclass(frozen=True, kw_only=True)
class Arrangement:
    """How operands lie, whatever their sizes are."""

    a: int = 0
    x: int = 0
    y: int = 1
    residue: int | None = None
    """Of A's row stride by the elements of 16 bytes, with at least one element between rows; None: packed."""
    x_gap: int = 0
    """0: packed; 8: as far from a token's end to the next one's start as makes the stride a multiple of 8, or more."""
    y_gap: int = 0

    def place(self, m: int, k: int, n: int, items: int) -> TokenPlacement:
        """The same for a problem's sizes: without meaning, a gap is none."""
        a_gap = 0 if self.residue is None else (self.residue - k) % items or items
        x_gap = -k % 8 + 8 if self.x_gap == 8 else self.x_gap
        return TokenPlacement(
            a=self.a, x=self.x, y=self.y, a_gap=a_gap if m > 1 else 0, x_gap=x_gap if n > 1 else 0,
            y_gap=self.y_gap if n > 1 else 0,
        )  # fmt: skip


ARRANGEMENTS = (
    Arrangement(),
    Arrangement(residue=0, x_gap=8, y=0),
    Arrangement(residue=1, y_gap=1),
    Arrangement(a=1, y=3),
    Arrangement(residue=0, x_gap=8, y=2, y_gap=3),
    Arrangement(x=3, residue=0, x_gap=1),
    Arrangement(a=5, x=5, residue=3, x_gap=2, y=0),
    Arrangement(a=7, x=1, residue=0, x_gap=8),
)


@dataclass(frozen=True, kw_only=True)
class Trial:
    """A problem, and where it lies."""

    m: int
    k: int
    n: int
    placement: TokenPlacement


def edges(declaration: Declaration, k_step: int = 1) -> Iterator[Trial]:
    """Every `k_step`th k up to 130 and around tiles, each with some m and n; every m; every n in every arrangement."""
    n_most, items = declaration.most_n, ITEMS[declaration.dtype]
    few, tokens = itertools.cycle(range(1, 10)), itertools.cycle(range(1, n_most + 1))
    around = [tile + offset for tile in AROUND for offset in (-8, -1, 0, 1, 16)]
    shapes = [(next(few), k, next(tokens)) for k in [*range(0, 131, k_step), *around]]
    shapes += [(1 + k % 3, k, next(tokens)) for k in LONG]
    shapes += [(m, k, next(tokens)) for m, k in zip(ROWS, itertools.cycle((3, 16, 33, 64, 8)), strict=False)]
    for (m, k), n in zip(itertools.product(BLOCKS, ROUNDS), tokens, strict=False):
        yield Trial(m=m, k=k, n=n, placement=ARRANGEMENTS[1].place(m, k, n, items))
    where = itertools.cycle(ARRANGEMENTS)
    for (m, k, n), arrangement in zip(shapes, where, strict=False):
        yield Trial(m=m, k=k, n=n, placement=arrangement.place(m, k, n, items))
    for n, arrangement in itertools.product(range(1, n_most + 1), ARRANGEMENTS):
        m, k = 3 + 2 * n, 64 + 8 * (n % 2) + n // 5
        yield Trial(m=m, k=k, n=n, placement=arrangement.place(m, k, n, items))


@dataclass(frozen=True, kw_only=True)
class Values:
    """Operands that are not placed yet, y of NaN, and what y must become."""

    operands: Operands
    zero: Tensor | None
    wanted: Tensor
    """(m, n), rounded once to y's dtype."""


def integers(declaration: Declaration, m: int, k: int, n: int, *, zero: bool = False) -> Values:
    """Whole numbers, none of them 0; scales are powers of two, so that every order of summation is exact in float32."""
    generator = torch.Generator().manual_seed(m * 1_000_003 + k * 101 + n)

    def draw(largest: int, *shape: int) -> Tensor:
        sizes = torch.randint(1, largest + 1, shape, generator=generator)
        return sizes * (torch.randint(2, shape, generator=generator) * 2 - 1)

    if declaration.dtype != "int8":
        return values(declaration, draw(3, m, k).double(), draw(3, k, n).double())
    a = torch.randint(-128, 128, (m, k), generator=generator)
    points = torch.randint(-128, 128, (m,), generator=generator) if zero else None
    scale = 0.5 ** torch.randint(0, 9, (m,), generator=generator)
    return values(declaration, a.double(), draw(3, k, n).double(), scale, points)


def values(
    declaration: Declaration, a: Tensor, x: Tensor, scale: Tensor | None = None, zero: Tensor | None = None
) -> Values:
    """Of numbers in float64 that the dtypes hold; y by float64 arithmetic, rounded to float32 and then to its dtype."""
    half = HALF[declaration.dtype]
    of_a = torch.int8 if declaration.dtype == "int8" else half
    shifted = a if zero is None else a - zero.double().view(-1, 1)
    sums = (shifted.unsqueeze(2) * x).sum(1)
    if declaration.dtype == "int8" and scale is None:
        scale = torch.ones(a.shape[0])
    wanted = sums if scale is None else sums * scale.view(-1, 1).double()
    operands = Operands(
        a=a.to(of_a),
        x=x.t().contiguous().to(half).t(),
        y=torch.full((x.shape[1], a.shape[0]), torch.nan, dtype=half).t(),
        scale=None if scale is None else scale.to(torch.float16),
    )
    points = None if zero is None else zero.to(torch.int8)
    return Values(operands=operands, zero=points, wanted=wanted.float().to(half))


def specials(declaration: Declaration, k: int, n: int) -> Iterator[Values]:
    """NaN, infinities and the smallest numbers at both ends and in the middle of `k` >= 1 columns."""
    tried = sorted({j for j in (0, 1, 7, 8, k // 2, k - 9, k - 2, k - 1) if 0 <= j < k})
    ones = torch.ones(len(tried), k, dtype=torch.float64)
    x = torch.tensor([-1.0, 1.0, 1.0], dtype=torch.float64).repeat(k * n)[: k * n].view(n, k).t()
    for special in (torch.nan, torch.inf, -torch.inf):
        for column, token in zip(tried, itertools.cycle(range(n))):
            of_x = x.clone()
            of_x[column, token] = special
            a = torch.tensor([2.0, -2.0, 0.0, 1.0], dtype=torch.float64).view(-1, 1).expand(4, k)
            yield values(declaration, a, of_x)
        if declaration.dtype != "int8":
            a = ones.clone()
            a[range(len(tried)), tried] = special
            yield values(declaration, a, x)
            yield values(declaration, a, torch.zeros_like(x))
    if declaration.dtype == "float16":  # multiples of the smallest float16 above zero
        a = torch.zeros_like(ones)
        a[range(len(tried)), tried] = 2.0**-24
        yield values(declaration, a, 3.0 * x)
        yield values(declaration, ones, 2.0**-24 * x)


def same(found: Tensor, wanted: Tensor) -> str | None:
    """The first element of (m, n) that is not as wanted; any NaN is one."""
    right = (found == wanted) | (found.isnan() & wanted.isnan())
    if bool(right.all()):
        return None
    row, token = (~right).nonzero()[0].tolist()
    wrong = int((~right).sum())
    return (
        f"{wrong} of {wanted.numel()} wrong, first row {row} of token {token}: found {found[row, token].item()!r}, "
        f"wanted {wanted[row, token].item()!r}"
    )
