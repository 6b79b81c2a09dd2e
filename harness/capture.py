"""CUDA graphs captured from launches, and what they hold."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from harness.device.driver import driver_call
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
    edges = ctypes.c_size_t()
    driver_call("cuGraphGetEdges", _handle(graph), None, None, ctypes.byref(edges))
    return edges.value != len(graph_nodes(graph)) - 1


def kernel_nodes(graph: torch.cuda.CUDAGraph) -> int:
    """Kernel nodes of a captured graph, asked of the driver (cuGraphGetNodes)."""
    return sum(node_kind(node) == KERNEL_NODE for node in graph_nodes(graph))


def graph_nodes(graph: torch.cuda.CUDAGraph) -> list[ctypes.c_void_p]:
    """All nodes of a captured graph, in no order that the driver speaks of."""
    count = ctypes.c_size_t()
    driver_call("cuGraphGetNodes", _handle(graph), None, ctypes.byref(count))
    nodes = (ctypes.c_void_p * count.value)()
    if count.value:
        driver_call("cuGraphGetNodes", _handle(graph), nodes, ctypes.byref(count))
    return [ctypes.c_void_p(node) for node in nodes]


def graph_edges(graph: torch.cuda.CUDAGraph) -> list[tuple[int | None, int | None]]:
    """(before, after) by the nodes' addresses, asked of the driver (cuGraphGetEdges_v2, of CUDA 12.3 and later)."""
    count = ctypes.c_size_t()
    driver_call("cuGraphGetEdges_v2", _handle(graph), None, None, None, ctypes.byref(count))
    before, after = ((ctypes.c_void_p * count.value)() for _ in range(2))
    data = (ctypes.c_uint64 * count.value)()  # CUgraphEdgeData has 8 bytes; without it, some edges refuse to be told
    if count.value:
        driver_call("cuGraphGetEdges_v2", _handle(graph), before, after, data, ctypes.byref(count))
    return list(zip(before, after, strict=True))


def node_kind(node: ctypes.c_void_p) -> int:
    """CUgraphNodeType of a node."""
    kind = ctypes.c_int()
    driver_call("cuGraphNodeGetType", node, ctypes.byref(kind))
    return kind.value


def _handle(graph: torch.cuda.CUDAGraph) -> ctypes.c_void_p:
    return ctypes.c_void_p(graph.raw_cuda_graph())
