"""Write the pages of a night: its run's, and one of what changed since each run that it is held against.

Leaves with 0 once they are written: what changed is what `python -m harness.nightly` leaves with.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from harness.compare import compare
from harness.comparison.request import Compared
from harness.errors import Exit
from harness.store import SELECTORS, Store, load_whole
from harness.words import coded
from reports.comparison.markdown import comparison_markdown
from reports.packages import require_page_packages
from reports.page import write_page

HELP = "the pages of a night, and its changes in Markdown"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which runs, and where the pages go."""
    parser.add_argument("run", metavar="RUN", help=f"the night's: {SELECTORS}")
    against = "a run that it is held against, named the same way (repeatable)"
    parser.add_argument("--against", metavar="BASE", action="append", default=[], help=against)
    parser.add_argument("--pages", metavar="FOLDER", required=True, help="of the pages")
    parser.add_argument("--markdown", metavar="FILE", help="gets what changed; needs no package of the page's")


def run(store: Store, options: argparse.Namespace) -> int:
    """Markdown first, which needs the fewest packages; then a line a page."""
    folder, pages = store.resolve(options.run), Path(options.pages)
    new = load_whole(folder)
    bases = [load_whole(store.resolve(each)) for each in options.against]
    held = [Compared(base=base, news=(new,), found=(compare(base, new),)) for base in bases]
    if options.markdown:
        write_page("\n".join(map(comparison_markdown, held)), Path(options.markdown))
    require_page_packages()
    from reports.comparison.page import file_name, render_comparison
    from reports.render import write_run_page

    written = [write_run_page(folder, pages / f"{new.id}.html")]
    written += [write_page(render_comparison(each), pages / file_name(each)) for each in held]
    sys.stdout.write("".join(f"{coded(str(page))}\n" for page in written))
    return Exit.FINE
