"""Numbers of nvml.h, and what they are called here."""

from __future__ import annotations

POWER_INSTANT_FIELD = 186
"""NVML_FI_DEV_POWER_INSTANT, which older versions of nvidia-ml-py do not name."""

LIMIT_FIELDS = {
    74: "sw_power_cap",
    75: "thermal",
    76: "sync_boost",
    77: "board_limit",
    79: "reliability",
    269: "sw_thermal_slowdown",
    270: "hw_thermal_slowdown",
    271: "hw_power_brake_slowdown",
}
"""NVML_FI_DEV_PERF_POLICY_… and NVML_FI_DEV_CLOCKS_EVENT_REASON_…: ns that a limit has held the clocks back."""

LIMIT_POLICIES = {0: "sw_power_cap", 1: "thermal", 2: "sync_boost", 3: "board_limit", 5: "reliability"}
"""nvmlPerfPolicyType_t: the same counters one by one, for drivers without the fields."""

CLOCK_EVENT_REASONS = {
    0x001: "gpu_idle",
    0x002: "applications_clocks_setting",
    0x004: "sw_power_cap",
    0x008: "hw_slowdown",
    0x010: "sync_boost",
    0x020: "sw_thermal_slowdown",
    0x040: "hw_thermal_slowdown",
    0x080: "hw_power_brake_slowdown",
    0x100: "display_clock_setting",
    0x200: "board_limit",
    0x400: "reliability",
}
"""Bits of nvmlDeviceGetCurrentClocksEventReasons (nvml.h)."""

COMPUTE_MODES = {0: "default", 1: "exclusive_thread", 2: "prohibited", 3: "exclusive_process"}
"""nvmlComputeMode_t."""

VALUE_FIELDS = {0: "dVal", 1: "uiVal", 2: "ulVal", 3: "ullVal", 4: "sllVal", 5: "siVal", 6: "usVal"}
"""nvmlValueType_t → the member of nvmlValue_t that holds the value."""


def text(name: str | bytes) -> str:
    """Whichever way nvidia-ml-py hands it over."""
    return name.decode(errors="replace") if isinstance(name, bytes) else name


def cuda_version(number: int) -> str:
    """13000 → `13.0`, as cuda.h writes CUDA_VERSION."""
    return f"{number // 1000}.{number % 1000 // 10}"


def reason_names(bits: int) -> tuple[str, ...]:
    """`gpu_idle` … by ascending bit; a bit that nvml.h does not name here reads `reason_0x800`."""
    present = (1 << position for position in range(bits.bit_length()) if bits >> position & 1)
    return tuple(CLOCK_EVENT_REASONS.get(bit, f"reason_{bit:#x}") for bit in present)
