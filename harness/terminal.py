"""What a command line needs of the terminal in front of it."""

from __future__ import annotations

import io
import sys

PIPE_WIDTH = 1000
"""Columns where no terminal says how wide it is: whoever reads from a pipe needs names whole."""


def survive_poor_terminals() -> None:
    """What a terminal's encoding lacks, such as µ, becomes a question mark and no error."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
