"""harness.timing: which timers there are, when sampling stops, and what `async` divides by what."""

from __future__ import annotations

import gc
import itertools
from collections.abc import Callable, Iterator

import pytest

from harness import timing
from harness.device.sm_clock import NoClock
from harness.model import Cache
from harness.timing import (
    Crew,
    NotMeasurable,
    Purpose,
    Sample,
    Timer,
    collector_off,
    draw_samples,
    host,
    median_error,
    not_benched,
    settle,
    timers,
    with_clocks,
)


def sampled(draw: Callable[[], float | None]) -> Callable[[], Sample | None]:
    """What `draw` gives, as samples."""

    def sample() -> Sample | None:
        ns = draw()
        return None if ns is None else Sample(ns=ns)

    return sample


def drawn(draw: Callable[[], float | None], max_time_s: float, **options: int) -> tuple[tuple[float, ...], str]:
    """`draw_samples` in bare numbers."""
    samples, stopped = draw_samples(sampled(draw), max_time_s, **options)
    return tuple(sample.ns for sample in samples), stopped


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


def test_timers_are_found_and_the_headline_is_first() -> None:
    """Every module of the folder adds its own; the order is that of the tables."""
    found = timers()
    assert next(iter(found)) == "graph"
    ours = [name for name, timer in found.items() if timer.purpose is Purpose.BENCH]
    assert ours == ["graph", "event", "async", "sync", "profiler"]
    assert all(isinstance(timer, Timer) and timer.name == name and timer.summary for name, timer in found.items())


def test_timers_of_a_suite_are_no_figures_of_a_bench() -> None:
    """They have a place behind those of a bench, before other projects', and no two runs are compared by them."""
    found = list(timers())
    suite = [name for name, timer in timers().items() if timer.purpose is Purpose.SUITE]
    assert sorted(suite) == ["energy", "sync-50"]
    assert (
        found.index("profiler") < min(map(found.index, suite)) <= max(map(found.index, suite)) < found.index("nvbench")
    )
    assert not_benched() >= set(suite)
    assert not_benched().isdisjoint({"graph", "event", "async", "sync", "profiler"})


def test_device_time_needs_a_device() -> None:
    """On a CPU only the host's clock is left."""
    on_cpu = {name for name, timer in timers().items() if "cpu" in timer.devices}
    assert on_cpu == {name for name, timer in timers().items() if timer.clock == "host"}
    assert on_cpu == {"async", "sync", "sync-50"}


def test_two_timers_of_one_name_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are labelled by the name."""
    monkeypatch.setattr(host, "TIMERS", host.TIMERS * 2)
    with pytest.raises(ValueError, match=r"used by two: async, sync, sync-50; rename one"):
        timers()


def test_steady_samples_stop_as_precise() -> None:
    """Ten equal samples know their median; an eleventh is not drawn."""
    assert drawn(lambda: 5.0, 60.0) == ((5.0,) * 10, "precise")


def test_unsteady_samples_stop_by_time(clock: Clock) -> None:
    """1 ms a sample and a budget of 25 ms: the 26th is the first that ends beyond it."""
    values = itertools.cycle([1.0, 2.0])

    def draw() -> float:
        clock.advance(1_000_000)
        return next(values)

    samples, stopped = drawn(draw, 0.025)
    assert stopped == "time"
    assert samples == (1.0, 2.0) * 13


def test_a_small_budget_still_gives_the_fewest_samples(clock: Clock) -> None:
    """Each sample takes half the budget: ten are drawn all the same."""
    values = itertools.cycle([1.0, 2.0])

    def draw() -> float:
        clock.advance(500_000_000)
        return next(values)

    assert drawn(draw, 1.0) == ((1.0, 2.0) * 5, "time")


def test_a_very_slow_launch_gives_what_ten_budgets_allow(clock: Clock) -> None:
    """4 s a sample and a budget of 1 s: the third ends beyond 10 s."""

    def draw() -> float:
        clock.advance(4_000_000_000)
        return 4e9

    assert drawn(draw, 1.0) == ((4e9,) * 3, "time")


def test_samples_that_must_not_count_are_left_out() -> None:
    """None is not a sample."""
    values = itertools.cycle([None, 3.0, None])
    assert drawn(lambda: next(values), 60.0) == ((3.0,) * 10, "precise")


def test_no_sample_that_counts_is_not_measurable(clock: Clock) -> None:
    """The reason says how long was tried: ten budgets."""

    def draw() -> None:
        clock.advance(100_000_000)

    with pytest.raises(NotMeasurable, match=r"^no sample counted within 0\.5 s$"):
        drawn(draw, 0.05)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf"), 0.0, -1.0])
def test_a_sample_that_is_no_time_is_refused(bad: float) -> None:
    """Not one gets into a record: pytest-benchmark's session would not survive it."""
    values = itertools.chain([1.0, 2.0], itertools.repeat(bad))
    with pytest.raises(NotMeasurable, match=rf"a sample of {bad} ns: wanted a finite time above 0"):
        drawn(lambda: next(values), 60.0)


