"""Programs that a command waits for: each in a process group of its own, so that Ctrl-C reaches it once."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

ENDING_S = 50.0
"""What a child may take after Ctrl-C to keep what it measured; nox gives this process 60 s."""


@dataclass(frozen=True, kw_only=True)
class Ended:
    """A program that has ended."""

    code: int
    """Its exit code; below 0 the signal that ended it."""
    stdout: str = ""
    """What it printed; empty where it was shown as it came."""
    stderr: str = ""
    """What it complained of; empty where it was shown as it came."""

    @property
    def complaint(self) -> str:
        """The last line that it complained with, else how it ended."""
        lines = [line.strip() for line in self.stderr.splitlines() if line.strip()]
        return lines[-1].removeprefix("error: ") if lines else self.how

    @property
    def how(self) -> str:
        """`exit code 5`, `killed by SIGKILL`."""
        return f"exit code {self.code}" if self.code >= 0 else f"killed by {signal.Signals(-self.code).name}"


def show(command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> Ended:
    """Run a program in `folder` whose output is seen as it comes.

    Raises:
        KeyboardInterrupt: Ctrl-C, which the program was told of and has ended after.
    """
    with _started(command, folder, environment, None) as child, _told_once(child):
        return Ended(code=child.wait())


def ask(command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> Ended:
    """Run a program in `folder` for what it prints.

    Raises:
        KeyboardInterrupt: Ctrl-C, which the program was told of and has ended after.
    """
    with _started(command, folder, environment, subprocess.PIPE) as child, _told_once(child):
        stdout, stderr = child.communicate()
        return Ended(code=child.returncode, stdout=stdout, stderr=stderr)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """A further Ctrl-C must not end what cleans up after the first."""
    previous = {each: signal.signal(each, signal.SIG_IGN) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for each, handler in previous.items():
            signal.signal(each, handler)


def _started(
    command: Sequence[str], folder: Path, environment: Mapping[str, str], output: int | None
) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        encoding="utf-8",
        errors="replace",
        process_group=0,
    )


@contextmanager
def _told_once(child: subprocess.Popen[str]) -> Iterator[None]:
    """Whatever ends the wait ends the child first."""
    try:
        yield
    except BaseException:
        with uninterrupted():
            _end(child)
        raise


def _end(child: subprocess.Popen[str]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGINT)
        try:
            child.wait(ENDING_S)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
