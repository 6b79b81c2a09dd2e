"""`--help`: the options of a bench and the names of the kernels; pytest's own options would fill pages around them."""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Iterable
from types import SimpleNamespace

from harness.ending import ended
from harness.errors import Exit
from suites import options

PYTEST = "Options of pytest and pytest-benchmark are taken too: python -m pytest --help"


def show(kernels: Iterable[str]) -> int:
    """Print it; the exit code."""
    return ended(lambda: _show(kernels))


def _show(kernels: Iterable[str]) -> Exit:
    names = textwrap.fill(" ".join(kernels), 110, break_on_hyphens=False)
    parser = argparse.ArgumentParser(
        usage="nox -s bench -- [OPTION]…",
        description="Build the kernels, check and time them, keep the run, render its page.",
        epilog=f"kernels:\n{textwrap.indent(names, '  ')}\n\n{PYTEST}",
        formatter_class=_Plain,
        add_help=False,
    )
    options.add(SimpleNamespace(addoption=parser.add_argument))
    parser.print_help()
    return Exit.FINE


class _Plain(argparse.RawDescriptionHelpFormatter):
    """Options in the width of a table, whatever the terminal's."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=30, width=120)
