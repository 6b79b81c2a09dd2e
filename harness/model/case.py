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
    """Columns of x and y, each of which lies in one piece, as the tokens of a batch do; 1 for GEMV."""
    dtype: str = "float32"
    """Of A, x and y, as torch names it; two mean more. `tf32`: float32 in memory, every operand rounded to TF32.
    `int8`: A int8 with a float16 scale a row, x and y float16."""
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
    """(k, n); where n > 1 its transpose is row-major: a token after the other."""
    y: Tensor
    """(m, n), written by the launch; it lies as x does."""
    scale: Tensor | None = None
    """(m,), float16, only where A is int8: what a row's dot product is multiplied with."""


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
    dtypes: tuple[str, ...] = ("float32",)
    """Dtypes of the problems that it is made for; on others it is not even listed."""
    unsupported: Callable[[Problem], str | None] = supports_everything
    """Why it cannot compute a problem, or None if it can."""
    variants: tuple[Kernel, ...] = ()
    """Other ways to do the same; the fastest on the problem is measured under this kernel's name."""
    choose: Callable[[Operands], Choice] | None = None
    """Of a kernel that picks among others by a rule: which it picks for these operands. None: it is one way alone."""
    picks: tuple[str, ...] = ()
    """Of a kernel with `choose`: the names of all that its rule can pick."""
    by_name_only: bool = False
    """Measured only when a command or a suite names it."""
    candidate: bool = False
    """One of those that another kernel picks among."""
    file: str | None = None
    """Of a user's own kernel: the file that declares it, outside of the project. None: it is the project's."""
    line: int | None = None
    """Of that file, where it is declared."""

    def ways(self, device_type: str, problem: Problem) -> list[Kernel]:
        """The variants that compute `problem` on `device_type` ("cuda" or "cpu"); the kernel itself where none does."""
        return [variant for variant in self.variants if variant.takes(device_type, problem)] or [self]

    def takes(self, device_type: str, problem: Problem) -> bool:
        """Whether it is made for this device type and the problem's dtype, and the problem is within its contract."""
        made_for_it = device_type in self.devices and problem.dtype in self.dtypes
        return made_for_it and self.unsupported(problem) is None


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
        """Readable and unique within a run: `torch.matmul-1024x128-graph-cold`, `read-64x64x8-float16-graph-hot`."""
        problem = self.problem
        plain = Problem(m=problem.m, k=problem.k, n=problem.n, dtype=problem.dtype)
        said = [] if problem.dtype == Problem.dtype else [problem.dtype]
        said += [] if problem == plain else [_short_hash(problem.to_dict())]
        return "-".join([self.kernel, problem.label, *said, self.timer, self.cache])


def _short_hash(data: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()[:6]
