"""harness.timing: which timers there are, which workers disturb none, and the garbage collector meanwhile."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from harness.timing import Crew, Purpose, Timer, collector_off, host, not_benched, timers


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
