"""harness.timing.checks: what the selfcheck's timers are, and in what each differs from a timer of the bench."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from harness.model import Cache, Role
from harness.timing import HEADLINE, Crew, Measure, Purpose, Timer, checks, event, timers
from tests.timers_by_purpose import OF_CHECKS

COLD, HOT = Cache.COLD, Cache.HOT
EVERYBODY = set(Role)
CHECKED = {
    "graph-unwatched": (Crew.EVERY, EVERYBODY, 3, False),
    "graph-double": (Crew.EVERY, EVERYBODY, 3, True),
    "event-pair": (Crew.EVERY, {Role.FLOOR}, 3, True),
    "event-read": (Crew.EVERY, EVERYBODY, 3, True),
    "event-memset": (Crew.EVERY, EVERYBODY, 3, True),
    "graph-alone": (Crew.LAST_ONE, EVERYBODY, 1, True),
    "graph-two-streams": (Crew.FRESH, EVERYBODY, 3, True),
}
"""Crew, roles, trials of nine wanted, and whether the device is read meanwhile."""


def test_the_timers_of_the_selfcheck() -> None:
    """Each differs in one thing from a timer of the bench; all are on a GPU and cold, as what they are held against."""
    assert {n: (t.crew, set(t.roles), t.trials(9), t.watched) for n, t in OF_CHECKS.items()} == CHECKED
    for timer in OF_CHECKS.values():
        assert (timer.devices, timer.caches, timer.clock) == (("cuda",), (COLD,), "device")
        assert timer.summary.startswith(("as graph,", "as event,", "as event-read,"))


def test_a_timer_outside_the_selfcheck_is_always_watched() -> None:
    """Only what asks what reading the device costs does without it."""
    assert [name for name, timer in timers().items() if not timer.watched] == ["graph-unwatched"]


def timer_of(most_trials: int | None) -> Timer:
    return Timer(
        name="t", summary="", clock="host", devices=("cpu",), measure=timers()["async"].measure,
        most_trials=most_trials,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("most_trials", "by_wanted"),
    [(None, {1: 1, 2: 2, 5: 5, 9: 9}), (3, {1: 1, 2: 2, 3: 3, 5: 3, 9: 3}), (1, {1: 1, 5: 1})],
)
def test_trials_of_a_timer(most_trials: int | None, by_wanted: dict[int, int]) -> None:
    """As many as wanted, but no more than are enough for it."""
    assert {wanted: timer_of(most_trials).trials(wanted) for wanted in by_wanted} == by_wanted


def test_the_figures_of_the_page_have_every_trial() -> None:
    """Their intervals need them; other projects' timers, which take seconds, have one."""
    by_purpose = {purpose: [t for t in timers().values() if t.purpose is purpose] for purpose in Purpose}
    fewer = {timer.name: timer.trials(9) for timer in by_purpose[Purpose.BENCH] if timer.trials(9) < 9}
    assert fewer == {"profiler": 3}
    assert {timer.trials(9) for timer in by_purpose[Purpose.PEER]} == {1}


def test_the_first_trial_s_worker_is_one() -> None:
    """A second trial would not be its."""
    assert {timer.trials(9) for timer in timers().values() if timer.crew is Crew.LAST_ONE} == {1}


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, object]]:
    """How the measuring of the timers that are checked is called by those that check them."""
    calls: list[dict[str, object]] = []

    def note(name: str, names: tuple[str, ...]) -> None:
        def measured(launches: object, cache: object, device: str, max_time_s: float, *more: object, **by_name: object):
            given = {"launches": launches, "cache": cache, "device": device, "max_time_s": max_time_s}
            calls.append({"by": name, **given, **dict(zip(names, more, strict=True)), **by_name})
            return calls[-1]

        monkeypatch.setattr(checks, name, measured)

    note("measure_replays", ())
    note("measure_single", ())
    for flush in ("reading_flush", "writing_flush"):
        monkeypatch.setattr(checks, flush, lambda device, flush=flush: f"{flush} on {device}")
    return calls


@pytest.mark.parametrize(
    ("measure", "wanted"),
    [
        (checks.measure_double, {"by": "measure_replays", "times": 2}),
        (checks.measure_event_read, {"by": "measure_single", "flush": "reading_flush on cuda:1"}),
        (checks.measure_event_memset, {"by": "measure_single", "flush": "writing_flush on cuda:1"}),
    ],
)
def test_each_differs_in_one_thing(
    measure: Measure, wanted: dict[str, object], called: list[dict[str, object]]
) -> None:
    """All else is handed on as it is, and so is the result."""
    launches = [lambda: None]
    result = measure(launches, COLD, "cuda:1", 0.15)
    assert called == [{**wanted, "launches": launches, "cache": COLD, "device": "cuda:1", "max_time_s": 0.15}]
    assert result is called[0]


def test_a_pair_is_two_launches_on_the_same_operands(called: list[dict[str, object]]) -> None:
    """Between the same events; then the next set's two."""
    used: list[str] = []
    checks.measure_event_pair([lambda: used.append("a"), lambda: used.append("b")], COLD, "cuda:1", 0.15)
    (call,) = called
    assert (call["by"], call["flush"]) == ("measure_single", None)
    for launch in call["launches"]:  # type: ignore[attr-defined]
        launch()
    assert used == ["a", "a", "b", "b"]


def test_the_graphs_of_other_workers_are_the_headline_s() -> None:
    """Nothing but the worker, or the reading of the device, is another."""
    assert {timers()[name].measure for name in ("graph-unwatched", "graph-alone")} == {timers()[HEADLINE].measure}


@pytest.mark.parametrize(("flush", "left"), [(event.reading_flush, 1.0), (event.writing_flush, 0.0)])
def test_a_flush_fills_the_cache(flush: Any, left: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four caches are read, or are written with zeros."""
    monkeypatch.setattr(event, "last_level_cache_bytes", lambda _device: 1000)
    made: list[torch.Tensor] = []
    larger_than_cache = event._larger_than_cache

    def keep(device: str) -> torch.Tensor:
        made.append(larger_than_cache(device))
        return made[-1]

    monkeypatch.setattr(event, "_larger_than_cache", keep)
    run = flush("cpu")
    (buffer,) = made
    assert buffer.numel() * buffer.element_size() == 4000
    buffer.fill_(1.0)
    run()
    assert set(buffer.tolist()) == {left}
