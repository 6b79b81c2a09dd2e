"""harness.timing.meter: windows between ticks, power integrated, whose counter is read, and idle power."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pynvml
import pytest

from harness.answers import Unknown
from harness.device.nvml import Nvml, NvmlDevice, NvmlUnavailable
from harness.timing import NotMeasurable, meter
from harness.timing.meter import Reading, board_of, counter_window, energy_source, idle_mw, power_window
from tests.fake_board import Board, board, installed
from tests.fake_nvml import FakeGpu, FakeNvml

__all__ = ["board", "installed"]


def readings(*values: tuple[float, int]) -> list[Reading]:
    """With ten replays done at each."""
    return [Reading(at_s=at_s, value=value, done=10 * place) for place, (at_s, value) in enumerate(values)]


def test_a_window_goes_from_tick_to_tick() -> None:
    """Ticks are seen at 0.2 s, 1.0 s and 1.9 s: 900 mJ in 1.7 s; what was before the first tick does not count."""
    seen = readings((0.0, 500), (0.1, 500), (0.2, 800), (0.3, 800), (1.0, 1100), (1.9, 1700), (2.0, 1700))
    window = counter_window(seen)
    assert window is not None
    assert (window.seconds, window.millijoules) == (pytest.approx(1.7), 900.0)
    assert (window.first, window.last) == (seen[2], seen[5])
    assert counter_window(seen[:5]) is None
    assert counter_window(seen[:1]) is None


def test_power_is_integrated_by_trapezoids() -> None:
    """By hand: 1 s from 100 W to 300 W are 200 J, and 1 s from 300 W to 200 W are 250 J."""
    seen = readings((5.0, 100_000), (6.0, 300_000), (7.0, 200_000))
    window = power_window(seen)
    assert window is not None
    assert (window.seconds, window.millijoules) == (2.0, 450_000.0)
    assert power_window(seen[:2]) is None
    assert power_window([]) is None


@pytest.mark.parametrize("window", [counter_window, power_window])
def test_a_window_holds_several_replays(window: Callable[[list[Reading]], object]) -> None:
    """Three are too few to be timed by, however long they take."""
    slow = [Reading(at_s=float(t), value=1000 * t, done=t // 2) for t in range(12)]
    assert window(slow[:8]) is None
    assert window(slow) is not None


def opened(fake: FakeNvml) -> Nvml:
    fake.nvmlInit()
    return Nvml(fake)


def nvml_board(gpu: FakeGpu) -> NvmlDevice:
    found = opened(FakeNvml([gpu])).find(uuid=gpu.uuid, pci_bus_id=None)
    assert isinstance(found, NvmlDevice)
    return found


COUNTER = "nvmlDeviceGetTotalEnergyConsumption"
NO_COUNTER: dict[str, Any] = {"errors": {COUNTER: pynvml.NVML_ERROR_NOT_SUPPORTED}}


def test_the_counter_is_preferred() -> None:
    """Instant power stands in where a board does not count; where it has neither, both reasons are said."""
    counted = energy_source(nvml_board(FakeGpu(energy_mj=42)))
    assert (counted.name, counted.read(), counted.window) == ("counter", 42, counter_window)
    by_power = energy_source(nvml_board(FakeGpu(instant_power_mw=99_000, **NO_COUNTER)))
    assert (by_power.name, by_power.read(), by_power.window) == ("power", 99_000, power_window)
    words = f"^neither energy nor instant power can be read: {COUNTER}: Not Supported; NVML field 186: Not Supported$"
    with pytest.raises(NotMeasurable, match=words):
        energy_source(nvml_board(FakeGpu(instant_power_mw=None, **NO_COUNTER)))


@pytest.fixture
def facts(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    """What torch says of `cuda:0`; what a process knows of it is forgotten before and after."""
    known = {"gpu_uuid": "8f1c7a52-0b3d-4e6f-9a1b-2c3d4e5f6071", "gpu_pci_bus_id": "00000000:1B:00.0"}
    monkeypatch.setattr(meter, "torch_facts", lambda _: {"values": known})
    board_of.cache_clear()
    yield known
    board_of.cache_clear()


def test_the_board_is_found_as_torch_knows_it(monkeypatch: pytest.MonkeyPatch, facts: dict[str, str]) -> None:
    """By UUID or address, never by index: the second GPU of two."""
    fake = FakeNvml([FakeGpu(uuid="GPU-1", bus_id="00000000:0A:00.0", energy_mj=1), FakeGpu(energy_mj=2)])
    monkeypatch.setattr(meter.Nvml, "open", lambda: opened(fake))
    assert board_of("cuda:0").energy_mj() == 2
    assert fake.open_count == 1
    board_of("cuda:0")
    assert fake.open_count == 1
    facts["gpu_uuid"] = facts["gpu_pci_bus_id"] = "none"
    with pytest.raises(NotMeasurable, match=r"^energy cannot be read: NVML finds no such GPU: GPU-none: "):
        board_of("cuda:1")


@pytest.mark.usefixtures("facts")
def test_without_nvml_there_is_no_energy(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reason is NVML's own."""
    lacking = NvmlUnavailable(reason="the Python package nvidia-ml-py is not installed", blocks_cuda=False)
    monkeypatch.setattr(meter.Nvml, "open", lambda: lacking)
    with pytest.raises(NotMeasurable, match=r"^energy cannot be read: the Python package nvidia-ml-py is not inst"):
        board_of("cuda:0")


def test_idle_power_is_read_once_it_has_stopped_falling(board: Board) -> None:
    """It falls by 50 W in 0.3 s at first, then stands at 80 W."""

    def read() -> int:
        return max(80_000, round(400_000 - (board.now_s - 100) * 160_000))

    assert idle_mw(read) == 80_000.0
    assert 102.3 + 1.0 <= board.now_s <= 102.6 + 1.1


def test_idle_power_that_never_settles_is_taken_as_it_is(board: Board) -> None:
    """After five seconds: the mean of what it is then."""
    values = iter([100_000, 200_000] * 100)
    assert idle_mw(lambda: next(values)) == 150_000.0
    assert board.now_s == pytest.approx(100 + 5.1 + 1.0, abs=0.1)


def test_idle_power_that_cannot_be_read_is_a_reason(board: Board) -> None:
    """At once, without five seconds of waiting for it."""
    assert idle_mw(lambda: Unknown(reason="no")) == Unknown(reason="no")
    assert board.now_s < 101
