"""Files that a command line names: their paths start where the user stands."""

from __future__ import annotations

import os
from pathlib import Path

from harness.errors import CommandError, Exit

STANDING = "SGEMV_STANDING"
"""Environment variable with the folder that files are named from, where that is not the one we are in."""


def named_file(option: str, name: str) -> Path:
    """The file that an option names, from where the user stands: nox stands in the project, and says where that was.

    Raises:
        CommandError: there is none (USAGE).
    """
    path = Path(os.environ.get(STANDING, ""), Path(name).expanduser()).absolute()
    if not path.is_file():
        what = "a folder, wanted a file" if path.is_dir() else "no such file"
        looked = "" if str(path) == name else f" (looked at {path})"
        raise CommandError(f"{option}: found {name!r}, which is {what}{looked}", Exit.USAGE)
    return path
