"""A stand-in for a GPU that replays, its energy counter and the host's clock, for whatever reads energy."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from harness.timing import energy, meter

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
