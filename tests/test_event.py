"""harness.timing.event on a real GPU: what a sample is, and what stays out of it."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator

import pytest
import torch

from harness.model import Cache
from harness.process import use_one_stream
from harness.timing import LEAST_SINGLES
from harness.timing.event import Single, measure_event, measure_single, reading_flush, writing_flush

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU"),
]

DEVICE = "cuda:0"
SLEEP_CYCLES = 200_000
"""About 0.1 ms: long beside what events cost."""


@pytest.fixture(autouse=True)
def one_stream() -> Iterator[None]:
    """As in a worker."""
    use_one_stream(DEVICE)
    yield
    torch.cuda.synchronize()


def spin() -> None:
    torch.cuda._sleep(SLEEP_CYCLES)


@pytest.mark.parametrize("cache", list(Cache))
def test_a_sample_is_one_launch(cache: Cache) -> None:
    """A spin of about 0.1 ms, and nothing of the delay or of the launch before it."""
    timing = measure_event([spin], cache, DEVICE, 0.1)
    median_ns = statistics.median(timing.samples_ns)
    assert 50_000 < median_ns < 200_000
    assert timing.launches_per_sample == 1
    assert len(timing.samples_ns) >= LEAST_SINGLES
    assert timing.settled


def test_the_host_is_hidden() -> None:
    """A launch that takes the host 2 ms to prepare reads as long as one that does not."""

    def slow() -> None:
        time.sleep(0.002)
        spin()

    slow_ns, quick_ns = (
        statistics.median(measure_event([launch], Cache.COLD, DEVICE, 0.05).samples_ns) for launch in (slow, spin)
    )
    assert slow_ns == pytest.approx(quick_ns, rel=0.1)


def test_every_set_is_launched_in_turn() -> None:
    """Cold operands come from rotating."""
    used: list[int] = []

    def launcher(i: int):
        def launch() -> None:
            used.append(i)
            spin()

        return launch

    single = Single([launcher(i) for i in range(3)], Cache.COLD, None)
    for _ in range(6):
        single.sample()
    assert used == [0, 1, 2, 0, 1, 2]


@pytest.mark.parametrize("flush", [reading_flush, writing_flush])
def test_a_flush_is_not_timed(flush) -> None:
    """It takes tens of µs and stands before the first event."""
    a = torch.zeros(1, device=DEVICE)
    timing = measure_single([lambda: a.add_(1.0)], Cache.COLD, DEVICE, 0.05, flush=flush(DEVICE))
    assert statistics.median(timing.samples_ns) < 20_000


def test_samples_have_clocks() -> None:
    """Read before the delay and after the launch."""
    timing = measure_event([spin], Cache.COLD, DEVICE, 0.05)
    assert all(sample.sm_clock_mhz is not None and 300 < sample.sm_clock_mhz < 4000 for sample in timing.samples)