def test_there_is_a_most() -> None:
    """Samples without end and without precision stop at 200."""
    values = itertools.cycle([1.0, 2.0])
    samples, stopped = drawn(lambda: next(values), 60.0)
    assert (len(samples), stopped) == (200, "count")


def test_median_error_of_ten_by_hand() -> None:
    """n/2 ± 0.98·√10 = 5 ± 3.1: places 1 and 9 of 0 … 9. For 100 … 109 that is (109 − 101)/2/105."""
    assert median_error([float(100 + i) for i in range(10)]) == pytest.approx(4 / 105)


def test_median_error_of_a_hundred_by_hand() -> None:
    """50 ± 9.8: places 40 and 60. For 1000 … 1099 that is 10/1050, in any order."""
    assert median_error([float(1000 + i) for i in reversed(range(100))]) == pytest.approx(10 / 1050)


def test_median_error_ignores_a_few_outliers() -> None:
    """That is what a median is for."""
    assert median_error([1.0] * 98 + [1e6] * 2) == 0.0


def test_median_error_of_one_sample() -> None:
    """Both ends are the sample itself."""
    assert median_error([3.0]) == 0.0


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


def test_samples_know_when_they_began(clock: Clock) -> None:
    """So that a reading of the device can be held against them."""

    def draw() -> Sample:
        clock.advance(1_000_000_000)
        return Sample(ns=1.0)

    samples, _ = draw_samples(draw, 5.0)
    assert [sample.time_unix_s for sample in samples] == [float(second) for second in range(10)]


def test_settling_waits_for_steady_times(clock: Clock) -> None:
    """Clocks that rise: 1 % a sample at first, then steady."""
    times = iter([100.0 - i for i in range(10)] + [90.0] * 100)
    seen: list[float] = []

    def draw() -> Sample:
        clock.advance(1_000)
        seen.append(next(times))
        return Sample(ns=seen[-1])

    assert settle(draw, window=3, within=0.003)
    assert seen[-6:] == [90.0] * 6 or abs(seen[-2] / seen[-5] - 1) <= 0.003
    assert len(seen) < 20


def test_times_that_never_settle_are_said_to_be_unsettled(clock: Clock) -> None:
    """After 0.3 s of this clock."""
    times = itertools.count(1.0)

    def draw() -> Sample:
        clock.advance(50_000_000)
        return Sample(ns=2.0 ** next(times))

    assert settle(draw, window=3, within=0.003) is False


def test_times_too_long_to_compare_tell_nothing(clock: Clock) -> None:
    """Steady, but six of them take longer than the warm-up may: that is no word against them."""

    def draw() -> Sample:
        clock.advance(60_000_000)
        return Sample(ns=6e7)

    assert settle(draw, window=3, within=0.003) is None


def test_samples_without_a_clock_say_why() -> None:
    """The reason goes into the record."""
    samples, unknown = with_clocks([Sample(ns=1.0)], NoClock("no counters"))
    assert samples == (Sample(ns=1.0),)
    assert unknown == {"sample_clocks_mhz": "no counters"}


def test_what_disturbs_its_process_has_workers_of_its_own() -> None:
    """After one pass of the profiler every kernel of its process reads longer, for good."""
    assert timers()["profiler"].crew is Crew.FRESH
    assert all(timer.crew is Crew.FRESH for timer in timers().values() if timer.purpose is Purpose.PEER)


@pytest.fixture
def collector() -> Iterator[None]:
    """The collector is as it was after the test."""
    was_on = gc.isenabled()
    yield
    if was_on:
        gc.enable()
    else:
        gc.disable()


@pytest.mark.usefixtures("collector")
@pytest.mark.parametrize("on", [True, False])
def test_collector_is_off_inside_and_as_before_after(*, on: bool) -> None:
    """Also when the kernel raises."""
    (gc.enable if on else gc.disable)()

    def fail() -> None:
        with collector_off():
            assert not gc.isenabled()
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert gc.isenabled() is on
