"""A GPU of the fake NVML, held as by a bench that is about to measure on it, and what that warns of."""

from __future__ import annotations

import sys

import filelock
import pytest

from harness.device.held_gpu import HeldGpu
from tests.fake_nvml import FakeNvml
from tests.small_bench import options


def on_gpu(fake: FakeNvml, naps: list[float] | None = None, **facts: str) -> HeldGpu:
    """The GPU with these facts, of a bench that is about to measure on it."""
    sleep = (naps if naps is not None else []).append
    with pytest.MonkeyPatch.context() as patched:
        patched.setitem(sys.modules, "pynvml", fake)
        patched.setattr("harness.device.held_gpu.uuid_of", lambda _: "the lock's name")
        gpu = HeldGpu(options(device="cuda:0"), print, sleep)
        gpu.turn = filelock.FileLock("ours")
        gpu.find(facts or {"gpu_uuid": fake.gpus[0].uuid})
    return gpu


def warned(gpu: HeldGpu) -> list[str]:
    """Its one worker, number 13, idles."""
    return list(gpu.warnings([13]))
