"""The parent's side of the workers: one process a trial, replaced when it dies or falls silent."""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from harness.model import Cache, Case, DeviceState, Problem, TrialResult, Verdict, Word
from harness.trial import OUT_OF_MEMORY

ROOT = Path(__file__).resolve().parent.parent
"""Of the project: workers run there, so that `harness` and the registry are found."""

SILENCE_S = 120.0
"""A worker that says nothing for so long is taken for hung."""

POLL_S = 0.05
"""Between readings of the device while a worker times."""

TIMING_PHASE = "timing"
"""Phase of a worker in which the device is read."""


MEMORY_SHARE = 0.5
"""Of the device's memory, for all workers together between cases."""

CPU_ALLOCATOR = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(1 << 40)}
"""glibc in workers on a CPU: keep what is freed. Mapping and clearing pages anew for every large temporary took more
time than all the rest."""


IDLE = "idle"
"""The phase of a worker between two requests."""


class WorkerLost(Exception):  # noqa: N818 - an event, not a fault of the harness
    """A worker died or fell silent; the message says how and when."""


class WorkerGone(WorkerLost):
    """A worker that died before it began with a request: what it did before is to blame."""


@dataclass(frozen=True, kw_only=True)
class WorkerSpec:
    """What every worker of a pool is started with."""

    registry: str
    """As `harness.registry.find` takes it."""
    device: str
    """As torch names it."""
    log_folder: Path
    """Where workers' stderr goes, one file a trial."""
    trials: int
    """Workers that share the device."""
    silence_s: float = SILENCE_S
    """Longest silence."""

    def command(self) -> list[str]:
        """What starts a worker."""
        share = MEMORY_SHARE / self.trials
        options = ["--registry", self.registry, "--device", self.device, "--memory-share", str(share)]
        return [sys.executable, "-m", "harness.trial", *options]


class WorkerProcess:
    """One worker and the pipes to it."""

    def __init__(self, spec: WorkerSpec, trial: int) -> None:
        self._spec = spec
        self._log = spec.log_folder / f"worker-{trial}.log"
        self._log_read = 0  # bytes that belong to earlier requests
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                spec.command(),
                cwd=ROOT,
                env=os.environ | (CPU_ALLOCATOR if spec.device == "cpu" else {}),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,  # Ctrl-C reaches the parent alone, which then ends its workers
            )
        assert self._process.stdin is not None  # noqa: S101 - for the type checker
        assert self._process.stdout is not None  # noqa: S101
        self._stdin, self._stdout = self._process.stdin, self._process.stdout
        os.set_blocking(self._stdout.fileno(), False)
        self._buffer = b""
        self.phase = "starting"

    @property
    def pid(self) -> int:
        """Of the process."""
        return self._process.pid

    def ask(self, request: Mapping[str, Any], on_poll: Callable[[str], None]) -> dict[str, Any]:
        """Send `request`, wait for the reply that is not a phase; `on_poll(phase)` is called while waiting.

        Raises:
            WorkerLost: it died or fell silent; it is gone afterwards.
        """
        try:
            self._stdin.write(json.dumps(request, allow_nan=False).encode() + b"\n")
            self._stdin.flush()
        except OSError:
            raise self._lost() from None
        last_heard = time.monotonic()
        with selectors.DefaultSelector() as selector:
            selector.register(self._stdout, selectors.EVENT_READ)
            while True:
                for reply in self._replies(readable=bool(selector.select(POLL_S))):
                    last_heard = time.monotonic()
                    if "phase" not in reply:
                        self._log_read = self._log.stat().st_size
                        self.phase = IDLE  # or the next case would begin in the phase that this one ended in
                        return reply
                    self.phase = reply["phase"]
                if self._process.poll() is not None and not selector.select(0):
                    raise self._lost()  # what it has forked may hold its pipe open
                if time.monotonic() - last_heard > self._spec.silence_s:
                    self.stop()
                    raise WorkerLost(f"silent for {self._spec.silence_s:g} s in phase {self.phase!r}: hung, killed")
                on_poll(self.phase)

    def stop(self) -> None:
        """End the process at once."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for pipe in (self._stdin, self._stdout):
            with suppress(OSError):  # what could not be written to a dead process is of no use any more
                pipe.close()

    def _replies(self, *, readable: bool) -> list[dict[str, Any]]:
        """Whole lines that have arrived."""
        if not readable:
            return []
        chunk = self._stdout.read(1 << 20)
        if chunk == b"":
            raise self._lost()
        *lines, self._buffer = (self._buffer + (chunk or b"")).split(b"\n")
        return [json.loads(line) for line in lines]

    def _lost(self) -> WorkerLost:
        return (WorkerGone if self.phase == IDLE else WorkerLost)(self._obituary())

    def _obituary(self) -> str:
        """How it died, with the last line that it wrote to stderr."""
        try:
            code = self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self.stop()
            return f"closed its pipe in phase {self.phase!r}: killed"
        self.stop()
        how = f"killed by {signal.Signals(-code).name}" if code < 0 else f"exited with code {code}"
        said = self._log.read_bytes()[self._log_read :].decode(errors="replace").strip().splitlines()
        last = f": {said[-1]}" if code > 0 and said else ""
        return f"{how} in phase {self.phase!r}{last}"


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
            return TrialResult(trial=trial, verdict=Verdict(word=Word.CRASHED, reason=str(lost)))
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
        return TrialResult.from_dict(reply["result"])

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
