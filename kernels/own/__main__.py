"""`python -m kernels.own FILE REPLY`: what is in a user's file, as `kernels.own.load.listing` asks for it."""

from __future__ import annotations

import sys
from pathlib import Path

from kernels.own.load import write_listing

if __name__ == "__main__":
    write_listing(Path(sys.argv[1]), Path(sys.argv[2]))
