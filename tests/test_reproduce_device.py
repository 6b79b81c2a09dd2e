"""harness.reproduce.device: a run is tried on a device like its own alone."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harness.children import Ended
from harness.device import GpuStatus, Usability
from harness.errors import CommandError
from harness.reproduce import device
from tests.checkouts import COMMIT, measured
from tests.sample_run import cpu_run, gpu_run


def test_a_gpu_run_needs_a_usable_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """The line of the machine, code 6."""
    monkeypatch.setattr(device, "gpu_status", lambda *_: GpuStatus(word=Usability.NONE, reason="no NVIDIA GPU found"))
    with pytest.raises(CommandError) as error:
        device.check_device(gpu_run())
    wanted = "the run is of NVIDIA H200, this machine has no usable GPU: no NVIDIA GPU found"
    assert (str(error.value), error.value.code) == (f"cannot be tried: {wanted}", 6)


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        ({}, None),
        ({"gpu_name": "NVIDIA A100"}, "other GPU model: NVIDIA A100 against NVIDIA H200"),
        ({"sm_count": 16}, "other sm_count: 16 against 132"),  # a MIG instance of it
        ({"torch_version": "9.9", "allow_tf32": True}, None),
    ],
)
def test_another_gpu_is_not_comparable(
    facts: dict[str, Any], reason: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Code 3, before anything is built; what this process's torch is set to says nothing of a bench's."""
    run = gpu_run()
    here = {**run.environment.values, **facts}
    monkeypatch.setattr(device, "gpu_status", lambda *_: GpuStatus(word=Usability.USABLE))
    answer = Ended(code=0, stdout=json.dumps({"values": here, "unknown": {}}))
    monkeypatch.setattr(device, "ask", lambda *_: answer)
    if reason is None:
        device.check_device(run)
        return
    with pytest.raises(CommandError) as error:
        device.check_device(run)
    assert (str(error.value), error.value.code) == (f"cannot be tried: {reason}", 3)


def test_another_cpu_is_not_comparable() -> None:
    """Code 3; this one is."""
    device.check_device(measured(cpu_run(), COMMIT))
    with pytest.raises(CommandError, match=r"^cannot be tried: other device: .* against Other CPU$") as error:
        device.check_device(measured(cpu_run(), COMMIT, device_name="Other CPU"))
    assert error.value.code == 3
