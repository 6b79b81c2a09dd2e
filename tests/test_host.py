"""harness.timing.host: what `async` and `sync` divide by what, and which operands they launch on."""

from __future__ import annotations

from collections.abc import Callable

from harness.model import Cache
from harness.timing import host
from tests.fake_clock import Clock, clock

__all__ = ["clock"]


def test_async_is_the_time_of_a_call(clock: Clock) -> None:
    """Every launch takes 700 ns of this clock, so a sample is 700 ns, over the 200 calls of the references."""
    result = host.measure_async([lambda: clock.advance(700)], Cache.COLD, "cpu", 0.05)
    assert result.samples_ns == (700.0,) * 10
    assert (result.launches_per_sample, result.kernels_per_launch, result.stopped) == (200, None, "precise")


def test_async_shortens_samples_of_slow_launches(clock: Clock) -> None:
    """1 ms a launch and a budget of 100 ms: a tenth of it holds 10 calls."""
    result = host.measure_async([lambda: clock.advance(1_000_000)], Cache.COLD, "cpu", 0.1)
    assert result.launches_per_sample == 10
    assert set(result.samples_ns) == {1_000_000.0}


def test_async_of_a_launch_beyond_the_budget(clock: Clock) -> None:
    """One call a sample, and as many as ten budgets allow: the first after 10 s ends it."""
    result = host.measure_async([lambda: clock.advance(3_000_000_000)], Cache.COLD, "cpu", 1.0)
    assert (result.launches_per_sample, result.samples_ns) == (1, (3e9,) * 4)


def test_async_uses_every_operand_set_alike(clock: Clock) -> None:
    """Launches rotate: after any number of calls, no set was used twice more than another."""
    used = [0, 0, 0]

    def launch(i: int) -> Callable[[], None]:
        def run() -> None:
            used[i] += 1
            clock.advance(100 * (i + 1))

        return run

    result = host.measure_async([launch(0), launch(1), launch(2)], Cache.COLD, "cpu", 0.05)
    assert max(used) - min(used) <= 1
    assert all(abs(ns - 200.0) <= 1.0 for ns in result.samples_ns)
    before = list(used)
    result.rerun()
    assert [now - then for now, then in zip(used, before, strict=True)] == [1, 1, 1]


def test_async_hot_stays_with_one_set_for_a_sample(clock: Clock) -> None:
    """A call before the first has read the set; another sample takes the next one."""
    used: list[int] = []

    def launch(i: int) -> Callable[[], None]:
        def run() -> None:
            used.append(i)
            clock.advance(100)

        return run

    result = host.measure_async([launch(0), launch(1)], Cache.HOT, "cpu", 0.05)
    assert result.samples_ns == (100.0,) * 10
    samples = [used[-n:][:201] for n in range(201 * 10, 0, -201)]
    assert [set(sample) for sample in samples] == [{0}, {1}] * 5


def test_sync_hot_is_hot(clock: Clock) -> None:
    """A set that another one has put out of the cache is slow once; no sample is that time."""
    last = -1

    def launch(i: int) -> Callable[[], None]:
        def run() -> None:
            nonlocal last
            clock.advance(100 if last == i else 50_000)
            last = i

        return run

    assert set(host.measure_sync([launch(0), launch(1)], Cache.HOT, "cpu", 0.05).samples_ns) == {100.0}


def test_sync_is_one_call_and_its_wait(clock: Clock) -> None:
    """One call is one draw of luck, so a hundred are wanted."""
    result = host.measure_sync([lambda: clock.advance(5_000)], Cache.COLD, "cpu", 0.05)
    assert result.samples_ns == (5_000.0,) * 100
    assert (result.launches_per_sample, result.stopped) == (1, "precise")
