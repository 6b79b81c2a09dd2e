"""GEMV problems drawn at random with every edge of shape and layout, and what is wrong with a launch on one of them.

A problem is drawn by its number alone, so that a failure can be had again:

    python -m tests.random_problems sgemv 1234 [cuda]

Works on any device, so that the drawing and the checks themselves are tested on a CPU.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from harness.command_line import Parser
from harness.ending import ended
from harness.errors import CommandError, Exit
from harness.gate import EXACT_LIMIT, error_bound
from harness.model import Layout, Operands, Problem, Role
from harness.problems import whole
from kernels.declarations import Declaration

SEED = 20260
MOST_ELEMENTS = 4_000_000
"""Of A, gaps included."""
GUARD = 64
"""NaN elements before and behind every operand."""
WIDTHS = (32, 64, 128, 256, 512, 1024, 2048, 4096, 8192)
"""Rows of blocks, and columns that a row's threads read at once."""
SMALLEST = 2.0**-149
"""Of the subnormal numbers of float32; a small whole number times it is exact."""
NAN, INF, HUGE = math.nan, math.inf, 3e38
"""Twice HUGE is more than float32 holds."""

Launch = Callable[[Tensor, Tensor, Tensor], None]
"""Called with a (m, k), x (k, 1) and y (m, 1)."""


@dataclass(frozen=True, kw_only=True)
class Drawn:
    """A problem with the places of all three operands; strides and first elements in elements."""

    number: int
    """By which it is drawn."""
    m: int
    k: int
    by_columns: bool
    gap: int
    """Between two rows of A, or two columns."""
    a_first: int
    x_stride: int
    x_first: int
    y_stride: int
    y_first: int

    @property
    def problem(self) -> Problem:
        """As the harness knows it; of x and y it says nothing."""
        length = self.m if self.by_columns else self.k
        layout = Layout(
            order="col" if self.by_columns else "row",
            row_stride=length + self.gap if self.gap else None,
            first_element=self.a_first,
        )
        return Problem(m=self.m, k=self.k, layout=layout)


def draw(number: int, most_elements: int = MOST_ELEMENTS) -> Drawn:
    """The problem of that number."""
    dice = random.Random(f"{SEED} {number}")  # noqa: S311 - to be drawn again, not to be unknown
    m, k = _shape(dice)
    gap = dice.choice((0, 0, 0, 1, 2, 3, 4, 5, 8, dice.randrange(64)))
    m, k = _within(m, k, gap, most_elements)
    return Drawn(
        number=number,
        m=m,
        k=k,
        by_columns=dice.random() < 0.35,
        gap=gap,
        a_first=dice.choice((0, 0, 0, 4, dice.randrange(8))),
        x_stride=dice.choice((1, 1, 1, 0, 2, 3, 5)),
        x_first=dice.choice((0, 0, 0, 4, dice.randrange(8))),
        y_stride=dice.choice((1, 1, 1, 2, 3)),
        y_first=dice.choice((0, 0, dice.randrange(8))),
    )


def _shape(dice: random.Random) -> tuple[int, int]:
    def around() -> int:
        return dice.choice(WIDTHS) * dice.randrange(1, 4) + dice.randrange(-4, 5)

    def up_to(most: int) -> int:
        return round(math.exp(dice.uniform(0.0, math.log(most))))

    if dice.random() < 0.1:  # few rows, long
        return dice.randrange(1, 10), 4_000 + up_to(296_000)
    m = dice.choice((dice.randrange(10), around(), up_to(200_000)))
    k = dice.choice((dice.randrange(131), dice.randrange(131), around(), up_to(100_000)))
    return m, k


