"""Which kernel one that picks among others picks, and why: asks the rules of csrc, which every built library holds."""

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
from kernels.declarations import ITEM_BYTES
from kernels.rules import RULES, chooser_for

if TYPE_CHECKING:
    from torch import device

BOUNDARY_BYTES = 256
"""A rule looks at how many bytes A and x start past a multiple of it, and no closer."""

CLUSTERS = (9, 10)
"""Major compute capabilities whose devices have thread-block clusters of 16 blocks, as csrc/common.cuh says, ..."""
CLUSTERS_FROM = 32
"""... if they have so many multiprocessors."""


@dataclass(frozen=True, kw_only=True)
class Machine:
    """What the rules look at of a device."""

    multiprocessors: int
    """Of the device, or of its part."""
    clusters: bool
    """It has thread-block clusters of up to 16 blocks."""


H200 = Machine(multiprocessors=132, clusters=True)
"""What is asked about where there is no GPU: the rules were found on one."""

_TOKEN_DTYPES = ("float16", "bfloat16", "int8")
"""In the order of csrc/tokens.h's DType."""
_SIZE, _FLAG = ctypes.c_int64, ctypes.c_bool
_ASKED = {
    "sgemv_choose": (*[_SIZE] * 5, _FLAG, *[_SIZE] * 3, _FLAG),
    "sgemv_choose_tokens": (ctypes.c_int, *[_SIZE] * 9, _FLAG),
}
"""What the functions of csrc/explain.cpp take."""


def explain(problem: Problem, machine: Machine) -> Choice:
    """Which kernel is picked for `problem` with x and y packed and x on a 256-byte boundary.

    Needs no GPU and no nvcc: where no library of kernels is loaded, that for the CPU is built and loaded.

    Args:
        problem: one that the kernel that picks for its dtype takes.
        machine: the device.

    Raises:
        ValueError: no kernel picks for its dtype.
        kernels.build.BuildError: the library cannot be built.
    """
    _chooser_for(problem.dtype)
    layout, shape = problem.layout, (problem.m, problem.k)
    bytes_past = (layout.first_element * ITEM_BYTES[problem.dtype] % BOUNDARY_BYTES, 0)
    if problem.dtype != "float32":
        strides = (layout.row_stride or problem.k, problem.k, problem.m)
        return _ask_of_tokens(problem.dtype, (*shape, problem.n), strides, bytes_past, machine)
    by_columns = layout.order == "col"
    stride = layout.row_stride or (problem.m if by_columns else problem.k)
    return _ask(shape, ((1, stride) if by_columns else (stride, 1), 1, 1), bytes_past, machine)


def choose(operands: Operands) -> Choice:
    """Which kernel is picked for these tensors on their device.

    Args:
        operands: on a CUDA device, as the op for their dtype takes them: a (m, k), x (k, n), y (m, n).

    Raises:
        ValueError: they are on no CUDA device, or no kernel picks for their dtype.
    """
    a, x, y = operands.a, operands.x, operands.y
    dtype = str(a.dtype).removeprefix("torch.")
    bytes_past = (a.data_ptr() % BOUNDARY_BYTES, x.data_ptr() % BOUNDARY_BYTES)
    machine = machine_of(a.device)
    if dtype != "float32":
        strides = (a.stride(0), x.stride(1), y.stride(1))
        return _ask_of_tokens(dtype, (*a.shape, x.shape[1]), strides, bytes_past, machine)
    return _ask((a.shape[0], a.shape[1]), ((a.stride(0), a.stride(1)), x.stride(0), y.stride(0)), bytes_past, machine)


def machine_of(where: device) -> Machine:
    """What the rules look at of a CUDA device.

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
    """`sgemv::Choice`, `sgemv::TokenChoice`."""

    _fields_ = (("kernel", ctypes.c_char_p), ("reason", ctypes.c_char_p))


def _ask(
    shape: tuple[int, int],
    strides: tuple[tuple[int, int], int, int],
    bytes_past: tuple[int, int],
    machine: Machine,
) -> Choice:
    """What rule.h answers: strides are of A, x and y in elements, `bytes_past` of A and x."""
    seen = _seen(shape, *strides)
    found = _rule("sgemv_choose")(*shape, *seen, *bytes_past, machine.multiprocessors, machine.clusters)
    return Choice(kernel=found.kernel.decode(), reason=found.reason.decode())


def _ask_of_tokens(
    dtype: str,
    shape: tuple[int, ...],
    strides: tuple[int, int, int],
    bytes_past: tuple[int, int],
    machine: Machine,
) -> Choice:
    """What tokens_rule.h answers: `shape` is m, k and n, strides are of a row of A and of a token of x and y."""
    rule, (m, k, n) = RULES[_chooser_for(dtype)], shape
    lines = zip((m, n, n), (k, k, m), strides, strict=True)
    seen = (stride if count > 1 and length > 0 else length for count, length, stride in lines)
    asked = (_TOKEN_DTYPES.index(dtype), m, k, n, *seen, *bytes_past)
    found = _rule("sgemv_choose_tokens")(*asked, machine.multiprocessors, machine.clusters)
    return Choice(kernel=f"{rule.prefix}{found.kernel.decode()}", reason=found.reason.decode())


def _chooser_for(dtype: str) -> str:
    chooser = chooser_for(dtype)
    if chooser is None:
        raise ValueError(f"dtype is {dtype}, wanted {', '.join(rule.dtype for rule in RULES.values())}")
    return chooser


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
def _rule(function: str) -> Callable[..., _Choice]:
    """A function of csrc/explain.cpp in a library that this process has loaded."""
    if not ops.loaded():
        ops.load(build("cpu").library)
    return rule_of(ops.loaded()[0], function)


def rule_of(library: Path, function: str = "sgemv_choose") -> Callable[..., _Choice]:
    """A function of csrc/explain.cpp in a library that can be loaded: torch is."""
    found = getattr(ctypes.CDLL(str(library)), function)
    found.argtypes = _ASKED[function]
    found.restype = _Choice
    answer: Callable[..., _Choice] = found
    return answer
