"""What changed from BASE to each NEW, case by case."""

from __future__ import annotations

import argparse
import sys

from rich.console import Console

from harness.command_line import PIPE_WIDTH
from harness.comparison import request
from harness.comparison.as_json import comparison_json
from harness.comparison.text import comparison_text
from harness.store import Store

HELP = "what changed from a run to others"


WRITES = "`python -m reports compare` writes the page and Markdown; with nox: `nox -s compare -- BASE NEW --html`"
"""Whose the options are that this program has not."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What to compare, and how to show it."""
    request.add_arguments(parser)
    parser.add_argument("--all", action="store_true", help="show cases that are the same or not comparable too")
    parser.add_argument("--json", action="store_true", help="print JSON and nothing else")
    request.refuse(parser, ("--html", "--markdown", "--output"), WRITES)


def run(store: Store, options: argparse.Namespace) -> int:
    """Each of the new runs against the base; all must be whole."""
    compared = request.compared(store, options)
    if options.json:
        sys.stdout.write(comparison_json(compared) + "\n")
    else:
        width = None if sys.stdout.isatty() else PIPE_WIDTH
        console = Console(width=width, highlight=False, markup=False, emoji=False)
        console.print(comparison_text(compared, every=options.all))
    return int(compared.exit_code)
