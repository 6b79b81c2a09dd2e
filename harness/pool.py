"""The parent's side of the workers: one process a trial, replaced when it dies or falls silent."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from harness.model import Cache, Case, DeviceState, Problem, TrialResult, Verdict, Word
from harness.trial import OUT_OF_MEMORY
from harness.worker import ROOT, SILENCE_S, WorkerGone, WorkerLost, WorkerProcess, WorkerSpec

TIMING_PHASE = "timing"
"""Phase of a worker in which the device is read."""


def _does_not_fit(result: TrialResult) -> bool:
    return (result.verdict.reason or "").startswith(OUT_OF_MEMORY)


class Pool:
    """One worker a trial, started together; each is the same process for every case until it is lost."""

    def __init__(self, spec: WorkerSpec) -> None:
        self._spec = spec
        self._workers: list[WorkerProcess | None] = [WorkerProcess(spec, trial) for trial in range(spec.trials)]
        self._too_large: set[tuple[Problem, Cache]] = set()

    @property
    def pids(self) -> Sequence[int]:
        """Of the workers alive."""
        return [worker.pid for worker in self._workers if worker is not None]

    def facts(self) -> dict[str, Any]:
        """What the workers know of the device and its software, once every one of them has its device context.

        No worker's start then runs beside the first case.

        Raises:
            WorkerLost: one could not start.
        """
        answers = [self._worker(trial).ask({"facts": {}}, lambda _: None) for trial in range(self._spec.trials)]
        facts: dict[str, Any] = answers[0]["facts"]
        return facts

    def wait(self) -> None:
        """Until every worker has its device context, or is lost; the case that then tries a fresh one says why."""
        for trial in range(self._spec.trials):
            with suppress(WorkerLost):
                self.revive(trial)

    def revive(self, trial: int) -> None:
        """Until the trial's worker, a fresh one if it has none, has its device context.

        Raises:
            WorkerLost: it could not start.
        """
        try:
            self._worker(trial).ask({"facts": {}}, lambda _: None)
        except WorkerLost:
            self._drop(trial)
            raise

    def measure(
        self,
        case: Case,
        trial: int,
        max_time_s: float,
        read_state: Callable[[], DeviceState | None],
        variant: str | None = None,
    ) -> TrialResult:
        """The result of one trial of a case; a lost worker gives the verdict `crashed`.

        The device is read from before the first sample until after the last: counters are known by differences.
        """
        states: list[DeviceState] = []
        timed = False

        def on_poll(phase: str) -> None:
            nonlocal timed
            if (phase == TIMING_PHASE or timed) and (state := read_state()) is not None:
                states.append(state)
            timed = phase == TIMING_PHASE

        wanted = {"case": case.to_dict(), "trial": trial, "max_time_s": max_time_s, "variant": variant}
        try:
            result = self._measured(trial, wanted, on_poll)
            if _does_not_fit(result):
                self._make_room_beside(trial)
                states.clear()
                result = self._measured(trial, wanted, on_poll)
            if _does_not_fit(result) and (case.problem, case.cache) not in self._too_large:
                self._drop(trial)  # an earlier kernel may hold memory for good
                states.clear()
                result = self._measured(trial, wanted, on_poll)
                if _does_not_fit(result):
                    self._too_large.add((case.problem, case.cache))
        except WorkerLost as lost:
            self._drop(trial)
            verdict = Verdict(word=Word.CRASHED, reason=str(lost))
            return TrialResult(trial=trial, verdict=verdict, printed=lost.printed)
        if timed and (state := read_state()) is not None:
            states.append(state)  # the recheck and the reply came together
        return replace(result, states=tuple(states)) if result.samples_ns else result

    def _measured(self, trial: int, wanted: Mapping[str, Any], on_poll: Callable[[str], None]) -> TrialResult:
        """What the trial's worker says; one that was gone before it heard the request is replaced and asked again."""
        request = {"measure": wanted}
        try:
            reply = self._worker(trial).ask(request, on_poll)
        except WorkerGone:
            self._drop(trial)
            reply = self._worker(trial).ask(request, on_poll)
        if reply["lost"] is not None:
            self._drop(trial)
        return replace(TrialResult.from_dict(reply["result"]), printed=reply.get("printed"))

    def _make_room_beside(self, trial: int) -> None:
        """Let all other workers give back what they hold of the device's memory between two cases."""
        for other, worker in enumerate(self._workers):
            if worker is not None and other != trial:
                try:
                    worker.ask({"release": {}}, lambda _: None)
                except WorkerLost:
                    self._drop(other)

    def keep_first(self) -> None:
        """End all workers but that of the first trial."""
        for trial in range(1, len(self._workers)):
            self._drop(trial)

    def close(self) -> None:
        """End all workers."""
        for trial in range(len(self._workers)):
            self._drop(trial)

    def _drop(self, trial: int) -> None:
        """End a worker; the next case on this trial starts a fresh one."""
        worker, self._workers[trial] = self._workers[trial], None
        if worker is not None:
            worker.stop()

    def _worker(self, trial: int) -> WorkerProcess:
        worker = self._workers[trial]
        if worker is None:
            worker = self._workers[trial] = WorkerProcess(self._spec, trial)
        return worker


__all__ = ["ROOT", "SILENCE_S", "Pool", "WorkerGone", "WorkerLost", "WorkerSpec"]
