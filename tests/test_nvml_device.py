"""harness.device.nvml_device against a fake driver: what it reads of a GPU, and every way in which a driver says no."""

from __future__ import annotations

import pynvml
import pytest

from harness.answers import NotPermitted, Unknown
from harness.device.nvml import NvmlDevice
from harness.model import DeviceState
from tests.fake_nvml import LIMIT_FIELDS, FakeGpu, FakeNvml, opened


def device(fake: FakeNvml, gpu: int = 0) -> NvmlDevice:
    found = opened(fake).find(uuid=fake.gpus[gpu].uuid, pci_bus_id=None)
    assert isinstance(found, NvmlDevice)
    return found


LIMITS = [
    "sw_power_cap",
    "thermal",
    "sync_boost",
    "board_limit",
    "reliability",
    "sw_thermal_slowdown",
    "hw_thermal_slowdown",
    "hw_power_brake_slowdown",
]


def readings(state: DeviceState) -> dict:
    return {name: value for name, value in vars(state).items() if name not in {"time_unix_s", "unknown"}}


def test_a_healthy_gpu():
    """Every reading is there, in the units of DeviceState, and nothing is unknown."""
    state = device(FakeNvml([FakeGpu(reasons=0x1)])).state()
    assert readings(state) == {
        "sm_clock_mhz": 1980,
        "memory_clock_mhz": 3201,
        "temperature_c": 41,
        "power_mw": 121_500,
        "power_is_instant": True,
        "clock_event_reasons": ("gpu_idle",),
        "limited_ns": dict.fromkeys(LIMITS, 0),
    }
    assert state.unknown == {}


def test_a_throttled_night():
    """The GPU heats up while it is measured: each reading tells of its own moment, reasons by ascending bit."""
    gpu = FakeGpu()
    watched = device(FakeNvml([gpu]))
    cool = watched.state()
    gpu.limited_ns[74], gpu.limited_ns[269], gpu.limited_ns[270] = 2_500_000_000, 3, 4
    gpu.sm_clock_mhz, gpu.temperature_c, gpu.instant_power_mw, gpu.reasons = 1215, 87, 699_800, 0x64
    hot = watched.state()
    assert (cool.sm_clock_mhz, cool.clock_event_reasons) == (1980, ())
    assert (hot.sm_clock_mhz, hot.temperature_c, hot.power_mw) == (1215, 87, 699_800)
    assert hot.clock_event_reasons == ("sw_power_cap", "sw_thermal_slowdown", "hw_thermal_slowdown")
    assert cool.limited_ns == dict.fromkeys(LIMITS, 0)
    grown = {"sw_power_cap": 2_500_000_000, "sw_thermal_slowdown": 3, "hw_thermal_slowdown": 4}
    assert hot.limited_ns == cool.limited_ns | grown
    assert hot.time_unix_s >= cool.time_unix_s


def test_a_reason_of_a_newer_driver_is_kept_by_its_bit():
    state = device(FakeNvml([FakeGpu(reasons=0x1004)])).state()
    assert state.clock_event_reasons == ("sw_power_cap", "reason_0x1000")


@pytest.mark.parametrize("absent", ["missing", "missing_in_driver"])
def test_older_names_answer_where_newer_ones_are_missing(absent):
    """Neither an old nvidia-ml-py nor an old driver costs a reading that has an older name."""
    newer = {
        "nvmlDeviceGetCurrentClocksEventReasons",
        "nvmlDeviceGetTemperatureV",
        "nvmlDeviceGetFieldValues",
        "nvmlSystemGetCudaDriverVersion_v2",
    }
    violations = {0: 11, 1: 12, 2: 13, 3: 14, 4: 99, 5: 15}
    fake = FakeNvml([FakeGpu(reasons=0x8, violations_ns=violations)], **{absent: newer})
    state = device(fake).state()
    assert (state.temperature_c, state.clock_event_reasons) == (41, ("hw_slowdown",))
    assert (state.power_mw, state.power_is_instant) == (118_000, False)
    assert state.limited_ns == dict(zip(LIMITS[:5], (11, 12, 13, 14, 15), strict=True))
    assert state.unknown == {}
    assert opened(fake).cuda_driver_version() == "13.0"


def test_a_missing_counter():
    """A field that this GPU does not support carries its own error code: the average stands in, and says so."""
    state = device(FakeNvml([FakeGpu(instant_power_mw=None)])).state()
    assert (state.power_mw, state.power_is_instant, state.unknown) == (118_000, False, {})


