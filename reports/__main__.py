"""`python -m reports run RUN`: a run's page."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from harness.errors import CommandError, Exit
from harness.store import SELECTORS, Store, store_root, verify
from harness.terminal import survive_poor_terminals
from reports.packages import require_page_packages


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit code. An error is one line on stderr."""
    survive_poor_terminals()
    options = _parser().parse_args(arguments)
    try:
        code: int = options.command(options)
    except CommandError as error:
        sys.stderr.write(f"error: {error}\n")
        return error.code
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    return code


def page_path(folder: Path) -> Path:
    """Where the page of a run belongs: `reports/<id>.html` beside the run's folder."""
    named = folder if folder.name else folder.resolve()
    return named.parent / "reports" / f"{named.name}.html"


def _run(options: argparse.Namespace) -> int:
    """The table needs no package of the page's, so it comes first; a run that was changed gets neither."""
    store = Store(store_root(options.store))
    for line in store.recovered():
        sys.stderr.write(f"{line}\n")
    folder = store.resolve(options.run)
    verify(folder)
    if options.table:
        _show_table(folder)
        sys.stdout.write(f"run:    {folder}\n")
        sys.stdout.flush()
    require_page_packages()
    from reports.render import write_run_page

    page = write_run_page(folder, Path(options.output) if options.output else page_path(folder))
    sys.stdout.write(f"report: {page}\n" if options.table else f"{page}\n")
    return Exit.FINE


def _show_table(folder: Path) -> None:
    from rich.console import Console

    from harness.store import load
    from reports.terminal import summary_table

    console = Console()
    console.print(summary_table(load(folder)))
    console.print()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m reports", description="Pages of runs, each one offline HTML file.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    run = commands.add_parser("run", help="the page of one run", description="Write the page of one run.")
    run.add_argument("run", nargs="?", default="latest", metavar="RUN", help=f"{SELECTORS}; default: latest")
    run.add_argument("--store", metavar="FOLDER", help="where the runs are; default: SGEMV_STORE, else artifacts")
    run.add_argument("--output", metavar="FILE", help="default: reports/<id>.html beside the run's folder")
    run.add_argument("--table", action="store_true", help="print the figures and where the run and its page are")
    run.set_defaults(command=_run)
    return parser


if __name__ == "__main__":
    sys.exit(main())
