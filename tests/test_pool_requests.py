"""harness.pool with scripted workers: what it asks of them, and when it reads the device meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from harness.model import DeviceState, TrialResult, Verdict, Word
from harness.pool import Pool
from tests.small_pool import case, spec


class Scripted:
    """In place of a worker: goes through these phases, then replies."""

    def __init__(self, *phases: str, samples: int = 1) -> None:
        self._phases = phases
        passed = Verdict(word=Word.PASSED)
        self._result = TrialResult(trial=0, verdict=passed, samples_ns=(1.0,) * samples)
        self.request: dict[str, object] = {}

    def ask(self, request: dict[str, object], on_poll: Callable[[str], None]) -> dict[str, object]:
        """A poll a phase."""
        self.request = request
        for phase in self._phases:
            on_poll(phase)
        return {"result": self._result.to_dict(), "lost": None}


@pytest.mark.parametrize(
    ("phases", "wanted"),
    [
        (["operands", "gate", "variants", "timing", "timing", "recheck", "recheck"], [3, 4, 5]),
        (["gate", "timing"], [1, "after"]),
        (["gate", "timing", "recheck"], [1, 2]),
        (["gate", "timing unwatched", "timing unwatched", "recheck"], []),
        (["gate", "recheck"], []),
    ],
    ids=["timed", "the reply came with the end", "timed for one poll", "unwatched", "not seen"],
)
def test_the_device_is_read_once_more_after_timing(tmp_path: Path, phases: list[str], wanted: list[object]) -> None:
    """By the poll: in every one of the timing and in the first one after it, however that ends."""
    pool = Pool(spec(tmp_path, trials=0))
    polls = -1
    read: list[object] = []

    def state() -> DeviceState:
        read.append("after" if worker.done else polls)
        return DeviceState(time_unix_s=float(len(read)))

    class Counting(Scripted):
        done = False

        def ask(self, request: dict[str, object], on_poll: Callable[[str], None]) -> dict[str, object]:
            """Count the polls."""

            def counted(phase: str) -> None:
                nonlocal polls
                polls += 1
                on_poll(phase)

            reply = super().ask(request, counted)
            self.done = True
            return reply

    worker = Counting(*phases)
    pool._workers = [worker]  # type: ignore[list-item]
    result = pool.measure(case("right"), 0, 0.002, state)
    assert read == wanted
    assert [each.time_unix_s for each in result.states] == list(range(1, len(wanted) + 1))


def test_a_device_that_cannot_be_read_leaves_no_readings(tmp_path: Path) -> None:
    """Nor does a case that has no samples keep any."""
    pool = Pool(spec(tmp_path, trials=0))
    pool._workers = [Scripted("timing", "recheck")]  # type: ignore[list-item]
    assert pool.measure(case("right"), 0, 0.002, lambda: None).states == ()
    pool._workers = [Scripted("timing", "recheck", samples=0)]  # type: ignore[list-item]
    assert pool.measure(case("right"), 0, 0.002, lambda: DeviceState(time_unix_s=1.0)).states == ()


@pytest.mark.parametrize("variant", [None, "float4"])
def test_the_request_names_the_variant(tmp_path: Path, variant: str | None) -> None:
    """None where the worker is to choose."""
    pool = Pool(spec(tmp_path, trials=0))
    worker = Scripted("gate")
    pool._workers = [worker]  # type: ignore[list-item]
    pool.measure(case("right"), 0, 0.002, lambda: None, variant)
    assert worker.request == {
        "measure": {"case": case("right").to_dict(), "trial": 0, "max_time_s": 0.002, "variant": variant}
    }


def test_memory_that_others_hold_is_asked_for_once(tmp_path: Path) -> None:
    """On a small GPU the other trials' operands may be what does not leave room."""
    asked: list[tuple[int, str]] = []

    class Remembering(Scripted):
        def __init__(self, trial: int) -> None:
            super().__init__("gate")
            self.trial = trial

        def ask(self, request: dict[str, object], on_poll: Callable[[str], None]) -> dict[str, object]:  # noqa: ARG002
            """Full, until the others have made room."""
            asked.append((self.trial, next(iter(request))))
            if "release" in request:
                return {"released": True}
            reason = "out of memory: its operands alone take 9.0 GiB" if len(asked) == 1 else None
            word = Word.PASSED if reason is None else Word.NOT_MEASURED
            result = TrialResult(trial=self.trial, verdict=Verdict(word=word, reason=reason))
            return {"result": result.to_dict(), "lost": None}

    pool = Pool(spec(tmp_path, trials=0))
    pool._workers = [Remembering(trial) for trial in range(3)]  # type: ignore[list-item]
    assert pool.measure(case("right"), 1, 0.002, lambda: None).verdict.word is Word.PASSED
    assert asked == [(1, "measure"), (0, "release"), (2, "release"), (1, "measure")]
