"""Nsight Compute: finding ncu and running it over one launch of a kernel.

It never touches the clocks (`--clock-control none`). Caches are flushed before every pass (`--cache-control all`), and
each device kernel is run by itself, several times over: the durations are no figures to publish.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness import tool as tools
from harness.errors import CommandError, Exit
from harness.model import Problem
from harness.ncu.output import METRICS, ProfiledKernel, parse
from harness.ncu.target import DONE, STARTED, WARM
from harness.problems import shape_text

INSTALL_PAGE = "https://developer.nvidia.com/nsight-compute"
PERMISSION = "ERR_NVGPUCTRPERM"
OPTION = "--ncu"
"""By which a user names another ncu."""

TIMEOUT_S = 600.0
"""For one kernel on one problem: starting torch takes most of the few seconds that it should take."""


@dataclass(frozen=True, kw_only=True)
class Target:
    """What ncu is to look at."""

    registry: str
    """As `harness.registry.find` takes it."""
    device: str
    """As torch names it."""
    kernel: str
    """Name of a kernel or variant."""
    problem: Problem
    """What it computes."""

    def __str__(self) -> str:
        """For people."""
        return f"{self.kernel} on {shape_text(self.problem)}"

    def command(self) -> list[str]:
        """What ncu starts."""
        options = ["--registry", self.registry, "--device", self.device]
        return [
            *(sys.executable, "-m", "harness.ncu.target", *options),
            *("--kernel", self.kernel, "--shape", shape_text(self.problem)),
        ]


@dataclass(frozen=True, kw_only=True)
class Output(tools.Ended):
    """How an ncu ended, and what was written."""

    log: str
    """Ncu's own words and its CSV; they are on stdout where it could not open its log."""

    def errors(self) -> list[str]:
        """What ncu calls an error, but for what it says of the process that it ran."""
        lines = [line.strip() for text in (self.log, self.stdout, self.stderr) for line in text.splitlines()]
        found = [line.removeprefix("==ERROR==").strip() for line in lines if line.startswith("==ERROR==")]
        return [line for line in found if not line.startswith("The application ")]


def find(asked: str | None) -> str:
    """Absolute path of ncu: `asked` if given, else on PATH, else of the CUDA toolkit.

    Raises:
        CommandError: there is none (INFRASTRUCTURE).
    """
    install = f"install a CUDA toolkit or Nsight Compute ({INSTALL_PAGE})"
    return tools.find("ncu", asked, option=OPTION, install=install)


def profile(tool: str, target: Target, *, timeout_s: float = TIMEOUT_S) -> tuple[ProfiledKernel, ...]:
    """The device kernels that one launch starts, in order. What this chip has no metric for is None.

    Raises:
        CommandError: the launch crashed, hung or started nothing (KERNEL); ncu could not do it (INFRASTRUCTURE).
    """
    metrics = list(METRICS.values())
    while True:
        output = _run(tool, target, metrics, timeout_s)
        unknown = {metric for metric in metrics for line in output.errors() if metric in line.replace("\\", "")}
        if not unknown or unknown == set(metrics):
            break
        metrics = [metric for metric in metrics if metric not in unknown]  # some ncu give up for one
    _check(output, target)
    found = parse(output.log)
    if not found:
        why = next(iter(output.errors()), f"the launch started none, or {tool} cannot profile this GPU")
        raise CommandError(f"{target}: ncu profiled no kernel: {why}", Exit.KERNEL)
    return found


def command(tool: str, target: Target, metrics: Sequence[str], log: Path) -> list[str]:
    """Ncu's command line; its own words go into `log`, apart from those of what it runs."""
    return [
        *(tool, "--log-file", str(log), "--csv", "--page", "raw", "--print-units", "base"),
        *("--clock-control", "none", "--cache-control", "all"),
        *("--target-processes", "all", "--profile-from-start", "off", "--metrics", ",".join(metrics)),
        *target.command(),
    ]


def _run(tool: str, target: Target, metrics: Sequence[str], timeout_s: float) -> Output:
    with tempfile.TemporaryDirectory(prefix="sgemv-ncu-") as folder:
        log = Path(folder, "log")
        ended = tools.run(command(tool, target, metrics, log), of=str(target), option=OPTION, timeout_s=timeout_s)
        return Output(code=ended.code, stdout=ended.stdout, stderr=ended.stderr, log=tools.text(log))


def _check(output: Output, target: Target) -> None:
    """Raise CommandError for whatever keeps this output from being a profile."""
    if any(PERMISSION in text for text in (output.log, output.stdout, output.stderr)):
        raise CommandError(
            f"{target}: {PERMISSION}: the driver lets only administrators read performance counters; run as root, give "
            "the container CAP_SYS_ADMIN, or load the driver with NVreg_RestrictProfilingToAdminUsers=0 "
            f"(https://developer.nvidia.com/{PERMISSION})", Exit.INFRASTRUCTURE,
        )  # fmt: skip
    said, errors = output.stdout.splitlines(), output.errors()
    if DONE in said and output.code == 0:
        return
    if errors:
        raise CommandError(f"{target}: ncu failed: {errors[0]}", Exit.INFRASTRUCTURE)
    if STARTED not in said:
        why = tools.last_line(output.stderr or output.log or output.stdout) or "it said nothing"
        raise CommandError(f"{target}: ncu ran nothing, {output.how}: {why}", Exit.INFRASTRUCTURE)
    when = "in the profiled launch" if WARM in said else "before it was profiled"
    raise CommandError(f"{target}: crashed {when}: {tools.last_line(output.stderr) or output.how}", Exit.KERNEL)
