"""What a file of this folder measures: `suites/test_NAME.py` is the suite NAME, chosen by `--suite NAME`."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.cases import Grid
from harness.errors import CommandError, Exit

FOLDER = Path(__file__).parent

DEFAULT = "sgemv"
"""Measured unless a command says otherwise."""

TRIALS, MAX_TIME_S = 5, 0.15


@dataclass(frozen=True, kw_only=True)
class Suite:
    """What a file says of itself, as its `SUITE`."""

    grids: tuple[Grid, ...]
    """What it measures on a GPU."""
    cpu_grids: tuple[Grid, ...] | None = None
    """On a CPU; None: the same."""
    cpu_note: str | None = None
    """What that leaves out, in one line; None: nothing."""
    regimes: tuple[Grid, ...] = ()
    """What it measures under --regimes instead; empty: it has none."""
    trials: int = TRIALS
    """Worker processes, unless a command says otherwise."""
    max_time_s: float = MAX_TIME_S
    """Time budget a case and trial, unless a command says otherwise."""

    def grids_on(self, device_type: str) -> tuple[Grid, ...]:
        """What it measures on `device_type`, "cuda" or "cpu"."""
        return self.cpu_grids if self.cpu_grids is not None and device_type == "cpu" else self.grids


def name_of(file: Path) -> str | None:
    """The suite that a file is, or None: it is none."""
    named = file.parent == FOLDER and file.suffix == ".py" and file.stem.startswith("test_")
    return file.stem.removeprefix("test_") if named else None


def names() -> list[str]:
    """All that there are, the default first."""
    found = sorted(name for file in FOLDER.glob("test_*.py") if (name := name_of(file)) is not None)
    return sorted(found, key=lambda name: name != DEFAULT)


def chosen(wanted: Sequence[str], files: Sequence[str]) -> dict[str, Suite]:
    """The suites that a command names, by name; their files are imported, and no others.

    Args:
        wanted: as typed.
        files: files, folders and tests that pytest was given.

    Raises:
        CommandError: there is no such suite, or a file is of another one (USAGE).
    """
    known = names()
    for name in wanted:
        if name not in known:
            raise CommandError(f"--suite: found {name!r}, wanted one of: {', '.join(known)}", Exit.USAGE)
    of_files = [name for file in files if (name := name_of(Path(file.partition("::")[0]).resolve())) in known]
    for name in of_files:
        if wanted and name not in wanted:
            raise CommandError(f"suites/test_{name}.py is no file of --suite {wanted[0]}; leave one out", Exit.USAGE)
    found = dict.fromkeys([*(wanted or of_files or [DEFAULT])])
    return {name: importlib.import_module(f"{__package__}.test_{name}").SUITE for name in found}
