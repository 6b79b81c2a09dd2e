"""Problems of kernels for tokens drawn at random with every edge of shape and layout, and what is wrong with a launch.

As tests/random_problems.py has them for float32: a problem is drawn by its number alone.

    python -m tests.random_tokens hgemv 1234 [cuda]
"""

from __future__ import annotations

import argparse
import math
import random
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from harness.command_line import Parser
from harness.ending import ended
from harness.errors import CommandError, Exit
from harness.gate import tolerance
from harness.model import Role
from harness.problems import whole
from kernels.declarations import Declaration
from tests.random_problems import GUARD, INF, NAN, SEED, WIDTHS, first_faults

MOST_ELEMENTS = 4_000_000
"""Of A, gaps included."""
LEAST_INT8 = -128
"""What lies between the rows of an int8 A."""

Launch = Callable[[Tensor, "Tensor | None", "Tensor | None", Tensor, Tensor], None]
"""Called with a (m, k), scale (m,) and zero (m,) or None, x (k, n) and y (m, n)."""


@dataclass(frozen=True, kw_only=True)
class Drawn:
    """A problem with the places of its operands; gaps and first elements in elements."""

    number: int
    """By which it is drawn."""
    dtype: str
    """Of A."""
    m: int
    k: int
    n: int
    a_first: int
    a_gap: int
    """Between two rows of A."""
    x_first: int
    x_gap: int
    """Between two tokens."""
    y_first: int
    y_gap: int
    has_zero: bool
    """Whether an int8 A has zero points."""


