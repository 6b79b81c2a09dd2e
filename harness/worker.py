"""One worker as its parent sees it: the process, the pipes to it, and how it ended."""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.device.gpus import VISIBLE
from harness.errors import CommandError, Exit

ROOT = Path(__file__).resolve().parent.parent
"""Of the project: workers run there, so that `harness` and the registry are found."""

SILENCE_S = 120.0
"""A worker that says nothing for so long is taken for hung."""

POLL_S = 0.05
"""Between readings of the device while a worker times."""

MEMORY_SHARE = 0.5
"""Of the device's memory, for all workers together between cases."""

CPU_ALLOCATOR = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(1 << 40)}
"""glibc in workers on a CPU: keep what is freed. Mapping and clearing pages anew for every large temporary took more
time than all the rest."""

IDLE = "idle"
"""The phase of a worker between two requests."""

WHILE = {
    "starting": "while it started",
    "operands": "while operands were made",
    "gate": "while its results were checked",
    "variants": "while its variants were tried",
    "soaking": "while it ran to warm the device up",
    "timing": "while it was timed",
    "timing unwatched": "while it was timed",
    "recheck": "while its results were checked after timing",
    IDLE: "between two cases",
}
"""Phases of a worker in words."""

MOST_PRINTED = 4000
"""Characters that are kept of what a worker writes in one request."""


class WorkerLost(Exception):  # noqa: N818 - an event, not a fault of the harness
    """A worker died or fell silent; the message says how and when."""

    printed: str | None = None
    """The beginning of what was written to its stdout and stderr in its last request; None: nothing was."""


class WorkerGone(WorkerLost):
    """A worker that died before it began with a request: what it did before is to blame."""


@dataclass(frozen=True, kw_only=True)
class WorkerSpec:
    """What every worker of a pool is started with."""

    registry: str
    """As `harness.registry.find` takes it."""
    device: str
    """As torch names it."""
    uuid: str | None = None
    """Of the GPU or MIG instance that workers are shown alone; None: all that this process is shown."""
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

    def environment(self) -> dict[str, str]:
        """Of a worker."""
        shown = {} if self.uuid is None else {VISIBLE: self.uuid}
        return os.environ | (CPU_ALLOCATOR if self.device == "cpu" else {}) | shown


def log_folder() -> Path:
    """A new folder for what workers write to stderr.

    Raises:
        CommandError: there is no room for temporary files (INFRASTRUCTURE).
    """
    try:
        return Path(tempfile.mkdtemp(prefix="sgemv-"))
    except OSError as error:
        what = f"no temporary folder can be made: {error.strerror}"
        raise CommandError(f"{what}; set TMPDIR to one that can be written to", Exit.INFRASTRUCTURE) from error


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
                env=spec.environment(),
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

        `printed` is added to the reply, as of `WorkerLost`.

        Raises:
            WorkerLost: it died or fell silent; it is gone afterwards.
        """
        try:
            reply = self._ask(request, on_poll)
        except WorkerLost as lost:
            lost.printed = self._printed()
            raise
        return {**reply, "printed": self._printed()}

    def _ask(self, request: Mapping[str, Any], on_poll: Callable[[str], None]) -> dict[str, Any]:
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
                        self.phase = IDLE  # or the next case would begin in the phase that this one ended in
                        return reply
                    self.phase = reply["phase"]
                if self._process.poll() is not None and not selector.select(0):
                    raise self._lost()  # what it has forked may hold its pipe open
                if time.monotonic() - last_heard > self._spec.silence_s:
                    self.stop()
                    raise WorkerLost(f"silent for {self._spec.silence_s:g} s {self._when}: hung, killed")
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
            return f"closed its pipe {self._when}: killed"
        self.stop()
        said = self._written().decode(errors="replace").strip().splitlines()
        last = f": {said[-1]}" if code > 0 and said else ""
        return f"{_how(code)} {self._when}{last}"

    @property
    def _when(self) -> str:
        return WHILE[self.phase]

    def _printed(self) -> str | None:
        written = self._written()
        self._log_read += len(written)
        return written[: 4 * MOST_PRINTED].decode(errors="replace").strip()[:MOST_PRINTED] or None

    def _written(self) -> bytes:
        """What was written to its stdout and stderr since the last request ended."""
        with self._log.open("rb") as log:
            log.seek(self._log_read)
            return log.read()


def _how(code: int) -> str:
    """How a process ended, by its exit code."""
    if code >= 0:
        return f"exited with code {code}"
    return f"killed by {signal.Signals(-code).name} ({(signal.strsignal(-code) or 'unknown signal').lower()})"
