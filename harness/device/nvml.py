"""NVML, and the GPUs that it lists: what it says of each is in `harness.device.nvml_device`.

Nothing here raises for what a driver refuses, lacks or loses: the answer is then an `Unknown` with the reason.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from harness.answers import Unknown, ask
from harness.device.nvml_device import NvmlDevice, cuda_driver_version, driver_version


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

    def devices(self) -> Iterator[NvmlDevice]:
        """Every GPU in NVML's order; in place of one that is split, its MIG instances."""
        library, count = self._library, self.device_count()
        for index in range(0 if isinstance(count, Unknown) else count):
            handle = ask(library, "nvmlDeviceGetHandleByIndex", index)
            if isinstance(handle, Unknown):
                continue  # one that fell off its bus; CUDA does not show it either
            board = NvmlDevice(library, handle)
            yield from board.instances() if board.is_split else (board,)

    def cuda_driver_version(self) -> str | Unknown:
        """Newest CUDA that the driver supports, e.g. `13.0`."""
        return cuda_driver_version(self._library)

    def driver_version(self) -> str | Unknown:
        """The driver's version, e.g. `580.159.04`."""
        return driver_version(self._library)

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
                return NvmlDevice(self._library, handle)
            reasons.append(f"{key}: {handle.reason}")
        return Unknown(reason="NVML finds no such GPU: " + ("; ".join(reasons) or "no UUID and no PCI bus id given"))


def _uuid_names(uuid: str | None) -> Iterator[str]:
    """The names that NVML may know this UUID by: torch leaves out the prefix, of a MIG instance too."""
    if uuid and uuid.startswith(("GPU-", "MIG-")):
        yield uuid
    elif uuid:
        yield from (f"GPU-{uuid}", f"MIG-{uuid}")


__all__ = ["Nvml", "NvmlDevice", "NvmlUnavailable"]
