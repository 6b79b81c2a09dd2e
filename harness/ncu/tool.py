"""Nsight Compute: finding ncu and running it over one launch of a kernel.

It never touches the clocks (`--clock-control none`). Caches are flushed before every pass (`--cache-control all`), and
each device kernel is run by itself, several times over: the durations are no figures to publish.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from harness.errors import CommandError, Exit
from harness.model import Problem
from harness.ncu.output import METRICS, ProfiledKernel, parse
from harness.ncu.target import DONE, STARTED, WARM
from harness.pool import ROOT
from harness.problems import shape_text

INSTALL_PAGE = "https://developer.nvidia.com/nsight-compute"
PERMISSION = "ERR_NVGPUCTRPERM"

TIMEOUT_S = 600.0
"""For one kernel on one problem: starting torch takes most of the few seconds that it should take."""


@dataclass(frozen=True, kw_only=True)
class Target:
    """What ncu is to look at."""

    registry: str
    """Module with kernels() and load(device_type)."""
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
class Output:
    """How an ncu ended, and what was written."""

    code: int
    """Exit code; negative: killed by that signal."""
    log: str
    """Ncu's own words and its CSV."""
    stdout: str
    """Of the process that it ran; of ncu too where it could not open its log."""
    stderr: str
    """Likewise."""

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
    home = Path(os.environ.get("CUDA_HOME", "/usr/local/cuda"), "bin")
    found = shutil.which(asked) if asked is not None else shutil.which("ncu") or shutil.which("ncu", path=str(home))
    if found is not None:
        return str(Path(found).absolute())
    where = (
        f"--ncu: found {asked!r}, which is no executable"
        if asked is not None
        else f"no ncu (looked at PATH and {home})"
    )
    how = f"install a CUDA toolkit or Nsight Compute ({INSTALL_PAGE}), or name its ncu with --ncu"
    raise CommandError(f"{where}; {how}", Exit.INFRASTRUCTURE)


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
    """Through files, not pipes, which a process that outlives ncu would hold open."""
    with tempfile.TemporaryDirectory(prefix="sgemv-ncu-") as name:
        log, out, err = (Path(name, part) for part in ("log", "stdout", "stderr"))
        with out.open("wb") as stdout, err.open("wb") as stderr:
            try:
                process = subprocess.Popen(
                    command(tool, target, metrics, log), cwd=ROOT, stdin=subprocess.DEVNULL, stdout=stdout,
                    stderr=stderr, start_new_session=True,
                )  # fmt: skip
            except OSError as error:
                raise CommandError(f"{tool} cannot be run: {error}; see --ncu", Exit.INFRASTRUCTURE) from error
            try:
                code = process.wait(timeout=timeout_s)
            except subprocess.TimeoutExpired:
                raise CommandError(f"{target}: hung, killed after {timeout_s:g} s under ncu", Exit.KERNEL) from None
            finally:
                _end(process)
        return Output(
            code=code,
            **{part.name: part.read_text(errors="replace") if part.exists() else "" for part in (log, out, err)},
        )


def _end(process: subprocess.Popen[bytes]) -> None:
    """End ncu and what it started; Ctrl-C does not reach them."""
    if process.poll() is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


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
        words = (output.stderr or output.log or output.stdout).strip().splitlines() or ["it said nothing"]
        raise CommandError(f"{target}: ncu ran nothing, {_ending(output.code)}: {words[-1]}", Exit.INFRASTRUCTURE)
    when = "in the profiled launch" if WARM in said else "before it was profiled"
    words = output.stderr.strip().splitlines() or [_ending(output.code)]
    raise CommandError(f"{target}: crashed {when}: {words[-1]}", Exit.KERNEL)


def _ending(code: int) -> str:
    return f"killed by signal {-code}" if code < 0 else f"exit code {code}"
