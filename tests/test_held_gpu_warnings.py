"""harness.device.held_gpu: what is said before the first sample of others on the GPU and of a missing NVML."""

from __future__ import annotations

import pynvml
import pytest

from tests.fake_nvml import FakeGpu, FakeNvml
from tests.held_gpu import on_gpu, warned

BUSY = "The GPU was already busy (37 % by NVML) before the first sample, while no worker of this bench ran."
NUMBERED_OTHERWISE = {90013: "python3"}
"""Processes as a container's driver numbers them."""


def test_a_gpu_of_our_own_has_no_warning() -> None:
    """It is asked at once and waited for in no case."""
    naps: list[float] = []
    assert warned(on_gpu(FakeNvml([FakeGpu(processes={13: "python3"}, utilization_percent=9)]), naps)) == []
    assert naps == []


@pytest.mark.parametrize("processes", [NUMBERED_OTHERWISE, {}, {13: "python3"}])
def test_a_gpu_that_others_keep_busy_is_named_before_the_first_sample(processes: dict[int, str]) -> None:
    """Though NVML names nobody else: where a container hides who it is, the utilization tells."""
    naps: list[float] = []
    gpu = FakeGpu(processes=processes, utilization_percent=37)
    assert warned(on_gpu(FakeNvml([gpu]), naps)) == [BUSY]
    assert naps == [1, 1]


def test_the_end_of_our_own_start_up_is_not_taken_for_others() -> None:
    """The counter averages over up to a second: it is given time to fall."""
    gpu = FakeGpu(utilization_percent=80)
    held = on_gpu(FakeNvml([gpu]))
    naps: list[float] = []

    def sleep(seconds: float) -> None:
        naps.append(seconds)
        gpu.utilization_percent = 0

    held._sleep = sleep
    assert warned(held) == []
    assert naps == [1]


def test_other_processes_are_named() -> None:
    """By name, and once: that the GPU is busy then says no more."""
    gpu = FakeGpu(processes={13: "python3", 812: "/opt/trainer"}, utilization_percent=99)
    assert warned(on_gpu(FakeNvml([gpu]))) == ["Other processes used this GPU when the run began: trainer (pid 812)."]


def test_whether_others_use_the_gpu_cannot_be_told() -> None:
    """Neither who nor whether: said so. A driver that lists our own processes alone, as on MIG, has told."""
    errors = {"nvmlDeviceGetUtilizationRates": pynvml.NVML_ERROR_NOT_SUPPORTED}
    assert warned(on_gpu(FakeNvml([FakeGpu(processes={13: "python3"}, errors=errors)]))) == []
    (line,) = warned(on_gpu(FakeNvml([FakeGpu(processes=NUMBERED_OTHERWISE, errors=errors)])))
    assert line == (
        "Whether others used this GPU when the run began is not known: the driver numbers processes otherwise than "
        "this container does; nvmlDeviceGetUtilizationRates: Not Supported."
    )


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (pynvml.NVML_ERROR_LIBRARY_NOT_FOUND, "the NVML library (libnvidia-ml.so.1) does not load"),
        (pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH, "the NVIDIA driver's libraries and its kernel module differ"),
        (pynvml.NVML_ERROR_NO_PERMISSION, "NVML does not start: Insufficient Permissions"),
    ],
)
def test_a_gpu_without_nvml_is_measured_with_a_warning(error: int, words: str) -> None:
    """One line says what is not known and why; there are no readings."""
    held = on_gpu(FakeNvml(init_error=error))
    (line,) = warned(held)
    assert line.startswith(f"Clocks, temperature and power are unknown: {words}")
    assert held.state() is None


def test_reordered_gpus_by_uuid() -> None:
    """CUDA_VISIBLE_DEVICES=GPU-bbbbbbbb…,GPU-aaaaaaaa…: torch's first GPU is NVML's second.

    Its worker tells the UUID; warnings and readings are then of that GPU and not of the idle one at its index.
    """
    first = FakeGpu(uuid="GPU-aaaaaaaa-0000-0000-0000-000000000000", bus_id="00000000:1B:00.0")
    second = FakeGpu(
        uuid="GPU-bbbbbbbb-0000-0000-0000-000000000000",
        bus_id="00000000:43:00.0",
        sm_clock_mhz=1215,
        processes={13: "python3", 812: "trainer"},
    )
    held = on_gpu(FakeNvml([first, second]), gpu_uuid=second.uuid.removeprefix("GPU-"), gpu_pci_bus_id=second.bus_id)
    assert warned(held) == ["Other processes used this GPU when the run began: trainer (pid 812)."]
    state = held.state()
    assert state is not None
    assert state.sm_clock_mhz == 1215
