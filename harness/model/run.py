"""A run: where and how it was measured, and all that it measured."""

from __future__ import annotations

from dataclasses import dataclass, field

from harness.model.record import Record
from harness.model.result import Check, Measurement


@dataclass(frozen=True, kw_only=True)
class Environment(Record):
    """Whatever could change a number. One flat table: key → value, None where it could not be had."""

    values: dict[str, str | int | float | bool | None]
    """By key, e.g. `gpu_name`; `harness.environment.ENVIRONMENT_KEYS` describes each."""
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
    """`cuda` or `cpu`; of a user's own file of kernels `own/` and a name."""
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
    """By path relative to kernels/csrc, or to the user's file; headers included."""
    device_code_sha256: dict[str, str]
    """By `source:arch`: hash of the machine code, built without line info."""
    resources: tuple[KernelResources, ...]
    """A row per device function and architecture."""
    seconds: float
    """Spent compiling; of the build that filled the cache."""
    sources_by_kernel: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Names in `sources_sha256` whose code a launch of each kernel runs; a kernel that picks among others: theirs too.
    Older records have none."""


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
    """As torch names it in a worker, e.g. `cuda:0`."""
    uuid: str | None = None
    """Of the GPU or MIG instance that was asked for by it: the workers were shown no other; null: `device` says it."""
    lock_clocks_mhz: int | None = None
    """What the SM clock was locked at while the run was measured; null: it was not."""
    command: tuple[str, ...]
    """The command line."""
    selfcheck: bool = False
    """The timers were held against each other too."""
    suites: tuple[str, ...] = ("sgemv",)
    """Names of the suites that said what is measured."""

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
    picked_among: tuple[str, ...] = ()
    """Of them, those that another one picks among by its rule; measured here only where they were asked for."""
    candidates: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """By the name of a kernel with a rule: those of `picked_among` that compute its dtype. Older records have none."""
    warnings: tuple[str, ...]
    """What a reader must know before the figures, one line each."""
    measurements: tuple[Measurement, ...]
    """In order of measuring. On disk without samples and readings; `harness.store.load` puts them back."""
    selfcheck: tuple[Check, ...] | None = None
    """The selfcheck's table; None where it was not asked for."""
