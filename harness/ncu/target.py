"""The process that ncu runs: one launch of one kernel between profiler start and stop, and nothing else in the profile.

    ncu --profile-from-start off … python -m harness.ncu.target --registry kernels.registry --device cuda:0 \
        --kernel torch.matmul --shape 4096x4096

It says on stdout how far it came, so that a kernel that crashes can be told from an ncu that fails.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable

from harness.model import Kernel, Launch
from harness.precision import set_precision
from harness.problems import SHAPE, OperandSets, parse_shape
from harness.registry import find

STARTED, WARM, DONE = (f"harness.ncu.target: {word}" for word in ("started", "warm", "done"))
"""Lines on stdout: the process runs; the kernel has run once without ncu; all is over."""


def named(kernels: Iterable[Kernel], name: str) -> Kernel:
    """The kernel or variant of that name.

    Raises:
        KeyError: there is none.
    """
    return {each.name: each for kernel in kernels for each in (*kernel.variants, kernel)}[name]


def profile(launch: Launch) -> None:
    """Launch once to set up whatever is set up once, such as cuBLAS, and once more for the profiler."""
    import torch

    launch()
    torch.cuda.synchronize()
    _say(WARM)
    torch.cuda.profiler.start()
    launch()
    torch.cuda.synchronize()
    torch.cuda.profiler.stop()


def main(arguments: list[str] | None = None) -> int:
    """Launch the kernel that the arguments name; 0, or an exception whose last line ncu's caller shows."""
    parser = argparse.ArgumentParser(prog="python -m harness.ncu.target", description="Run by harness.ncu under ncu.")
    parser.add_argument("--registry", required=True, help="as harness.registry.find takes it")
    parser.add_argument("--device", required=True, help="as torch names it")
    parser.add_argument("--kernel", required=True, help="name of a kernel or variant")
    parser.add_argument("--shape", required=True, help=SHAPE)
    options = parser.parse_args(arguments)
    _say(STARTED)
    import torch

    device_type = options.device.partition(":")[0]
    if device_type == "cuda":
        torch.cuda.set_device(options.device)
    problem = parse_shape(options.shape)
    set_precision(problem.dtype)  # as the harness times it
    registry = find(options.registry)
    registry.load(device_type)
    kernel = named(registry.kernels().values(), options.kernel)
    if (reason := kernel.unsupported(problem)) is not None:  # a user's, who is asked in this process alone
        raise ValueError(f"{options.kernel} does not take it: {reason}")
    sets = OperandSets(problem, options.device, 1)
    profile(kernel.bind(sets.operands()[0]))
    _say(DONE)
    return 0


def _say(line: str) -> None:
    """At once: a process that crashes loses what it has not flushed."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
