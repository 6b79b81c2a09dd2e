"""Errors that end a command with one line and a code of their own, as README lists them."""

from __future__ import annotations

import traceback
from enum import IntEnum


class Exit(IntEnum):
    """Exit codes of every command; the highest that applies wins."""

    FINE = 0
    SLOWER = 1
    """A case is slower, or a run was not reproduced."""
    USAGE = 2
    """Wrong usage, nothing selected."""
    NOT_COMPARABLE = 3
    """No case is comparable."""
    RUN = 4
    """A run is missing, damaged, stale or of a newer schema."""
    KERNEL = 5
    """A kernel is wrong or crashed, a case was lost, a selfcheck, sanitize or the static gate failed."""
    INFRASTRUCTURE = 6
    """No usable GPU, driver, compiler, disk, package."""
    INTERRUPTED = 130


def first_line(error: BaseException) -> str:
    """The first line of an error's message; its type where it has none."""
    return (str(error).splitlines() or [type(error).__name__])[0]


def said(error: BaseException, file: str | None = None, called: str | None = None) -> str:
    """An error in one line: `mine.py:12: ValueError: no such layout`.

    Args:
        error: what was raised.
        file: whose last line that took part in it is named; None, or where none did: no line is.
        called: what the file is called; None: by its path.
    """
    frames = reversed(traceback.extract_tb(error.__traceback__))
    line = next((frame.lineno for frame in frames if frame.filename == file), None)
    where = "" if line is None else f"{called or file}:{line}: "
    return f"{where}{type(error).__name__}: {first_line(error)}" if str(error) else f"{where}{type(error).__name__}"


class CommandError(Exception):
    """Something that the user must know and can act on: one line, and the code to leave with."""

    def __init__(self, message: str, code: Exit) -> None:
        super().__init__(message)
        self.code = code
