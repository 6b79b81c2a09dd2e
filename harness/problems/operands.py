"""The operands of a problem on a device: random by its seed, with sentinels where no kernel has anything to look for.

The sentinel is NaN, and in int8, which has none, −128, which no value of A is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from harness.dtypes import SCALED, activation_dtype, weight_dtype
from harness.model import Layout, Operands, Problem
from harness.problems.memory import GUARD_BYTES, Lines

if TYPE_CHECKING:
    from torch import Generator, Tensor

PACKED = Layout()
"""Row-major, without gaps, from a boundary on."""

TOKENS = Layout(order="col")
"""One column after the other: how x and y lie where they have several."""

INT8_SENTINEL = -128
"""Values are from −127 on."""

LEAST_SCALE_EXPONENT = -14
"""Of a float16 that keeps all its bits."""


class Guarded:
    """`count` matrices of one shape in one allocation, each with sentinels before and behind it and in its gaps.

    A kernel that reads past an operand, or between its lines, gets NaN into its result; one that writes past y leaves
    a hole in a guard. A matrix begins `layout.first_element` elements behind a multiple of GUARD_BYTES, counted from
    where torch puts the allocation: at a multiple of 512 bytes on a GPU, of 64 on a CPU.
    `apart_bytes` more of sentinels, a multiple of GUARD_BYTES, put the matrices further from each other.
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
        apart_bytes: int = 0,
    ) -> None:
        """Allocate, sentinels everywhere; `dtype` as torch names it, float or int8."""
        import torch

        lines = Lines.of(rows, columns, layout)
        kind: torch.dtype = getattr(torch, dtype)
        guard = GUARD_BYTES // kind.itemsize
        first = guard + layout.first_element
        behind = first + lines.count * lines.stride
        padded = -(-behind // guard) * guard + guard + apart_bytes // kind.itemsize
        self.sentinel = math.nan if kind.is_floating_point else INT8_SENTINEL
        """What is written wherever there is no value."""
        self._flat = torch.empty((count, padded), dtype=kind, device=device)
        whole = self._flat[:, first:behind].view(count, lines.count, lines.stride)
        values = whole[:, :, : lines.length]
        self.values = values.transpose(1, 2) if lines.by_columns else values
        """(count, rows, columns), strided as the layout says; packed: entry i is contiguous."""
        self._guards = [self._flat[:, :first], self._flat[:, behind:]]
        if lines.gap_elements:
            self._guards.append(whole[:, :, lines.length :])
        self.poison()

    def poison(self) -> None:
        """Set everything, values and guards, to the sentinel."""
        self._flat.fill_(self.sentinel)

    def randomize(self, generator: Generator, *, tf32: bool = False) -> None:
        """Set the values to zero-mean normal numbers, which use the whole mantissa; int8: uniform in −127..127.

        With `tf32` they are rounded to TF32.
        """
        if self._flat.is_floating_point():
            self._flat.normal_(generator=generator)
        else:
            self._flat.random_(-127, 128, generator=generator)
        if tf32:
            round_to_tf32(self._flat)
        self._guard()

    def randomize_scales(self, generator: Generator, k: int) -> None:
        """Set the values to positive numbers that bring a sum of k products of int8 and normal numbers to about 1.

        They are uniform from a power of two to the next, so they use the whole mantissa.
        """
        rms = 127 / math.sqrt(3) * math.sqrt(k)
        exponent = max(LEAST_SCALE_EXPONENT, math.floor(-math.log2(rms)))
        self._flat.uniform_(1.0, 2.0, generator=generator).mul_(2.0**exponent)
        self._guard()

    def intact(self) -> bool:
        """Whether every guard element is still the sentinel."""
        if self._flat.is_floating_point():
            return all(bool(guard.isnan().all()) for guard in self._guards)
        return all(bool((guard == self.sentinel).all()) for guard in self._guards)

    def checksum(self) -> int:
        """Sum of all bit patterns modulo 2⁶⁴, guards included: differs after any single write."""
        import torch

        return int(self._flat.view(torch.int64).sum())

    def _guard(self) -> None:
        for guard in self._guards:
            guard.fill_(self.sentinel)


def round_to_tf32(values: Tensor) -> None:
    """Round float32 values in place to TF32's 10 bits of mantissa, to nearest, ties to even."""
    import torch

    words = values.view(torch.int32)
    odd = words.bitwise_right_shift(13).bitwise_and_(1)
    words.add_(odd).add_(0xFFF).bitwise_and_(~0x1FFF)


class OperandSets:
    """`count` sets of operands of one problem, random by the problem's seed, on one device."""

    def __init__(self, problem: Problem, device: str, count: int, *, apart_bytes: int = 0) -> None:
        """Allocate and fill, with `apart_bytes` more than guards between two sets. A lies as the problem says.

        Raises:
            ValueError: there is no such layout.
        """
        import torch

        self.problem = problem
        self.count = count
        self.a = new_a(problem, device, count=count, apart_bytes=apart_bytes)
        self.x = new_activations(problem, device, problem.k, count=count, apart_bytes=apart_bytes)
        self.y = new_activations(problem, device, problem.m, count=count, apart_bytes=apart_bytes)
        self.scale = new_scale(problem, device, count=count, apart_bytes=apart_bytes)
        generator = torch.Generator(device=device).manual_seed(problem.seed)
        for part in (self.a, self.x):
            part.randomize(generator, tf32=problem.dtype == "tf32")
        if self.scale is not None:
            self.scale.randomize_scales(generator, problem.k)
        self._refreshed = False
        self._checksums = {self._refreshed: checksums(self.inputs())}

    def inputs(self) -> dict[str, Guarded]:
        """What a launch reads, by name."""
        return inputs(self.a, self.x, self.scale)

    def refresh(self) -> float:
        """Write other values into every A and x, and the scales, in place, and the sentinel into every y.

        The values are the first ones times −2 or 1 in turn, which is exact, so a right result is exactly 4 or 1 times
        the first one. Of int8, A is the first times −1 or 1, and the scale is the first times 2 or 1.

        Returns:
            What the first result must be multiplied with now.
        """
        self._refreshed = not self._refreshed
        step = 2.0 if self._refreshed else 0.5
        if self.scale is None:
            self.a.values.mul_(-step)
        else:
            self.a.values.neg_()
            self.scale.values.mul_(step)
        self.x.values.mul_(-step)
        self.y.poison()
        if self._refreshed not in self._checksums:
            self._checksums[self._refreshed] = checksums(self.inputs())
        return 4.0 if self._refreshed else 1.0

    def operands(self) -> list[Operands]:
        """One `Operands` a set, all of the same storage that `refresh` writes."""
        scales = [None] * self.count if self.scale is None else self.scale.values[:, :, 0].unbind()
        rows = zip(self.a.values.unbind(), self.x.values.unbind(), self.y.values.unbind(), scales, strict=True)
        return [Operands(a=a, x=x, y=y, scale=scale) for a, x, y, scale in rows]

    def damage(self) -> str | None:
        """What a launch touched that it must not have: a guard or an input. None if all is as it was written."""
        if not self.y.intact():
            return "wrote outside y"
        return touched(self.inputs(), self._checksums[self._refreshed])


def new_a(problem: Problem, device: str, *, count: int = 1, apart_bytes: int = 0) -> Guarded:
    """Room for `count` of the problem's A, as it says that A lies."""
    return Guarded(
        count=count, rows=problem.m, columns=problem.k, dtype=weight_dtype(problem.dtype), device=device,
        layout=problem.layout, apart_bytes=apart_bytes,
    )  # fmt: skip


def new_activations(problem: Problem, device: str, rows: int, *, count: int = 1, apart_bytes: int = 0) -> Guarded:
    """Room for `count` x or y of the problem, of k or m rows: packed, one token after the other."""
    return Guarded(
        count=count, rows=rows, columns=problem.n, dtype=activation_dtype(problem.dtype), device=device,
        layout=PACKED if problem.n == 1 else TOKENS, apart_bytes=apart_bytes,
    )  # fmt: skip


def new_scale(problem: Problem, device: str, *, count: int = 1, apart_bytes: int = 0) -> Guarded | None:
    """Room for `count` times a scale a row of A, (count, m, 1); None where the problem's dtype has none."""
    if problem.dtype not in SCALED:
        return None
    dtype = activation_dtype(problem.dtype)
    return Guarded(count=count, rows=problem.m, columns=1, dtype=dtype, device=device, apart_bytes=apart_bytes)


def inputs(a: Guarded, x: Guarded, scale: Guarded | None) -> dict[str, Guarded]:
    """What a launch reads, by name."""
    return {"A": a, "x": x} if scale is None else {"A": a, "x": x, "scale": scale}


def checksums(parts: Mapping[str, Guarded]) -> tuple[int, ...]:
    """Of each part, in order."""
    return tuple(part.checksum() for part in parts.values())


def touched(parts: Mapping[str, Guarded], sums: tuple[int, ...]) -> str | None:
    """What was changed of the parts and the guards around them since they had the checksums `sums`, or None."""
    for name, guarded in parts.items():
        if not guarded.intact():
            return f"wrote outside {name}"
    return None if checksums(parts) == sums else f"changed {' or '.join(parts)}"


def whole(view: Tensor) -> Tensor:
    """All elements of the allocation that `view` is a view of, one-dimensional, gaps and guards included."""
    return view.as_strided((view.untyped_storage().nbytes() // view.element_size(),), (1,), 0)
