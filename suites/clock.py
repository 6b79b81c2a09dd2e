"""The clock that pytest-benchmark reads: measured samples advance it, nothing else does."""

from __future__ import annotations


class DeviceClock:
    """Seconds that only `advance` moves."""

    def __init__(self) -> None:
        self._now_s = 0.0

    def read(self) -> float:
        """The time, in s."""
        return self._now_s

    def advance(self, ns: float) -> None:
        """Let `ns` pass. From zero each time: a small duration would lose digits against a large time."""
        self._now_s = ns * 1e-9 if self._now_s == 0.0 else self._now_s + ns * 1e-9
