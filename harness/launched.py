"""Which kernels a launch starts, read from the graph that captures it: no profiler, and nothing of its cost.

A kernel node of a captured graph holds the function that it calls, and the driver knows a function's name, registers
and shared memory. Libraries' kernels too, which have no symbol that the CUDA runtime could look up.
"""

from __future__ import annotations

import ctypes
from collections import Counter
from graphlib import TopologicalSorter
from typing import TYPE_CHECKING

from harness.capture import KERNEL_NODE, graph_edges, graph_nodes, node_kind
from harness.device.driver import DriverError, driver_call
from harness.kernel_names import demangled
from harness.model import DeviceKernel

if TYPE_CHECKING:
    import torch

OTHER_NODES = {1: "memory copy", 2: "memory set"}
"""CU_GRAPH_NODE_TYPE_MEMCPY and _MEMSET of cuda.h: work on the device that is no kernel."""

SHARED_SIZE_BYTES, NUM_REGS = 1, 4
"""CU_FUNC_ATTRIBUTE_… of cuda.h; the first is what a block takes statically."""


class KernelNodeParams(ctypes.Structure):
    """CUDA_KERNEL_NODE_PARAMS_v2 of cuda.h, in CUDA 12.0 and later."""

    _fields_ = (
        ("func", ctypes.c_void_p),
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared_mem_bytes", ctypes.c_uint),
        ("kernel_params", ctypes.c_void_p),
        ("extra", ctypes.c_void_p),
        ("kern", ctypes.c_void_p),
        ("ctx", ctypes.c_void_p),
    )


def launched(graph: torch.cuda.CUDAGraph) -> tuple[tuple[DeviceKernel, ...], dict[str, str]]:
    """The kernels of a captured graph in the order of its edges, and what is not known of them.

    Returns:
        The kernels, without durations; and by the field of `TrialResult` why they are unknown, or not all there is.
    """
    try:
        nodes = _in_order(graph)
        kinds = [node_kind(node) for node in nodes]
        kernels = tuple(_kernel(node) for node, kind in zip(nodes, kinds, strict=True) if kind == KERNEL_NODE)
    except DriverError as error:
        return (), {"device_kernels": f"the driver does not name the kernels of a graph: {error}"}
    others = Counter(OTHER_NODES[kind] for kind in kinds if kind in OTHER_NODES)
    if not others:
        return kernels, {}
    counted = ", ".join(f"{name} ({count})" for name, count in sorted(others.items()))
    return kernels, {"device_kernels": f"beside the kernels that are named, a launch has: {counted}"}


def _in_order(graph: torch.cuda.CUDAGraph) -> list[ctypes.c_void_p]:
    """A graph's nodes, each behind those that it waits for."""
    sorter: TopologicalSorter[int | None] = TopologicalSorter({node.value: () for node in graph_nodes(graph)})
    for before, after in graph_edges(graph):
        sorter.add(after, before)
    return [ctypes.c_void_p(node) for node in sorter.static_order()]


def _kernel(node: ctypes.c_void_p) -> DeviceKernel:
    params = KernelNodeParams()
    driver_call("cuGraphKernelNodeGetParams_v2", node, ctypes.byref(params))
    function = ctypes.c_void_p(params.func)
    if not params.func:  # what a library object's kernel is launched by
        driver_call("cuKernelGetFunction", ctypes.byref(function), ctypes.c_void_p(params.kern))
    name = ctypes.c_char_p()
    driver_call("cuFuncGetName", ctypes.byref(name), function)
    if not name.value:
        raise DriverError("cuFuncGetName: it gave no name")
    grid, block = tuple(params.grid), tuple(params.block)
    return DeviceKernel(
        name=demangled(name.value.decode(errors="replace")),
        grid=(grid[0], grid[1], grid[2]),
        block=(block[0], block[1], block[2]),
        registers=_attribute(NUM_REGS, function),
        shared_bytes=_attribute(SHARED_SIZE_BYTES, function) + params.shared_mem_bytes,
        duration_ns=None,
    )


def _attribute(which: int, function: ctypes.c_void_p) -> int:
    value = ctypes.c_int()
    driver_call("cuFuncGetAttribute", ctypes.byref(value), which, function)
    return value.value
