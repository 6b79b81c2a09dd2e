"""`python -m kernels.build`: builds a library, prints its path and what its kernels need."""

from __future__ import annotations

import argparse
import sys

from rich.console import Console
from rich.table import Table

from harness.errors import CommandError, Exit
from harness.model import KernelResources
from kernels import budget
from kernels.build import build
from kernels.declarations import CSRC
from kernels.toolchain import DEFAULT_ARCHITECTURES, nvcc_path, nvcc_requirement

_DEFAULT = " ".join(DEFAULT_ARCHITECTURES)


def main(arguments: list[str] | None = None) -> int:
    """Runs the command line and gives its exit code: 0, or 2, 5 (static gate) or 6 with lines on stderr."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if (options.check or options.budget) and (options.arch or options.target != "cuda"):
        parser.error(f"--check and --budget are about cuda and {_DEFAULT}: found --arch or --target too")
    try:
        if options.needs:
            if nvcc_path() is None:
                sys.stdout.write(f"{nvcc_requirement()}\n")
            return 0
        if options.check or options.budget:
            return _static_gate(only_print=options.budget)
        architectures = tuple(options.arch) if options.arch else None
        built = build(options.target, architectures=architectures)
    except CommandError as error:
        sys.stderr.write(f"error: {error}\n")
        return int(error.code)
    sys.stdout.write(f"{built.library}\n")
    sys.stdout.flush()
    if built.record.resources:
        Console().print(_table(built.record.resources))
    return 0


def _static_gate(*, only_print: bool) -> int:
    """Hold the code for every default architecture to the budget, or print the budget that it would keep."""
    built = build("cuda", architectures=DEFAULT_ARCHITECTURES)
    found = budget.entries(built)
    if only_print:
        sys.stdout.write("".join(f"{line}\n" for line in budget.table(found)))
        return Exit.FINE
    faults = budget.faults(found, budget.limits(CSRC))
    for fault in faults:
        sys.stderr.write(f"error: {fault}\n")
    if not faults:
        where = ", ".join(DEFAULT_ARCHITECTURES)
        sys.stdout.write(
            f"{len(found)} functions for {where}: no spills, no local memory, within {CSRC / budget.FILE}\n"
        )
    return Exit.KERNEL if faults else Exit.FINE


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m kernels.build", description="Build the kernels' library.")
    parser.add_argument("--target", choices=("cuda", "cpu"), default="cuda", help="default: cuda")
    parser.add_argument(
        "--arch",
        nargs="+",
        metavar="sm_90",
        type=_architecture,
        help=f"default: of the GPUs present, else {_DEFAULT}",
    )
    parser.add_argument("--check", action="store_true", help=f"only hold the code for {_DEFAULT} to csrc/{budget.FILE}")
    parser.add_argument("--budget", action="store_true", help="only print the budget that the code would just keep")
    parser.add_argument("--needs", action="store_true", help="only print what pip must install to have an nvcc, if any")
    return parser


def _architecture(word: str) -> str:
    if not word.startswith("sm_") or not word[3:5].isdigit():
        raise argparse.ArgumentTypeError(f"found {word!r}, wanted an architecture such as sm_90")
    return word


def _table(resources: tuple[KernelResources, ...]) -> Table:
    table = Table("kernel", "arch", "registers", "spilled bytes")
    for row in resources:
        name = row.function.removeprefix("sgemv::")
        table.add_row(name, row.arch, str(row.registers), str(row.spill_store_bytes + row.spill_load_bytes))
    return table