def test_energy_is_the_boards():
    """In mJ as NVML counts it; of an instance, its board's."""
    board = FakeGpu(energy_mj=1_234_567)
    instance = FakeGpu(uuid="MIG-1", energy_mj=1, parent=board)
    assert device(FakeNvml([board])).energy_mj() == 1_234_567
    assert opened(FakeNvml([board, instance])).find(uuid="MIG-1", pci_bus_id=None).energy_mj() == 1_234_567


def test_energy_that_is_not_counted_has_its_reason():
    """By the driver's word, or since nvidia-ml-py is too old."""
    name = "nvmlDeviceGetTotalEnergyConsumption"
    gpu = FakeGpu(errors={name: pynvml.NVML_ERROR_NOT_SUPPORTED})
    assert device(FakeNvml([gpu])).energy_mj() == Unknown(reason=f"{name}: Not Supported")
    old = device(FakeNvml(missing={name})).energy_mj()
    assert old == Unknown(reason=f"{name}: this version of nvidia-ml-py lacks it")


def test_instant_power_is_never_an_average():
    """Of a GPU without the field it is unknown, though `state` would say the average."""
    assert device(FakeNvml([FakeGpu(instant_power_mw=98_700)])).instant_power_mw() == 98_700
    missing = device(FakeNvml([FakeGpu(instant_power_mw=None)])).instant_power_mw()
    assert missing == Unknown(reason="NVML field 186: Not Supported")


def test_a_limit_that_is_not_counted_is_left_out():
    """Of those that are, none is lost to it."""
    gpu = FakeGpu(limited_ns={74: 8, 79: 0})
    state = device(FakeNvml([gpu])).state()
    assert (state.limited_ns, state.unknown) == ({"sw_power_cap": 8, "reliability": 0}, {})


def test_no_limit_is_counted():
    """Neither way: None with every reason, and power, asked for in the same call, stands."""
    state = device(FakeNvml([FakeGpu(limited_ns={})])).state()
    assert (state.limited_ns, state.power_mw, state.power_is_instant) == (None, 121_500, True)
    fields = "; ".join(f"NVML field {field}: Not Supported" for field in LIMIT_FIELDS)
    assert state.unknown == {"limited_ns": f"{fields}; nvmlDeviceGetViolationStatus: Not Supported"}


def test_a_call_for_all_fields_that_may_not_be_made():
    """None with its reason; power has its older name."""
    gpu = FakeGpu(errors={"nvmlDeviceGetFieldValues": pynvml.NVML_ERROR_NO_PERMISSION})
    state = device(FakeNvml([gpu])).state()
    assert (state.limited_ns, state.power_mw, state.power_is_instant) == (None, 118_000, False)
    assert state.unknown == {
        "limited_ns": "nvmlDeviceGetFieldValues: Insufficient Permissions; nvmlDeviceGetViolationStatus: Not Supported"
    }


def test_all_fields_by_one_call(monkeypatch):
    """A reading may take no longer for them: on an H200 some take half a millisecond each if asked for alone."""
    fake = FakeNvml()
    watched, asked = device(fake), []
    call = FakeNvml._call
    monkeypatch.setattr(FakeNvml, "_call", lambda self, name, *rest: asked.append(name) or call(self, name, *rest))
    watched.state()
    assert asked.count("nvmlDeviceGetFieldValues") == 1
    assert asked[0] == "nvmlDeviceGetFieldValues"
    assert "nvmlDeviceGetViolationStatus" not in asked


def test_utilization():
    """In percent, or why it is not known, as on a MIG instance."""
    gpu = FakeGpu(utilization_percent=37)
    assert device(FakeNvml([gpu])).utilization_percent() == 37
    gpu.errors["nvmlDeviceGetUtilizationRates"] = pynvml.NVML_ERROR_NOT_SUPPORTED
    assert device(FakeNvml([gpu])).utilization_percent() == Unknown(
        reason="nvmlDeviceGetUtilizationRates: Not Supported"
    )


def test_no_power_at_all():
    gpu = FakeGpu(instant_power_mw=None, errors={"nvmlDeviceGetPowerUsage": pynvml.NVML_ERROR_NOT_SUPPORTED})
    state = device(FakeNvml([gpu])).state()
    reason = "NVML field 186: Not Supported; nvmlDeviceGetPowerUsage: Not Supported"
    assert (state.power_mw, state.power_is_instant) == (None, None)
    assert state.unknown == {"power_mw": reason, "power_is_instant": reason}


