"""`python -m harness runs|verify`: the store from the command line."""

from __future__ import annotations

import argparse
import io
import sys

from rich.console import Console
from rich.table import Column, Table

from harness.errors import CommandError, Exit
from harness.store import Store, load, read_run, store_root, verify

PIPE_WIDTH = 1000
"""Columns where no terminal says how wide it is: whoever reads ids from a pipe needs them whole."""


def main(arguments: list[str] | None = None) -> int:
    """Run one command; its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # an ASCII terminal gets ? for what it cannot show
    options = _parser().parse_args(arguments)
    store = Store(store_root(options.store))
    try:
        for path in store.recover():
            sys.stderr.write(f"published what a bench had measured before it was killed: {path}\n")
        for line in store.kept_aside:
            sys.stderr.write(f"{line}\n")
        if options.command == "runs":
            return _runs(store)
        return _verify(store, options.run)
    except CommandError as error:
        sys.stderr.write(f"{error}\n")
        return int(error.code)


def _runs(store: Store) -> int:
    """A line a run, newest first."""
    refs = store.refs()
    table = Table(Column("run", overflow="fold"), "device", "driver", "torch", "cases", "", "refs", box=None)
    code = Exit.FINE
    for run_id in reversed(store.ids()):
        try:
            run = read_run(store.root / run_id)
        except CommandError as error:
            sys.stderr.write(f"{error}\n")
            code = max(code, error.code)
            continue
        values = run.environment.values
        table.add_row(
            run_id,
            str(values.get("gpu_name") or values.get("cpu_name")),
            str(values.get("driver_version") or "–"),
            str(values.get("torch_version")),
            str(len(run.measurements)),
            "partial" if run.partial else "",
            ", ".join(refs.get(run_id, [])),
        )
    if not table.row_count:
        sys.stdout.write(f"no runs in {store.root}\n")
        return code
    Console(width=None if sys.stdout.isatty() else PIPE_WIDTH, highlight=False).print(table)
    return code


def _verify(store: Store, selectors: list[str]) -> int:
    """Check the named runs, or all; a line each."""
    folders = [store.resolve(each) for each in selectors] or [store.root / run_id for run_id in store.ids()]
    if not folders:
        raise CommandError(f"no runs in {store.root}", Exit.RUN)
    worst = Exit.FINE
    for folder in folders:
        try:
            verify(folder)
            load(folder)
            sys.stdout.write(f"{folder}: whole\n")
        except CommandError as error:
            sys.stderr.write(f"{error}\n")
            worst = max(worst, error.code)
    return worst


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m harness", description="The store of runs.")
    commands = parser.add_subparsers(dest="command", required=True)
    store = argparse.ArgumentParser(add_help=False)
    store.add_argument("--store", help="folder of runs (default: SGEMV_STORE, else artifacts/)")
    commands.add_parser("runs", parents=[store], help="list the runs, newest first")
    check = commands.add_parser("verify", parents=[store], help="check runs against their sums")
    check.add_argument(
        "run", nargs="*", help="path, id, start of an id, latest, latest~N, ref or key=value (default: all)"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
