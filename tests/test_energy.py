"""The timer `energy`: windows between ticks, power integrated, a device that is never idle, and idle power."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pynvml
import pytest
import torch

from harness.answers import Unknown
from harness.device.nvml import Nvml, NvmlDevice, NvmlUnavailable
from harness.device.sm_clock import NoClock
from harness.model import Cache, Energy, Role
from harness.process import use_one_stream
from harness.timing import Crew, NotMeasurable, Purpose, energy, meter, timers
from harness.timing.energy import Feed, measure_energy, metered
from harness.timing.meter import (
    WINDOW_S,
    Reading,
    Source,
    board_of,
    counter_window,
    energy_source,
    idle_mw,
    power_window,
)
from tests.fake_nvml import FakeGpu, FakeNvml

COUNTER = "nvmlDeviceGetTotalEnergyConsumption"
REPLAY_S = 0.002
POWER_MW = 600_000
TICK_S = 0.1
READING_S = 0.014


class Board:
    """A GPU that runs one replay after the other, and a clock that only what happens on the host moves."""

    def __init__(self, *, queue_s: float = 0.0001, tick_s: float = TICK_S) -> None:
        self.now_s, self.free_at_s, self.queued = 100.0, 0.0, 0
        self._queue_s, self._tick_s = queue_s, tick_s
        self.idle_s = 0.0
        """How long it had nothing to do since its first replay."""

    def sleep(self, seconds: float) -> None:
        """As of `time`."""
        self.now_s += seconds

    def perf_counter(self) -> float:
        """As of `time`."""
        return self.now_s

    def time(self) -> float:
        """As of `time`: the host started in 1970, 100 s before the test."""
        return self.now_s

    def queue(self) -> None:
        """One replay, behind those before it."""
        self.now_s += self._queue_s
        self.idle_s += max(0.0, self.now_s - self.free_at_s) if self.queued else 0.0
        self.free_at_s = max(self.free_at_s, self.now_s) + REPLAY_S
        self.queued += 1

    def energy_mj(self) -> int:
        """Of a constant power, up to the last tick."""
        self.now_s += READING_S / 2
        ticks = int(self.now_s / self._tick_s + 1e-9)
        self.now_s += READING_S / 2
        return round(ticks * self._tick_s * POWER_MW)

    def event(self, *, enable_timing: bool) -> Any:
        """In place of `torch.cuda.Event`."""
        assert enable_timing
        event = SimpleNamespace(at_s=None)

        def record() -> None:
            event.at_s = self.free_at_s

        event.record = record
        event.query = lambda: event.at_s <= self.now_s
        event.elapsed_time = lambda later: (later.at_s - event.at_s) * 1e3
        return event


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Callable[[Board], Board]:
    """The board in place of the clock and of torch's events."""

    def install(board: Board) -> Board:
        for module in (energy, meter):
            monkeypatch.setattr(module, "time", board)
        monkeypatch.setattr(torch.cuda, "Event", board.event)
        return board

    return install


@pytest.fixture
def board(installed: Callable[[Board], Board]) -> Board:
    """One that is fast enough on every side."""
    return installed(Board())


def fed(board: Board) -> Feed:
    """A feed whose device is at work for half a second."""
    feed = Feed(board.queue, REPLAY_S * 1e9)
    feed.keep_up(0.5)
    return feed


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


def test_energy_of_a_steady_load(board: Board) -> None:
    """600 W: the counter's ticks give it within what a slow reading is late, and the device is never idle."""
    feed = fed(board)
    window = metered(Source(name="counter", read=board.energy_mj, window=counter_window), feed)
    assert window.millijoules % (POWER_MW * TICK_S) == pytest.approx(0.0)
    assert WINDOW_S <= window.seconds <= WINDOW_S + 2 * TICK_S
    assert window.millijoules / window.seconds == pytest.approx(POWER_MW, rel=2 * READING_S / WINDOW_S)
    assert board.idle_s == 0.0
    assert feed.replay_ns(window) == pytest.approx(REPLAY_S * 1e9)


def test_as_much_is_queued_as_a_slow_reading_needs(board: Board) -> None:
    """150 ms of work: 75 replays of 2 ms; of a replay that takes longer, two."""
    Feed(board.queue, 2e6)()
    assert board.queued == 75
    Feed(board.queue, 1e9)()
    assert board.queued == 77


def test_a_device_that_waits_for_the_host_is_refused(installed: Callable[[Board], Board]) -> None:
    """Energy of a device that is half idle is no figure of the kernel."""
    board = installed(Board(queue_s=2 * REPLAY_S))
    source = Source(name="counter", read=board.energy_mj, window=counter_window)
    feed = Feed(board.queue, REPLAY_S * 1e9)
    feed()
    board.sleep(1.0)
    with pytest.raises(NotMeasurable, match="the device ran out of replays: the host queues them more slowly"):
        metered(source, feed)
    assert board.idle_s > 0.5


