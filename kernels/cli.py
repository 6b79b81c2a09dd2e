"""`python -m kernels.build`: builds a library, prints its path and what its kernels need."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from harness.command_line import PIPE_WIDTH, Parser
from harness.ending import ended, say_error
from harness.errors import CommandError, Exit
from harness.model import KernelResources
from harness.standing import named_file
from kernels import budget, registry
from kernels.build import build
from kernels.declarations import CSRC
from kernels.toolchain import (
    DEFAULT_ARCHITECTURES,
    check_nvcc_fits,
    find_host_compiler,
    find_nvcc,
    find_torch,
    nvcc_path,
    nvcc_requirement,
)

_DEFAULT = " ".join(DEFAULT_ARCHITECTURES)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line and gives its exit code: 0, or 2, 5 (static gate) or 6 with lines on stderr."""
    return ended(lambda: _run(_parser().parse_args(arguments)))


def _run(options: argparse.Namespace) -> int:
    if (options.check or options.budget) and (options.arch or options.target != "cuda"):
        found = "--arch" if options.arch else f"--target {options.target}"
        wanted = f"neither --arch nor --target: both are about cuda and {_DEFAULT}"
        raise CommandError(f"--check, --budget: found {found} too, wanted {wanted}", Exit.USAGE)
    if options.kernels:
        return _own(options)
    if options.needs:
        if nvcc_path() is None:
            sys.stdout.write(f"{nvcc_requirement()}\n")
        return Exit.FINE
    if options.compilers:
        sys.stdout.write("".join(f"{line}\n" for line in _compilers(options.target)))
        return Exit.FINE
    if options.check or options.budget:
        return _static_gate(only_print=options.budget)
    built = build(options.target, architectures=tuple(options.arch) if options.arch else None)
    sys.stdout.write(f"{built.library}\n")
    _show(built.record.resources)
    return Exit.FINE


def _own(options: argparse.Namespace) -> Exit:
    """Build what users' files declare, as a bench on a GPU does, and say what is in each."""
    others = [name for name in ("check", "budget", "needs", "compilers") if getattr(options, name)]
    others += ["target"] if options.target != "cuda" else []
    if others:
        raise CommandError(
            f"--kernels: found --{others[0]} too, which is about the project's own; leave one out", Exit.USAGE
        )
    own = registry.with_files([named_file("--kernels", name) for name in options.kernels])
    names = {kernel.name: kernel.file for kernel in own.kernels().values()}
    for path, built in own.build("cuda", tuple(options.arch) if options.arch else None).items():
        sys.stdout.write(f"{path}: {', '.join(name for name, file in names.items() if file == path)}\n")
        libraries = sorted(built.directory.glob("*.so"))
        sys.stdout.write("".join(f"{library}\n" for library in libraries) or "nothing to compile: it has no .cu file\n")
        _show(built.record.resources)
    return Exit.FINE


def _show(resources: tuple[KernelResources, ...]) -> None:
    sys.stdout.flush()
    if resources:
        Console(width=None if sys.stdout.isatty() else PIPE_WIDTH).print(_table(resources))


def _compilers(target: str) -> list[str]:
    """What a build would be made with, a line each."""
    torch, found = find_torch(), []
    if target == "cuda":
        found.append(find_nvcc())
        check_nvcc_fits(found[0], torch)
    found.append(find_host_compiler())
    return [*(f"{each.path}: {each.version}" for each in found), f"headers of torch {torch.version}"]


def _static_gate(*, only_print: bool) -> int:
    """Hold the code for every default architecture to the budget, or print the budget that it would keep."""
    built = build("cuda", architectures=DEFAULT_ARCHITECTURES)
    found = budget.entries(built)
    if only_print:
        sys.stdout.write("".join(f"{line}\n" for line in budget.table(found)))
        return Exit.FINE
    faults = budget.faults(found, budget.limits(CSRC))
    for fault in faults:
        say_error(fault)
    if not faults:
        where = ", ".join(DEFAULT_ARCHITECTURES)
        sys.stdout.write(
            f"{len(found)} functions for {where}: no spills, no local memory, within {CSRC / budget.FILE}\n"
        )
    return Exit.KERNEL if faults else Exit.FINE


def _parser() -> Parser:
    parser = Parser(prog="python -m kernels.build", description="Build the kernels' library.")
    parser.add_argument("--target", choices=("cuda", "cpu"), default="cuda", help="default: cuda")
    parser.add_argument(
        "--arch",
        nargs="+",
        metavar="sm_90",
        type=_architecture,
        help=f"default: of the GPUs present, else {_DEFAULT}",
    )
    which = "build what this file of your own kernels declares instead; needs no GPU (repeatable)"
    parser.add_argument("--kernels", action="append", default=[], metavar="FILE", help=which)
    only = parser.add_mutually_exclusive_group()
    only.add_argument("--check", action="store_true", help=f"only hold the code for {_DEFAULT} to csrc/{budget.FILE}")
    only.add_argument("--budget", action="store_true", help="only print the budget that the code would just keep")
    only.add_argument("--needs", action="store_true", help="only print what pip must install to have an nvcc, if any")
    only.add_argument("--compilers", action="store_true", help="only print what it would be built with")
    return parser


def _architecture(word: str) -> str:
    if not re.fullmatch(r"sm_[1-9]\d{1,2}[af]?", word):
        raise argparse.ArgumentTypeError(f"found {word!r}, wanted an architecture such as sm_90")
    return word


def _table(resources: tuple[KernelResources, ...]) -> Table:
    table = Table("kernel", "arch", "registers", "spilled bytes")
    for row in resources:
        name = row.function.removeprefix("sgemv::")
        table.add_row(name, row.arch, str(row.registers), str(row.spill_store_bytes + row.spill_load_bytes))
    return table