def _within(m: int, k: int, gap: int, most: int) -> tuple[int, int]:
    """The longer of the two shortened until A fits, rows and columns taken with their gaps."""
    while (m + gap) * (k + gap) > most:
        m, k = (m // 2, k) if m > k else (m, k // 2 + k % 2)  # odd stays odd for some
    return m, k


def fitted(drawn: Drawn, declaration: Declaration) -> Drawn:
    """The same, changed as little as the contract of a kernel asks for."""
    value = declaration.k_value
    k = {
        "K_ANY": drawn.k,
        "K_MULTIPLE_OF": -(-drawn.k // value) * value,
        "K_EQUAL_TO": value,
        "K_AT_MOST": drawn.k if drawn.k <= value else drawn.k % (value + 1),
    }[declaration.k_rule]
    aligned = declaration.alignment_bytes // 4
    by_columns = {"COLUMNS": True, "ROWS_OR_COLUMNS": drawn.by_columns}.get(declaration.layout, False)
    changed = replace(
        drawn,
        k=k,
        by_columns=by_columns,
        a_first=drawn.a_first // aligned * aligned,
        x_first=drawn.x_first // aligned * aligned,
    )
    return replace(changed, gap=0, x_stride=1, y_stride=1) if declaration.layout == "PACKED" else changed


class Placed:
    """A, x and y of a problem on a device, in memory that is NaN wherever they are not."""

    def __init__(self, drawn: Drawn, device: str) -> None:
        m, k = drawn.m, drawn.k
        strides = (1, m + drawn.gap) if drawn.by_columns else (k + drawn.gap, 1)
        self.a = _place((m, k), strides, drawn.a_first, device)
        self.x = _place((k, 1), (drawn.x_stride, 1), drawn.x_first, device)
        self.y = _place((m, 1), (drawn.y_stride, 1), drawn.y_first, device)
        self._numbers = torch.Generator(device=device).manual_seed(drawn.number)

    def normal(self) -> None:
        """Zero-mean values that use the whole mantissa."""
        for view in self._written():
            view.copy_(torch.randn(view.shape, generator=self._numbers, device=view.device))

    def integers(self) -> None:
        """None is 0, and Σ|a·x| ≤ 2²⁴ in every row: every order of summation is exact."""
        largest = max(1, math.isqrt(EXACT_LIMIT // max(1, self.a.shape[1])))
        for view in self._written():
            sizes = torch.randint(1, largest + 1, view.shape, generator=self._numbers, device=view.device)
            signs = torch.randint(2, view.shape, generator=self._numbers, device=view.device) * 2 - 1
            view.copy_((sizes * signs).float())

    def special(self) -> None:
        """Integers; of four rows one is of subnormal numbers, one has one value beyond them, one has two infinities."""
        self.integers()
        m, k = self.a.shape
        self.a[1::4] = (self.a[1::4].double() * SMALLEST).float()
        rows = torch.arange(m, device=self.a.device)
        for offset, values in ((2, (NAN, INF, -INF, HUGE)), (3, (INF, -INF, INF)), (3, (INF, INF, -INF))):
            chosen = rows[offset::4]
            if k:
                columns = torch.randint(k, chosen.shape, generator=self._numbers, device=self.a.device)
                found = torch.tensor(values, device=rows.device)[rows[: len(chosen)] % len(values)]
                self.a[chosen, columns] = found

    def expected(self) -> tuple[Tensor, Tensor]:
        """A·x and ‖A_i∘x‖₂ by row in float64, (m, 1)."""
        products = self.a.double() * self.x.double().T
        return products.sum(1, keepdim=True), products.square().sum(1, keepdim=True).sqrt()

    def memory(self) -> tuple[Tensor, ...]:
        """Copies of all of it as whole numbers, bit by bit."""
        return tuple(whole(view).view(torch.int32).clone() for view in (self.a, self.x, self.y))

    def _written(self) -> tuple[Tensor, Tensor]:
        return self.a, self.x if self.x.stride(0) else self.x[:1]


def _place(shape: tuple[int, int], strides: tuple[int, int], first: int, device: str) -> Tensor:
    span = 0 if 0 in shape else 1 + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
    memory = torch.full((GUARD + first + span + GUARD,), NAN, device=device)
    return memory.as_strided(shape, strides, GUARD + first)


def fault(launch: Launch, drawn: Drawn, device: str) -> str | None:
    """What is wrong with two launches each on normal, whole and special values, or None."""
    placed = Placed(drawn, device)
    for values in (placed.normal, placed.integers, placed.special):
        values()
        found = _fault(launch, placed, exact=values != placed.normal)
        if found is not None:
            return f"{values.__name__}: {found}"
    return None


def _fault(launch: Launch, placed: Placed, *, exact: bool) -> str | None:
    y = placed.y
    whole(y).fill_(NAN)
    a_before, x_before, _ = placed.memory()
    launch(placed.a, placed.x, y)
    a_after, x_after, first = placed.memory()
    if not (torch.equal(a_before, a_after) and torch.equal(x_before, x_after)):
        return "changed A or x, or what lies around them"
    sums, norms = placed.expected()
    wrong = ~_right(y, sums.float() if exact else sums, None if exact else error_bound(norms, placed.a.shape[1]))
    if bool(wrong.any()):
        row = int(wrong.view(-1).nonzero()[0])
        wanted = float(sums[row])
        return (
            f"{int(wrong.sum())} of {y.numel()} wrong, first y[{row}]: found {float(y[row]):.9g}, wanted {wanted:.9g}"
        )
    y.fill_(1e30)
    launch(placed.a, placed.x, y)
    if not torch.equal(first, placed.memory()[2]):
        return "gave other bits the second time, over another y"
    y.fill_(NAN)
    return None if bool(whole(y).isnan().all()) else "wrote between or around the elements of y"


def _right(y: Tensor, wanted: Tensor, bound: Tensor | None) -> Tensor:
    """By row (m, 1): NaN where NaN is wanted, else equal, or within the bound."""
    if bound is None:
        return (y == wanted) | (y.isnan() & wanted.isnan())
    return (y.double() - wanted).abs() <= bound


def faults(launch: Launch, problems: Iterable[Drawn], device: str, again: str, most: int = 5) -> list[str]:
    """Lines for the first problems that a launch got wrong or raised on; `again` names the kernel."""
    return first_faults(
        problems,
        lambda drawn: fault(launch, drawn, device),
        lambda drawn: f"python -m tests.random_problems {again} {drawn.number} {device}",
        most,
    )


def first_faults(
    problems: Iterable[Any], judge: Callable[[Any], str | None], again: Callable[[Any], str], most: int
) -> list[str]:
    """Lines for the first problems of which `judge` says what is wrong, or raises it."""
    found = []
    for drawn in problems:
        try:
            what = judge(drawn)
        except RuntimeError as error:
            what = str(error)
        if what is not None:
            found.append(f"{drawn}: {what}; again: {again(drawn)}")
        if len(found) == most:
            break
    return found


def launcher(name: str) -> Launch:
    """Of a kernel of the registry, which must be loaded."""
    from kernels.registry import kernels

    kernel = kernels()[name]
    return lambda a, x, y: kernel.bind(Operands(a=a, x=x, y=y))()


def main(arguments: Sequence[str] | None = None) -> int:
    """Check one problem, fitted to the kernel's contract; 5: it is wrong."""
    return ended(lambda: _again(_parser().parse_args(arguments)))


def _again(options: argparse.Namespace) -> int:
    from kernels.declarations import declarations
    from kernels.registry import load

    gemv = (each for each in declarations().values() if each.role is Role.GEMV and each.dtype == "float32")
    known = {each.name: each for each in gemv if each.device_type == options.device}
    if options.kernel not in known:
        found = f"found {options.kernel!r}, wanted a kernel for {options.device}: {', '.join(known)}"
        raise CommandError(f"KERNEL: {found}", Exit.USAGE)
    load(options.device)
    drawn = fitted(draw(options.number), known[options.kernel])
    found = faults(launcher(options.kernel), iter([drawn]), options.device, options.kernel)
    sys.stdout.write(f"{found[0] if found else f'{drawn}: right'}\n")
    return Exit.KERNEL if found else Exit.FINE


def _parser() -> Parser:
    parser = Parser(prog="python -m tests.random_problems", description="Check a random problem once more.")
    parser.add_argument("kernel", metavar="KERNEL", help="one that csrc declares")
    parser.add_argument("number", metavar="NUMBER", type=int, help="by which the problem is drawn")
    parser.add_argument("device", metavar="DEVICE", nargs="?", choices=("cuda", "cpu"), default="cuda", help="or cpu")
    return parser


if __name__ == "__main__":
    sys.exit(main())
