"""`python -m harness runs|verify|compare`: the store from the command line."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.table import Column, Table

from harness.compare import THRESHOLD, compare
from harness.comparison.records import CaseChange, Comparison
from harness.comparison.text import comparison_json, comparison_text
from harness.errors import CommandError, Exit
from harness.model import Problem, Run
from harness.problems import parse_shapes
from harness.store import SELECTORS, Store, load, read_run, store_root, verify
from harness.terminal import PIPE_WIDTH, survive_poor_terminals
from harness.words import visible


def main(arguments: list[str] | None = None) -> int:
    """Run one command; its exit code."""
    survive_poor_terminals()
    options = _parser().parse_args(arguments)
    store = Store(store_root(options.store))
    try:
        for line in store.recovered():
            sys.stderr.write(f"{line}\n")
        if options.command == "runs":
            return _runs(store)
        if options.command == "compare":
            return _compare(store, options)
        return _verify(store, options.run)
    except CommandError as error:
        sys.stderr.write(f"{error}\n")
        return int(error.code)
    except KeyboardInterrupt:
        return int(Exit.INTERRUPTED)


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


def _compare(store: Store, options: argparse.Namespace) -> int:
    """What changed from one run to another; both must be whole."""
    if options.more:
        named = " ".join(visible(each) for each in options.more)
        raise CommandError(f"compare: wanted two runs, BASE and NEW, found also: {named}", Exit.USAGE)
    threshold, problems = _threshold(options.threshold), parse_shapes(options.shape)
    folders = [store.resolve(each) for each in (options.base, options.new)]
    base, new = _whole(folders)
    found = _selected(compare(base, new, threshold=threshold), options, problems)
    if options.json:
        sys.stdout.write(comparison_json(found) + "\n")
    else:
        console = Console(highlight=False, markup=False, emoji=False)
        console.print(comparison_text(found, every=options.all))
    return int(found.exit_code)


def _whole(folders: list[Path]) -> list[Run]:
    """The runs, each checked against its sums and read once."""
    known: dict[Path, Run] = {}
    for folder in dict.fromkeys(folders):
        verify(folder)
        known[folder] = load(folder)
    return [known[folder] for folder in folders]


def _threshold(text: str) -> float:
    """The fraction that --threshold names."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < 1:  # NaN is in no range
        raise CommandError(
            f"--threshold: found {text!r}, wanted a fraction from 0 to below 1, such as 0.02 for 2 %", Exit.USAGE
        )
    return value


def _selected(found: Comparison, options: argparse.Namespace, problems: list[Problem]) -> Comparison:
    """The comparison with the asked-for cases alone; no word depends on which others one looks at."""
    _check_known("--kernel", options.kernel, (each.case.kernel for each in found.cases))
    _check_known("--timer", options.timer, (each.case.timer for each in found.cases))
    shapes = {each.label for each in problems}

    def wanted(each: CaseChange) -> bool:
        pairs = (options.kernel, each.case.kernel), (options.timer, each.case.timer)
        return all(not names or name in names for names, name in pairs) and (
            not shapes or each.case.problem.label in shapes
        )

    cases = tuple(filter(wanted, found.cases))
    given = {"--kernel": options.kernel, "--shape": options.shape, "--timer": options.timer}
    filters = " ".join(f"{option} {visible(value)}" for option, values in given.items() for value in values)
    if filters and not cases:
        raise CommandError(f"{filters}: none of the {len(found.cases)} cases in these runs", Exit.USAGE)
    return replace(found, cases=cases)


def _check_known(option: str, names: list[str], known: Iterable[str]) -> None:
    """A name that neither run has is a slip."""
    there = list(dict.fromkeys(known))
    for name in names:
        if name not in there:
            wanted = f"one of {', '.join(visible(each) for each in there)}" if there else "none: no case in either run"
            raise CommandError(f"{option}: found {name!r}, wanted {wanted}", Exit.USAGE)


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
    _add_compare(commands.add_parser("compare", parents=[store], help="what changed from a run to another"))
    return parser


def _add_compare(parser: argparse.ArgumentParser) -> None:
    """Options are text here: they are checked where an error is one line."""
    parser.description = "What changed from BASE to NEW, case by case."
    parser.add_argument("base", metavar="BASE", help=f"the run compared with: {SELECTORS}")
    parser.add_argument("new", metavar="NEW", help="the run that is judged, named the same way")
    parser.add_argument("more", nargs="*", default=[], help=argparse.SUPPRESS)
    fraction = f"smallest change that counts (default: {THRESHOLD})"
    parser.add_argument("--threshold", metavar="FRACTION", default=str(THRESHOLD), help=fraction)
    named = {"--kernel": "NAME", "--shape": "MxK", "--timer": "NAME"}
    for option, metavar in named.items():
        what = f"show only cases of this {option[2:]} (repeatable)"
        parser.add_argument(option, metavar=metavar, action="append", default=[], help=what)
    parser.add_argument("--all", action="store_true", help="show cases that are the same or not comparable too")
    parser.add_argument("--json", action="store_true", help="print JSON and nothing else")


if __name__ == "__main__":
    sys.exit(main())
