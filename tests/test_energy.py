"""The timer `energy`: a device that is never idle, a window of it, and what a launch then takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from types import SimpleNamespace

import pytest
import torch

from harness.answers import Unknown
from harness.device.sm_clock import NoClock
from harness.model import Cache, Energy, Role
from harness.process import use_one_stream
from harness.timing import Crew, NotMeasurable, Purpose, energy, timers
from harness.timing.energy import Feed, measure_energy, metered
from harness.timing.meter import WINDOW_S, Source, counter_window
from tests.fake_board import POWER_MW, READING_S, REPLAY_S, TICK_S, Board, board, installed

__all__ = ["board", "installed"]


def fed(board: Board) -> Feed:
    """A feed whose device is at work for half a second."""
    feed = Feed(board.queue, REPLAY_S * 1e9)
    feed.keep_up(0.5)
    return feed


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
