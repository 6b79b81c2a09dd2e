"""A run in the format of another tool, from a run that is checked against its sums."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from harness.errors import Exit
from harness.export import formats
from harness.output import write_file
from harness.store import SELECTORS, Store, load_whole

HELP = "a run in the format of another tool"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which run, which format, where to."""
    known = formats()
    about = "; ".join(f"{name}: {module.HELP}" for name, module in known.items())
    parser.add_argument("run", metavar="RUN", help=SELECTORS)
    parser.add_argument("--to", required=True, choices=list(known), help=about.replace("%", "%%"))
    parser.add_argument("--output", metavar="FILE", help="where to (default: stdout)")


def run(store: Store, options: argparse.Namespace) -> int:
    """Write the run's text, which is UTF-8 whatever the terminal's encoding."""
    folder = store.resolve(options.run)
    text = formats()[options.to].export(load_whole(folder), folder).encode()
    if options.output is None:
        sys.stdout.buffer.write(text)
    else:
        write_file(text, Path(options.output))
    return Exit.FINE
