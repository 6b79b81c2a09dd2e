"""The folder of a store: made once, what is made of its runs, and what is said when it cannot be written to."""

from __future__ import annotations

import errno
import os
import re
import shutil
import tempfile
from pathlib import Path

from harness.errors import CommandError, Exit

DEFAULT_ROOT = Path("artifacts")

MIRROR_OF = ".mirror-of"
"""File of a folder that mirrors a store elsewhere: its URL."""


def derived(root: Path) -> Path:
    """Where what is made of the runs in `root` belongs, such as pages: beside them; of a mirror, `artifacts/`."""
    return DEFAULT_ROOT if (root / MIRROR_OF).is_file() else root


def make_store(root: Path) -> None:
    """Make the folder `root` of a store, if need be.

    A new one tells git to leave it alone, as tools' caches do: within a checkout its files would else be changes to it,
    and every run after the first would call the code that it measured changed.

    Raises:
        OSError: it cannot be made.
    """
    if root.is_dir():
        return
    root.mkdir(parents=True, exist_ok=True)
    (root / ".gitignore").write_text("*\n", encoding="utf-8")


def check_folder(root: Path) -> Path:
    """The folder `root`, or where it is not there the next one above it.

    Raises:
        CommandError: that is no folder, so that no store can be there, or cannot be looked at (INFRASTRUCTURE).
    """
    path = root.absolute()
    try:
        there = next(each for each in (path, *path.parents) if each.exists())
        if not there.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
    except OSError as error:
        raise unwritable(root, error) from error
    return there


def try_to_write(root: Path) -> None:
    """Find out whether a store can be written to, or be made; nothing is left behind.

    Raises:
        CommandError: it cannot (INFRASTRUCTURE).
    """
    there = check_folder(root)
    try:
        with tempfile.TemporaryFile(dir=there):
            pass
    except OSError as error:
        raise unwritable(root, error) from error


def unwritable(root: Path, error: OSError) -> CommandError:
    """The error for a store that cannot be written to."""
    return CommandError(
        f"store {root}: {why(error)}; name a writable folder with --store or SGEMV_STORE", Exit.INFRASTRUCTURE
    )


def why(error: OSError) -> str:
    """What the system calls it; of `copytree`, which gathers (from, to, why) of every file, the first why."""
    if isinstance(error, shutil.Error):
        return re.sub(r"^\[Errno \d+\] |: '.*", "", str(error.args[0][0][2]))
    return os.strerror(error.errno) if error.errno else str(error)