def test_getters_that_are_not_supported_or_not_permitted():
    """Each missing reading is None with its own reason; the others stand."""
    gpu = FakeGpu(
        errors={
            "nvmlDeviceGetClockInfo": pynvml.NVML_ERROR_NOT_SUPPORTED,
            "nvmlDeviceGetCurrentClocksEventReasons": pynvml.NVML_ERROR_NO_PERMISSION,
            "nvmlDeviceGetCurrentClocksThrottleReasons": pynvml.NVML_ERROR_NO_PERMISSION,
        }
    )
    state = device(FakeNvml([gpu])).state()
    assert (state.sm_clock_mhz, state.memory_clock_mhz, state.clock_event_reasons) == (None, None, None)
    assert (state.temperature_c, state.power_mw) == (41, 121_500)
    assert state.unknown == {
        "sm_clock_mhz": "nvmlDeviceGetClockInfo: Not Supported",
        "memory_clock_mhz": "nvmlDeviceGetClockInfo: Not Supported",
        "clock_event_reasons": (
            "nvmlDeviceGetCurrentClocksEventReasons: Insufficient Permissions; "
            "nvmlDeviceGetCurrentClocksThrottleReasons: Insufficient Permissions"
        ),
    }


def test_a_gpu_lost_between_two_readings():
    """The first reading stands, the second is None throughout, and nothing raises."""
    gpu = FakeGpu()
    watched = device(FakeNvml([gpu]))
    assert watched.state().unknown == {}
    gpu.lost = True
    state = watched.state()
    assert set(readings(state).values()) == {None}
    assert set(state.unknown) == set(readings(state))
    assert all("GPU is lost" in reason for reason in state.unknown.values())
    assert watched.facts().unknown["gpu_name"] == "nvmlDeviceGetName: GPU is lost"
    assert watched.processes() == Unknown(reason="nvmlDeviceGetComputeRunningProcesses: GPU is lost")


@pytest.mark.parametrize("text_as_bytes", [False, True])
def test_facts(text_as_bytes):
    """All that NVML tells of a GPU, with text as str whichever way pynvml hands it over."""
    facts = device(FakeNvml(text_as_bytes=text_as_bytes)).facts()
    assert facts.unknown == {}
    assert facts.values == {
        "gpu_name": "NVIDIA H200",
        "gpu_uuid": "GPU-8f1c7a52-0b3d-4e6f-9a1b-2c3d4e5f6071",
        "gpu_pci_bus_id": "00000000:1B:00.0",
        "vbios_version": "96.00.D0.00.03",
        "driver_version": "580.159.04",
        "cuda_driver_version": "13.0",
        "power_limit_mw": 650_000,
        "power_limit_default_mw": 700_000,
        "max_sm_clock_mhz": 1980,
        "max_memory_clock_mhz": 3201,
        "application_sm_clock_mhz": 1830,
        "application_memory_clock_mhz": 3201,
        "ecc": True,
        "mig": False,
        "persistence": True,
        "compute_mode": "default",
    }


def test_facts_that_a_consumer_gpu_lacks():
    gpu = FakeGpu(
        errors=dict.fromkeys(("nvmlDeviceGetEccMode", "nvmlDeviceGetMigMode"), pynvml.NVML_ERROR_NOT_SUPPORTED)
    )
    facts = device(FakeNvml([gpu])).facts()
    assert (facts.get("ecc"), facts.get("mig"), facts.get("persistence")) == (None, None, True)
    assert facts.unknown == {"ecc": "nvmlDeviceGetEccMode: Not Supported", "mig": "nvmlDeviceGetMigMode: Not Supported"}


def test_processes_besides_our_own():
    """By the program's name without its folder; by number where the driver does not tell the name."""
    gpu = FakeGpu(processes={11: "/opt/tools/trainer", 12: "", 13: "python3"})
    assert device(FakeNvml([gpu])).processes(exclude_pids={13}) == ("trainer (pid 11)", "pid 12")
    assert device(FakeNvml([FakeGpu()])).processes(exclude_pids={13}) == ()


def test_processes_numbered_by_a_container_s_host():
    """Our own process uses the GPU but is not listed under its number: it is not taken for somebody else's."""
    answer = device(FakeNvml([FakeGpu(processes={90013: "python3"})])).processes(exclude_pids={13})
    assert answer == Unknown(reason="the driver numbers processes otherwise than this container does")


def test_processes_that_may_not_be_seen():
    gpu = FakeGpu(errors={"nvmlDeviceGetComputeRunningProcesses": pynvml.NVML_ERROR_NO_PERMISSION})
    refused = NotPermitted(reason="nvmlDeviceGetComputeRunningProcesses: Insufficient Permissions")
    assert device(FakeNvml([gpu])).processes() == refused