def test_what_the_warm_up_lacked_is_forgiven(board: Board) -> None:
    """Only the window counts."""
    feed = Feed(board.queue, REPLAY_S * 1e9)
    feed()
    board.sleep(1.0)
    feed.keep_up(0.1)
    assert board.idle_s > 0.5
    metered(Source(name="counter", read=board.energy_mj, window=counter_window), feed)


def test_a_counter_that_stands_still_is_not_waited_for(board: Board) -> None:
    """Ten seconds, then the reason."""
    source = Source(name="counter", read=lambda: 7, window=counter_window)
    with pytest.raises(NotMeasurable, match=r"counter: no window of 1\.5 s and 4 replays was complete within 10 s"):
        metered(source, fed(board))


def test_a_reading_that_fails_is_a_reason(board: Board) -> None:
    """A GPU may be lost in between."""
    answers: Iterator[int | Unknown] = iter([1, Unknown(reason="GPU is lost")])
    source = Source(name="counter", read=lambda: next(answers), window=counter_window)
    with pytest.raises(NotMeasurable, match="energy could not be read while replays ran: GPU is lost"):
        metered(source, fed(board))


def opened(fake: FakeNvml) -> Nvml:
    fake.nvmlInit()
    return Nvml(fake)


def nvml_board(gpu: FakeGpu) -> NvmlDevice:
    found = opened(FakeNvml([gpu])).find(uuid=gpu.uuid, pci_bus_id=None)
    assert isinstance(found, NvmlDevice)
    return found


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


@pytest.mark.parametrize("idle", [71_000.0, Unknown(reason="NVML field 186: Not Supported")])
def test_a_whole_measurement(monkeypatch: pytest.MonkeyPatch, board: Board, idle: float | Unknown) -> None:
    """200 launches a replay of 2 ms: 10 µs each, at 600 W 6 mJ; idle power beside, or why it is not known."""
    ran = []
    replay = SimpleNamespace(
        queue=board.queue, estimate=lambda: 9_000.0, launches=200, kernels_per_launch=2, run=lambda: ran.append(1)
    )
    fake = {"replay_lasting": lambda *_: replay, "board_of": lambda _: board, "idle_of_process": lambda _: idle}
    fake |= {"energy_source": lambda of: Source(name="counter", read=of.energy_mj, window=counter_window)}
    fake |= {"open_clock": lambda _: NoClock("no counters")}
    for name, stand_in in fake.items():
        monkeypatch.setattr(energy, name, stand_in)
    monkeypatch.setattr(torch.cuda, "device", lambda _: nullcontext())
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    timing = measure_energy([lambda: None], Cache.COLD, "cuda:0", 0.05)
    (sample,) = timing.samples
    assert sample.ns == pytest.approx(10_000.0)
    assert sample.time_unix_s is not None
    assert 100.5 < sample.time_unix_s < 100.5 + 2 * TICK_S + 0.1
    assert isinstance(timing.energy, Energy)
    assert timing.energy.launches == timing.launches_per_sample == round(timing.energy.seconds * 1e5)
    assert timing.energy.mj_per_launch == pytest.approx(6.0, rel=0.02)
    assert timing.energy.watts == pytest.approx(600.0, rel=0.02)
    assert (timing.kernels_per_launch, timing.stopped) == (2, "count")
    known = not isinstance(idle, Unknown)
    assert timing.energy.idle_mw == (idle if known else None)
    reasons = {} if known else {"energy": "idle power: NVML field 186: Not Supported"}
    assert timing.unknown == {"sample_clocks_mhz": "no counters"} | reasons
    timing.rerun()
    assert ran == [1]


def test_the_timer_is_asked_for_by_name_alone() -> None:
    """It takes seconds and heats the device: workers of its own, after all others."""
    timer = timers()["energy"]
    assert (timer.purpose, timer.crew, timer.trials(5)) == (Purpose.SUITE, Crew.FRESH, 2)
    assert (timer.devices, timer.caches, timer.roles) == (("cuda",), (Cache.COLD,), (Role.GEMV,))
    assert timer.watched


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")
def test_energy_on_a_gpu() -> None:
    """More than idle, less than twice the limit of any board; by the counter or by power, each said."""
    use_one_stream("cuda:0")
    a, x, y = (torch.randn(shape, device="cuda") for shape in ((8192, 8192), (8192, 1), (8192, 1)))
    timing = measure_energy([lambda: torch.matmul(a, x, out=y)], Cache.COLD, "cuda:0", 0.05)
    taken = timing.energy
    assert taken is not None
    assert WINDOW_S <= taken.seconds < 4.0
    assert taken.source in ("counter", "power")
    assert taken.idle_mw is None or taken.idle_mw / 1000 < taken.watts < 2500
    assert taken.launches * timing.samples_ns[0] / 1e9 == pytest.approx(taken.seconds, rel=0.001)