def draw(number: int, declaration: Declaration, most_elements: int = MOST_ELEMENTS) -> Drawn:
    """The problem of that number for a kernel."""
    dice = random.Random(f"{SEED} tokens {number}")  # noqa: S311 - to be drawn again, not to be unknown
    m, k = _shape(dice)
    a_gap = dice.choice((0, 0, 0, 8, 16, dice.randrange(40)))
    x_gap = dice.choice((0, 0, 8, dice.randrange(20)))
    n = dice.choice((1, 2, 4, 8, dice.randrange(1, 9)))
    if dice.random() < 0.4:  # as most are: all starts on 16 bytes
        k, a_gap, x_gap, starts = k // 16 * 16, a_gap // 16 * 16, x_gap // 8 * 8, (0, 0)
    else:
        starts = (dice.choice((0, dice.randrange(16))), dice.choice((0, dice.randrange(8))))
    while m * (k + a_gap + n) > most_elements:
        m, k = (m // 2, k) if m > k else (m, k // 2 + k % 2)
    return Drawn(
        number=number, dtype=declaration.dtype, m=m, k=k, n=min(n, declaration.most_n), a_first=starts[0], a_gap=a_gap,
        x_first=starts[1], x_gap=x_gap, y_first=dice.randrange(8), y_gap=dice.choice((0, 0, dice.randrange(5))),
        has_zero=declaration.dtype == "int8" and dice.random() < 0.5,
    )  # fmt: skip


def _shape(dice: random.Random) -> tuple[int, int]:
    def around() -> int:
        return dice.choice(WIDTHS) * dice.randrange(1, 4) + dice.randrange(-8, 9)

    def up_to(most: int) -> int:
        return round(math.exp(dice.uniform(0.0, math.log(most))))

    if dice.random() < 0.1:  # few rows, long
        return dice.randrange(1, 10), 4_000 + up_to(296_000)
    m = dice.choice((dice.randrange(10), around(), up_to(100_000)))
    k = dice.choice((dice.randrange(131), dice.randrange(131), around(), up_to(100_000)))
    return m, k


class Placed:
    """Operands on a device, in memory that is NaN (an int8 A: -128) wherever they are not."""

    def __init__(self, drawn: Drawn, device: str) -> None:
        m, k, n = drawn.m, drawn.k, drawn.n
        self.half = torch.bfloat16 if drawn.dtype == "bfloat16" else torch.float16
        self.int8 = drawn.dtype == "int8"
        self.a = _place((m, k), k + drawn.a_gap, drawn.a_first, torch.int8 if self.int8 else self.half, device)
        self.x = _place((n, k), k + drawn.x_gap, drawn.x_first, self.half, device).t()
        self.y = _place((n, m), m + drawn.y_gap, drawn.y_first, self.half, device).t()
        self.scale = torch.ones(m, dtype=torch.float16, device=device) if self.int8 else None
        self.zero = torch.zeros(m, dtype=torch.int8, device=device) if drawn.has_zero else None
        self.dtype = drawn.dtype
        self._numbers = torch.Generator(device=device).manual_seed(drawn.number)

    def normal(self) -> None:
        """Zero-mean values that use the whole mantissa; scales of any mantissa."""
        self.x.copy_(self._normal(self.x))
        if self.scale is None:
            self.a.copy_(self._normal(self.a))
            return
        self._draw_int8()
        self.scale.copy_(self._normal(self.scale).abs() / 64 + 2.0**-10)

    def integers(self) -> None:
        """Of x none is 0, and sums are exact in float32 in every order; scales are powers of two."""
        self.x.copy_(self._signed(self.x, 1 if self.a.shape[1] > 20_000 else 3))
        if self.scale is None:
            self.a.copy_(self._signed(self.a, 3))
            return
        self._draw_int8()
        powers = torch.randint(9, self.scale.shape, generator=self._numbers, device=self.scale.device)
        self.scale.copy_(0.5**powers)

    def special(self) -> None:
        """Integers; one token of three has a NaN or an infinity; where A can, so has one row of three."""
        self.integers()
        self._plant(self.x.t())
        if self.scale is None:
            self._plant(self.a)

    def expected(self) -> tuple[Tensor, Tensor]:
        """Y and its norms in float64, (m, n)."""
        a, x = self.a.double(), self.x.double()
        if self.zero is not None:
            a -= self.zero.double().view(-1, 1)
        sums, norms = a @ x, (a.square() @ x.square()).sqrt()
        if self.scale is None:
            return sums, norms
        scale = self.scale.double().view(-1, 1)
        return sums * scale, norms * scale

    def memory(self) -> tuple[Tensor, ...]:
        """Copies of all of A, x and y as whole numbers, bit by bit."""
        kinds = (torch.int8 if self.int8 else torch.int16, torch.int16, torch.int16)
        return tuple(whole(view).view(kind).clone() for view, kind in zip((self.a, self.x, self.y), kinds, strict=True))

    def _draw_int8(self) -> None:
        for view in (self.a, self.zero):
            if view is not None:
                view.copy_(torch.randint(-128, 128, view.shape, generator=self._numbers, device=view.device))

    def _normal(self, view: Tensor) -> Tensor:
        return torch.randn(view.shape, generator=self._numbers, device=view.device)

    def _signed(self, view: Tensor, largest: int) -> Tensor:
        sizes = torch.randint(1, largest + 1, view.shape, generator=self._numbers, device=view.device)
        return (sizes * (torch.randint(2, view.shape, generator=self._numbers, device=view.device) * 2 - 1)).float()

    def _plant(self, rows: Tensor) -> None:
        chosen = torch.arange(rows.shape[0], device=rows.device)[1::3]
        if rows.numel():
            columns = torch.randint(rows.shape[1], chosen.shape, generator=self._numbers, device=rows.device)
            values = torch.tensor((NAN, INF, -INF), device=rows.device, dtype=rows.dtype)
            rows[chosen, columns] = values[torch.arange(len(chosen), device=rows.device) % 3]


def _place(shape: tuple[int, int], stride: int, first: int, dtype: torch.dtype, device: str) -> Tensor:
    span = 0 if 0 in shape else (shape[0] - 1) * stride + shape[1]
    filling = LEAST_INT8 if dtype is torch.int8 else NAN
    memory = torch.full((GUARD + first + span + GUARD,), filling, dtype=dtype, device=device)
    return memory.as_strided(shape, (stride, 1), GUARD + first)


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
    launch(placed.a, placed.scale, placed.zero, placed.x, y)
    a_after, x_after, first = placed.memory()
    if not (torch.equal(a_before, a_after) and torch.equal(x_before, x_after)):
        return "changed A or x, or what lies around them"
    sums, norms = placed.expected()
    wrong = ~_right(placed, sums, None if exact else tolerance(sums, norms, placed.a.shape[1], placed.dtype))
    if bool(wrong.any()):
        row, token = wrong.nonzero()[0].tolist()
        return (
            f"{int(wrong.sum())} of {y.numel()} wrong, first row {row} of token {token}: found "
            f"{float(y[row, token]):.9g}, wanted {float(sums[row, token]):.9g}"
        )
    y.fill_(1.0)
    launch(placed.a, placed.scale, placed.zero, placed.x, y)
    if not torch.equal(first, placed.memory()[2]):
        return "gave other bits the second time, over another y"
    y.fill_(NAN)
    return None if bool(whole(y).isnan().all()) else "wrote between or around the elements of y"


def _right(placed: Placed, sums: Tensor, bound: Tensor | None) -> Tensor:
    """By element: NaN where NaN is wanted, else equal to the sum rounded as y is, or within the bound."""
    if bound is None:
        wanted = sums.float().to(placed.half)
        return (placed.y == wanted) | (placed.y.isnan() & wanted.isnan())
    return (placed.y.double() - sums).abs() <= bound


def faults(launch: Launch, problems: Iterable[Drawn], device: str, again: str, most: int = 5) -> list[str]:
    """Lines for the first problems that a launch got wrong or raised on; `again` names the kernel."""
    return first_faults(
        problems,
        lambda drawn: fault(launch, drawn, device),
        lambda drawn: f"python -m tests.random_tokens {again} {drawn.number} {device}",
        most,
    )


def launcher(declaration: Declaration) -> Launch:
    """Of a kernel whose library is loaded."""
    op = getattr(torch.ops.sgemv, declaration.name).default

    def launch(a: Tensor, scale: Tensor | None, zero: Tensor | None, x: Tensor, y: Tensor) -> None:
        op(*((a, x, y) if scale is None else (a, scale, zero, x, y)))

    return launch


def main(arguments: Sequence[str] | None = None) -> int:
    """Check one problem; 5: it is wrong."""
    return ended(lambda: _again(_parser().parse_args(arguments)))


def _again(options: argparse.Namespace) -> int:
    from kernels.declarations import declarations
    from kernels.registry import load

    gemv = (each for each in declarations().values() if each.role is Role.GEMV and each.dtype != "float32")
    known = {each.name: each for each in gemv if each.device_type == options.device}
    if options.kernel not in known:
        found = f"found {options.kernel!r}, wanted a kernel for tokens on {options.device}: {', '.join(known)}"
        raise CommandError(f"KERNEL: {found}", Exit.USAGE)
    load(options.device)
    drawn = draw(options.number, known[options.kernel])
    found = faults(launcher(known[options.kernel]), [drawn], options.device, options.kernel)
    sys.stdout.write(f"{found[0] if found else f'{drawn}: right'}\n")
    return Exit.KERNEL if found else Exit.FINE


def _parser() -> Parser:
    parser = Parser(prog="python -m tests.random_tokens", description="Check a random problem once more.")
    parser.add_argument("kernel", metavar="KERNEL", help="one for tokens that csrc declares")
    parser.add_argument("number", metavar="NUMBER", type=int, help="by which the problem is drawn")
    parser.add_argument("device", metavar="DEVICE", nargs="?", choices=("cuda",), default="cuda", help="cuda")
    return parser


if __name__ == "__main__":
    sys.exit(main())
