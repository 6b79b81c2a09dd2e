"""What a problem takes in memory: how A lies there, and how many operand sets find a cache in the wanted state."""

from __future__ import annotations

from dataclasses import dataclass

from harness.dtypes import SCALED
from harness.model import Cache, Layout, Problem
from harness.roofline import ITEM_BYTES, least_bytes

GUARD_BYTES = 256
"""Of NaN before and behind every operand, whatever its dtype; they keep the alignment of a fresh allocation."""

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

HOT_APART_BYTES = 2**21 + 17 * 2**12
"""Between two of them, so that they lie on different pages, and at different places of a page: neighbours in one page
share its luck."""

PLACEMENTS_MEMORY_FRACTION = 0.025
"""Of the device's memory, for one worker's operand sets beyond those that the cache needs."""

MOST_SETS = 1 << 14
"""Operand sets of which a graph can still be made in a second or two."""

CACHE_LINE_BYTES = 128
"""What a cache sets aside for any byte of it: of a GPU's second level; a CPU's line is 64."""


@dataclass(frozen=True, kw_only=True)
class Lines:
    """A matrix in memory: lines of neighbours, which are its rows, or its columns where the order is col."""

    count: int
    length: int
    """Elements of a line."""
    stride: int
    """Elements from one line to the next; beyond the length there is a gap."""
    by_columns: bool

    @classmethod
    def of(cls, rows: int, columns: int, layout: Layout) -> Lines:
        """The lines of a rows×columns matrix.

        Raises:
            ValueError: the order is neither row nor col, or the stride is shorter than a line.
        """
        if layout.order not in ("row", "col"):
            raise ValueError(f"layout.order: found {layout.order!r}, wanted 'row' or 'col'")
        count, length = (rows, columns) if layout.order == "row" else (columns, rows)
        stride = length if layout.row_stride is None else layout.row_stride
        if stride < length:
            raise ValueError(f"layout.row_stride: found {stride}, wanted {length} or more")
        return cls(count=count, length=length, stride=stride, by_columns=layout.order == "col")

    @property
    def gap_elements(self) -> int:
        """Elements between lines, one gap behind each."""
        return self.count * (self.stride - self.length)


def sets_for(problem: Problem, cache: Cache, *, cache_bytes: int, memory_bytes: int) -> int:
    """Operand sets that find the cache in the wanted state, and average over where operands lie.

    Gaps between A's lines are not read, so they drive nothing out of a cache; but they take memory.

    Args:
        problem: what is computed.
        cache: the wanted state.
        cache_bytes: of the last-level cache.
        memory_bytes: of the device; 0 for no more sets than the cache needs.
    """
    if cache is Cache.HOT:
        return HOT_PLACEMENTS if memory_bytes else 1
    needed = -(-COLD_FACTOR * cache_bytes // least_bytes(problem))
    return max(1, needed, min(PLACEMENTS, int(PLACEMENTS_MEMORY_FRACTION * memory_bytes) // spread_bytes(problem)))


def why_never_cold(problem: Problem, cache_bytes: int) -> str | None:
    """Why rotating over operand sets cannot get this problem out of a cache of `cache_bytes`, or None."""
    needed = sets_for(problem, Cache.COLD, cache_bytes=cache_bytes, memory_bytes=0)
    if needed <= MOST_SETS:
        return None
    return f"never cold: it would take {needed} operand sets, more than {MOST_SETS}, to fill the cache; see hot"


def why_never_hot(problem: Problem, cache_bytes: int) -> str | None:
    """Why operands of this problem cannot stay in a last-level cache of `cache_bytes`, or None."""
    if cached_bytes(problem) <= HOT_SHARE * cache_bytes:
        return None
    return f"never hot: its operands do not stay in a cache of {cache_bytes / 1e6:.0f} MB; see cold"


def cached_bytes(problem: Problem) -> int:
    """Most bytes of a cache that the operands take: where A has gaps, whole cache lines around each of its lines."""
    item, lines = ITEM_BYTES[problem.dtype], Lines.of(problem.m, problem.k, problem.layout)
    if not lines.gap_elements:
        return least_bytes(problem)
    each = (-(-(lines.length - 1) * item // CACHE_LINE_BYTES) + 1) * CACHE_LINE_BYTES
    whole = spread_bytes(problem)
    return min(whole, least_bytes(problem) + lines.count * (each - lines.length * item))


def spread_bytes(problem: Problem) -> int:
    """Bytes from the first to the last of each operand, gaps included."""
    lines = Lines.of(problem.m, problem.k, problem.layout)
    return least_bytes(problem) + lines.gap_elements * ITEM_BYTES[problem.dtype]


def allocation_bytes(problem: Problem, count: int) -> int:
    """Device memory that `count` operand sets take at most, gaps and guards included."""
    operands = 4 if problem.dtype in SCALED else 3
    guards = operands * 3 * GUARD_BYTES + problem.layout.first_element * ITEM_BYTES[problem.dtype]
    return count * (spread_bytes(problem) + guards)
