"""Errors that end a command with one line and a code of their own, as README lists them."""

from __future__ import annotations

import difflib
import os
import sysconfig
import traceback
from collections.abc import Collection
from enum import IntEnum
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
OWN = frozenset({"harness", "kernels", "reports", "suites"})
"""Packages of this project, in `ROOT`."""

INSTALLED = ("stdlib", "purelib", "platlib")
"""Folders of Python's own and of installed packages, as sysconfig calls them."""

TRACEBACK = "SGEMV_TRACEBACK"
"""Environment variable that has an error of the project's own, or of a kernel, shown with where it came from."""

FEW_NAMES = 12
"""As many can be read in a line."""

KERNELS_HINT = " (nox -s bench -- --help lists them; --kernels FILE adds your own)"
"""Of `unknown`, for names of kernels."""


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
    """The first line of an error's message; its type where it has none.

    One that ends in a colon only announces, as Triton's `at 10:23:` does: the last line comes behind it.
    """
    first, *others = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    return f"{first} {others[-1]}" if others and first.endswith(":") else first


def show_traceback(error: BaseException) -> None:
    """On stderr, where `TRACEBACK` asks for it."""
    if os.environ.get(TRACEBACK):
        traceback.print_exception(error)


class CommandError(Exception):
    """Something that the user must know and can act on: one line, and the code to leave with."""

    def __init__(self, message: str, code: Exit) -> None:
        super().__init__(message)
        self.code = code


def unknown(option: str, found: str, known: Collection[str], hint: str = "") -> CommandError:
    """The error of a name that is none of the known (USAGE): a few are all told, of many the nearest.

    Args:
        option: of the command line.
        found: as typed.
        known: what it could have been.
        hint: where many are, and what else it could be.
    """
    if len(known) <= FEW_NAMES:
        return CommandError(f"{option}: found {found!r}, wanted one of: {', '.join(known)}", Exit.USAGE)
    near = difflib.get_close_matches(found, known)
    meant = f"; did you mean {' or '.join(near)}?" if near else ""
    return CommandError(f"{option}: found {found!r}, wanted one of {len(known)} names{hint}{meant}", Exit.USAGE)


def said(error: BaseException, file: str | None = None, line: int | None = None, *, by_name: bool = False) -> str:
    """An error in one line: `mine.py:12: ValueError: no such layout`; a CommandError says its own.

    Args:
        error: what was raised.
        file: of a user; None: no place is named. Else the last line that took part is, of it or of a file beside it.
        line: of the file, named where none took part; None: the file alone is.
        by_name: files are called as from the file's folder; False: by their whole paths.
    """
    if isinstance(error, CommandError):
        return first_line(error)
    words = f"{type(error).__name__}: {first_line(error)}" if str(error) else type(error).__name__
    if file is None:
        return words
    folder = Path(file).parent
    frames = reversed(traceback.extract_tb(error.__traceback__))
    taking_part = ((each.filename, each.lineno) for each in frames if _is_beside(Path(each.filename), folder))
    name, number = next(taking_part, (file, line))
    where = os.path.relpath(name, folder) if by_name else name
    return f"{where}: {words}" if number is None else f"{where}:{number}: {words}"


def _is_beside(path: Path, folder: Path) -> bool:
    """Whether a file is in the folder or below, and neither this project's nor installed."""
    others = [ROOT / part for part in OWN] + [Path(sysconfig.get_path(name)) for name in INSTALLED]
    return path.is_relative_to(folder) and not any(map(path.is_relative_to, others))
