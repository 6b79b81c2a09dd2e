"""Which problems a kernel is tried on, and how their operands lie: the edges of its declaration, each at least once."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from harness.model import Problem
from kernels.declarations import Declaration
from tests.emulation.placement import Placement

FEW_ROWS = range(1, 10)
ROWS = (*FEW_ROWS, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129)
"""From 1 on: without rows nothing is launched, says csrc/op.h. Blocks have 1, 2, 4 … rows."""
TILES = (256, 512, 1024, 2048, 4096)
"""Columns that a row's threads read at once, or several times that."""
TALL = 300
"""Rows, of several sizes: more than one multiprocessor holds."""
MANY_ROWS = 9001
"""Of a kernel for one K: more than a block has that takes several rows a thread."""
LONG = (5000, 10007)
"""Columns of few rows: enough for every multiprocessor of the emulation to get a part of a row."""
NARROW = (*range(1, 37), 63, 64, 65, 127, 128, 129)
"""Sizes that are tried in every arrangement."""


@dataclass(frozen=True, kw_only=True)
class Arrangement:
    """How operands lie, whatever their sizes are."""

    a: int
    x: int
    y: int
    residue: int | None = None
    """Of A's stride by 4 elements, with 1 to 4 elements of NaN between the rows (columns); None: packed."""
    x_stride: int = 1
    y_stride: int = 1

    def place(self, problem: Problem, *, by_columns: bool) -> Placement:
        """The same for a problem's sizes."""
        run = problem.m if by_columns else problem.k
        gap = 0 if self.residue is None else (self.residue - run) % 4 or 4
        return Placement(
            a=self.a, x=self.x, y=self.y, by_columns=by_columns, gap=gap, x_stride=self.x_stride, y_stride=self.y_stride
        )


PACKED = (
    Arrangement(a=0, x=0, y=1),
    Arrangement(a=1, x=3, y=2),
    Arrangement(a=2, x=2, y=0),
    Arrangement(a=3, x=1, y=3),
)
STRIDED = (
    Arrangement(a=0, x=0, y=0, residue=0),
    Arrangement(a=0, x=0, y=2, residue=1),
    Arrangement(a=0, x=1, y=0, residue=0, y_stride=2),
    Arrangement(a=1, x=0, y=1, residue=3, x_stride=2, y_stride=3),
    Arrangement(a=3, x=0, y=0, residue=0, x_stride=3),
    Arrangement(a=2, x=0, y=1, residue=2, y_stride=2),
    Arrangement(a=0, x=0, y=0, residue=0, x_stride=5),
)
Trial = tuple[Problem, Placement]


def orders(declaration: Declaration) -> list[bool]:
    """By columns or not: what the layout takes."""
    return {"COLUMNS": [True], "ROWS_OR_COLUMNS": [False, True]}.get(declaration.layout, [False])


def arrangements(declaration: Declaration) -> list[Arrangement]:
    """Those that the declaration allows; no operand is ever aligned to more than it."""
    alignment_bytes = declaration.alignment_bytes
    taken = PACKED if declaration.layout == "PACKED" else PACKED + STRIDED
    return [w for w in taken if w.a * 4 % alignment_bytes == w.x * 4 % alignment_bytes == 0]


def columns(declaration: Declaration, sizes: Sequence[int] | None = None) -> list[int]:
    """Those of `sizes` that the rule for K allows; without `sizes` every k up to 130, around tiles and multiples."""
    if sizes is None:
        own = (declaration.k_value * times for times in (*range(1, 10), 15, 16, 17, 32, 33))
        around = (tile + offset for tile in TILES for offset in (-4, -1, 0, 1, 4))
        sizes = sorted({*range(1, 131), *(k for k in own if k <= LONG[-1]), *around, *LONG})
    return [k for k in sizes if declaration.k_problem(k) is None]


def edges(declaration: Declaration) -> Iterator[Trial]:
    """Every k with some m, every m with some k, and many rows, each in some arrangement."""
    for by_columns in orders(declaration):
        few, ks = itertools.cycle(FEW_ROWS), columns(declaration)
        some = itertools.cycle([k for k in ks if k <= max(ks[0], 36)][::5])
        shapes = [(next(few) if k not in LONG else 1 + k % 3, k) for k in ks] + [(m, next(some)) for m in ROWS]
        shapes += [(TALL, k) for k in columns(declaration, NARROW[::6])]
        shapes += [(MANY_ROWS, k) for k in ks if len(ks) == 1]
        where = itertools.cycle(arrangements(declaration))
        for (m, k), arrangement in zip(shapes, where, strict=False):
            problem = Problem(m=m, k=k)
            yield problem, arrangement.place(problem, by_columns=by_columns)


def crossings(declaration: Declaration) -> Iterator[Trial]:
    """Every narrow K (by columns: every narrow M) in every arrangement, each with some of the other size."""
    for by_columns in orders(declaration):
        narrow, some = columns(declaration, NARROW), columns(declaration, (1, 2, 3, 4, 5)) or columns(declaration)[:1]
        few = itertools.cycle(some if by_columns else FEW_ROWS[:5])
        for size, arrangement in itertools.product(NARROW if by_columns else narrow, arrangements(declaration)):
            m, k = (size, next(few)) if by_columns else (next(few), size)
            yield Problem(m=m, k=k), arrangement.place(Problem(m=m, k=k), by_columns=by_columns)


def gated(declaration: Declaration) -> Iterator[Trial]:
    """A few problems for the whole gate: a narrow one, one of several tiles, one with the longest K."""
    ks = columns(declaration)
    some = dict.fromkeys((ks[len(ks) // 9], ks[len(ks) // 2], ks[-1] if ks[-1] not in LONG else LONG[0]))
    for by_columns in orders(declaration):
        for m, k, arrangement in zip((9, 5, 2), some, itertools.cycle(arrangements(declaration)[::-1]), strict=False):
            yield Problem(m=m, k=k), arrangement.place(Problem(m=m, k=k), by_columns=by_columns)
