"""suites.clock: what pytest-benchmark reads is the sample, digit for digit."""

from __future__ import annotations

import random

from suites.clock import DeviceClock


def test_a_round_reads_zero_then_the_sample() -> None:
    """1,500 ns are 1.5 µs."""
    clock = DeviceClock()
    assert clock.read() == 0.0
    clock.advance(1500.0)
    assert clock.read() == 1.5e-6


def test_nothing_else_moves_it() -> None:
    """Time that passes on the machine is not time of the kernel."""
    clock = DeviceClock()
    assert [clock.read() for _ in range(1000)] == [0.0] * 1000


def test_advances_add_up_until_they_are_read() -> None:
    """1 s and 2 s."""
    clock = DeviceClock()
    clock.advance(1e9)
    clock.advance(2e9)
    assert clock.read() == 3.0
    assert clock.read() == 0.0


def test_no_sample_carries_the_rounding_of_those_before() -> None:
    """Ten thousand samples of all sizes: each difference of readings is the sample itself, bit for bit."""
    clock, luck = DeviceClock(), random.Random(1)  # noqa: S311 - not for secrets
    for _ in range(10_000):
        ns = luck.lognormvariate(8, 3)
        start = clock.read()
        clock.advance(ns)
        assert clock.read() - start == ns / 1e9


def test_pytest_benchmark_gets_the_samples() -> None:
    """As `pedantic` does it: start, target, end, the difference is the duration."""
    clock = DeviceClock()
    samples = [1700.5, 1723.25, 1e7]
    durations = []
    for ns in samples:
        start = clock.read()
        clock.advance(ns)
        end = clock.read()
        durations.append(end - start)
    assert durations == [1.7005e-06, 1.72325e-06, 0.01]
