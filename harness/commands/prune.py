"""Show the runs that are older than so many days, or with --yes delete them.

A run's age is the time since it started, as its id says, in UTC. Never deleted are a run that a ref means, one whose id
does not say when it started, one that is still on this machine alone, and one that is being measured. Pages of deleted
runs stay.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

from harness.errors import CommandError, Exit
from harness.store import Store
from harness.store.run_id import started_of
from harness.words import LONGEST_LINE, visible

HELP = "show or delete old runs"

LONGEST_DAYS = 36_500


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """How old, and whether in earnest."""
    parser.add_argument("--keep-days", metavar="N", required=True, help="keep what started within N days")
    parser.add_argument("--yes", action="store_true", help="delete; without it they are shown alone")


def run(store: Store, options: argparse.Namespace) -> int:
    """A line a run."""
    days = _days(options.keep_days)
    if missing := store.missing():
        _say(f"no runs in {store.name}{missing}")
        return Exit.FINE
    ids, refs, unsent = store.ids(), store.refs(), set(store.unsent())
    old = [run_id for run_id in ids if _is_old(run_id, days)]
    kept = _kept(old, refs, unsent)
    for run_id, why in kept.items():
        _say(f"keeps    {run_id}: {why}")
    deleted = [run_id for run_id in old if run_id not in kept]
    for run_id in deleted:
        if options.yes:
            store.delete(run_id)
        _say(f"{'deleted' if options.yes else 'deletes'}  {run_id}")
    if options.yes:
        store.tidy()
    _say(_summary(len(deleted), len(ids), days, store.name, done=options.yes))
    return Exit.FINE


def _days(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and 1 <= int(text) <= LONGEST_DAYS):
        what = f"--keep-days: found {text!r}, wanted a whole number of days from 1 to {LONGEST_DAYS}"
        raise CommandError(what, Exit.USAGE)
    return int(text)


def _is_old(run_id: str, days: int) -> bool:
    started = started_of(run_id)
    return started is not None and datetime.now(UTC) - started > timedelta(days=days)


def _kept(old: Sequence[str], refs: Mapping[str, Sequence[str]], unsent: set[str]) -> dict[str, str]:
    """Of the old runs those that stay, and why."""
    kept = {run_id: "is not sent yet" for run_id in old if run_id in unsent}
    return kept | {run_id: f"ref {', '.join(refs[run_id])}" for run_id in old if run_id in refs}


def _summary(count: int, total: int, days: int, name: str, *, done: bool) -> str:
    runs, age = f"{total} run{'' if total == 1 else 's'}", f"{days} day{'' if days == 1 else 's'}"
    old = f"{count} of {runs} in {name}, older than {age}"
    if done:
        return f"deleted {old}"
    return f"would delete {old}{': --yes does' if count else ''}"


def _say(line: str) -> None:
    sys.stdout.write(f"{visible(line, LONGEST_LINE)}\n")
    sys.stdout.flush()
