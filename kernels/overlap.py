"""Whether an op would write over what it reads, as csrc/overlap.h: by offsets in the storage that tensors share."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


def overlap_problem(inputs: Iterable[tuple[str, Tensor]], out: Tensor) -> str | None:
    """Which input `out` may overlap, in words, or None.

    Args:
        inputs: labels and tensors, in the order in which they are looked at; two-dimensional, neighbours in a row.
        out: as an input.
    """
    for label, rows in inputs:
        if _share_storage(rows, out) and not _Runs.of(rows).are_apart_from(_Runs.of(out)):
            return f"out overlaps {label}, wanted memory of its own; allocate it with torch.empty"
    return None


@dataclass(frozen=True)
class _Runs:
    """The bytes of an operand: `count` runs of `run` neighbours each, one run every `period` bytes."""

    first: int
    run: int
    period: int
    count: int

    @classmethod
    def of(cls, rows: Tensor) -> _Runs:
        count, run = rows.shape
        item = rows.element_size()
        return cls(int(rows.storage_offset()) * item, run * item, rows.stride(0) * item if count > 1 else 0, count)

    def span(self) -> int:
        return 0 if self.run == 0 or self.count == 0 else (self.count - 1) * self.period + self.run

    def are_apart_from(self, other: _Runs) -> bool:
        """By their ranges, or by remainders in the period that both have."""
        offset = other.first - self.first
        if self.span() == 0 or other.span() == 0 or offset >= self.span() or offset + other.span() <= 0:
            return True
        period = math.gcd(self.period, other.period)
        return period != 0 and self.run <= offset % period <= period - other.run


def _share_storage(one: Tensor, other: Tensor) -> bool:
    return bool(one.untyped_storage()._cdata == other.untyped_storage()._cdata)  # noqa: SLF001 - fake ones have no address
