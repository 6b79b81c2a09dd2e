"""Names of device kernels, short enough to be read."""

from __future__ import annotations

import ctypes
from functools import cache

LONGEST_ARGUMENTS = 24
"""Characters of template arguments that a short name keeps."""


def short_name(demangled: str) -> str:
    """Without return type, parameters and long template arguments: `gemv2T_kernel_val<…>`, `sgemv::read<8>`."""
    text = demangled.replace("(anonymous namespace)::", "").replace("<unnamed>::", "")
    start, depth, opened = 0, 0, len(text)
    for place, sign in enumerate(text):
        if sign == "<":
            opened = min(opened, place) if depth else place
            depth += 1
        elif sign == ">":
            depth -= 1
        elif depth == 0 and sign == " ":
            start, opened = place + 1, len(text)
        elif depth == 0 and sign == "(":
            text = text[:place]
            break
    name, arguments = text[start:opened], text[opened:]
    return f"{name}<…>" if len(arguments) - 2 > LONGEST_ARGUMENTS else name + arguments


def demangled(name: str) -> str:
    """A symbol as C++ wrote it, by the C++ ABI's own function; what is no mangled name of C++ as it is.

    Profilers print the same, so that names from either can be held against each other.
    """
    library = _cxx()
    if library is None or not name.startswith("_Z"):
        return name
    demangle, free = library["__cxa_demangle"], library["free"]
    demangle.restype, free.restype = ctypes.c_void_p, None
    status = ctypes.c_int()
    text = demangle(name.encode(), None, None, ctypes.byref(status))
    if status.value != 0 or not text:
        return name
    try:
        return ctypes.string_at(text).decode(errors="replace")
    finally:
        free(ctypes.c_void_p(text))  # it is from malloc


@cache
def _cxx() -> ctypes.CDLL | None:
    """The C++ library, which torch has loaded too; None: there is none of that name, and names stay mangled."""
    try:
        return ctypes.CDLL("libstdc++.so.6")
    except OSError:
        return None
