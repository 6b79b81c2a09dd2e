"""What makes a process fit to measure in: one stream, a stdout of its own, an end with its parent."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
from collections.abc import Callable
from typing import Any


def use_one_stream(device: str) -> None:
    """Let everything of this process, captures of graphs too, run on one stream that is not the default one.

    A graph cannot be captured on the default stream, and a few launches on a second stream make every later kernel of
    the process slower for good: on an H200 an empty one in a graph takes 0.68 µs instead of 0.50.
    """
    if device.startswith("cuda"):
        import torch

        torch.cuda.set_stream(torch.cuda.Stream(device))


def private_stdout() -> Callable[[dict[str, Any]], None]:
    """A writer of JSON lines to the real stdout, which is then closed to everybody else: kernels may print."""
    pipe = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def say(reply: dict[str, Any]) -> None:
        pipe.write(json.dumps(reply, allow_nan=False) + "\n")
        pipe.flush()

    return say


def die_with_parent() -> None:
    """On Linux: a parent that is killed takes its workers along, whatever they are in (PR_SET_PDEATHSIG)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)
