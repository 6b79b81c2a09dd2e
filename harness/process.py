"""What makes a process fit to measure in: one stream, a stdout of its own, an end with its parent."""

from __future__ import annotations

import ctypes
import io
import json
import os
import signal
import sys
from collections.abc import Callable
from typing import Any, TextIO

UNBUFFERED = 2
"""_IONBF of stdio.h, on Linux."""


def use_one_stream(device: str) -> None:
    """Let everything of this process, captures of graphs too, run on one stream that is not the default one.

    A graph cannot be captured on the default stream, and a few launches on a second stream make every later kernel of
    the process slower for good: on an H200 an empty one in a graph takes 0.68 µs instead of 0.50.
    """
    if device.startswith("cuda"):
        import torch

        torch.cuda.set_stream(torch.cuda.Stream(device))


def private_stdout() -> Callable[[dict[str, Any]], None]:
    """A writer of JSON lines to the real stdout, which is then closed to everybody else: kernels may print.

    What they print goes to stderr, at once, so that it is known which of them it was.
    A kernel may fork, too: a child that comes back from the kernel ends where it would speak for its parent.
    """
    pipe, owner = os.fdopen(os.dup(1), "w", encoding="utf-8"), os.getpid()
    os.dup2(2, 1)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(write_through=True)
    if sys.platform == "linux":
        libc = ctypes.CDLL(None)
        libc.setvbuf(ctypes.c_void_p.in_dll(libc, "stdout"), None, UNBUFFERED, 0)

    def say(reply: dict[str, Any]) -> None:
        if os.getpid() != owner:
            os._exit(1)
        pipe.write(json.dumps(reply, allow_nan=False) + "\n")
        pipe.flush()

    return say


def private_stdin() -> TextIO:
    """The real stdin, which is then empty to everybody else: a kernel that asks for input would take a request."""
    pipe = os.fdopen(os.dup(0), encoding="utf-8")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return pipe


def end_with_parent(by: signal.Signals) -> None:
    """On Linux: whatever ends the parent, kill -9 too, sends this process the signal `by` (PR_SET_PDEATHSIG)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, by)


def die_with_parent() -> None:
    """On Linux: a parent that is killed takes its workers along, whatever they are in."""
    end_with_parent(signal.SIGKILL)
