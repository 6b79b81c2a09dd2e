"""Write the page that holds runs against a base run, or say it in Markdown."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from harness.comparison import request
from harness.store import Store
from harness.store.store_folder import derived
from harness.words import coded
from reports.comparison.markdown import comparison_markdown
from reports.comparison.page import file_name, render_comparison
from reports.packages import require_page_packages
from reports.page import write_page

HELP = "the page of what changed from a run to others"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What to compare, as the terminal's command has it, and where the page goes."""
    request.add_arguments(parser)
    shown = parser.add_mutually_exclusive_group()
    shown.add_argument("--html", action="store_true", help="the page, as is the default")
    shown.add_argument("--markdown", action="store_true", help="Markdown for a pull request instead of the page")
    terminal = "`python -m harness compare` prints to the terminal and JSON; with nox: without --html and --markdown"
    request.refuse(parser, ("--json", "--all"), terminal)
    where = "default: reports/compare-<base id>-<new id>.html beside the new run; Markdown: stdout"
    parser.add_argument("--output", metavar="FILE", help=where)


def run(store: Store, options: argparse.Namespace) -> int:
    """Each of the new runs against the base; leaves with the comparison's code."""
    if not options.markdown:
        require_page_packages()
    compared = request.compared(store, options)
    target = Path(options.output) if options.output else None
    if options.markdown:
        text = comparison_markdown(compared)
        sys.stdout.write(f"{coded(str(write_page(text, target)))}\n" if target else text)
    else:
        beside = derived(store.resolve(options.new[0]).resolve().parent) / "reports"
        page = write_page(render_comparison(compared), target or beside / file_name(compared))
        sys.stdout.write(f"{coded(str(page))}\n")
    return int(compared.exit_code)
