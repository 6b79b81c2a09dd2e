"""`python -m harness.sanitize`: whether compute-sanitizer finds fault with any kernel, on small problems on a GPU."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console

from harness.command_line import Parser
from harness.ending import ended, say_error
from harness.errors import KERNELS_HINT, CommandError, Exit, unknown
from harness.model import Kernel
from harness.registry import opened
from harness.sanitize import tool as sanitizer
from harness.store.open_store import open_store
from harness.tool import DEVICE, need_gpu


def main(arguments: list[str] | None = None) -> int:
    """Check the kernels that the arguments name; the exit code."""
    return ended(lambda: _sanitize(_parser().parse_args(arguments)))


def _sanitize(options: argparse.Namespace) -> int:
    registry = opened(options.registry, options.kernels)
    names = _names(options.kernel, registry.kernels())
    need_gpu("sanitize")
    found = sanitizer.find(options.sanitizer)
    folder = options.reports or open_store(None).derived / "sanitize"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CommandError(f"--reports: {folder} cannot be written: {error}", Exit.INFRASTRUCTURE) from error
    registry.prepare("cuda")  # here, or a process under the sanitizer would wait for the compiler
    target = ["--registry", registry.__name__, "--device", DEVICE]
    target += [word for name in names for word in ("--kernel", name)]
    worst = Exit.FINE
    for tool in options.tool or sanitizer.TOOLS:
        worst = max(worst, _check(found, tool, target, (folder / f"{tool}.txt").absolute()))
        if worst is Exit.INFRASTRUCTURE:
            break
    return worst


def _check(found: str, tool: str, target: Sequence[str], report: Path) -> Exit:
    """One tool; a line on what it says, and one for each wrong result."""
    try:
        with Console(stderr=True, markup=False).status(f"{tool}: every kernel on small problems"):
            outcome = sanitizer.check(found, tool, target, report)
    except CommandError as error:
        say_error(error)
        return error.code
    for fault in outcome.faults:
        say_error(f"{tool}: {fault}")
    launches = sum(outcome.launches.values())
    first = "" if outcome.first is None else f", the first: {outcome.first}"
    word = "clean" if outcome.found is None else f"{outcome.found}{first}"
    over = f"{len(outcome.launches)} kernels, {launches} launches, {outcome.seconds:.0f} s"
    sys.stdout.write(f"{tool}: {word}; {over}; report: {report}\n")
    sys.stdout.flush()
    return Exit.KERNEL if outcome.found or outcome.faults or not launches else Exit.FINE


def _names(wanted: Sequence[str], kernels: Mapping[str, Kernel]) -> list[str]:
    """Of kernels and variants for the device: those asked for, else those of users' files, where there are any.

    Else all that are no library's own, as torch.matmul is.

    Raises:
        CommandError: there is none of a name (USAGE).
    """
    device_type = DEVICE.partition(":")[0]
    here = [kernel for kernel in kernels.values() if device_type in kernel.devices]
    ways_of = {each: [way for way in each.variants if device_type in way.devices] or [each] for each in here}
    known = {way.name: kernel.name for kernel, found in ways_of.items() for way in found}
    for name in wanted:
        if name not in known and name not in known.values():
            raise unknown("--kernel", name, known, KERNELS_HINT)
    if wanted:
        return [way for way, kernel in known.items() if way in wanted or kernel in wanted]
    own = [kernel for kernel in kernels.values() if kernel.file is not None]
    if own and not any(kernel.name in known for kernel in own):
        raise CommandError(f"--kernels: none of {', '.join(each.name for each in own)} is for a GPU", Exit.USAGE)
    return [each.name for each in own if each.name in known] or [name for name in known if "." not in name]


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="python -m harness.sanitize",
        description="Run compute-sanitizer's tools over the kernels on small problems.",
    )
    parser.add_argument("--registry", required=True, help="module with kernels(), prepare() and load()")
    parser.add_argument("--kernel", action="append", default=[], help="check this one (repeatable; default: all)")
    parser.add_argument(
        "--kernels",
        metavar="FILE",
        action="append",
        default=[],
        help="check those of this file of your own (repeatable)",
    )
    parser.add_argument(
        "--tool", action="append", choices=tuple(sanitizer.TOOLS), help="run this one (repeatable; default: all)"
    )
    parser.add_argument(
        "--sanitizer", metavar="PATH", help="compute-sanitizer (default: on PATH, of CUDA_HOME, of PyPI)"
    )
    parser.add_argument(
        "--reports", type=Path, metavar="FOLDER", help="where the tools' reports are kept (default: artifacts/sanitize)"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
