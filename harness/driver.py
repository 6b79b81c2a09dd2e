"""The CUDA driver's own functions, for what torch has no name for."""

from __future__ import annotations

import ctypes
from functools import cache


class DriverError(RuntimeError):
    """A call that the driver refused."""


def driver_call(name: str, *arguments: object) -> None:
    """Call a function of libcuda in the current context.

    Raises:
        DriverError: it did not succeed.
    """
    status = getattr(_library(), name)(*arguments)
    if status != 0:
        raise DriverError(f"{name}: CUDA driver error {status}")


@cache
def _library() -> ctypes.CDLL:
    return ctypes.CDLL("libcuda.so.1")
