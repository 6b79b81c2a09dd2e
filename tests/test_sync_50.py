"""The timer `sync-50`: the protocol of published batch figures, call by call, and a worker that runs it."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from harness import trial
from harness.model import Cache, Case, Problem, Role, Word
from harness.timing import NotMeasurable, host
from harness.trial import Worker
from tests import planted_kernels
from tests.fake_clock import Clock

KERNELS = planted_kernels.kernels()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """A clock that the timer reads instead of the machine's."""
    made = Clock()
    monkeypatch.setattr(host, "time", made)
    return made


def test_sync_50_is_the_protocol_of_the_references(clock: Clock) -> None:
    """Ten calls to warm up, then exactly 50, each waited for, all on one set; as they come, slow ones too."""
    times = itertools.chain([90_000] * 10, range(1_000, 51_000, 1_000), itertools.repeat(7))
    used: list[int] = []

    def launch(i: int) -> Callable[[], None]:
        def run() -> None:
            used.append(i)
            clock.advance(next(times))

        return run

    result = host.measure_sync_50([launch(0), launch(1)], Cache.HOT, "cpu", 0.001)
    assert used == [0] * 60
    assert result.samples_ns == tuple(float(ns) for ns in range(1_000, 51_000, 1_000))
    assert (result.launches_per_sample, result.stopped) == (1, "count")
    assert [each.time_unix_s for each in result.samples[:3]] == pytest.approx([0.0009, 0.000901, 0.000903])
    result.rerun()
    assert used[60:] == [0, 1]


def test_sync_50_of_a_launch_beyond_all_patience(clock: Clock) -> None:
    """60 calls of 2 s: the first says so, and no second is begun."""
    calls: list[int] = []

    def launch() -> None:
        calls.append(1)
        clock.advance(2_000_000_000)

    with pytest.raises(NotMeasurable, match=r"^60 calls of 2\.0 s each take more than 60 s$"):
        host.measure_sync_50([launch], Cache.HOT, "cpu", 0.1)
    assert calls == [1]


def test_the_protocol_of_one_set_knows_no_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """`sync-50` calls on one operand set, in a cache that is too small for it; `sync` on the same is never hot."""
    monkeypatch.setattr(trial, "last_level_cache_bytes", lambda _: 1024)
    monkeypatch.setattr(trial, "sets_for", lambda *_, **__: 4)  # as on a GPU
    worker = Worker(KERNELS, "cpu", lambda _: None, 1.0)
    by_timer = {
        timer: worker.measure(
            Case(kernel="right", role=Role.GEMV, problem=Problem(m=64, k=64), timer=timer, cache=Cache.HOT), 0, 0.002
        )
        for timer in ("sync-50", "sync")
    }
    assert by_timer["sync"].verdict.word is Word.UNSUPPORTED
    result = by_timer["sync-50"]
    assert (result.verdict.word, result.operand_sets, len(result.samples_ns)) == (Word.PASSED, 1, 50)
