"""compute-sanitizer: finding it, running one of its tools over some kernels, and what its report says."""

from __future__ import annotations

import json
import re
import sys
import sysconfig
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness import tool as tools
from harness.errors import CommandError, Exit
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

OPTION = "--sanitizer"
"""By which a user names another compute-sanitizer."""

_SUMMARY = re.compile(r"^========= (?:ERROR|RACECHECK) SUMMARY: (.+)$", re.MULTILINE)
_WORDS = re.compile(r"^========= (?!COMPUTE-SANITIZER|(?:ERROR|RACECHECK|LEAK) SUMMARY)(\S.*)$", re.MULTILINE)
_PLACE = re.compile(r"^=========     (at .+)$", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What one tool, and the launched kernels themselves, said."""

    found: str | None
    """The tool's own count: `2 errors`, or of racecheck `1 hazard displayed (0 errors, 1 warning)`; None: nothing."""
    first: str | None
    """The first of it, with its place; None: it was not told."""
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
    wheels = Path(sysconfig.get_path("purelib"), "nvidia", "cu13", "bin")
    install = f"install a CUDA toolkit, or pip install {PACKAGE} of the driver's CUDA"
    return tools.find("compute-sanitizer", asked, option=OPTION, install=install, places=[wheels])


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
    words = command(sanitizer, tool, target, report)
    ended = tools.run(words, of=tool, option=OPTION, timeout_s=timeout_s, environment=ENVIRONMENT)
    log, said = tools.text(report), list(_objects(ended.stdout))
    first, found = _first(log), _found(log)
    why = first or tools.last_line(ended.stderr)
    if STARTED not in said or found is None:
        raise CommandError(
            f"{tool}: {sanitizer} failed, {ended.how}: {why or 'it said nothing'}", Exit.INFRASTRUCTURE
        )  # fmt: skip
    kernels = [each for each in said if "kernel" in each]
    if DONE not in said or (ended.code and not found):
        after = f"after {kernels[-1]['kernel']}" if kernels else "in the first kernel"
        raise CommandError(f"{tool}: the process ended {after}: {why or ended.how}; report: {report}", Exit.KERNEL)
    return Outcome(
        found=", ".join(found) or None,
        first=first if found else None,
        launches={str(each["kernel"]): int(each["launches"]) for each in kernels},
        faults=tuple(_fault(each) for each in kernels if each["faults"]),
        seconds=time.monotonic() - started,
    )


def _found(log: str) -> list[str] | None:
    """The summaries of a report that count anything, but for what was not printed; None: it has none at all."""
    summaries: list[str] = _SUMMARY.findall(log)
    counting = [each for each in summaries if re.search("[1-9]", each) and "not printed" not in each]
    return counting if summaries else None


def _fault(words: Mapping[str, Any]) -> str:
    first, *others = words["faults"]
    return f"{words['kernel']} on {first}" + (f"; and on {len(others)} more" if others else "")


def _first(log: str) -> str | None:
    """The first error or warning in a report, with the place where it happened."""
    error = _WORDS.search(log)
    if error is None:
        return None
    place = _PLACE.search(log, error.end())
    return error[1] if place is None else f"{error[1]} {place[1]}"


def _objects(stdout: str) -> Iterator[dict[str, Any]]:
    """The lines that are JSON objects; kernels may print others."""
    for line in stdout.splitlines():
        try:
            words = json.loads(line)
        except ValueError:
            continue
        if isinstance(words, dict):
            yield words
