"""One of NVIDIA's tools over a process of this project: finding it, running it, ending it with all that it started."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from harness.device import Usability, gpu_status, installed_torch
from harness.device.nvml import Nvml
from harness.errors import CommandError, Exit
from harness.pool import ROOT

DEVICE = "cuda:0"
"""CUDA_VISIBLE_DEVICES says which GPU that is."""

AS_IT_IS: Mapping[str, str] = MappingProxyType({})
"""No changes to the environment."""


@dataclass(frozen=True, kw_only=True)
class Ended:
    """How a tool ended, and what it and the process that it ran have written."""

    code: int
    """Exit code; negative: killed by that signal."""
    stdout: str
    """Of both."""
    stderr: str
    """Of both."""

    @property
    def how(self) -> str:
        """The exit code, or the signal that ended it, in words."""
        return f"killed by {signal.Signals(-self.code).name}" if self.code < 0 else f"exit code {self.code}"


def need_gpu(what: str) -> None:
    """Refuse what cannot be done without a GPU.

    Raises:
        CommandError: there is no usable one: `what` needs it (INFRASTRUCTURE).
    """
    status = gpu_status(Nvml.open(), installed_torch())
    if status.word is not Usability.USABLE:
        raise CommandError(f"{what} needs an NVIDIA GPU: {status.reason}", Exit.INFRASTRUCTURE)


def find(name: str, asked: str | None, *, option: str, install: str, places: Sequence[Path] = ()) -> str:
    """Absolute path of the tool `name`: `asked` if given, else on PATH, of the CUDA toolkit, in `places`.

    Args:
        name: of the executable.
        asked: what `option` says, a name or a path.
        option: of the command line.
        install: how to come by the tool, for the error.
        places: folders to look into last.

    Raises:
        CommandError: there is none (INFRASTRUCTURE).
    """
    folders = (Path(os.environ.get("CUDA_HOME", "/usr/local/cuda"), "bin"), *places)
    tries = [(name, None), *((name, str(folder)) for folder in folders)] if asked is None else [(asked, None)]
    found = next((path for word, place in tries if (path := shutil.which(word, path=place))), None)
    if found is not None:
        return str(Path(found).absolute())
    looked = f"no {name} (looked at PATH, {', '.join(map(str, folders))})"
    where = looked if asked is None else f"{option}: found {asked!r}, which is no executable"
    raise CommandError(f"{where}; {install}, or name it with {option}", Exit.INFRASTRUCTURE)


def run(
    command: Sequence[str], *, of: str, option: str, timeout_s: float, environment: Mapping[str, str] = AS_IT_IS
) -> Ended:
    """Run a tool from the project's root until it ends. Ctrl-C reaches this process alone, which then ends the tool.

    Args:
        command: the tool's path and its arguments.
        of: what the tool is run for, for errors.
        option: of the command line, by which another tool can be named.
        timeout_s: after which it counts as hung.
        environment: variables beside those of this process.

    Raises:
        CommandError: it hung (KERNEL), or cannot be run (INFRASTRUCTURE).
    """
    with tempfile.TemporaryDirectory(prefix="sgemv-tool-") as folder:  # what outlives the tool would keep pipes open
        out, err = Path(folder, "stdout"), Path(folder, "stderr")
        with out.open("wb") as stdout, err.open("wb") as stderr:
            try:
                process = subprocess.Popen(
                    command, cwd=ROOT, env={**os.environ, **environment}, stdin=subprocess.DEVNULL, stdout=stdout,
                    stderr=stderr, start_new_session=True,
                )  # fmt: skip
            except OSError as error:
                raise CommandError(f"{command[0]} cannot be run: {error}; see {option}", Exit.INFRASTRUCTURE) from error
            try:
                code = process.wait(timeout=timeout_s)
            except subprocess.TimeoutExpired:
                under = f"hung, killed after {timeout_s:g} s under {Path(command[0]).name}"
                raise CommandError(f"{of}: {under}", Exit.KERNEL) from None
            finally:
                _end(process)
        return Ended(code=code, stdout=text(out), stderr=text(err))


def text(path: Path) -> str:
    """Of a file that may hold anything; empty where there is none."""
    return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""


def last_line(words: str) -> str | None:
    """The last line of what was written; None: nothing was."""
    return next(iter(words.strip().splitlines()[-1:]), None)


def _end(process: subprocess.Popen[bytes]) -> None:
    """With whatever it started and has not ended."""
    if process.poll() is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
