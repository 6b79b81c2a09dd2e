"""What is measured: problems, kernels, cases."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from harness.model.record import Record

if TYPE_CHECKING:
    from torch import Tensor


class Role(StrEnum):
    """What a kernel is measured for."""

    GEMV = "gemv"
    """Computes y = A·x and must pass the gate."""
    LIMIT = "limit"
    """Reads A and x, writes m values: what the memory system allows at this size."""
    FLOOR = "floor"
    """Does nothing: what the timer itself costs."""


class Cache(StrEnum):
    """Where the operands are when a timed launch starts."""

    COLD = "cold"
    """In device memory: launches rotate over operand sets that together exceed the last-level cache several times."""
    HOT = "hot"
    """In cache, of which they fill half at most: a launch follows another on the same operand set."""


@dataclass(frozen=True, kw_only=True)
class Layout(Record):
    """How A lies in memory."""

    order: str = "row"
    """"row": A[i, j] and A[i, j + 1] are neighbours; "col": A[i, j] and A[i + 1, j] are."""
    row_stride: int | None = None
    """Elements from one row to the next, where the order is col from one column to the next; None: packed."""
    first_element: int = 0
    """Elements between a 256-byte boundary and A[0, 0]."""


@dataclass(frozen=True, kw_only=True)
class Problem(Record):
    """What is computed: y (m×n) = A (m×k) · x (k×n)."""

    m: int
    """Rows of A: outputs."""
    k: int
    """Columns of A: inputs."""
    n: int = 1
    """Columns of x and y; 1 for GEMV."""
    dtype: str = "float32"
    """Of A, x and y, as torch names it."""
    layout: Layout = field(default_factory=Layout)
    """How A lies in memory."""
    seed: int = 0
    """Of the operands' random values."""

    @property
    def label(self) -> str:
        """Short name for people, such as `1024x128`."""
        return f"{self.m}x{self.k}" if self.n == 1 else f"{self.m}x{self.k}x{self.n}"


@dataclass(frozen=True, kw_only=True)
class Operands:
    """One set of operands on the device that a launch reads and writes."""

    a: Tensor
    """(m, k)"""
    x: Tensor
    """(k, n)"""
    y: Tensor
    """(m, n), written by the launch."""


Launch = Callable[[], None]
"""Starts the computation on the caller's current stream, writing into the operands it was bound to."""


def supports_everything(problem: Problem) -> str | None:  # noqa: ARG001 - the signature of every `unsupported`
    """The `unsupported` of a kernel without limits."""
    return None


@dataclass(frozen=True, kw_only=True)
class Choice(Record):
    """What a kernel that picks among others by a rule has picked."""

    kernel: str
    """The picked kernel's name in the registry."""
    reason: str
    """Why, in one line."""


@dataclass(frozen=True, kw_only=True)
class Kernel:
    """A named way to compute a problem (not a Record: it holds code)."""

    name: str
    """Unique in the registry; stands in every table."""
    role: Role
    """What it is measured for."""
    summary: str
    """Its design in one line."""
    bind: Callable[[Operands], Launch]
    """Prepares everything that is not timed and gives the launch."""
    devices: tuple[str, ...] = ("cuda", "cpu")
    """Device types it runs on."""
    unsupported: Callable[[Problem], str | None] = supports_everything
    """Why it cannot compute a problem, or None if it can."""
    variants: tuple[Kernel, ...] = ()
    """Other ways to do the same; the fastest on the problem is measured under this kernel's name."""
    choose: Callable[[Operands], Choice] | None = None
    """Of a kernel that picks among others by a rule: which it picks for these operands. None: it is one way alone."""
    picks: tuple[str, ...] = ()
    """Of a kernel with `choose`: the names of all that its rule can pick."""
    by_name_only: bool = False
    """Measured only when asked for by name: one of those that another picks among."""

    def ways(self, device_type: str) -> list[Kernel]:
        """The variants for `device_type` ("cuda" or "cpu"); the kernel itself where it has none."""
        return [variant for variant in self.variants if device_type in variant.devices] or [self]


@dataclass(frozen=True, kw_only=True)
class Case(Record):
    """One thing to measure: kernel × problem × timer × cache."""

    kernel: str
    """The kernel's name."""
    role: Role
    """The kernel's role."""
    problem: Problem
    """What is computed."""
    timer: str
    """The timer's name: how a launch is timed."""
    cache: Cache
    """Where the operands are when a launch starts."""

    @property
    def id(self) -> str:
        """Readable and unique within a run, e.g. `torch.matmul-1024x128-graph-cold`."""
        plain = Problem(m=self.problem.m, k=self.problem.k, n=self.problem.n)
        suffix = "" if self.problem == plain else "-" + _short_hash(self.problem.to_dict())
        return f"{self.kernel}-{self.problem.label}{suffix}-{self.timer}-{self.cache}"


def _short_hash(data: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()[:6]
