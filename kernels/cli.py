"""`python -m kernels.build`: builds a library, prints its path and what its kernels need."""

from __future__ import annotations

import argparse
import sys

from rich.console import Console
from rich.table import Table

from harness.errors import CommandError
from harness.model import KernelResources
from kernels.build import build
from kernels.toolchain import nvcc_path, nvcc_requirement


def main(arguments: list[str] | None = None) -> int:
    """Runs the command line and gives its exit code: 0, or 6 (2: a declaration) with one line on stderr."""
    options = _parser().parse_args(arguments)
    try:
        if options.needs:
            if nvcc_path() is None:
                sys.stdout.write(f"{nvcc_requirement()}\n")
            return 0
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


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m kernels.build", description="Build the kernels' library.")
    parser.add_argument("--target", choices=("cuda", "cpu"), default="cuda", help="default: cuda")
    parser.add_argument(
        "--arch",
        nargs="+",
        metavar="sm_90",
        type=_architecture,
        help="default: of the GPUs present, else sm_80 sm_90 sm_100",
    )
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
