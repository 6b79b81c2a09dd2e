"""How a user's file declares kernels: `kernel` for whatever Python launches, `cuda` for a function of a `.cu` file."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from harness.model import Launch, Operands, Problem
from kernels.declarations import ITEM_BYTES

Bind = Callable[[Operands], Launch]
Unsupported = Callable[[Problem], str | None]

DTYPES = tuple(ITEM_BYTES)
"""Of problems, as `harness.model.Problem` explains them."""

DEVICES = ("cuda", "cpu")
"""Types of devices."""

POINTERS = ("a", "x", "y", "scale")
SIZES = ("m", "n", "k", "row_stride")
PARAMETERS = "a x y m k stream"
"""Of a C++ launcher, unless it is declared with others."""

_NAME = re.compile(r"[A-Za-z_]\w{0,59}(\.\w{1,59})?", re.ASCII)
_FUNCTION = re.compile(r"[A-Za-z_]\w*(::[A-Za-z_]\w*)*", re.ASCII)


@dataclass(frozen=True, kw_only=True)
class Launcher:
    """A function of a `.cu` file that launches a kernel."""

    source: str
    """Absolute path of the file."""
    function: str
    """Its name, qualified where it is in a namespace."""
    parameters: tuple[str, ...]
    """What it is called with, in order: of `POINTERS`, `SIZES` and `stream`."""
    flags: tuple[str, ...]
    """Options for nvcc, behind the builder's own."""


@dataclass(frozen=True, kw_only=True)
class Declared:
    """A kernel as its file declares it."""

    name: str
    line: int
    """Of the file, where it is declared."""
    summary: str
    dtypes: tuple[str, ...]
    devices: tuple[str, ...]
    unsupported: Unsupported | None
    bind: Bind | None = None
    """None where there is a launcher."""
    launcher: Launcher | None = None


_open: list[list[Declared]] = []
"""What the files that are being loaded have declared so far; the last is the one that declares now."""


@contextmanager
def declarations() -> Iterator[list[Declared]]:
    """What is declared within; outside of it a declaration is checked and goes nowhere."""
    found: list[Declared] = []
    _open.append(found)
    try:
        yield found
    finally:
        _open.remove(found)


def kernel(
    name: str,
    *,
    dtypes: Sequence[str] = ("float32",),
    devices: Sequence[str] = DEVICES,
    unsupported: Unsupported | None = None,
    summary: str | None = None,
) -> Callable[[Bind], Bind]:
    """Declare the function below as the `bind` of a kernel: it prepares, which is not timed, and returns the launch.

    `operands` has the tensors `a` (m, k), `x` (k, n), `y` (m, n) and, where A is int8, `scale` (m,). The launch starts
    the work on torch's current stream and writes every value of `y`; it is called many times, and captured in graphs.

    Args:
        name: in tables and for `--kernel`: letters, digits, `_`, and one `.` within.
        dtypes: of the problems that it is for: float32, tf32, float16, bfloat16, int8.
        devices: types of those that it runs on: cuda, cpu.
        unsupported: given a problem (`m`, `k`, `n`, `dtype`, `layout`), why it cannot compute it, or None: it can.
        summary: its design in one line; default: the first line of the function's docstring.

    Raises:
        ValueError, TypeError: what is wrong with an argument.
    """
    line = _callers_line()
    if callable(name):
        raise TypeError('@kernel without a name, wanted one in brackets: @kernel("my_name")')

    def declare(bind: Bind) -> Bind:
        if not callable(bind):
            found = described(bind)
            raise TypeError(f"@kernel({name!r}) stands above {found}, wanted a function: bind(operands) -> launch")
        declared = Declared(
            name=name,
            line=line,
            summary=summary or (bind.__doc__ or "").strip().partition("\n")[0],
            dtypes=_several(dtypes),
            devices=_several(devices),
            unsupported=unsupported,
            bind=bind,
        )
        _add(declared)
        return bind

    return declare


