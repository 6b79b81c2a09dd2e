"""The GPUs that a bench may be asked to measure on: as CUDA counts them, and by UUID.

CUDA is asked in a process of its own, since the parent of a bench never touches it. Of the instances of GPUs that are
split (MIG) it shows a process one at most, and then no other GPU: NVML lists them, and each is measured by a process
that is shown nothing else.
"""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.answers import Unknown
from harness.device.driver import DriverError, driver_call
from harness.device.nvml import Nvml, NvmlDevice
from harness.errors import Exit, first_line

VISIBLE = "CUDA_VISIBLE_DEVICES"
"""Environment variable that says which GPUs CUDA shows a process, by number or UUID, with commas."""

PREFIXES = ("GPU-", "MIG-")
"""Of UUIDs as the driver's tools and `VISIBLE` know them; CUDA itself leaves them out."""

PROBE_S = 60.0
"""How long the driver may take to name the GPUs."""

_NAME_BYTES = 256


@dataclass(frozen=True, kw_only=True)
class Gpu:
    """A GPU, or an instance of one."""

    name: str
    """E.g. `NVIDIA H200`, `NVIDIA H200 MIG 1g.18gb`."""
    uuid: str
    """With its prefix."""

    @property
    def text(self) -> str:
        """For an error's line."""
        return f"{self.uuid} ({self.name})"


def bare(uuid: str) -> str:
    """A UUID as CUDA writes it."""
    return uuid[len(PREFIXES[0]) :] if uuid.startswith(PREFIXES) else uuid


def numbered_gpus() -> tuple[Gpu, ...] | Unknown:
    """Those that CUDA shows this process, by the number that torch knows them by; makes no context on any."""
    command, root = [sys.executable, "-m", __name__], Path(__file__).resolve().parents[2]
    try:
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False, timeout=PROBE_S)
    except subprocess.TimeoutExpired:
        return Unknown(reason=f"the driver named no GPU within {PROBE_S:.0f} s")
    if done.returncode != 0:
        return Unknown(reason=(done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1])
    return tuple(Gpu(name=name, uuid=f"{PREFIXES[0]}{found}") for name, found in json.loads(done.stdout))


def uuid_of(device: str) -> str | Unknown:
    """Bare UUID of a GPU as torch counts them.

    Args:
        device: as torch names it, e.g. `cuda:0`.
    """
    found, index = numbered_gpus(), int(device.partition(":")[2] or 0)
    if isinstance(found, Unknown):
        return found
    return bare(found[index].uuid) if index < len(found) else Unknown(reason=f"CUDA shows {len(found)} GPUs")


def every_gpu(nvml: Nvml | Unknown, environ: Mapping[str, str] = os.environ) -> tuple[Gpu, ...] | Unknown:
    """All that this process may use; `Unknown`: why there are none.

    Args:
        nvml: from `Nvml.open`.
        environ: where `VISIBLE` is looked up.
    """
    listed = () if isinstance(nvml, Unknown) else tuple(nvml.devices())
    if not any(device.is_instance for device in listed):
        return numbered_gpus() or Unknown(reason="CUDA shows none")
    known = [gpu for device in listed if (gpu := _known(device)) is not None]
    return tuple(known) if VISIBLE not in environ else _named(known, environ[VISIBLE])


def _known(device: NvmlDevice) -> Gpu | None:
    uuid, name = device.uuid(), device.name()
    return None if isinstance(uuid, Unknown) else Gpu(uuid=uuid, name="?" if isinstance(name, Unknown) else name)


def _named(known: Sequence[Gpu], visible: str) -> tuple[Gpu, ...] | Unknown:
    """Those that the variable names, in its order; CUDA takes the start of a UUID for it."""
    words = [word for word in visible.split(",") if word]
    if not all(word.startswith(PREFIXES) for word in words):
        what = f"{VISIBLE} is {visible!r}, and a GPU here is split (MIG): name each by its UUID"
        return Unknown(reason=f"{what}, as nvidia-smi -L shows them")
    found = dict.fromkeys(gpu for word in words for gpu in known if gpu.uuid.startswith(word))
    return tuple(found) or Unknown(reason=f"{VISIBLE} is {visible!r}, which names none")


def _ask_driver() -> list[tuple[str, str]]:
    """Name and bare UUID of every GPU that CUDA shows this process.

    Source: cuDeviceGetName and cuDeviceGetUuid_v2 of the CUDA driver API; of an instance the latter is its own.

    Raises:
        DriverError: the driver refused.
        OSError: there is no driver.
    """
    count = ctypes.c_int()
    driver_call("cuInit", 0)
    driver_call("cuDeviceGetCount", ctypes.byref(count))
    return [_ask_gpu(index) for index in range(count.value)]


def _ask_gpu(index: int) -> tuple[str, str]:
    device, name, found = ctypes.c_int(), ctypes.create_string_buffer(_NAME_BYTES), (ctypes.c_ubyte * 16)()
    driver_call("cuDeviceGet", ctypes.byref(device), index)
    driver_call("cuDeviceGetName", name, _NAME_BYTES, device)
    driver_call("cuDeviceGetUuid_v2", ctypes.byref(found), device)
    return name.value.decode(errors="replace"), str(uuid.UUID(bytes=bytes(found)))


def main() -> int:
    """Print the GPUs that CUDA shows this process."""
    try:
        sys.stdout.write(f"{json.dumps(_ask_driver())}\n")
    except (DriverError, OSError) as error:
        sys.stderr.write(f"{first_line(error)}\n")
        return Exit.INFRASTRUCTURE
    return Exit.FINE


if __name__ == "__main__":
    sys.exit(main())
