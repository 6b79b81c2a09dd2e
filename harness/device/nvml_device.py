"""One GPU as its driver sees it: clocks, power, temperature, limits, through NVML.

Nothing here raises for what a driver refuses, lacks or loses: the answer is then an `Unknown` with the reason.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any

from harness.answers import Fact, Unknown, ask, first, mapped, split, table
from harness.device.nvml_names import (
    COMPUTE_MODES,
    LIMIT_FIELDS,
    LIMIT_POLICIES,
    POWER_INSTANT_FIELD,
    VALUE_FIELDS,
    cuda_version,
    reason_names,
    text,
)
from harness.model import DeviceState, Environment


class NvmlDevice:
    """One GPU, or one MIG instance of a GPU.

    Clocks, power, temperature and settings belong to the whole board: an instance answers with its board's.
    """

    def __init__(self, library: Any, handle: Any) -> None:
        """Wrap a handle of `library`, started; use `Nvml.find`."""
        self._library, self._handle = library, handle
        board = ask(library, "nvmlDeviceGetDeviceHandleFromMigDeviceHandle", handle)
        self.is_instance = not isinstance(board, Unknown)
        self._board = board if self.is_instance else handle

    @property
    def is_split(self) -> bool:
        """Whether this is a board in MIG mode: CUDA then shows its instances alone."""
        return not self.is_instance and self._mig() is True

    def instances(self) -> Iterator[NvmlDevice]:
        """The MIG instances of a board."""
        most = ask(self._library, "nvmlDeviceGetMaxMigDeviceCount", self._board)
        for index in range(0 if isinstance(most, Unknown) else most):
            handle = ask(self._library, "nvmlDeviceGetMigDeviceHandleByIndex", self._board, index)
            if not isinstance(handle, Unknown):  # there are fewer than there could be
                yield NvmlDevice(self._library, handle)

    def name(self) -> str | Unknown:
        """E.g. `NVIDIA H200`, `NVIDIA H200 MIG 1g.18gb`."""
        return mapped(ask(self._library, "nvmlDeviceGetName", self._handle), text)

    def uuid(self) -> str | Unknown:
        """With its prefix: `GPU-8f1c…`, `MIG-…`."""
        return mapped(ask(self._library, "nvmlDeviceGetUUID", self._handle), text)

    def sm_clock_mhz(self) -> int | Unknown:
        """At this moment, of the board."""
        clock: int | Unknown = ask(self._library, "nvmlDeviceGetClockInfo", self._board, self._library.NVML_CLOCK_SM)
        return clock

    def supported_sm_clocks_mhz(self) -> list[int] | Unknown:
        """Every SM clock that the board has at its highest memory clock, ascending."""
        memory = ask(self._library, "nvmlDeviceGetSupportedMemoryClocks", self._board)
        if isinstance(memory, Unknown):
            return memory
        return mapped(ask(self._library, "nvmlDeviceGetSupportedGraphicsClocks", self._board, max(memory)), sorted)

    def lock_sm_clock(self, mhz: int) -> Unknown | None:
        """Hold the board's SM clock at `mhz` until it is unlocked or the driver reloaded; why it is not, or None."""
        refused: Unknown | None = ask(self._library, "nvmlDeviceSetGpuLockedClocks", self._board, mhz, mhz)
        return refused

    def unlock_sm_clock(self) -> Unknown | None:
        """Let the board's SM clock go, whoever locked it; why it is not, or None."""
        refused: Unknown | None = ask(self._library, "nvmlDeviceResetGpuLockedClocks", self._board)
        return refused

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
                "sm_clock_mhz": self.sm_clock_mhz(),
                "memory_clock_mhz": ask(library, "nvmlDeviceGetClockInfo", board, library.NVML_CLOCK_MEM),
                "temperature_c": first(library, temperature, board, library.NVML_TEMPERATURE_GPU),
                "power_mw": power_mw,
                "power_is_instant": power_is_instant,
                "clock_event_reasons": mapped(first(library, reasons, board), reason_names),
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
        name = mapped(ask(self._library, "nvmlSystemGetProcessName", pid), text)
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
        member = VALUE_FIELDS.get(field.valueType)
        if member is None:
            return Unknown(reason=f"NVML field {field.fieldId}: value type {field.valueType} is not known here")
        return int(getattr(field.value, member))

    def _identity(self) -> dict[str, Fact]:
        library = self._library
        pci = ask(library, "nvmlDeviceGetPciInfo", self._board)
        return {
            "gpu_name": self.name(),
            "gpu_uuid": self.uuid(),
            "gpu_pci_bus_id": mapped(pci, lambda info: text(info.busId)),
            "vbios_version": mapped(ask(library, "nvmlDeviceGetVbiosVersion", self._board), text),
            "driver_version": driver_version(library),
            "cuda_driver_version": cuda_driver_version(library),
        }

    def _mig(self) -> bool | Unknown:
        return mapped(ask(self._library, "nvmlDeviceGetMigMode", self._board), lambda modes: bool(modes[0]))

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
            "mig": self._mig(),
            "persistence": mapped(ask(library, "nvmlDeviceGetPersistenceMode", board), bool),
            "compute_mode": mapped(compute_mode, lambda mode: COMPUTE_MODES.get(mode, f"mode {mode}")),
        }


def driver_version(library: Any) -> str | Unknown:
    """The driver's version, e.g. `580.159.04`."""
    return mapped(ask(library, "nvmlSystemGetDriverVersion"), text)


def cuda_driver_version(library: Any) -> str | Unknown:
    """Newest CUDA that the driver supports, e.g. `13.0`."""
    names = ("nvmlSystemGetCudaDriverVersion_v2", "nvmlSystemGetCudaDriverVersion")
    return mapped(first(library, names), cuda_version)
