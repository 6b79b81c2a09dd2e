"""`python -m harness.ncu`: why a kernel is as fast as it is, by the hardware counters that Nsight Compute reads.

What is seen here explains a figure and is none: ncu flushes caches, runs each device kernel by itself, many times over.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from harness.command_line import PIPE_WIDTH, Parser
from harness.ending import ended, say_error
from harness.errors import KERNELS_HINT, CommandError, Exit, unknown
from harness.model import Kernel, Problem, Role
from harness.ncu import tool as ncu
from harness.ncu.output import METRICS, ProfiledKernel
from harness.ncu.table import CAPTION, LEAST_WIDTH, notes, table
from harness.problems import SHAPE, parse_shapes, shape_text
from harness.registry import opened
from harness.roofline import least_bytes
from harness.tool import DEVICE, need_gpu

DEFAULT_SHAPE = "4096x4096"


@dataclass(frozen=True, kw_only=True)
class Profile:
    """What ncu saw of one kernel on one problem."""

    kernel: str
    """Name of the kernel or variant."""
    problem: Problem
    """What it computed."""
    device_kernels: tuple[ProfiledKernel, ...]
    """What one launch started, in order."""


def main(arguments: list[str] | None = None) -> int:
    """Profile what the arguments name; the exit code."""
    return ended(lambda: _profile(_parser().parse_args(arguments)))


def _profile(options: argparse.Namespace) -> int:
    registry = opened(options.registry, options.kernels)
    kernels = _kernels(options.kernel, registry.kernels())
    problems = parse_shapes(options.shape or [DEFAULT_SHAPE])
    if options.csv is not None and not options.csv.absolute().parent.is_dir():
        raise CommandError(f"--csv: found {str(options.csv)!r}, wanted a file in a folder that exists", Exit.USAGE)
    named = bool(options.kernel)
    pairs = [(kernel, each) for each in problems for kernel in kernels if named or each.dtype in kernel.dtypes]
    need_gpu("profile")
    wanted = [
        ncu.Target(registry=registry.__name__, device=DEVICE, kernel=way.name, problem=problem)
        for kernel, problem in pairs
        if _supported(kernel, problem)
        for way in kernel.ways("cuda", problem)
    ]
    if not wanted:
        raise CommandError("nothing to profile: see above", Exit.USAGE)
    tool = ncu.find(options.ncu)
    registry.prepare("cuda")  # here, or every process under ncu would wait for the compiler
    profiles, code = _profiles(tool, wanted)
    _show(profiles)
    if options.csv is not None:
        _write(options.csv, profiles)
    return code


def _profiles(tool: str, targets: Sequence[ncu.Target]) -> tuple[list[Profile], Exit]:
    """Of every target that can be profiled; the worst exit code. What would stop all others too ends the loop."""
    found, worst = [], Exit.FINE
    for number, target in enumerate(targets, start=1):
        try:
            with Console(stderr=True, markup=False).status(f"profiling {target} ({number} of {len(targets)})"):
                seen = ncu.profile(tool, target)
            found.append(Profile(kernel=target.kernel, problem=target.problem, device_kernels=seen))
        except CommandError as error:
            say_error(error)
            worst = max(worst, error.code)
            if error.code is Exit.INFRASTRUCTURE:
                break
        except KeyboardInterrupt:
            return found, Exit.INTERRUPTED
    return found, worst


def _kernels(wanted: Sequence[str], kernels: Mapping[str, Kernel]) -> list[Kernel]:
    """Those named, in the registry's order; else those of users' files; else every GEMV kernel of a GPU."""
    for name in wanted:
        if name not in kernels:
            raise unknown("--kernel", name, kernels, KERNELS_HINT)
    if wanted:
        return [kernel for kernel in kernels.values() if kernel.name in wanted]
    own = [kernel for kernel in kernels.values() if kernel.file is not None]
    return own or [kernel for kernel in kernels.values() if kernel.role is Role.GEMV and "cuda" in kernel.devices]


def _supported(kernel: Kernel, problem: Problem) -> bool:
    """Whether a GPU can compute it with this kernel; a line that says why not."""
    if "cuda" not in kernel.devices:
        reason: str | None = f"runs on {', '.join(kernel.devices)}, wanted cuda"
    elif problem.dtype not in kernel.dtypes:
        reason = f"computes {', '.join(kernel.dtypes)}, wanted {problem.dtype}"
    else:
        reason = kernel.unsupported(problem)
    if reason is not None:
        sys.stdout.write(f"{kernel.name} on {shape_text(problem)}: not profiled: {reason}\n")
    return reason is None


def _show(profiles: Sequence[Profile]) -> None:
    """A table a problem, and what one must know to read them."""
    if not profiles:
        return
    console = Console(width=None if sys.stdout.isatty() else PIPE_WIDTH, highlight=False, markup=False)
    console.width = max(console.width, LEAST_WIDTH)
    for problem in dict.fromkeys(profile.problem for profile in profiles):
        rows = [(profile.kernel, profile.device_kernels) for profile in profiles if profile.problem == problem]
        console.print(table(problem, rows))
    for line in (CAPTION, *notes([each for profile in profiles for each in profile.device_kernels])):
        console.print(line, soft_wrap=not console.is_terminal)


def _write(path: Path, profiles: Sequence[Profile]) -> None:
    """A line a device kernel, base units, nothing rounded; empty is what ncu gave no value for."""
    names = ["kernel", "problem", "least_bytes", "device_kernel", "grid", "block"]
    try:
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow([*names, *("ncu_duration_ns" if field == "duration_ns" else field for field in METRICS)])
            for profile in profiles:
                known = [profile.kernel, shape_text(profile.problem), least_bytes(profile.problem)]
                for each in profile.device_kernels:
                    shape = ("x".join(map(str, extents)) for extents in (each.grid, each.block))
                    writer.writerow([*known, each.name, *shape, *(getattr(each, field) for field in METRICS)])
    except OSError as error:
        raise CommandError(f"--csv: {path} cannot be written: {error}", Exit.INFRASTRUCTURE) from error


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="python -m harness.ncu",
        description="Hardware counters of a launch, by Nsight Compute; the clocks are left alone.",
    )
    parser.add_argument("--registry", required=True, help="module with kernels(), prepare() and load()")
    parser.add_argument(
        "--kernel", action="append", default=[], help="profile this kernel (repeatable; default: every GEMV kernel)"
    )
    parser.add_argument(
        "--kernels",
        metavar="FILE",
        action="append",
        default=[],
        help="profile those of this file of your own (repeatable)",
    )
    parser.add_argument(
        "--shape",
        action="append",
        default=[],
        help=f"on this problem, as {SHAPE} (repeatable; default: {DEFAULT_SHAPE})",
    )
    parser.add_argument("--ncu", help="path of ncu (default: on PATH, else of the CUDA toolkit in CUDA_HOME)")
    parser.add_argument("--csv", type=Path, help="write every number into this file too")
    return parser


if __name__ == "__main__":
    sys.exit(main())
