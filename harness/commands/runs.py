"""List the runs of the store, newest first."""

from __future__ import annotations

import argparse
import sys

from rich.console import Console
from rich.table import Column, Table

from harness.command_line import PIPE_WIDTH
from harness.ending import say_error
from harness.errors import CommandError, Exit
from harness.store import Store, read_run
from harness.words import LONGEST_LINE, coded, visible

HELP = "list the runs, newest first"


def add_arguments(_parser: argparse.ArgumentParser) -> None:
    """None of its own."""


def run(store: Store, _options: argparse.Namespace) -> int:
    """A line a run."""
    refs = store.refs()
    table = Table(Column("run", overflow="fold"), "device", "driver", "torch", "cases", "", "refs", box=None)
    code = Exit.FINE
    for run_id in reversed(store.ids()):
        try:
            found = read_run(store.root / run_id)
        except CommandError as error:
            say_error(error)
            code = max(code, error.code)
            continue
        values = found.environment.values
        cells = (
            run_id,
            str(values.get("gpu_name") or values.get("cpu_name")),
            str(values.get("driver_version") or "–"),
            str(values.get("torch_version")),
            str(len(found.measurements)),
            "partial" if found.partial else "",
            ", ".join(refs.get(run_id, [])),
        )
        table.add_row(*(visible(cell, LONGEST_LINE) for cell in cells))
    if not table.row_count:
        sys.stdout.write(f"no runs in {coded(str(store.root))}\n")
        return code
    width = None if sys.stdout.isatty() else PIPE_WIDTH
    Console(width=width, highlight=False, markup=False, emoji=False).print(table)
    return code
