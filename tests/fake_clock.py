"""A stand-in for the clock that timers read: it moves as far as a test says."""

from __future__ import annotations

import pytest

from harness import timing
from harness.timing import host


class Clock:
    """In place of `time` in a module: only `advance` moves it."""

    def __init__(self) -> None:
        self.now_ns = 0

    def advance(self, ns: int) -> None:
        """Let `ns` pass."""
        self.now_ns += ns

    def perf_counter_ns(self) -> int:
        """As of `time`."""
        return self.now_ns

    def perf_counter(self) -> float:
        """As of `time`."""
        return self.now_ns / 1e9

    def time(self) -> float:
        """As of `time`: the clock began in 1970."""
        return self.now_ns / 1e9


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """A clock that the timers read instead of the machine's."""
    made = Clock()
    monkeypatch.setattr(host, "time", made)
    monkeypatch.setattr(timing, "time", made)
    return made
