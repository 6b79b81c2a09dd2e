"""CUDA graphs captured from launches, and what they hold."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from harness.driver import driver_call
from harness.errors import first_line
from harness.model import Launch

if TYPE_CHECKING:
    import torch

KERNEL_NODE = 0
"""CU_GRAPH_NODE_TYPE_KERNEL of cuda.h."""


def stray_launch(launch: Launch) -> str | None:
    """How a launch escapes the caller's current stream, or None: a captured launch must hold a kernel."""
    import torch

    try:
        kernels = kernel_nodes(capture([launch], 1))
    except torch.OutOfMemoryError:
        raise
    except RuntimeError as error:
        torch.cuda.synchronize()
        return f"cannot be captured on the current stream: {first_line(error)}"
    return None if kernels else "launches no kernel on the current stream"


def capture(launches: Sequence[Launch], rounds: int) -> torch.cuda.CUDAGraph:
    """A graph of `rounds` rounds over `launches`, not yet instantiated.

    Captured on the current stream, which is not the default one (`harness.process` sees to that): a few launches on a
    second stream make every later kernel of the process slower, on an H200 by 0.18 to 0.65 µs in a graph, for good.
    """
    import torch

    graph = torch.cuda.CUDAGraph(keep_graph=True)
    launches[0]()  # what a first call sets up must not be captured
    torch.cuda.synchronize()
    graph.capture_begin()
    try:
        for _ in range(rounds):
            for launch in launches:
                launch()
    except BaseException:
        with suppress(RuntimeError):  # an invalidated capture cannot be ended without this complaint
            graph.capture_end()
        raise
    graph.capture_end()
    return graph


def branches(launch: Launch) -> bool:
    """Whether a launch forks to other streams and joins them again: its graph is no chain of nodes."""
    graph = capture([launch], 1)
    handle = ctypes.c_void_p(graph.raw_cuda_graph())
    nodes, edges = ctypes.c_size_t(), ctypes.c_size_t()
    driver_call("cuGraphGetNodes", handle, None, ctypes.byref(nodes))
    driver_call("cuGraphGetEdges", handle, None, None, ctypes.byref(edges))
    return edges.value != nodes.value - 1


def kernel_nodes(graph: torch.cuda.CUDAGraph) -> int:
    """Kernel nodes of a captured graph, asked of the driver (cuGraphGetNodes)."""
    handle = ctypes.c_void_p(graph.raw_cuda_graph())
    count = ctypes.c_size_t()
    driver_call("cuGraphGetNodes", handle, None, ctypes.byref(count))
    nodes = (ctypes.c_void_p * count.value)()
    if count.value:
        driver_call("cuGraphGetNodes", handle, nodes, ctypes.byref(count))
    kind = ctypes.c_int()
    kernels = 0
    for node in nodes:
        driver_call("cuGraphNodeGetType", ctypes.c_void_p(node), ctypes.byref(kind))
        kernels += kind.value == KERNEL_NODE
    return kernels
