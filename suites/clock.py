"""The clock that pytest-benchmark reads: measured samples advance it, nothing else does."""

from __future__ import annotations


class DeviceClock:
    """Seconds that only `advance` moves, and that start at zero again after each reading.

    A round reads it twice, around one `advance`: 0, then the sample, digit for digit. A running total would add its own
    rounding to every sample.
    """

    def __init__(self) -> None:
        self._now_s = 0.0

    def read(self) -> float:
        """The time since the last reading, in s."""
        now_s, self._now_s = self._now_s, 0.0
        return now_s

    def advance(self, ns: float) -> None:
        """Let `ns` pass."""
        self._now_s += ns / 1e9
