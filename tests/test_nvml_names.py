"""harness.device.nvml_names: every number has the name that NVML gives it."""

from __future__ import annotations

import pynvml

from harness.device import nvml_names
from harness.device.nvml_names import CLOCK_EVENT_REASONS


def test_reason_names_are_those_of_nvml():
    """Each bit has the name that pynvml's constants give it, in snake case."""
    prefix = "nvmlClocksThrottleReason"
    leave_out = {"None", "All", "Unknown", "UserDefinedClocks"}  # no bits, or a deprecated second name
    names = {name.removeprefix(prefix): getattr(pynvml, name) for name in dir(pynvml) if name.startswith(prefix)}
    expected = {bit: name.lower() for name, bit in names.items() if name not in leave_out}
    assert {bit: name.replace("_", "") for bit, name in CLOCK_EVENT_REASONS.items()} == expected


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
