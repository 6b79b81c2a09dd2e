"""How a program of this project that waits for a bench calls the suites."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

QUIET = ("-q", "--no-header", "--no-summary", "--benchmark-quiet", "-o", "console_output_style=classic")
"""Of pytest and pytest-benchmark, whose own tables say nothing that a report does not."""

HERE = ("-c", "pyproject.toml", "--rootdir=.")
"""For pytest, which would look for settings in folders above, and in every folder that an option names."""

PYTEST_USAGE_ERROR = 4
"""An option that neither the suites nor pytest know."""


def suites_command(arguments: Sequence[str], path_file: Path) -> list[str]:
    """A command line that runs the suites; `PYTEST_USAGE_ERROR` is the one code that it leaves with of pytest's own.

    Args:
        arguments: files, then options of the suites.
        path_file: gets the path of the run's folder, where there is one.
    """
    return [sys.executable, "-m", "pytest", *HERE, *arguments, *QUIET, f"--path-file={path_file}"]
