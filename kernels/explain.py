"""Which kernel `sgemv` picks, and why: asks the rule of csrc/rule.h, which every built library holds."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from harness.model import Choice, Operands, Problem
from kernels import ops
from kernels.build import build

if TYPE_CHECKING:
    from torch import device

FLOAT32_BYTES = 4

BOUNDARY_BYTES = 256
"""The rule looks at how many bytes A and x start past a multiple of it, and no closer."""

CLUSTERS = (9, 10)
"""Major compute capabilities whose devices have thread-block clusters of 16 blocks, as csrc/common.cuh says, ..."""
CLUSTERS_FROM = 32
"""... if they have so many multiprocessors."""


@dataclass(frozen=True, kw_only=True)
class Machine:
    """What the rule looks at of a device."""

    multiprocessors: int
    """Of the device, or of its part."""
    clusters: bool
    """It has thread-block clusters of up to 16 blocks."""


H200 = Machine(multiprocessors=132, clusters=True)
"""What is asked about where there is no GPU: the rule was found on one."""


def explain(problem: Problem, machine: Machine) -> Choice:
    """Which kernel `sgemv` picks for `problem` with x and y packed and x on a 256-byte boundary.

    Needs no GPU and no nvcc: where no library of kernels is loaded, that for the CPU is built and loaded.

    Raises:
        kernels.build.BuildError: it cannot be built.
    """
    layout = problem.layout
    by_columns = layout.order == "col"
    stride = layout.row_stride or (problem.m if by_columns else problem.k)
    return _ask(
        shape=(problem.m, problem.k),
        strides=((1, stride) if by_columns else (stride, 1), 1, 1),
        bytes_past=(layout.first_element * FLOAT32_BYTES % BOUNDARY_BYTES, 0),
        machine=machine,
    )


def choose(operands: Operands) -> Choice:
    """Which kernel `sgemv` picks for these tensors on their device.

    Args:
        operands: on a CUDA device, as the op takes them: a (m, k), x (k, 1), y (m, 1), float32.
    """
    a, x, y = operands.a, operands.x, operands.y
    return _ask(
        shape=(a.shape[0], a.shape[1]),
        strides=((a.stride(0), a.stride(1)), x.stride(0), y.stride(0)),
        bytes_past=(a.data_ptr() % BOUNDARY_BYTES, x.data_ptr() % BOUNDARY_BYTES),
        machine=machine_of(a.device),
    )


def machine_of(where: device) -> Machine:
    """What the rule looks at of a CUDA device.

    Raises:
        ValueError: it is no CUDA device.
    """
    import torch

    if where.type != "cuda":
        raise ValueError(f"{where}: wanted a CUDA device")
    found = torch.cuda.get_device_properties(where)
    clusters = found.major in CLUSTERS and found.multi_processor_count >= CLUSTERS_FROM
    return Machine(multiprocessors=found.multi_processor_count, clusters=clusters)


class _Choice(ctypes.Structure):
    """`sgemv::Choice`."""

    _fields_ = (("kernel", ctypes.c_char_p), ("reason", ctypes.c_char_p))


def _ask(
    *,
    shape: tuple[int, int],
    strides: tuple[tuple[int, int], int, int],
    bytes_past: tuple[int, int],
    machine: Machine,
) -> Choice:
    """What the rule answers: strides are of A, x and y in elements, `bytes_past` of A and x."""
    seen = _seen(shape, *strides)
    found = _rule()(*shape, *seen, *bytes_past, machine.multiprocessors, machine.clusters)
    return Choice(kernel=found.kernel.decode(), reason=found.reason.decode())


def _seen(shape: tuple[int, int], of_a: tuple[int, int], of_x: int, of_y: int) -> tuple[int, int, int, bool]:
    """Strides of A, x and y, and whether A is by columns, as csrc/op.cpp gives them to the kernel.

    Of a size of 0 or 1 a stride has no meaning: it becomes that of packed operands.
    """
    m, k = shape
    of_vectors = (of_x if k > 1 else 1, of_y if m > 1 else 1)
    if of_a[1] != 1 and k > 1 and m > 0:
        return of_a[1], *of_vectors, True
    return of_a[0] if m > 1 and k > 0 else k, *of_vectors, False


@cache
def _rule() -> Callable[..., _Choice]:
    """`sgemv_choose` in a library that this process has loaded."""
    if not ops.loaded():
        ops.load(build("cpu").library)
    return rule_of(ops.loaded()[0])


def rule_of(library: Path) -> Callable[..., _Choice]:
    """`sgemv_choose` of csrc/explain.cpp in a library that can be loaded: torch is."""
    function = ctypes.CDLL(str(library)).sgemv_choose
    sizes = [ctypes.c_int64] * 5
    function.argtypes = (*sizes, ctypes.c_bool, *[ctypes.c_int64] * 3, ctypes.c_bool)
    function.restype = _Choice
    answer: Callable[..., _Choice] = function
    return answer
