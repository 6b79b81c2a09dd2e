"""The process that compute-sanitizer runs: every kernel once on each of some small problems, and nothing else.

    compute-sanitizer … python -m harness.sanitize.target --registry kernels.registry --device cuda:0 --kernel NAME …

It says on stdout how far it came and what it found by itself, a JSON object a kernel, so that a kernel that crashes can
be told from a tool that fails.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping

from harness.errors import said
from harness.model import Kernel, Role
from harness.ncu.target import named
from harness.registry import find
from harness.sanitize.operands import Tight, small_views

STARTED, DONE = ({"harness.sanitize.target": word} for word in ("started", "done"))
"""Said first and last."""


def launched(kernel: Kernel, device: str) -> tuple[int, list[str]]:
    """How often `kernel` was launched, and a line for each problem that it got wrong or raised on."""
    import torch

    count, faults = 0, []
    for views in small_views(kernel):
        tight = Tight(views, device)
        try:
            kernel.bind(tight.operands)()
            if device.startswith("cuda"):
                torch.cuda.synchronize(device)
            fault = tight.fault() if kernel.role is Role.GEMV else None
        except Exception as error:  # noqa: BLE001 - a kernel is foreign code and may raise anything
            fault = said(error, kernel.file, kernel.line, by_name=True)
        count += 1
        if fault is not None:
            faults.append(f"{views}: {fault}")
    return count, faults if count else ["every problem: outside its contract"]


def main(arguments: list[str] | None = None) -> int:
    """Launch the kernels that the arguments name; 0, or an exception whose last line the caller shows."""
    parser = argparse.ArgumentParser(prog="python -m harness.sanitize.target", description="Run by harness.sanitize.")
    parser.add_argument("--registry", required=True, help="as harness.registry.find takes it")
    parser.add_argument("--device", required=True, help="as torch names it")
    parser.add_argument("--kernel", action="append", required=True, help="name of a kernel or variant (repeatable)")
    options = parser.parse_args(arguments)
    _say(STARTED)
    device_type = options.device.partition(":")[0]
    registry = find(options.registry)
    registry.load(device_type)
    kernels = registry.kernels().values()
    for name in options.kernel:
        count, faults = launched(named(kernels, name), options.device)
        _say({"kernel": name, "launches": count, "faults": faults})
    _say(DONE)
    return 0


def _say(words: Mapping[str, object]) -> None:
    """At once: a process that crashes loses what it has not flushed."""
    sys.stdout.write(f"{json.dumps(words)}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
