"""harness.device.nvml against a fake driver: how it starts, and which GPU it finds by what it is."""

from __future__ import annotations

import sys

import pynvml
import pytest

from harness.answers import Unknown
from harness.device.nvml import Nvml, NvmlDevice, NvmlUnavailable
from tests.fake_nvml import FakeGpu, FakeNvml, opened


def test_readings_after_close_are_unknown():
    fake = FakeNvml()
    nvml = opened(fake)
    found = nvml.find(uuid=fake.gpus[0].uuid, pci_bus_id=None)
    nvml.close()
    assert isinstance(found, NvmlDevice)
    assert found.state().unknown["sm_clock_mhz"] == "nvmlDeviceGetClockInfo: Uninitialized"


REORDERED = [
    FakeGpu(uuid="GPU-aaaaaaaa-0000-0000-0000-000000000000", bus_id="00000000:1B:00.0", name="first"),
    FakeGpu(uuid="GPU-bbbbbbbb-0000-0000-0000-000000000000", bus_id="00000000:43:00.0", name="second"),
]


@pytest.mark.parametrize(
    ("uuid", "pci_bus_id", "name"),
    [
        ("GPU-bbbbbbbb-0000-0000-0000-000000000000", None, "second"),
        ("bbbbbbbb-0000-0000-0000-000000000000", None, "second"),  # as torch gives it
        ("bbbbbbbb-0000-0000-0000-000000000000", "00000000:1B:00.0", "second"),  # the UUID decides
        (None, "00000000:43:00.0", "second"),
        ("cccccccc-0000-0000-0000-000000000000", "00000000:43:00.0", "second"),
        ("aaaaaaaa-0000-0000-0000-000000000000", None, "first"),
    ],
)
@pytest.mark.parametrize("text_as_bytes", [False, True])
def test_reordered_devices_are_found_by_what_they_are(uuid, pci_bus_id, name, text_as_bytes):
    """With CUDA_VISIBLE_DEVICES=1,0 torch's cuda:0 is NVML's second GPU: index plays no part."""
    found = opened(FakeNvml(REORDERED, text_as_bytes=text_as_bytes)).find(uuid=uuid, pci_bus_id=pci_bus_id)
    assert isinstance(found, NvmlDevice)
    assert found.facts().get("gpu_name") == name


def test_a_gpu_that_nvml_does_not_list():
    """The reason names all that was tried."""
    nvml = opened(FakeNvml(REORDERED))
    assert nvml.find(uuid="cc", pci_bus_id="00000000:99:00.0") == Unknown(
        reason="NVML finds no such GPU: GPU-cc: nvmlDeviceGetHandleByUUID: Not Found; "
        "MIG-cc: nvmlDeviceGetHandleByUUID: Not Found; "
        "00000000:99:00.0: nvmlDeviceGetHandleByPciBusId: Not Found"
    )
    assert nvml.find(uuid=None, pci_bus_id=None) == Unknown(
        reason="NVML finds no such GPU: no UUID and no PCI bus id given"
    )


@pytest.mark.parametrize("uuid", ["MIG-dddddddd-0000-0000-0000-000000000000", "dddddddd-0000-0000-0000-000000000000"])
def test_a_mig_instance(uuid):
    """Found by its own UUID; its name and processes are its own, clocks and settings those of its board."""
    board = FakeGpu(mig_mode=1, sm_clock_mhz=1755, limited_ns={74: 6}, processes={7: "elsewhere"})
    instance = FakeGpu(
        uuid="MIG-dddddddd-0000-0000-0000-000000000000",
        name="NVIDIA H200 MIG 1g.18gb",
        parent=board,
        processes={9: "here"},
    )
    found = opened(FakeNvml([board, instance])).find(uuid=uuid, pci_bus_id=board.bus_id)
    assert isinstance(found, NvmlDevice)
    state, facts = found.state(), found.facts()
    assert (state.sm_clock_mhz, state.limited_ns, state.unknown) == (1755, {"sw_power_cap": 6}, {})
    assert facts.get("gpu_name") == "NVIDIA H200 MIG 1g.18gb"
    assert facts.get("gpu_uuid") == "MIG-dddddddd-0000-0000-0000-000000000000"
    assert facts.get("mig") is True
    assert found.processes() == ("here (pid 9)",)


@pytest.mark.parametrize(
    ("error", "blocks_cuda", "says"),
    [
        (pynvml.NVML_ERROR_LIBRARY_NOT_FOUND, False, "libnvidia-ml.so.1"),
        (pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH, True, "differ in version, as after a driver update: reboot"),
        (pynvml.NVML_ERROR_DRIVER_NOT_LOADED, False, "NVML does not start: Driver Not Loaded"),
        (pynvml.NVML_ERROR_NO_PERMISSION, False, "NVML does not start: Insufficient Permissions"),
    ],
)
def test_nvml_that_does_not_start(error, blocks_cuda, says):
    """One line with the reason, and whether CUDA is broken by it too."""
    outcome = Nvml.open(FakeNvml(init_error=error))
    assert isinstance(outcome, NvmlUnavailable)
    assert says in outcome.reason
    assert "\n" not in outcome.reason
    assert outcome.blocks_cuda is blocks_cuda


def test_nvidia_ml_py_is_not_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", None)  # makes `import pynvml` raise ImportError
    outcome = Nvml.open()
    assert isinstance(outcome, NvmlUnavailable)
    assert "pip install nvidia-ml-py" in outcome.reason
