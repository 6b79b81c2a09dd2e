"""The CUDA driver's own functions, for what torch has no name for."""

from __future__ import annotations

import ctypes
from functools import cache


class DriverError(RuntimeError):
    """A call that the driver refused."""


def driver_call(name: str, *arguments: object) -> None:
    """Call a function of libcuda in the current context.

    Args:
        name: as the library exports it, with its version: cuda.h renames `cuGraphGetEdges` to `cuGraphGetEdges_v2`.
        arguments: of ctypes, pointers and sizes by their own types.

    Raises:
        DriverError: it did not succeed, or this driver is older than the function.
    """
    function = getattr(_library(), name, None)
    if function is None:
        raise DriverError(f"{name}: this driver lacks it; a newer one has it")
    status = function(*arguments)
    if status != 0:
        raise DriverError(f"{name}: CUDA driver error {status}")


@cache
def _library() -> ctypes.CDLL:
    return ctypes.CDLL("libcuda.so.1")
