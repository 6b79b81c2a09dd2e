"""A stand-in for compute-sanitizer, and reports of it.

They look like those of CUDA 13.0's compute-sanitizer.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests import fake_tool

HEADER = "========= COMPUTE-SANITIZER\n"
CLEAN = f"{HEADER}========= ERROR SUMMARY: 0 errors\n"
NO_HAZARD = f"{HEADER}========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)\n"
OVERRUN = f"""{HEADER}========= Invalid __global__ read of size 16 bytes
=========     at sgemv::mine_kernel(sgemv::Args)+0x1a0
=========     by thread (31,0,0) in block (0,0,0)
=========     Access to 0x7f6510c00010 is out of bounds
=========     and is 1 bytes after the nearest allocation at 0x7f6510c00000 of size 16 bytes
=========     Saved host backtrace up to driver entry point at kernel launch time
=========         Host Frame: call [0xadb6] in libsgemv_cuda.so
=========
========= Invalid __global__ read of size 4 bytes
=========     at sgemv::other_kernel(sgemv::Args)+0x10
=========
========= ERROR SUMMARY: 2 errors
"""
HAZARD = f"""{HEADER}========= Warning: Race reported between Read access at sgemv::mine_kernel(sgemv::Args)+0x80
=========     and Write access at sgemv::mine_kernel(sgemv::Args)+0x40 [64 hazards]
=========
========= RACECHECK SUMMARY: 1 hazard displayed (0 errors, 1 warning)
"""
MANY_HAZARDS = f"""{HEADER}========= Warning: Race reported between Write access at sgemv::f(sgemv::Args)+0x110
=========     and Read access at sgemv::f(sgemv::Args)+0x120 [24 hazards]
=========
========= RACECHECK SUMMARY: 100 hazards displayed (0 errors, 101 warnings)
"""
MANY_ERRORS = OVERRUN.replace(
    "SUMMARY: 2 errors\n",
    "SUMMARY: 120 errors\n========= ERROR SUMMARY: 20 errors were not printed. Use --print-limit option to adjust the "
    "number of printed errors\n",
)
NOTHING = f"""{HEADER}========= Error: Target application terminated before first instrumented API call
========= Error: couldn't find exit code.
"""


def said(*words: object) -> str:
    """Lines as harness.sanitize.target says them."""
    return "".join(f"{json.dumps(word)}\n" for word in words)


def fake(folder: Path, *story: dict[str, Any]) -> str:
    """A compute-sanitizer that plays the story."""
    return fake_tool.fake(folder, "compute-sanitizer", *story)
