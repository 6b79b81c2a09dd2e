"""Problems and the operands that they need on a device."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from harness.errors import CommandError, Exit
from harness.model import Cache, Layout, Operands, Problem
from harness.roofline import ITEM_BYTES, least_bytes

if TYPE_CHECKING:
    from torch import Generator, Tensor

GUARD_ELEMENTS = 64
"""NaN elements before and behind every operand; 256 bytes in float32 keep the alignment of a fresh allocation."""

COLD_FACTOR = 4
"""Cold operand sets together hold this many times the last-level cache, so that none is left of a set when its turn
comes again, whatever the replacement policy keeps."""

PLACEMENTS = 16
"""Operand sets to rotate over where memory allows: a kernel's time depends on where its operands lie. On an H200, one
A of 11008×4096 after the other takes cuBLAS 51.8 to 55.4 µs; the mean over 16 is steady within 1.5 % over processes."""

HOT_PLACEMENTS = 4
"""Operand sets to time one by one when each stays in the cache."""

HOT_SHARE = 0.5
"""Of a cache that operands may fill and still stay there: others use it too, and a cache in two parts may hold what is
read from both of them twice."""

HOT_APART = (2**21 + 17 * 2**12) // 4
"""Elements between two of them, so that they lie on different pages, and at different places of a page: neighbours in
one page share its luck."""

PLACEMENTS_MEMORY_FRACTION = 0.025
"""Of the device's memory, for one worker's operand sets beyond those that the cache needs."""


def parse_shape(text: str) -> Problem:
    """The float32 GEMV problem that `MxK` names.

    Raises:
        ValueError: `text` is not two positive whole numbers around an x.
    """
    match = re.fullmatch(r"([1-9]\d{0,12})[xX×]([1-9]\d{0,12})", text.strip())
    if match is None:
        raise ValueError(f"--shape: found {text!r}, wanted MxK with two whole numbers from 1 on, such as 1024x128")
    return Problem(m=int(match[1]), k=int(match[2]))


def parse_shapes(texts: Sequence[str]) -> list[Problem]:
    """The problems that some `MxK` name, each once, in order.

    Raises:
        CommandError: one of them is no shape (USAGE).
    """
    try:
        return list(dict.fromkeys(parse_shape(text) for text in texts))
    except ValueError as error:
        raise CommandError(str(error), Exit.USAGE) from error


def sets_for(problem: Problem, cache: Cache, *, cache_bytes: int, memory_bytes: int) -> int:
    """Operand sets that find the cache in the wanted state, and average over where operands lie.

    Args:
        problem: what is computed.
        cache: the wanted state.
        cache_bytes: of the last-level cache.
        memory_bytes: of the device; 0 for no more sets than the cache needs.
    """
    if cache is Cache.HOT:
        return HOT_PLACEMENTS if memory_bytes else 1
    own = least_bytes(problem)
    needed = -(-COLD_FACTOR * cache_bytes // own)
    return max(1, needed, min(PLACEMENTS, int(PLACEMENTS_MEMORY_FRACTION * memory_bytes) // own))


MOST_SETS = 1 << 14
"""Operand sets of which a graph can still be made in a second or two."""


def why_never_cold(problem: Problem, cache_bytes: int) -> str | None:
    """Why rotating over operand sets cannot get this problem out of a cache of `cache_bytes`, or None."""
    needed = sets_for(problem, Cache.COLD, cache_bytes=cache_bytes, memory_bytes=0)
    if needed <= MOST_SETS:
        return None
    return f"never cold: it would take {needed} operand sets, more than {MOST_SETS}, to fill the cache; see hot"


def why_never_hot(problem: Problem, cache_bytes: int) -> str | None:
    """Why operands of this problem cannot stay in a last-level cache of `cache_bytes`, or None."""
    own = least_bytes(problem)
    if own <= HOT_SHARE * cache_bytes:
        return None
    return f"never hot: its operands do not stay in a cache of {cache_bytes / 1e6:.0f} MB; see cold"


class Guarded:
    """`count` packed tensors of one shape in one allocation, each with NaN guards before and behind it.

    A kernel that reads past an operand gets NaN into its result; one that writes past y leaves a hole in a guard.
    `apart` more elements of NaN, a multiple of GUARD_ELEMENTS, put the tensors further from each other.
    """

    def __init__(  # noqa: PLR0913 - what a tensor is, by name
        self, *, count: int, rows: int, columns: int, dtype: str, device: str, apart: int = 0
    ) -> None:
        import torch

        size = rows * columns
        self._size = size
        padded = -(-(GUARD_ELEMENTS + size) // GUARD_ELEMENTS) * GUARD_ELEMENTS + GUARD_ELEMENTS
        padded += apart
        self._flat = torch.empty((count, padded), dtype=getattr(torch, dtype), device=device)
        self.values = self._flat[:, GUARD_ELEMENTS : GUARD_ELEMENTS + size].view(count, rows, columns)
        """(count, rows, columns); entry i is contiguous."""
        self.poison()

    def poison(self) -> None:
        """Set everything, values and guards, to NaN."""
        self._flat.fill_(float("nan"))

    def randomize(self, generator: Generator) -> None:
        """Set the values to zero-mean normal numbers, which use the whole mantissa, and the guards to NaN."""
        self._flat.normal_(generator=generator)
        for guard in self._guards():
            guard.fill_(float("nan"))

    def intact(self) -> bool:
        """Whether every guard element is still NaN."""
        return all(bool(guard.isnan().all()) for guard in self._guards())

    def checksum(self) -> int:
        """Sum of all bit patterns, guards included: differs after any single write."""
        import torch

        words = self._flat.view(torch.int16 if self._flat.element_size() == 2 else torch.int32)
        return int(words.sum(dtype=torch.int64))

    def _guards(self) -> tuple[Tensor, Tensor]:
        return self._flat[:, :GUARD_ELEMENTS], self._flat[:, GUARD_ELEMENTS + self._size :]


class OperandSets:
    """`count` sets of operands of one problem, random by the problem's seed, on one device."""

    def __init__(self, problem: Problem, device: str, count: int, *, apart: int = 0) -> None:
        """Allocate and fill, with `apart` elements more than guards between two sets.

        Raises:
            ValueError: the problem's layout is not packed row-major.
        """
        import torch

        if problem.layout != Layout():
            raise ValueError(f"layout {problem.layout}: wanted packed row-major; other layouts cannot be measured yet")
        self.problem = problem
        self.count = count
        m, k, n = problem.m, problem.k, problem.n
        common: dict[str, Any] = {"dtype": problem.dtype, "device": device, "apart": apart}
        self.a = Guarded(count=count, rows=m, columns=k, **common)
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


def allocation_bytes(problem: Problem, count: int) -> int:
    """Device memory that `count` operand sets take, guards included."""
    guards = 3 * 3 * GUARD_ELEMENTS * ITEM_BYTES[problem.dtype]
    return count * (least_bytes(problem) + guards)
