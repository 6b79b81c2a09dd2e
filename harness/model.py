"""The records that everything else speaks in: frozen, keyword-only, with units in their names.

A record is plain data. `to_dict` gives JSON-ready values, `from_dict` checks types and says which field is wrong.
Unknown is None, and the record that owns the field says why in `unknown`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Self

import msgspec

if TYPE_CHECKING:
    from torch import Tensor

SCHEMA_VERSION = 1
"""Version of run.json. Readers refuse a newer one."""


class RecordError(ValueError):
    """A record that does not fit its schema; the message carries the path to the bad field."""


class Record:
    """Mixin: conversion to and from JSON-ready dicts."""

    def to_dict(self) -> dict[str, Any]:
        """Plain dicts, lists, strings, numbers, booleans and None."""
        plain: dict[str, Any] = msgspec.to_builtins(self)
        return plain

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The record `data` describes.

        Raises:
            RecordError: a field is missing or has the wrong type; the message names it by its path.
        """
        try:
            return msgspec.convert(dict(data), type=cls)
        except msgspec.ValidationError as error:
            raise RecordError(f"{cls.__name__}: {error}") from error


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
    """In cache as far as they fit: every launch reads the same operand set."""


class Word(StrEnum):
    """The gate's word on a kernel's output."""

    PASSED = "passed"
    WRONG = "wrong"
    CRASHED = "crashed"
    UNSUPPORTED = "unsupported"
    NOT_MEASURED = "not measured"


@dataclass(frozen=True, kw_only=True)
class Layout(Record):
    """How A lies in memory."""

    order: str = "row"
    """"row": A[i, j] and A[i, j + 1] are neighbours; "col": A[i, j] and A[i + 1, j] are."""
    row_stride: int | None = None
    """Elements from one row to the next; None: packed."""
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


@dataclass(frozen=True, kw_only=True)
class Verdict(Record):
    """The gate's word, with the reason for anything but `passed`."""

    word: Word
    """The word."""
    reason: str | None = None
    """Why, in one line; None only for `passed`."""
    max_error: float | None = None
    """Largest |y − ref| over its row's bound on random operands (1 is the bound); None where it was not computed."""


@dataclass(frozen=True, kw_only=True)
class DeviceState(Record):
    """One reading of the device while a case was measured."""

    time_unix_s: float
    """When, in seconds since 1970."""
    sm_clock_mhz: int | None = None
    """SM clock."""
    memory_clock_mhz: int | None = None
    """Memory clock."""
    temperature_c: int | None = None
    """GPU core temperature."""
    power_mw: int | None = None
    """Board power; instantaneous where the device offers it."""
    power_is_instant: bool | None = None
    """True: instantaneous; False: NVML's average over about a second."""
    clock_event_reasons: tuple[str, ...] | None = None
    """What holds the clocks back, e.g. `sw_power_cap`; empty: nothing; None: not known."""
    unknown: dict[str, str] = field(default_factory=dict)
    """Why a field above is None."""


@dataclass(frozen=True, kw_only=True)
class TrialResult(Record):
    """What one worker process measured of a case."""

    trial: int
    """0-based number of the worker process."""
    verdict: Verdict
    """The gate's word in this trial."""
    samples_ns: tuple[float, ...] = ()
    """Measured durations, ns per launch, in order; empty unless the verdict is `passed`."""
    launches_per_sample: int | None = None
    """Launches that one sample averages over."""
    operand_sets: int | None = None
    """Distinct operand sets that the launches rotated over."""
    kernels_per_launch: int | None = None
    """Device kernels that one launch starts; None where the timer cannot tell."""
    variant: str | None = None
    """Which of the kernel's variants was fastest and is measured here; None: it has none."""
    stopped: str | None = None
    """Why sampling ended: `precise` (median known to the wanted error), `time` (budget spent) or `count` (enough)."""
    states: tuple[DeviceState, ...] = ()
    """Readings of the device while it was timed."""


