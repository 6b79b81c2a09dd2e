"""Write the page of one run."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from harness.errors import Exit
from harness.store import SELECTORS, Store, verify
from harness.store.store_folder import derived
from harness.words import coded
from reports.packages import require_page_packages

HELP = "the page of one run"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which run, and where its page goes."""
    parser.add_argument("run", nargs="?", default="latest", metavar="RUN", help=f"{SELECTORS}; default: latest")
    parser.add_argument("--output", metavar="FILE", help="default: reports/<id>.html beside the run's folder")
    parser.add_argument("--table", action="store_true", help="print the figures and where the run and its page are")


def page_path(folder: Path) -> Path:
    """Where the page of a run belongs: `reports/<id>.html` beside the run's folder, of a URL's run in `artifacts/`."""
    named = folder if folder.name else folder.resolve()
    return derived(named.parent) / "reports" / f"{named.name}.html"


def run(store: Store, options: argparse.Namespace) -> int:
    """The table needs no package of the page's, so it comes first; a run that was changed gets neither."""
    folder = store.resolve(options.run)
    verify(folder)
    if options.table:
        _show_table(folder)
        sys.stdout.write(f"run:    {coded(str(folder))}\n")
        sys.stdout.flush()
    require_page_packages()
    from reports.render import write_run_page

    page = coded(str(write_run_page(folder, Path(options.output) if options.output else page_path(folder))))
    sys.stdout.write(f"report: {page}\n" if options.table else f"{page}\n")
    return Exit.FINE


def _show_table(folder: Path) -> None:
    from rich.console import Console

    from harness.store import load
    from reports.terminal import summary_table

    console = Console()
    console.print(summary_table(load(folder)))
    console.print()
