"""A delay on the device behind which work is queued, so that nothing of the host's time comes into it."""

from __future__ import annotations

from harness.timing import NotMeasurable

FIRST_CYCLES = 200_000
"""About 0.1 ms; doubled until it hides the enqueueing."""


class Delay:
    """Queued on the current stream; grows until it is longer than the enqueueing of what follows."""

    def __init__(self, hides: str, *, doublings: int) -> None:
        """Begin with `FIRST_CYCLES`.

        Args:
            hides: what is enqueued behind it, as a message says it.
            doublings: most that it grows by: 8 are about 25 ms, 11 about 0.2 s.
        """
        self._hides = hides
        self._cycles = FIRST_CYCLES
        self._most_cycles = FIRST_CYCLES << doublings

    def queue(self) -> None:
        """Let the stream wait."""
        import torch

        torch.cuda._sleep(self._cycles)  # noqa: SLF001 - the only device-side delay that torch ships

    def double(self) -> None:
        """Wait twice as long from now on.

        Raises:
            NotMeasurable: it is as long as it may become.
        """
        self._cycles *= 2
        if self._cycles > self._most_cycles:
            raise NotMeasurable(f"no delay on the device was long enough to hide the enqueueing of {self._hides}")
