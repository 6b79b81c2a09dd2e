"""A stand-in for libcuda: one graph, as it is told to be, behind `harness.device.driver`. It takes ctypes only."""

# ruff: noqa: D102, N802 - the driver's own names and meanings
from __future__ import annotations

import ctypes
import struct
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

GRAPH = 0xABC0
INVALID_VALUE, LOSSY_QUERY = 1, 917


@dataclass(kw_only=True)
class FakeNode:
    """One node; a kernel unless its kind is another."""

    kind: int = 0
    func: int = 0
    kern: int = 0
    grid: tuple[int, int, int] = (1, 1, 1)
    block: tuple[int, int, int] = (32, 1, 1)
    dynamic_bytes: int = 0


@dataclass(kw_only=True)
class FakeFunction:
    """What a CUfunction has."""

    name: bytes
    registers: int = 16
    static_bytes: int = 0


@dataclass(kw_only=True)
class FakeDriver:
    """The functions of libcuda that read a graph."""

    nodes: dict[int, FakeNode]
    """By address, in the order in which the driver lists them."""
    edges: tuple[tuple[int, int], ...] = ()
    functions: dict[int, FakeFunction] = field(default_factory=dict)
    kernels: dict[int, int] = field(default_factory=dict)
    """The function of each CUkernel."""
    missing: frozenset[str] = frozenset()
    """Names that this driver is too old for."""

    graph = SimpleNamespace(raw_cuda_graph=lambda: GRAPH)

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("cu") and name in self.missing:
            raise AttributeError(name)
        return super().__getattribute__(name)

    def cuGraphGetNodes(self, graph: Any, nodes: Any, count: Any) -> int:
        assert graph.value == GRAPH
        count._obj.value = len(self.nodes)
        _fill(nodes, self.nodes)
        return 0

    def cuGraphGetEdges_v2(self, graph: Any, before: Any, after: Any, data: Any, count: Any) -> int:
        assert graph.value == GRAPH
        if before is not None and data is None:
            return LOSSY_QUERY
        count._obj.value = len(self.edges)
        _fill(before, [edge[0] for edge in self.edges])
        _fill(after, [edge[1] for edge in self.edges])
        return 0

    def cuGraphNodeGetType(self, node: Any, kind: Any) -> int:
        kind._obj.value = self.nodes[node.value].kind
        return 0

    def cuGraphKernelNodeGetParams_v2(self, node: Any, params: Any) -> int:
        """CUDA_KERNEL_NODE_PARAMS_v2 as a C compiler lays it out on a 64-bit machine."""
        found = self.nodes[node.value]
        laid = struct.pack(
            "@P7I4xPPPP", found.func, *found.grid, *found.block, found.dynamic_bytes, 0, 0, found.kern, 0
        )
        assert ctypes.sizeof(params._obj) == len(laid) == 72
        ctypes.memmove(ctypes.addressof(params._obj), laid, len(laid))
        return 0

    def cuKernelGetFunction(self, function: Any, kernel: Any) -> int:
        function._obj.value = self.kernels[kernel.value]
        return 0

    def cuFuncGetName(self, name: Any, function: Any) -> int:
        if function.value not in self.functions:
            return INVALID_VALUE
        name._obj.value = self.functions[function.value].name
        return 0

    def cuFuncGetAttribute(self, value: Any, which: int, function: Any) -> int:
        found = self.functions[function.value]
        value._obj.value = {1: found.static_bytes, 4: found.registers}[which]
        return 0


def _fill(array: Any, values: Any) -> None:
    for place, value in enumerate(values if array is not None else ()):
        array[place] = value