def cuda(  # noqa: PLR0913 - what a launcher is, by name
    name: str,
    source: str | Path,
    *,
    function: str | None = None,
    parameters: str = PARAMETERS,
    flags: Sequence[str] = (),
    dtypes: Sequence[str] = ("float32",),
    unsupported: Unsupported | None = None,
    summary: str | None = None,
) -> None:
    """Declare a kernel that a C++ function of a `.cu` file launches; the project's nvcc builds it, once per content.

    The function returns void or cudaError_t, and is called as its parameters say. `a`, `x`, `y`, `scale` are pointers
    to values of the dtype (`__half` for float16, `__nv_bfloat16` for bfloat16; int8: `a` to std::int8_t, the others to
    `__half`), to const but for `y`. `m`, `n`, `k` and `row_stride`, the elements from one row of A to the next, are
    std::int64_t. `stream` is a cudaStream_t. Without `n` it is for one column alone, without `row_stride` for an A
    without gaps. An error that cudaGetLastError() then has ends the case.

    Args:
        name: as for `kernel`.
        source: the file; relative to the file that declares it.
        function: its name; default: the kernel's.
        parameters: their names, in order.
        flags: options for nvcc, such as `-I/opt/cutlass/include`.
        dtypes: as for `kernel`; for several the function is a template or overloaded.
        unsupported: as for `kernel`; asked after what the parameters say.
        summary: its design in one line.

    Raises:
        ValueError, TypeError: what is wrong with an argument.
    """
    line, folder = _callers_line(), Path(sys._getframe(1).f_code.co_filename).parent  # noqa: SLF001 - inspect is slower
    path = folder / Path(source).expanduser()
    if not path.is_file():
        found = "which is a folder" if path.is_dir() else "and there is no such file"
        raise ValueError(f"cuda({name!r}): source is {path}, {found}; wanted a .cu file")
    called = name if function is None else function
    if not _FUNCTION.fullmatch(called):
        raise ValueError(f"cuda({name!r}): function is {called!r}, wanted the name of a C++ function")
    launcher = Launcher(
        source=str(path.resolve()),
        function=called,
        parameters=_parameters(name, parameters, _several(dtypes)),
        flags=tuple(map(str, flags)),
    )
    declared = Declared(
        name=name,
        line=line,
        summary=summary or "",
        dtypes=_several(dtypes),
        devices=("cuda",),
        unsupported=unsupported,
        launcher=launcher,
    )
    _add(declared)


def packed(problem: Problem) -> str | None:
    """Of use as `unsupported`: why it is more than one column by rows of A without gaps between them, or None."""
    return contract((), problem)


def contract(parameters: Sequence[str], problem: Problem) -> str | None:
    """Why a launcher that is called with just these parameters cannot compute a problem, or None."""
    layout = problem.layout
    if "n" not in parameters and problem.n != 1:
        return f"n={problem.n} columns of x, wanted 1"
    if layout.order != "row":
        return f"A's order is {layout.order!r}, wanted 'row'"
    if "row_stride" not in parameters and layout.row_stride not in (None, problem.k):
        return f"A's row stride is {layout.row_stride}, wanted {problem.k} (packed)"
    return None


def described(value: object) -> str:
    """What was found where something else was wanted: a type, and no value, which may fill a page."""
    return "None" if value is None else f"a value of type {type(value).__name__}"


def _add(declared: Declared) -> None:
    """Give it to whoever collects what is declared now.

    Raises:
        ValueError, TypeError: it is not fit to be one.
    """
    name, asked = declared.name, declared.unsupported
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ValueError(f"kernel {name!r}: wanted a name of letters, digits and _ with one . within, such as my_gemv")
    if asked is not None and not callable(asked):
        raise TypeError(f"kernel {name!r}: unsupported is {described(asked)}, wanted a function of a problem or None")
    for what, values, known in (("dtypes", declared.dtypes, DTYPES), ("devices", declared.devices, DEVICES)):
        for each in values or (None,):
            if each not in known:
                raise ValueError(f"kernel {name!r}: {what} has {each!r}, wanted some of: {', '.join(known)}")
    found = _open[-1] if _open else []
    if taken := next((each for each in found if each.name == name), None):
        raise ValueError(f"kernel {name!r} is declared in line {taken.line} already; rename one of them")
    found.append(declared)


def _several(values: str | Sequence[str]) -> tuple[str, ...]:
    """One alone may stand without brackets."""
    return (values,) if isinstance(values, str) else tuple(values)


def _parameters(name: str, text: str, dtypes: Sequence[str]) -> tuple[str, ...]:
    names = tuple(text.split())
    known = (*POINTERS, *SIZES, "stream")
    needed = {"a", "x", "y", "stream", *(("scale",) if "int8" in dtypes else ())}
    if set(names) - set(known) or needed - set(names) or len(set(names)) != len(names):
        wanted = f"{', '.join(sorted(needed))} and others of: {', '.join(known)}, each once"
        raise ValueError(f"cuda({name!r}): parameters are {text!r}, wanted {wanted}")
    return names


def _callers_line() -> int:
    """Of the file that calls `kernel` or `cuda`."""
    return sys._getframe(2).f_lineno  # noqa: SLF001 - inspect is slower
