"""`python -m harness VERB`: the store from the command line."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from harness.command_line import run_verb


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; its exit code."""
    return run_verb("harness.commands", "The store of runs.", arguments)


if __name__ == "__main__":
    sys.exit(main())
