"""A run measured again from what it records: its commit and diff, its flags, its command line; then held against it.

The code of the run's commit runs in a git worktree of its own, in processes of its own; nothing of it is imported here.
"""

from __future__ import annotations

from harness.errors import CommandError, Exit
from harness.words import LONGEST_LINE, visible


def cannot(why: str, code: Exit = Exit.INFRASTRUCTURE) -> CommandError:
    """The error for a run that cannot be measured again here."""
    return CommandError(f"cannot be tried: {visible(why, LONGEST_LINE)}", code)
