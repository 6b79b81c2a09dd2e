"""harness.device.nvml against a fake driver: what it reads, and every way in which a driver says no."""

from __future__ import annotations

import sys

import pynvml
import pytest

from harness.answers import NotPermitted, Unknown
from harness.device import nvml_names
from harness.device.nvml import Nvml, NvmlDevice, NvmlUnavailable
from harness.device.nvml_names import CLOCK_EVENT_REASONS
from harness.model import DeviceState
from tests.fake_nvml import LIMIT_FIELDS, FakeGpu, FakeNvml


def opened(fake: FakeNvml) -> Nvml:
    nvml = Nvml.open(fake)
    assert isinstance(nvml, Nvml)
    return nvml


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


def test_reason_names_are_those_of_nvml():
    """Each bit has the name that pynvml's constants give it, in snake case."""
    prefix = "nvmlClocksThrottleReason"
    leave_out = {"None", "All", "Unknown", "UserDefinedClocks"}  # no bits, or a deprecated second name
    names = {name.removeprefix(prefix): getattr(pynvml, name) for name in dir(pynvml) if name.startswith(prefix)}
    expected = {bit: name.lower() for name, bit in names.items() if name not in leave_out}
    assert {bit: name.replace("_", "") for bit, name in CLOCK_EVENT_REASONS.items()} == expected


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


def test_fields_and_policies_are_those_of_nvml():
    """Each number is pynvml's own, by name."""
    reasons, policy = "NVML_FI_DEV_CLOCKS_EVENT_REASON_", "NVML_FI_DEV_PERF_POLICY_"
    short = {"sw_power_cap": "POWER", "sw_thermal_slowdown": "SW_THERM_SLOWDOWN"}
    short["hw_thermal_slowdown"] = "HW_THERM_SLOWDOWN"
    for field, name in nvml_names.LIMIT_FIELDS.items():
        constant = (policy if field < 100 else reasons) + short.get(name, name.upper())
        assert getattr(pynvml, constant) == field
    for number, name in nvml_names.LIMIT_POLICIES.items():
        assert getattr(pynvml, f"NVML_PERF_POLICY_{short.get(name, name.upper())}") == number


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
