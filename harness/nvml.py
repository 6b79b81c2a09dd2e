"""The device as its driver sees it: clocks, power, temperature, limits, through NVML.

Nothing here raises for what a driver refuses, lacks or loses: the answer is then an `Unknown` with the reason.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from harness.answers import Fact, Unknown, ask, first, mapped, split, table
from harness.model import DeviceState, Environment

POWER_INSTANT_FIELD = 186
"""NVML_FI_DEV_POWER_INSTANT, which older versions of nvidia-ml-py do not name."""

LIMIT_FIELDS = {
    74: "sw_power_cap",
    75: "thermal",
    76: "sync_boost",
    77: "board_limit",
    79: "reliability",
    269: "sw_thermal_slowdown",
    270: "hw_thermal_slowdown",
    271: "hw_power_brake_slowdown",
}
"""NVML_FI_DEV_PERF_POLICY_… and NVML_FI_DEV_CLOCKS_EVENT_REASON_…: ns that a limit has held the clocks back."""

LIMIT_POLICIES = {0: "sw_power_cap", 1: "thermal", 2: "sync_boost", 3: "board_limit", 5: "reliability"}
"""nvmlPerfPolicyType_t: the same counters one by one, for drivers without the fields."""

CLOCK_EVENT_REASONS = {
    0x001: "gpu_idle",
    0x002: "applications_clocks_setting",
    0x004: "sw_power_cap",
    0x008: "hw_slowdown",
    0x010: "sync_boost",
    0x020: "sw_thermal_slowdown",
    0x040: "hw_thermal_slowdown",
    0x080: "hw_power_brake_slowdown",
    0x100: "display_clock_setting",
    0x200: "board_limit",
    0x400: "reliability",
}
"""Bits of nvmlDeviceGetCurrentClocksEventReasons (nvml.h)."""

COMPUTE_MODES = {0: "default", 1: "exclusive_thread", 2: "prohibited", 3: "exclusive_process"}
"""nvmlComputeMode_t."""

_VALUE_FIELDS = {0: "dVal", 1: "uiVal", 2: "ulVal", 3: "ullVal", 4: "sllVal", 5: "siVal", 6: "usVal"}
"""nvmlValueType_t → the member of nvmlValue_t that holds the value."""


@dataclass(frozen=True, kw_only=True)
class NvmlUnavailable(Unknown):
    """NVML as a whole cannot be used."""

    blocks_cuda: bool
    """True: what is wrong keeps CUDA from working too, so a GPU of this machine is unusable."""


class Nvml:
    """NVML, started."""

    def __init__(self, library: Any) -> None:
        """Wrap `library` (the pynvml module, or one that looks like it), whose nvmlInit has succeeded."""
        self._library = library

    @classmethod
    def open(cls, library: Any = None) -> Nvml | NvmlUnavailable:
        """NVML started through `library` (default: the installed pynvml), or why there is none on this machine."""
        if library is None:
            try:
                import pynvml
            except ImportError:
                reason = "the Python package nvidia-ml-py is not installed: pip install nvidia-ml-py"
                return NvmlUnavailable(reason=reason, blocks_cuda=False)
            library = pynvml
        try:
            library.nvmlInit()
        except library.NVMLError_LibraryNotFound:
            reason = "the NVML library (libnvidia-ml.so.1) does not load: no NVIDIA driver, or not in this container"
            return NvmlUnavailable(reason=reason, blocks_cuda=False)
        except library.NVMLError_LibRmVersionMismatch:
            return NvmlUnavailable(
                reason="the NVIDIA driver's libraries and its kernel module differ in version, as after a driver "
                "update: reboot, or reload the kernel module",
                blocks_cuda=True,
            )
        except library.NVMLError as error:
            return NvmlUnavailable(reason=f"NVML does not start: {error}", blocks_cuda=False)
        return cls(library)

    def close(self) -> None:
        """Shut NVML down; later readings through its devices are `Unknown`."""
        ask(self._library, "nvmlShutdown")

    def device_count(self) -> int | Unknown:
        """GPUs that NVML lists; CUDA_VISIBLE_DEVICES does not change it."""
        count: int | Unknown = ask(self._library, "nvmlDeviceGetCount")
        return count

    def cuda_driver_version(self) -> str | Unknown:
        """Newest CUDA that the driver supports, e.g. `13.0`."""
        names = ("nvmlSystemGetCudaDriverVersion_v2", "nvmlSystemGetCudaDriverVersion")
        return mapped(first(self._library, names), _cuda_version)

    def driver_version(self) -> str | Unknown:
        """The driver's version, e.g. `580.159.04`."""
        return mapped(ask(self._library, "nvmlSystemGetDriverVersion"), _text)

    def find(self, *, uuid: str | None, pci_bus_id: str | None) -> NvmlDevice | Unknown:
        """The GPU (or MIG instance) with this UUID, else the one at this PCI address.

        Never by index: CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER make torch's indices differ from NVML's.

        Args:
            uuid: with its `GPU-` or `MIG-` prefix, or bare as torch gives it.
            pci_bus_id: `domain:bus:device.function` in hexadecimal digits.
        """
        keys = [("nvmlDeviceGetHandleByUUID", name) for name in _uuid_names(uuid)]
        keys += [("nvmlDeviceGetHandleByPciBusId", pci_bus_id)] if pci_bus_id else []
        reasons = []
        for function, key in keys:
            handle = ask(self._library, function, key.encode())  # older versions take nothing but bytes
            if not isinstance(handle, Unknown):
                return NvmlDevice(self, self._library, handle)
            reasons.append(f"{key}: {handle.reason}")
        return Unknown(reason="NVML finds no such GPU: " + ("; ".join(reasons) or "no UUID and no PCI bus id given"))


