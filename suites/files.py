"""The kernels that a command line's files add to the project's."""

from __future__ import annotations

from collections.abc import Sequence

from harness.registry import Registry
from harness.standing import named_file
from kernels import registry


def registry_of(names: Sequence[str]) -> Registry:
    """The project's kernels, with those of the files that --kernels names.

    Raises:
        CommandError: a file cannot be loaded, or takes a name that there is (USAGE).
    """
    files = [named_file("--kernels", name) for name in names]
    return registry.with_files(files) if files else registry
