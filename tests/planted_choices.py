"""A registry for the CPU with a kernel that picks among two others, and one that cannot tell what it picks."""

from __future__ import annotations

from dataclasses import replace

from harness.model import Choice, Kernel, Operands
from tests import planted_kernels

PLANTED = planted_kernels.kernels()


def pick(operands: Operands) -> Choice:
    """By the number of rows, as a rule does."""
    rows = operands.a.shape[0]
    return Choice(kernel="plain" if rows < 10 else "double", reason=f"{rows} rows")


def fail(_: Operands) -> Choice:
    raise RuntimeError("no rule")


def kernels() -> dict[str, Kernel]:
    """All by name."""
    right, in_double = PLANTED["right"], PLANTED["right_in_double"]
    planted = (
        replace(right, name="picks", choose=pick),
        replace(right, name="picks_nothing", choose=fail),
        replace(right, name="plain", by_name_only=True, candidate=True),
        replace(in_double, name="double", by_name_only=True, candidate=True),
    )
    return {kernel.name: kernel for kernel in planted}


def prepare(_device_type: str) -> tuple[()]:
    """Nothing is built."""
    return ()


def load(_device_type: str) -> None:
    """Nothing is loaded."""
