"""Files that a command was asked to write."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from harness.errors import CommandError, Exit, first_line


def write_file(content: bytes, target: Path, option: str = "--output") -> Path:
    """Write `content` into `target`, whose folder is made. A file is replaced in one step, a device is written to.

    Args:
        content: all of it.
        target: the file.
        option: that names another one.

    Returns:
        `target`.

    Raises:
        CommandError: it cannot be written (INFRASTRUCTURE).
    """
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.is_symlink() or (target.exists() and not target.is_file()):  # /dev/stdout must not become a file
            target.write_bytes(content)
        else:
            _replace(content, target)
    except (OSError, ValueError) as error:  # ValueError: no file can be called that
        why = (isinstance(error, OSError) and error.strerror) or first_line(error)
        raise CommandError(f"{target}: {why}; name a writable file with {option}", Exit.INFRASTRUCTURE) from error
    return target


def _replace(content: bytes, target: Path) -> None:
    temporary = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        temporary.write_bytes(content)
        temporary.replace(target)
    finally:
        with suppress(OSError):
            temporary.unlink()