@dataclass(frozen=True, kw_only=True)
class Measurement(Record):
    """A case and what every trial said of it."""

    case: Case
    """What was measured."""
    trials: tuple[TrialResult, ...]
    """In order of trial."""

    @property
    def verdict(self) -> Verdict:
        """The worst of the trials' verdicts: one wrong output is a wrong kernel."""
        order = [Word.PASSED, Word.NOT_MEASURED, Word.UNSUPPORTED, Word.CRASHED, Word.WRONG]
        return max((t.verdict for t in self.trials), key=lambda verdict: order.index(verdict.word))

    @property
    def samples_ns(self) -> tuple[float, ...]:
        """All trials' samples in order; empty unless every trial passed."""
        if self.verdict.word is not Word.PASSED:
            return ()
        return tuple(ns for t in self.trials for ns in t.samples_ns)


@dataclass(frozen=True, kw_only=True)
class Environment(Record):
    """Whatever could change a number. One flat table: key → value, None where it could not be had."""

    values: dict[str, str | int | float | bool | None]
    """By key, e.g. `gpu_name`, `driver_version`; `environment.ENVIRONMENT_KEYS` describes each."""
    unknown: dict[str, str] = field(default_factory=dict)
    """Why a value is None, by key."""

    def get(self, key: str) -> str | int | float | bool | None:
        """The value, None if unknown or absent."""
        return self.values.get(key)


@dataclass(frozen=True, kw_only=True)
class KernelResources(Record):
    """What the compiler says a device function needs."""

    function: str
    """Demangled name."""
    arch: str
    """E.g. `sm_90`."""
    registers: int
    """A thread."""
    spill_store_bytes: int
    """A thread."""
    spill_load_bytes: int
    """A thread."""
    stack_bytes: int
    """A thread."""
    static_shared_bytes: int
    """A block."""


@dataclass(frozen=True, kw_only=True)
class BuildRecord(Record):
    """How one library of kernels was built."""

    library: str
    """File name of the library."""
    target: str
    """`cuda` or `cpu`."""
    key: str
    """Content hash that names the cache entry."""
    commands: tuple[tuple[str, ...], ...]
    """Every compiler call, in order; paths inside the checkout are relative."""
    compiler_version: str
    """Of nvcc, or of the C++ compiler for `cpu`."""
    host_compiler_version: str
    """Of the C++ compiler."""
    torch_version: str
    """Whose headers were used."""
    flags: tuple[str, ...]
    """Options that change the code."""
    architectures: tuple[str, ...]
    """E.g. `sm_90`; empty for `cpu`."""
    sources_sha256: dict[str, str]
    """By path relative to kernels/csrc, headers of the project included."""
    device_code_sha256: dict[str, str]
    """By `source:arch`: hash of the machine code, built without line info."""
    resources: tuple[KernelResources, ...]
    """A row per device function and architecture."""
    seconds: float
    """Spent compiling; of the build that filled the cache."""


@dataclass(frozen=True, kw_only=True)
class Options(Record):
    """How the run was asked to measure."""

    trials: int
    """Worker processes."""
    max_time_s: float
    """Time budget a case and trial."""
    quick: bool
    """A coarse look instead of a figure to publish."""
    device: str
    """As torch names it, e.g. `cuda:0`."""
    command: tuple[str, ...]
    """The command line."""

    @property
    def device_type(self) -> str:
        """`cuda` or `cpu`."""
        return self.device.partition(":")[0]


@dataclass(frozen=True, kw_only=True)
class Run(Record):
    """run.json: everything of a run but its samples and device readings, which are in Parquet files beside it."""

    schema_version: int
    """`SCHEMA_VERSION` of the writer."""
    id: str
    """`<UTC time>-<gpu>-<driver>-<short hash>`; also the folder's name."""
    started_utc: str
    """ISO 8601."""
    finished_utc: str
    """ISO 8601; of the last measurement for a partial run."""
    partial: bool
    """True: the run was cut short; what it had measured is here."""
    options: Options
    """How it was asked to measure."""
    environment: Environment
    """Where it ran."""
    builds: tuple[BuildRecord, ...]
    """The libraries it ran."""
    kernels: dict[str, str]
    """Summary of each kernel, by name."""
    warnings: tuple[str, ...]
    """What a reader must know before the figures, one line each."""
    measurements: tuple[Measurement, ...]
    """In order of measuring. On disk without samples and states; `store.load` puts them back."""


def _short_hash(data: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()[:6]
