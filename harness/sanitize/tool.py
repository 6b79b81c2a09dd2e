"""compute-sanitizer: finding it, running one of its tools over some kernels, and what its report says."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.errors import CommandError, Exit
from harness.pool import ROOT
from harness.sanitize.target import DONE, STARTED

TOOLS = {
    "memcheck": ("--report-api-errors", "no"),  # of CUDA calls: torch tries some, and raises for the rest
    "racecheck": (),
    "initcheck": (),
    "synccheck": (),
}
"""Options of each tool."""

PACKAGE = "nvidia-cuda-sanitizer-api"
"""On PyPI; it must not be newer than the driver knows."""

ENVIRONMENT = {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}
"""Every tensor in an allocation of its own: in a cache's large blocks, no access is too far."""

TIMEOUT_S = 900.0
"""For one tool over all kernels: it should take well under a minute."""

_SUMMARY = re.compile(r"^========= (?:ERROR|RACECHECK) SUMMARY: (\d+)\b", re.MULTILINE)
_WORDS = re.compile(r"^========= (?!COMPUTE-SANITIZER|(?:ERROR|RACECHECK|LEAK) SUMMARY)(\S.*)$", re.MULTILINE)
_PLACE = re.compile(r"^=========     (at .+)$", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What one tool, and the launched kernels themselves, said."""

    errors: int
    """That the tool counts."""
    first: str | None
    """The first of them, with its place; None where there is none."""
    launches: Mapping[str, int]
    """Of each kernel."""
    faults: tuple[str, ...]
    """Wrong results and exceptions, a line for each kernel that has any."""
    seconds: float
    """It took."""


def find(asked: str | None) -> str:
    """Absolute path of compute-sanitizer: `asked` if given, else on PATH, of the CUDA toolkit, from PyPI.

    Raises:
        CommandError: there is none (INFRASTRUCTURE).
    """
    toolkit = Path(os.environ.get("CUDA_HOME", "/usr/local/cuda"), "bin")
    wheels = Path(sysconfig.get_path("purelib"), "nvidia", "cu13", "bin")
    places = (None, str(toolkit), str(wheels))
    candidates = [(asked, None)] if asked is not None else [("compute-sanitizer", place) for place in places]
    found = next((path for name, place in candidates if (path := shutil.which(name, path=place))), None)
    if found is not None:
        return str(Path(found).absolute())
    where = (
        f"--sanitizer: found {asked!r}, which is no executable"
        if asked is not None
        else f"no compute-sanitizer (looked at PATH, {toolkit}, PyPI's wheels)"
    )
    how = f"install a CUDA toolkit, or pip install {PACKAGE} of the driver's CUDA, or name it with --sanitizer"
    raise CommandError(f"{where}; {how}", Exit.INFRASTRUCTURE)


def command(sanitizer: str, tool: str, target: Sequence[str], report: Path) -> list[str]:
    """Its command line; its own words go into `report`."""
    return [
        *(sanitizer, "--tool", tool, *TOOLS[tool], "--log-file", str(report)),
        *("--destroy-on-device-error", "kernel"),  # one fault, and the next launch is checked all the same
        *(sys.executable, "-m", "harness.sanitize.target", *target),
    ]


def check(sanitizer: str, tool: str, target: Sequence[str], report: Path, *, timeout_s: float = TIMEOUT_S) -> Outcome:
    """Run one tool over the kernels that `target`, the arguments of harness.sanitize.target, names.

    Raises:
        CommandError: a kernel crashed or hung (KERNEL); the tool could not do it (INFRASTRUCTURE).
    """
    started = time.monotonic()
    report.unlink(missing_ok=True)
    code, stdout, stderr = _run(command(sanitizer, tool, target, report), tool, timeout_s)
    log = _text(report) if report.exists() else ""
    said = [words for line in stdout.splitlines() if (words := _object(line)) is not None]
    kernels = [words for words in said if "kernel" in words]
    summary = _SUMMARY.findall(log)
    if STARTED not in said or not summary:
        why = _first(log) or _last_line(stderr) or "it said nothing"
        raise CommandError(f"{tool}: {sanitizer} failed, {_ending(code)}: {why}", Exit.INFRASTRUCTURE)
    errors, first = sum(map(int, summary)), _first(log)
    if DONE not in said:
        after = f"after {kernels[-1]['kernel']}" if kernels else "in the first kernel"
        why = first or _last_line(stderr) or _ending(code)
        raise CommandError(f"{tool}: the process ended {after}: {why}; report: {report}", Exit.KERNEL)
    return Outcome(
        errors=errors,
        first=first if errors else None,
        launches={str(words["kernel"]): int(words["launches"]) for words in kernels},
        faults=tuple(_fault(words) for words in kernels if words["faults"]),
        seconds=time.monotonic() - started,
    )


def _fault(words: Mapping[str, Any]) -> str:
    first, *others = words["faults"]
    return f"{words['kernel']} on {first}" + (f"; and on {len(others)} other problems" if others else "")


def _first(log: str) -> str | None:
    """The first error in a report, with the place where it happened."""
    error = _WORDS.search(log)
    if error is None:
        return None
    place = _PLACE.search(log, error.end())
    return error[1] if place is None else f"{error[1]} {place[1]}"


def _last_line(text: str) -> str | None:
    return next(iter(text.strip().splitlines()[-1:]), None)


def _object(line: str) -> dict[str, Any] | None:
    """A JSON object; None for what kernels print."""
    try:
        words = json.loads(line)
    except ValueError:
        return None
    return words if isinstance(words, dict) else None


def _run(words: Sequence[str], tool: str, timeout_s: float) -> tuple[int, str, str]:
    """Exit code, stdout and stderr: through files, not pipes, which what outlives the tool would hold open."""
    with tempfile.TemporaryDirectory(prefix="sgemv-sanitize-") as folder:
        out, err = Path(folder, "stdout"), Path(folder, "stderr")
        with out.open("wb") as stdout, err.open("wb") as stderr:
            try:
                process = subprocess.Popen(
                    words, cwd=ROOT, env={**os.environ, **ENVIRONMENT}, stdin=subprocess.DEVNULL, stdout=stdout,
                    stderr=stderr, start_new_session=True,
                )  # fmt: skip
            except OSError as error:
                raise CommandError(
                    f"{words[0]} cannot be run: {error}; see --sanitizer", Exit.INFRASTRUCTURE
                ) from error
            try:
                code = process.wait(timeout=timeout_s)
            except subprocess.TimeoutExpired:
                raise CommandError(f"{tool}: hung, killed after {timeout_s:g} s", Exit.KERNEL) from None
            finally:
                _end(process)
        return code, _text(out), _text(err)


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the tool and what it started; Ctrl-C does not reach them."""
    if process.poll() is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _ending(code: int) -> str:
    return f"killed by signal {-code}" if code < 0 else f"exit code {code}"
