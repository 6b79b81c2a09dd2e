"""What the gate says of a planted kernel on a small problem, on the CPU."""

from __future__ import annotations

from harness.gate import Gate
from harness.model import Kernel, Problem, Verdict
from tests import planted_kernels

PROBLEM = Problem(m=37, k=129)
KERNELS = planted_kernels.kernels()


def check(kernel: Kernel, problem: Problem = PROBLEM) -> Verdict:
    return Gate(problem, "cpu").check(kernel, lambda _: None)
