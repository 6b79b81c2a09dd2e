"""A host with two GPUs that there are not, for a bench in a process of its own: `pytest -p tests.fake_host suites …`.

What asks for GPUs finds them; their workers measure on the CPU. `FAKE_HOST` names a folder for what NVML is asked to
change, and `FAKE_UUIDS` the GPUs, so that tests beside each other do not wait for one another's.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import pynvml

from harness import device
from harness.device import gpus
from harness.device.gpus import Gpu
from harness.worker import WorkerSpec
from kernels import registry
from tests.fake_nvml import FakeGpu, FakeNvml

NAME = "NVIDIA H200"


def fake_gpus(uuids: Sequence[str], *, refused: Sequence[str] = ()) -> list[FakeGpu]:
    """Two boards or more of one model; this user may not lock the clocks of those that are `refused`."""
    no = {"nvmlDeviceSetGpuLockedClocks": pynvml.NVML_ERROR_NO_PERMISSION}
    return [
        FakeGpu(uuid=uuid, name=NAME, bus_id=f"00000000:{place:02X}:00.0", errors=no if uuid in refused else {})
        for place, uuid in enumerate(uuids, start=1)
    ]


def be_host(uuids: Sequence[str], folder: Path, *, refused: Sequence[str] = ()) -> None:
    """From here on this process finds these GPUs."""
    sys.modules["pynvml"] = FakeNvml(fake_gpus(uuids, refused=refused), calls=folder / "calls")  # type: ignore[assignment]
    gpus.numbered_gpus = lambda: tuple(Gpu(name=NAME, uuid=uuid) for uuid in uuids)
    device.installed_torch = lambda: device.TorchBuild(version="2.13.0+cu130", cuda="13.0")
    registry.prepare = lambda _device_type: ()
    command = WorkerSpec.command
    WorkerSpec.command = lambda self: [  # type: ignore[method-assign]
        "cpu" if word == self.device else word for word in command(self)
    ]


if "FAKE_HOST" in os.environ:
    be_host(os.environ["FAKE_UUIDS"].split(","), Path(os.environ["FAKE_HOST"]))
