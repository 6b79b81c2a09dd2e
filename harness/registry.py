"""What a bench asks of a registry of kernels, and how a worker finds the same one."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol, cast

from harness.model import BuildRecord, Kernel
from harness.standing import named_file


class Built(Protocol):
    """A library of kernels, as a registry's `prepare` gives it."""

    @property
    def record(self) -> BuildRecord:
        """How it was built."""

    @property
    def directory(self) -> Path:
        """Compiler log, resource table, PTX, SASS."""


class Registry(Protocol):
    """What offers kernels: a module, `kernels.registry` for one, or what a module's `opened` returns."""

    @property
    def __name__(self) -> str:
        """How a worker finds it: the module's name; behind a colon, if there is one, what `opened` is given."""

    def kernels(self) -> Mapping[str, Kernel]:
        """All kernels by name."""

    def prepare(self, device_type: str) -> Sequence[Built]:
        """Build what the kernels need; called once, in the parent, before any worker starts."""

    def load(self, device_type: str) -> None:
        """Load what `prepare` built; called in every worker."""


def opened(name: str, files: Sequence[str]) -> Registry:
    """The registry of this name, with the kernels of the files that a command line names by --kernels.

    Raises:
        CommandError: a file is not there or cannot be loaded (USAGE).
    """
    if not files:
        return find(name)
    paths = [named_file("--kernels", each) for each in files]
    return cast(Registry, importlib.import_module(name).with_files(paths))


def find(name: str) -> Registry:
    """The registry of this name, which is trusted: it is a command line's own."""
    module_name, colon, argument = name.partition(":")
    module = importlib.import_module(module_name)
    return cast(Registry, module.opened(argument) if colon else module)
