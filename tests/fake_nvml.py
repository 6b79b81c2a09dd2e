"""A stand-in for the pynvml module: GPUs as they are told to be, failing as they are told to fail.

Error classes and constants are pynvml's own, which exist without a driver. Asking for a function that pynvml does not
have is a mistake in the code under test and fails loudly; one listed in `missing` is absent, as in an older version.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pynvml

from harness.device.nvml import Nvml

LIMIT_FIELDS = (74, 75, 76, 77, 79, 269, 270, 271)
"""Counters of limits that an H200 has."""


@dataclass(kw_only=True)
class FakeGpu:
    """One GPU, or one MIG instance of `parent`; change it between readings to play a story."""

    uuid: str = "GPU-8f1c7a52-0b3d-4e6f-9a1b-2c3d4e5f6071"
    bus_id: str = "00000000:1B:00.0"
    name: str = "NVIDIA H200"
    sm_clock_mhz: int = 1980
    locked_mhz: int | None = None
    supported_mhz: tuple[int, ...] = (210, 1395, 1410, 1425, 1980)
    memory_clock_mhz: int = 3201
    temperature_c: int = 41
    instant_power_mw: int | None = 121_500
    """None: the field exists, but this GPU answers it with «not supported»."""
    average_power_mw: int = 118_000
    energy_mj: int = 5_000_000_000
    """Since its driver was loaded."""
    reasons: int = 0x0
    limited_ns: dict[int, int] = field(default_factory=lambda: dict.fromkeys(LIMIT_FIELDS, 0))
    """By NVML field: how long a limit has held the clocks back; one that is absent is «not supported»."""
    violations_ns: dict[int, int] = field(default_factory=dict)
    """The same by performance policy, as drivers without those fields count it."""
    utilization_percent: int = 0
    mig_mode: int = 0
    processes: dict[int, str] = field(default_factory=dict)
    """Name by process id."""
    parent: FakeGpu | None = None
    errors: dict[str, int] = field(default_factory=dict)
    """NVML error code by function."""
    lost: bool = False
    """True: every call on it says that the GPU is lost."""


class FakeNvml:
    """What `Nvml.open` takes for pynvml."""

    def __init__(
        self,
        gpus: list[FakeGpu] | None = None,
        *,
        init_error: int | None = None,
        missing: set[str] | None = None,
        missing_in_driver: set[str] | None = None,
        text_as_bytes: bool = False,
        cuda_driver_version: int = 13000,
        calls: Path | None = None,
    ) -> None:
        """`calls`: a file that gets a line for every change of a clock, which outlives this process."""
        self.gpus = [FakeGpu()] if gpus is None else gpus
        self._calls = calls
        self.missing = missing or set()
        self.open_count = 0
        self._init_error = init_error
        self._missing_in_driver = missing_in_driver or set()
        self._text_as_bytes = text_as_bytes
        self._functions = self._system(cuda_driver_version) | self._readings() | self._facts() | self._clocks()

    def __getattr__(self, name: str) -> Any:
        if name in self.missing:
            raise AttributeError(name)
        if name not in self._functions:
            if name.startswith("nvml") and callable(getattr(pynvml, name)):
                raise NotImplementedError(f"the fake does not play {name}")
            return getattr(pynvml, name)
        return lambda *arguments: self._call(name, *arguments)

    def _call(self, name: str, *arguments: Any) -> Any:
        if not self.open_count and name != "nvmlInit":
            raise pynvml.NVMLError(pynvml.NVML_ERROR_UNINITIALIZED)
        if name in self._missing_in_driver:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_FUNCTION_NOT_FOUND)
        if arguments and isinstance(arguments[0], FakeGpu):
            if arguments[0].lost:
                raise pynvml.NVMLError(pynvml.NVML_ERROR_GPU_IS_LOST)
            if name in arguments[0].errors:
                raise pynvml.NVMLError(arguments[0].errors[name])
        return self._functions[name](*arguments)

    def _text(self, text: str) -> str | bytes:
        return text.encode() if self._text_as_bytes else text

    def _init(self) -> None:
        if self._init_error is not None:
            raise pynvml.NVMLError(self._init_error)
        self.open_count += 1

    def _shutdown(self) -> None:
        self.open_count -= 1

    def _find(self, attribute: str, key: bytes) -> FakeGpu:
        for gpu in self.gpus:
            if getattr(gpu, attribute).encode() == key:
                return gpu
        raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_FOUND)

    def _process_name(self, pid: int) -> str | bytes:
        for gpu in self.gpus:
            if gpu.processes.get(pid):
                return self._text(gpu.processes[pid])
        raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_FOUND)

    def _system(self, cuda_driver_version: int) -> dict[str, Callable[..., Any]]:
        return {
            "nvmlInit": self._init,
            "nvmlShutdown": self._shutdown,
            "nvmlSystemGetDriverVersion": lambda: self._text("580.159.04"),
            "nvmlSystemGetCudaDriverVersion": lambda: cuda_driver_version,
            "nvmlSystemGetCudaDriverVersion_v2": lambda: cuda_driver_version,
            "nvmlSystemGetProcessName": self._process_name,
            "nvmlDeviceGetCount": lambda: sum(gpu.parent is None for gpu in self.gpus),
            "nvmlDeviceGetHandleByIndex": lambda index: [gpu for gpu in self.gpus if gpu.parent is None][index],
            "nvmlDeviceGetMaxMigDeviceCount": lambda gpu: 7 * gpu.mig_mode,
            "nvmlDeviceGetMigDeviceHandleByIndex": self._instance,
            "nvmlDeviceGetHandleByUUID": lambda uuid: self._find("uuid", uuid),
            "nvmlDeviceGetHandleByPciBusId": lambda bus_id: self._find("bus_id", bus_id),
            "nvmlDeviceGetDeviceHandleFromMigDeviceHandle": _parent,
        }

    def _instance(self, board: FakeGpu, index: int) -> FakeGpu:
        """Numbered with a gap, as where one was taken away again."""
        found = dict(zip((0, 2, 3), [gpu for gpu in self.gpus if gpu.parent is board], strict=False))
        if index not in found:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_FOUND)
        return found[index]

    def _lock(self, gpu: FakeGpu, least_mhz: int, most_mhz: int) -> None:
        assert least_mhz == most_mhz
        gpu.locked_mhz = least_mhz
        self._note(f"{gpu.uuid} locked at {least_mhz}")

    def _unlock(self, gpu: FakeGpu) -> None:
        gpu.locked_mhz = None
        self._note(f"{gpu.uuid} unlocked")

    def _note(self, line: str) -> None:
        if self._calls is not None:
            with self._calls.open("a", encoding="utf-8") as file:
                file.write(f"{line}\n")

    def _clocks(self) -> dict[str, Callable[..., Any]]:
        return {
            "nvmlDeviceGetSupportedMemoryClocks": lambda _: [3201, 1593],
            "nvmlDeviceGetSupportedGraphicsClocks": lambda gpu, memory: {3201: sorted(gpu.supported_mhz)[::-1]}[memory],
            "nvmlDeviceSetGpuLockedClocks": self._lock,
            "nvmlDeviceResetGpuLockedClocks": self._unlock,
        }

    def _readings(self) -> dict[str, Callable[..., Any]]:
        return {
            "nvmlDeviceGetClockInfo": _clock,
            "nvmlDeviceGetTemperature": _temperature,
            "nvmlDeviceGetTemperatureV": _temperature,
            "nvmlDeviceGetFieldValues": _field_values,
            "nvmlDeviceGetViolationStatus": _violation,
            "nvmlDeviceGetUtilizationRates": lambda gpu: SimpleNamespace(gpu=gpu.utilization_percent, memory=0),
            "nvmlDeviceGetPowerUsage": lambda gpu: gpu.average_power_mw,
            "nvmlDeviceGetTotalEnergyConsumption": lambda gpu: gpu.energy_mj,
            "nvmlDeviceGetCurrentClocksEventReasons": lambda gpu: gpu.reasons,
            "nvmlDeviceGetCurrentClocksThrottleReasons": lambda gpu: gpu.reasons,
            "nvmlDeviceGetComputeRunningProcesses": lambda gpu: [SimpleNamespace(pid=pid) for pid in gpu.processes],
        }

    def _facts(self) -> dict[str, Callable[..., Any]]:
        return {
            "nvmlDeviceGetName": lambda gpu: self._text(gpu.name),
            "nvmlDeviceGetUUID": lambda gpu: self._text(gpu.uuid),
            "nvmlDeviceGetPciInfo": lambda gpu: SimpleNamespace(busId=self._text(gpu.bus_id)),
            "nvmlDeviceGetVbiosVersion": lambda _: self._text("96.00.D0.00.03"),
            "nvmlDeviceGetEnforcedPowerLimit": lambda _: 650_000,
            "nvmlDeviceGetPowerManagementLimit": lambda _: 700_000,
            "nvmlDeviceGetPowerManagementDefaultLimit": lambda _: 700_000,
            "nvmlDeviceGetMaxClockInfo": lambda _, kind: {1: 1980, 2: 3201}[kind],
            "nvmlDeviceGetApplicationsClock": lambda _, kind: {1: 1830, 2: 3201}[kind],
            "nvmlDeviceGetEccMode": lambda _: [1, 1],
            "nvmlDeviceGetMigMode": lambda gpu: [gpu.mig_mode, gpu.mig_mode],
            "nvmlDeviceGetPersistenceMode": lambda _: 1,
            "nvmlDeviceGetComputeMode": lambda _: 0,
        }


def _parent(gpu: FakeGpu) -> FakeGpu:
    if gpu.parent is None:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_INVALID_ARGUMENT)
    return gpu.parent


def _clock(gpu: FakeGpu, kind: int) -> int:
    """An instance has no clocks of its own."""
    if gpu.parent is not None:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
    return {1: gpu.locked_mhz or gpu.sm_clock_mhz, 2: gpu.memory_clock_mhz}[kind]


def _temperature(gpu: FakeGpu, sensor: int) -> int:
    assert sensor == 0
    return gpu.temperature_c


def _field_values(gpu: FakeGpu, fields: list[int]) -> list[Any]:
    return [_field_value(gpu, field_id) for field_id in fields]


def _field_value(gpu: FakeGpu, field_id: int) -> Any:
    value = gpu.instant_power_mw if field_id == 186 else gpu.limited_ns.get(field_id)
    answer = pynvml.c_nvmlFieldValue_t(fieldId=field_id)
    answer.nvmlReturn = pynvml.NVML_ERROR_NOT_SUPPORTED if value is None else pynvml.NVML_SUCCESS
    if field_id == 186:
        answer.valueType, answer.value.uiVal = pynvml.NVML_VALUE_TYPE_UNSIGNED_INT, value or 0
    else:
        answer.valueType, answer.value.ullVal = pynvml.NVML_VALUE_TYPE_UNSIGNED_LONG_LONG, value or 0
    return answer


def _violation(gpu: FakeGpu, policy: int) -> Any:
    if policy not in gpu.violations_ns:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
    return SimpleNamespace(referenceTime=0, violationTime=gpu.violations_ns[policy])


def opened(fake: FakeNvml) -> Nvml:
    nvml = Nvml.open(fake)
    assert isinstance(nvml, Nvml)
    return nvml
