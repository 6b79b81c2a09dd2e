"""The operands of a problem on a device: random by its seed, with NaN wherever no kernel has anything to look for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harness.model import Layout, Operands, Problem
from harness.problems.memory import GUARD_ELEMENTS, Lines

if TYPE_CHECKING:
    from torch import Generator, Tensor

PACKED = Layout()
"""Row-major, without gaps, from a boundary on: how x and y lie."""


class Guarded:
    """`count` matrices of one shape in one allocation, each with NaN guards before and behind it and in its gaps.

    A kernel that reads past an operand, or between its lines, gets NaN into its result; one that writes past y leaves
    a hole in a guard. A matrix begins `layout.first_element` elements behind a multiple of GUARD_ELEMENTS, counted from
    where torch puts the allocation: at a multiple of 512 bytes on a GPU, of 64 on a CPU.
    `apart` more elements of NaN, a multiple of GUARD_ELEMENTS, put the matrices further from each other.
    """

    def __init__(  # noqa: PLR0913 - what a matrix is, by name
        self,
        *,
        count: int,
        rows: int,
        columns: int,
        dtype: str,
        device: str,
        layout: Layout = PACKED,
        apart: int = 0,
    ) -> None:
        import torch

        lines = Lines.of(rows, columns, layout)
        first = GUARD_ELEMENTS + layout.first_element
        behind = first + lines.count * lines.stride
        padded = -(-behind // GUARD_ELEMENTS) * GUARD_ELEMENTS + GUARD_ELEMENTS
        padded += apart
        self._flat = torch.empty((count, padded), dtype=getattr(torch, dtype), device=device)
        whole = self._flat[:, first:behind].view(count, lines.count, lines.stride)
        values = whole[:, :, : lines.length]
        self.values = values.transpose(1, 2) if lines.by_columns else values
        """(count, rows, columns), strided as the layout says; packed: entry i is contiguous."""
        self._guards = [self._flat[:, :first], self._flat[:, behind:]]
        if lines.gap_elements:
            self._guards.append(whole[:, :, lines.length :])
        self.poison()

    def poison(self) -> None:
        """Set everything, values and guards, to NaN."""
        self._flat.fill_(float("nan"))

    def randomize(self, generator: Generator) -> None:
        """Set the values to zero-mean normal numbers, which use the whole mantissa, and the guards to NaN."""
        self._flat.normal_(generator=generator)
        for guard in self._guards:
            guard.fill_(float("nan"))

    def intact(self) -> bool:
        """Whether every guard element is still NaN."""
        return all(bool(guard.isnan().all()) for guard in self._guards)

    def checksum(self) -> int:
        """Sum of all bit patterns, guards included: differs after any single write."""
        import torch

        words = self._flat.view(torch.int16 if self._flat.element_size() == 2 else torch.int32)
        return int(words.sum(dtype=torch.int64))


class OperandSets:
    """`count` sets of operands of one problem, random by the problem's seed, on one device."""

    def __init__(self, problem: Problem, device: str, count: int, *, apart: int = 0) -> None:
        """Allocate and fill, with `apart` elements more than guards between two sets. A lies as the problem says.

        Raises:
            ValueError: there is no such layout.
        """
        import torch

        self.problem = problem
        self.count = count
        m, k, n = problem.m, problem.k, problem.n
        common: dict[str, Any] = {"dtype": problem.dtype, "device": device, "apart": apart}
        self.a = Guarded(count=count, rows=m, columns=k, layout=problem.layout, **common)
        self.x = Guarded(count=count, rows=k, columns=n, **common)
        self.y = Guarded(count=count, rows=m, columns=n, **common)
        generator = torch.Generator(device=device).manual_seed(problem.seed)
        self.a.randomize(generator)
        self.x.randomize(generator)
        self._factor = 1.0
        self._checksums = {self._factor: self._sums()}

    def refresh(self) -> float:
        """Write other values into every A and x in place, and NaN into every y.

        The values are the first ones times −2 or 1 in turn, which is exact, so a right result is exactly 4 or 1 times
        the first one.

        Returns:
            What the first result must be multiplied with now.
        """
        step = -2.0 if self._factor == 1.0 else -0.5
        self._factor *= step
        self.a.values.mul_(step)
        self.x.values.mul_(step)
        self.y.poison()
        if self._factor not in self._checksums:
            self._checksums[self._factor] = self._sums()
        return self._factor * self._factor

    def operands(self) -> list[Operands]:
        """One `Operands` a set, all of the same storage that `refresh` writes."""
        rows = zip(self.a.values.unbind(), self.x.values.unbind(), self.y.values.unbind(), strict=True)
        return [Operands(a=a, x=x, y=y) for a, x, y in rows]

    def damage(self) -> str | None:
        """What a launch touched that it must not have: a guard, A or x. None if all is as it was written."""
        return touched(self.a, self.x, self._checksums[self._factor]) if self.y.intact() else "wrote outside y"

    def _sums(self) -> tuple[int, int]:
        return self.a.checksum(), self.x.checksum()


def touched(a: Guarded, x: Guarded, sums: tuple[int, int]) -> str | None:
    """What was changed of A, x and the guards around them since they had the checksums `sums`, or None."""
    for name, guarded in (("A", a), ("x", x)):
        if not guarded.intact():
            return f"wrote outside {name}"
    return None if (a.checksum(), x.checksum()) == sums else "changed A or x"


def whole(view: Tensor) -> Tensor:
    """All elements of the allocation that `view` is a view of, one-dimensional, gaps and guards included."""
    return view.as_strided((view.untyped_storage().nbytes() // view.element_size(),), (1,), 0)
