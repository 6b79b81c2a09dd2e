"""Files that a command line names: found from where the user stands, and what is in those with kernels."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from harness.errors import CommandError, Exit
from harness.registry import Registry
from kernels import registry
from kernels.own.registry import of_files

STANDING = "SGEMV_STANDING"
"""Environment variable with the folder that files are named from, where that is not the one we are in."""


def named_file(option: str, name: str) -> Path:
    """The file that an option names, from where the user stands: nox stands in the project, and says where that was.

    Raises:
        CommandError: there is none (USAGE).
    """
    path = Path(os.environ.get(STANDING, ""), Path(name).expanduser()).absolute()
    if not path.is_file():
        found = "no file" if path.exists() else "no such file"
        raise CommandError(f"{option}: found {name!r}, which is {found} (looked at {path})", Exit.USAGE)
    return path


def registry_of(names: Sequence[str]) -> Registry:
    """The project's kernels, with those of the files that --kernels names.

    Raises:
        CommandError: a file cannot be loaded, or takes a name that there is (USAGE).
    """
    files = [named_file("--kernels", name) for name in names]
    return of_files(files) if files else registry
