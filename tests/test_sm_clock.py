"""harness.device.sm_clock: the SM clock by the device's counters, and what stands in for it without them."""

from __future__ import annotations

import pytest
import torch

from harness.device import sm_clock
from harness.device.driver import DriverError
from harness.device.sm_clock import NoClock, SmClock, open_clock


def test_a_driver_that_refuses_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures are measured all the same; the record says why their clock is not known."""

    def refuse(_: int) -> None:
        raise DriverError("cuModuleLoadData: CUDA driver error 218")

    monkeypatch.setattr(sm_clock, "SmClock", refuse)
    clock = open_clock(10)
    assert isinstance(clock, NoClock)
    assert clock.reason == "the device's counters cannot be read: cuModuleLoadData: CUDA driver error 218"
    clock.begin(0)
    clock.end(0)


def test_the_counter_kernel_is_text_that_the_driver_can_end() -> None:
    """A string of C: one zero, at its end."""
    assert sm_clock.PTX.count(b"\0") == 1
    assert sm_clock.PTX.endswith(b"\0")
    assert b".entry " + sm_clock.ENTRY in sm_clock.PTX


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")
def test_the_clock_is_the_devices() -> None:
    """A spin counts cycles, events count time: their ratio is the clock too, within 2 %."""
    cycles = 20_000_000
    clock = SmClock(3)
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda._sleep(cycles)
    for sample in range(2):
        clock.begin(sample)
        start.record()
        torch.cuda._sleep(cycles)
        end.record()
        clock.end(sample)
    torch.cuda.synchronize()
    expected = cycles / (start.elapsed_time(end) * 1e3)
    first, second, never = clock.mhz(3)
    assert first is not None
    assert second == pytest.approx(expected, rel=0.02)
    assert never is None
