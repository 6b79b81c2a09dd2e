"""List the runs of the store, newest first; or, with --stale-after, only say how old the newest night is.

The age of a night is the time since it started, in UTC, by this machine's clock. `--stale-after 36h` leaves with 4 when
the run that the ref `nightly` means is older, was cut short, starts in the future, or is not there: silence is noticed
too. Of several machines that share a store the newest night counts.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
from rich.console import Console
from rich.table import Column, Table

from harness.command_line import PIPE_WIDTH
from harness.ending import say_error
from harness.errors import CommandError, Exit
from harness.model import SCHEMA_VERSION, Run
from harness.nightly.night import REF
from harness.store import Store, read_run
from harness.words import LONGEST_LINE, coded, visible

HELP = "list the runs, newest first"

LAST = 50
"""Runs that are listed unless more are asked for."""

UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}

CLOCKS_APART = timedelta(minutes=5)
"""How far clocks of two machines may be apart unnoticed."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """How many runs, or how old the newest night may be."""
    parser.add_argument("--last", metavar="N", help=f"the newest N runs (default: {LAST})")
    parser.add_argument("--all", action="store_true", help="every run")
    age = f"only check that the run of the ref {REF} started no longer ago: a number and s, m, h or d, as 36h"
    parser.add_argument("--stale-after", metavar="AGE", help=age)


def run(store: Store, options: argparse.Namespace) -> int:
    """A line a run."""
    if options.stale_after is not None:
        return _check_age(store, _age(options.stale_after), options.stale_after)
    ids = store.ids()
    shown = ids if options.all else ids[-_last(options.last) :]
    if not ids:
        sys.stdout.write(f"no runs in {coded(store.name)}{store.missing()}\n")
        return Exit.FINE
    table = Table(Column("run", overflow="fold"), "device", "driver", "torch", "cases", "", "refs", box=None)
    code = _fill(table, store, shown)
    if table.row_count:
        width = None if sys.stdout.isatty() else PIPE_WIDTH
        Console(width=width, highlight=False, markup=False, emoji=False).print(table)
    if len(shown) < len(ids):
        sys.stdout.write(f"{len(ids) - len(shown)} older ones are not shown: --all, or --last N\n")
    return code


def _fill(table: Table, store: Store, ids: Sequence[str]) -> Exit:
    """A row for each run that can be read."""
    code, refs = Exit.FINE, store.refs()
    store.prefetch(ids)
    for run_id in reversed(ids):
        try:
            facts = _facts(store.head(run_id))
        except CommandError as error:
            if error.code is not Exit.RUN:
                raise
            say_error(error)
            code = Exit.RUN
            continue
        cells = (run_id, *facts, ", ".join(refs.get(run_id, [])))
        table.add_row(*(visible(cell, LONGEST_LINE) for cell in cells))
    return code


class _Environment(msgspec.Struct):
    values: dict[str, str | float | bool | None]


class _Listed(msgspec.Struct):
    """Of run.json what is listed: thousands are read, and measurements are only counted."""

    schema_version: int
    environment: _Environment
    partial: bool
    measurements: list[msgspec.Raw]


_DECODER = msgspec.json.Decoder(_Listed)


def _facts(folder: Path) -> tuple[str, ...]:
    run: _Listed | Run
    try:
        run = _DECODER.decode((folder / "run.json").read_bytes())
    except (OSError, msgspec.MsgspecError, RecursionError):
        run = read_run(folder)  # which says what is wrong with it
    if run.schema_version > SCHEMA_VERSION:
        run = read_run(folder)
    values = run.environment.values
    device = str(values.get("gpu_name") or values.get("cpu_name"))
    driver, torch = str(values.get("driver_version") or "–"), str(values.get("torch_version"))
    return device, driver, torch, str(len(run.measurements)), "partial" if run.partial else ""


def _last(text: str | None) -> int:
    if text is None:
        return LAST
    if not (text.isascii() and text.isdecimal() and int(text) > 0):
        raise CommandError(f"--last: found {text!r}, wanted a number of runs from 1 on", Exit.USAGE)
    return int(text)


def _age(text: str) -> timedelta:
    match = re.fullmatch(r"(\d{1,6}(?:\.\d{1,6})?)([smhd])", text, re.ASCII)
    if match is None or float(match[1]) == 0:
        what = f"--stale-after: found {text!r}, wanted a number above 0 and s, m, h or d, such as 36h"
        raise CommandError(what, Exit.USAGE)
    return timedelta(**{UNITS[match[2]]: float(match[1])})


def _check_age(store: Store, longest: timedelta, asked: str) -> int:
    """Say how old the night is; CommandError (RUN) where that is too old, or cannot be."""
    run_id = store.ref(REF)
    if run_id is None:
        none = f": there is no ref {REF!r}: no night was ever kept here; nox -s nightly keeps one"
        raise CommandError(f"{store.name}{store.missing() or none}", Exit.RUN)
    found = read_run(store.head(store.find(REF)))
    age = datetime.now(UTC) - datetime.fromisoformat(found.started_utc)
    shown, started = visible(run_id, LONGEST_LINE), found.started_utc
    if age < -CLOCKS_APART:
        what = f"starts {_words(-age)} in the future, at {started}: a clock, there or here, is wrong"
        raise CommandError(f"{REF}: {shown} {what}", Exit.RUN)
    if age > longest:
        what = f"started {_words(age)} ago, at {started}, and none since: wanted one within {asked}"
        raise CommandError(f"{REF}: {shown} {what}", Exit.RUN)
    if found.partial:
        what = f"started {_words(age)} ago, at {started}, and was cut short: wanted a whole one within {asked}"
        raise CommandError(f"{REF}: {shown} {what}", Exit.RUN)
    sys.stdout.write(f"{REF}: {shown} started {_words(max(age, timedelta()))} ago, at {started}\n")
    return Exit.FINE


def _words(age: timedelta) -> str:
    hours = age.total_seconds() / 3600
    return f"{hours / 24:.1f} days" if hours >= 72 else f"{hours:.1f} hours" if hours >= 1 else f"{60 * hours:.0f} min"
