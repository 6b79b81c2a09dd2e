"""SHA256SUMS: the sum of every other file of a run, in the format of sha256sum."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from harness.errors import CommandError, Exit

SUMS = "SHA256SUMS"


def write_sums(folder: Path) -> None:
    """Write SHA256SUMS over every other file in `folder`; `sha256sum -c` agrees."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path != folder / SUMS)
    sums = "".join(f"{sha256_of(path)}  {path.relative_to(folder).as_posix()}\n" for path in files)
    (folder / SUMS).write_text(sums, encoding="utf-8", errors="surrogateescape")  # names are bytes


def listed_sums(sums: Path) -> dict[str, str]:
    """The sum of each file by its name, as the file `sums` has them.

    Raises:
        CommandError: it cannot be read, or a line of it is no sum (RUN).
    """
    try:
        with sums.open(encoding="utf-8", errors="surrogateescape") as file:  # names are bytes
            lines = [line.removesuffix("\n") for line in file]
    except OSError as error:
        raise CommandError(f"{sums}: {error.strerror}", Exit.RUN) from error
    found = {}
    for number, line in enumerate(lines, start=1):
        match = re.fullmatch(r"([0-9a-f]{64})  (.+)", line)
        if match is None:
            raise CommandError(f"{sums}: line {number} is no sum: wanted 64 hex digits, two spaces, a name", Exit.RUN)
        found[match[2]] = match[1]
    return found


def sum_of(path: Path) -> str:
    """`sha256_of`; raises CommandError (RUN) where the file cannot be read."""
    try:
        return sha256_of(path)
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}", Exit.RUN) from error


def sha256_of(path: Path) -> str:
    """Hex digest of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
