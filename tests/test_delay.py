"""harness.timing.delay: it grows until it hides what comes behind it, and then says that nothing would."""

from __future__ import annotations

from typing import Any

import pytest

from harness.timing import NotMeasurable
from harness.timing.delay import FIRST_CYCLES, Delay


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Cycles of every delay that was queued."""
    import torch

    queued: list[int] = []
    sleep: Any = queued.append
    monkeypatch.setattr(torch.cuda, "_sleep", sleep)
    return queued


def test_it_doubles(slept: list[int]) -> None:
    """From about 0.1 ms on, and stays as long as it became."""
    delay = Delay("the graph", doublings=2)
    delay.queue()
    for _ in range(2):
        delay.double()
        delay.queue()
    delay.queue()
    assert slept == [FIRST_CYCLES, 2 * FIRST_CYCLES, 4 * FIRST_CYCLES, 4 * FIRST_CYCLES]


def test_it_ends() -> None:
    """A host that is never hidden, as under a debugger, is a reason and no endless loop."""
    delay = Delay("one launch", doublings=1)
    delay.double()
    with pytest.raises(
        NotMeasurable, match="no delay on the device was long enough to hide the enqueueing of one launch"
    ):
        delay.double()
