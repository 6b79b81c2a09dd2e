"""A registry whose device is lost for good by one of its kernels: no worker can start from then on."""

from __future__ import annotations

import os
from pathlib import Path

from harness.model import Kernel, Operands, Role
from tests import planted_kernels
from tests.planted_kernels import prepare

GONE = "SGEMV_TEST_DEVICE_GONE"
"""Environment variable that names the file whose being there means that the device is gone."""

__all__ = ["GONE", "kernels", "load", "prepare"]


def falls_off_the_bus(_: Operands) -> None:
    Path(os.environ[GONE]).touch()
    os._exit(3)


def kernels() -> dict[str, Kernel]:
    """Those that are planted, and the one that ends the device."""
    lost = planted_kernels._kernel(falls_off_the_bus, Role.GEMV)
    return {**planted_kernels.kernels(), lost.name: lost}


def load(_device_type: str) -> None:
    """As CUDA starts, or not."""
    if Path(os.environ[GONE]).exists():
        raise RuntimeError("No CUDA GPUs are available")
