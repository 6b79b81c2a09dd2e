"""What a night was asked for, and what its steps share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from harness.errors import Exit
from harness.nightly.diary import Diary
from harness.nightly.machine import Machine
from harness.store import Store

REF, BASELINE = "nightly", "baseline"
"""Refs: the newest night, and what a night is held against besides the one before."""


@dataclass(frozen=True, kw_only=True)
class Wish:
    """What a night was asked for."""

    store: Store
    device: str = "cuda"
    """As `--device` has it; a night never takes the CPU for a GPU that is missing."""
    options: tuple[str, ...] = ()
    """For the suites; neither the device nor where the run goes."""
    idle_wait_s: float = 600.0
    """How long a GPU may take to be idle."""
    pages: Path
    """Folder of the pages."""
    summary: Path
    """File of the summary in Markdown."""


@dataclass(frozen=True, kw_only=True)
class Night:
    """What its steps share."""

    wish: Wish
    machine: Machine
    bench: Sequence[str] | None
    """The command that measures, up to where its run goes; None: the suites."""
    diary: Diary = field(default_factory=Diary)
    markdown: list[str] = field(default_factory=list)
    """Of the comparisons."""

    @property
    def store(self) -> Store:
        """Where the runs are."""
        return self.wish.store

    @property
    def store_option(self) -> str:
        """The store for a program that stands elsewhere."""
        return self.store.name if "://" in self.store.name else str(self.store.root.absolute())


def exit_of(code: int) -> Exit:
    """Of a program that ended: one of ours; one that was killed, or is none of ours, is a machine's fault."""
    return Exit(code) if code in set(Exit) else Exit.INFRASTRUCTURE
