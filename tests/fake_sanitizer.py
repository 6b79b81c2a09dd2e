"""A stand-in for compute-sanitizer: writes the report that a test tells it to, and runs the process or plays its words.

What it writes looks like the reports of CUDA 13.0's compute-sanitizer.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

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
NOTHING = f"""{HEADER}========= Error: Target application terminated before first instrumented API call
========= Error: couldn't find exit code.
"""

PLAY = """#!{python}
import json, os, pathlib, subprocess, sys, time
here, words = pathlib.Path(__file__).parent, sys.argv[1:]
told = json.loads((here / "told.json").read_text()) if (here / "told.json").exists() else []
told.append([words, os.environ.get("PYTORCH_NO_CUDA_MEMORY_CACHING")])
(here / "told.json").write_text(json.dumps(told))
story = json.loads((here / "story.json").read_text())
play = story[min(len(told), len(story)) - 1]
code = play.get("code", 0)
if "stdout" in play:
    sys.stdout.write(play["stdout"])
    sys.stderr.write(play.get("stderr", ""))
    sys.stdout.flush()
else:
    code = subprocess.call(words[words.index(sys.executable):])
if "report" in play:
    pathlib.Path(words[words.index("--log-file") + 1]).write_text(play["report"])
time.sleep(play.get("sleep_s", 0))
sys.exit(code)
"""


def said(*words: object) -> str:
    """Lines as harness.sanitize.target says them."""
    return "".join(f"{json.dumps(word)}\n" for word in words)


def fake(folder: Path, *story: dict[str, Any]) -> str:
    """A compute-sanitizer that plays one part of the story a call, and the last one from then on."""
    tool = folder / "compute-sanitizer"
    tool.write_text(PLAY.replace("{python}", sys.executable), encoding="utf-8")
    tool.chmod(0o755)
    (folder / "story.json").write_text(json.dumps(story), encoding="utf-8")
    return str(tool)


def told(folder: Path) -> list[tuple[list[str], str | None]]:
    """The arguments of each call, and what torch's allocator would be told."""
    found: list[tuple[list[str], str | None]] = json.loads((folder / "told.json").read_text(encoding="utf-8"))
    return found
