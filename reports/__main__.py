"""`python -m reports VERB`: pages of runs, each one offline HTML file."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from harness.command_line import run_verb


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; its exit code."""
    return run_verb("reports.commands", "Pages of runs, each one offline HTML file.", arguments)


if __name__ == "__main__":
    sys.exit(main())