class NvmlDevice:
    """One GPU, or one MIG instance of a GPU.

    Clocks, power, temperature and settings belong to the whole board: an instance answers with its board's.
    """

    def __init__(self, nvml: Nvml, library: Any, handle: Any) -> None:
        """Wrap a handle that `nvml` gave; use `Nvml.find`."""
        self._nvml, self._library, self._handle = nvml, library, handle
        board = ask(library, "nvmlDeviceGetDeviceHandleFromMigDeviceHandle", handle)
        self._board = handle if isinstance(board, Unknown) else board

    def state(self) -> DeviceState:
        """One reading of the device; takes milliseconds, and no reading that fails stops the others."""
        started_unix_s = time.time()
        library, board = self._library, self._board
        fields = self._fields((POWER_INSTANT_FIELD, *LIMIT_FIELDS))  # first: counters of the moment that is noted
        power_mw, power_is_instant = self._power(fields[POWER_INSTANT_FIELD])
        reasons = ("nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons")
        temperature = ("nvmlDeviceGetTemperatureV", "nvmlDeviceGetTemperature")
        readings, unknown = split(
            {
                "sm_clock_mhz": ask(library, "nvmlDeviceGetClockInfo", board, library.NVML_CLOCK_SM),
                "memory_clock_mhz": ask(library, "nvmlDeviceGetClockInfo", board, library.NVML_CLOCK_MEM),
                "temperature_c": first(library, temperature, board, library.NVML_TEMPERATURE_GPU),
                "power_mw": power_mw,
                "power_is_instant": power_is_instant,
                "clock_event_reasons": mapped(first(library, reasons, board), _reason_names),
                "limited_ns": self._limited_ns(fields),
            }
        )
        return DeviceState(time_unix_s=started_unix_s, **readings, unknown=unknown)

    def energy_mj(self) -> int | Unknown:
        """What the board has taken since its driver was loaded, in mJ; it moves in ticks, some of 0.1 s."""
        taken: int | Unknown = ask(self._library, "nvmlDeviceGetTotalEnergyConsumption", self._board)
        return taken

    def instant_power_mw(self) -> int | Unknown:
        """Board power at this moment, in mW, never the average over the second before it."""
        return self._fields((POWER_INSTANT_FIELD,))[POWER_INSTANT_FIELD]

    def facts(self) -> Environment:
        """What does not change while a run is measured, under the keys of `environment.ENVIRONMENT_KEYS`."""
        return table(self._identity() | self._settings())

    def processes(self, *, exclude_pids: Collection[int] = ()) -> tuple[str, ...] | Unknown:
        """Compute processes on this GPU besides our own, as `name (pid 812)` or `pid 812`.

        Args:
            exclude_pids: our own processes that use the GPU. If the driver lists others but none of these, it numbers
                processes as a container's host does, and whose they are cannot be told.
        """
        running = ask(self._library, "nvmlDeviceGetComputeRunningProcesses", self._handle)
        if isinstance(running, Unknown):
            return running
        pids = {process.pid for process in running}
        if pids and exclude_pids and pids.isdisjoint(exclude_pids):
            return Unknown(reason="the driver numbers processes otherwise than this container does")
        return tuple(self._process_label(pid) for pid in sorted(pids.difference(exclude_pids)))

    def utilization_percent(self) -> int | Unknown:
        """Share of the last sampling period, up to a second, in which a kernel of anybody ran on this GPU."""
        rates = ask(self._library, "nvmlDeviceGetUtilizationRates", self._handle)
        return mapped(rates, lambda rates: int(rates.gpu))

    def _process_label(self, pid: int) -> str:
        name = mapped(ask(self._library, "nvmlSystemGetProcessName", pid), _text)
        return f"pid {pid}" if isinstance(name, Unknown) or not name else f"{PurePath(name).name} (pid {pid})"

    def _power(self, instant: int | Unknown) -> tuple[int | Unknown, bool | Unknown]:
        """Board power in mW, and whether it is instantaneous."""
        if not isinstance(instant, Unknown):
            return instant, True
        average = ask(self._library, "nvmlDeviceGetPowerUsage", self._board)
        if not isinstance(average, Unknown):
            return average, False
        both = Unknown(reason=f"{instant.reason}; {average.reason}")
        return both, both

    def _limited_ns(self, fields: Mapping[int, int | Unknown]) -> dict[str, int] | Unknown:
        """By limit that this device counts: ns that it has held the clocks back since the driver was loaded."""
        answers = {name: fields[field] for field, name in LIMIT_FIELDS.items()}
        counted = {name: answer for name, answer in answers.items() if not isinstance(answer, Unknown)}
        if counted:
            return counted
        for policy, name in LIMIT_POLICIES.items():
            status = ask(self._library, "nvmlDeviceGetViolationStatus", self._board, policy)
            if isinstance(status, Unknown):
                answers[f"policy {policy}"] = status
            else:
                counted[name] = int(status.violationTime)
        reasons = dict.fromkeys(answer.reason for answer in answers.values() if isinstance(answer, Unknown))
        return counted or Unknown(reason="; ".join(reasons))

    def _fields(self, wanted: Sequence[int]) -> dict[int, int | Unknown]:
        """The values of these fields, by one call: some take half a millisecond each if asked for alone."""
        answers = ask(self._library, "nvmlDeviceGetFieldValues", self._board, list(wanted))
        if isinstance(answers, Unknown):
            return dict.fromkeys(wanted, answers)
        return {field: self._field_value(answer) for field, answer in zip(wanted, answers, strict=True)}

    def _field_value(self, field: Any) -> int | Unknown:
        """The value of one field, each of which carries its own error code."""
        if field.nvmlReturn != self._library.NVML_SUCCESS:
            return Unknown(reason=f"NVML field {field.fieldId}: {self._library.NVMLError(field.nvmlReturn)}")
        member = _VALUE_FIELDS.get(field.valueType)
        if member is None:
            return Unknown(reason=f"NVML field {field.fieldId}: value type {field.valueType} is not known here")
        return int(getattr(field.value, member))

    def _identity(self) -> dict[str, Fact]:
        library = self._library
        pci = ask(library, "nvmlDeviceGetPciInfo", self._board)
        return {
            "gpu_name": mapped(ask(library, "nvmlDeviceGetName", self._handle), _text),
            "gpu_uuid": mapped(ask(library, "nvmlDeviceGetUUID", self._handle), _text),
            "gpu_pci_bus_id": mapped(pci, lambda info: _text(info.busId)),
            "vbios_version": mapped(ask(library, "nvmlDeviceGetVbiosVersion", self._board), _text),
            "driver_version": self._nvml.driver_version(),
            "cuda_driver_version": self._nvml.cuda_driver_version(),
        }

    def _settings(self) -> dict[str, Fact]:
        library, board = self._library, self._board
        sm, memory = library.NVML_CLOCK_SM, library.NVML_CLOCK_MEM
        power_limit = ("nvmlDeviceGetEnforcedPowerLimit", "nvmlDeviceGetPowerManagementLimit")
        compute_mode = ask(library, "nvmlDeviceGetComputeMode", board)
        return {
            "power_limit_mw": first(library, power_limit, board),
            "power_limit_default_mw": ask(library, "nvmlDeviceGetPowerManagementDefaultLimit", board),
            "max_sm_clock_mhz": ask(library, "nvmlDeviceGetMaxClockInfo", board, sm),
            "max_memory_clock_mhz": ask(library, "nvmlDeviceGetMaxClockInfo", board, memory),
            "application_sm_clock_mhz": ask(library, "nvmlDeviceGetApplicationsClock", board, sm),
            "application_memory_clock_mhz": ask(library, "nvmlDeviceGetApplicationsClock", board, memory),
            "ecc": mapped(ask(library, "nvmlDeviceGetEccMode", board), lambda modes: bool(modes[0])),
            "mig": mapped(ask(library, "nvmlDeviceGetMigMode", board), lambda modes: bool(modes[0])),
            "persistence": mapped(ask(library, "nvmlDeviceGetPersistenceMode", board), bool),
            "compute_mode": mapped(compute_mode, lambda mode: COMPUTE_MODES.get(mode, f"mode {mode}")),
        }


def _text(name: str | bytes) -> str:
    return name.decode(errors="replace") if isinstance(name, bytes) else name


def _cuda_version(number: int) -> str:
    """13000 → `13.0`, as cuda.h writes CUDA_VERSION."""
    return f"{number // 1000}.{number % 1000 // 10}"


def _uuid_names(uuid: str | None) -> Iterator[str]:
    """The names that NVML may know this UUID by: torch leaves out the prefix, of a MIG instance too."""
    if uuid and uuid.startswith(("GPU-", "MIG-")):
        yield uuid
    elif uuid:
        yield from (f"GPU-{uuid}", f"MIG-{uuid}")


def _reason_names(bits: int) -> tuple[str, ...]:
    """`gpu_idle` … by ascending bit; a bit that nvml.h does not name here reads `reason_0x800`."""
    present = (1 << position for position in range(bits.bit_length()) if bits >> position & 1)
    return tuple(CLOCK_EVENT_REASONS.get(bit, f"reason_{bit:#x}") for bit in present)
