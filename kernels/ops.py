"""Loads a library of kernels into torch and teaches torch what its ops do to shapes.

The ops are `torch.ops.sgemv.<name>(a, x, out)`: a (M, K), x (K, 1), out (M, 1), float32, on one device, with the
strides that the kernel declares to take; `out` is written. What they cannot compute they refuse with a RuntimeError of
one line. The checks stand twice, here for meta and fake tensors and in csrc/op.cpp for real ones, in the same order and
the same words.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kernels.declarations import CSRC, Declaration, declarations

if TYPE_CHECKING:
    from torch import Tensor

NAMESPACE = "sgemv"

_loaded: dict[str, Path] = {}
_faked: set[str] = set()


def load(built_path: Path, csrc: Path = CSRC) -> None:
    """Loads the library at `built_path`, once a process, and registers Meta implementations for the ops of `csrc`.

    Raises:
        RuntimeError: another build of the same library is loaded already; torch cannot unload it.
        OSError: it is no library that this torch can load; the message is the dynamic linker's.
    """
    import torch

    path = built_path.resolve()
    if (before := _loaded.get(path.name)) is not None:
        if before.parent.name != path.parent.name:  # the entry's name holds the build's key
            raise RuntimeError(f"{path} cannot be loaded: this process has {before}; load it in a fresh process")
        return
    torch.ops.load_library(str(path))
    _loaded[path.name] = path
    for declaration in declarations(csrc).values():
        if declaration.name not in _faked and hasattr(getattr(torch.ops, NAMESPACE), declaration.name):
            torch.library.register_fake(f"{NAMESPACE}::{declaration.name}", _fake(declaration))
            _faked.add(declaration.name)


def loaded() -> tuple[Path, ...]:
    """The libraries that this process has loaded."""
    return tuple(_loaded.values())


def check(declaration: Declaration, a: Tensor, x: Tensor, out: Tensor) -> None:
    """Refuses what the kernel cannot compute, in the words of csrc/op.cpp.

    Raises:
        RuntimeError: where, what was found, what was wanted, what to do.
    """
    tensors = {"a": a, "x": x, "out": out}
    refusals = (
        _device_problem, _dims_problem, _dtype_problem, _shape_problem, _layout_problem, _k_problem,
        _alignment_problem, _overlap_problem,
    )  # fmt: skip
    problem = next((found for refuse in refusals if (found := refuse(declaration, tensors))), None)
    if problem is not None:
        raise RuntimeError(f"{declaration.name}: {problem}")


def _fake(declaration: Declaration) -> Callable[[Tensor, Tensor, Tensor], None]:
    def fake(a: Tensor, x: Tensor, out: Tensor) -> None:
        check(declaration, a, x, out)

    return fake


def _device_problem(declaration: Declaration, tensors: dict[str, Tensor]) -> str | None:
    wanted = {"cuda": "a CUDA tensor; move it with .cuda()", "cpu": "a CPU tensor; move it with .cpu()"}
    where = tensors["a"].device
    for label, tensor in tensors.items():
        if tensor.device.type not in (declaration.device_type, "meta"):
            return f"{label} is on {tensor.device}, wanted {wanted[declaration.device_type]}"
        if tensor.device != where:
            return f"{label} is on {tensor.device}, wanted {where} where a is; move one of them"
    return None


def _dims_problem(_: Declaration, tensors: dict[str, Tensor]) -> str | None:
    for label, tensor in tensors.items():
        if tensor.dim() != 2:
            return f"{label} has {tensor.dim()} dimensions, wanted 2: a is (M, K), x is (K, 1), out is (M, 1)"
    return None


def _dtype_problem(_: Declaration, tensors: dict[str, Tensor]) -> str | None:
    for label, tensor in tensors.items():
        dtype = str(tensor.dtype).removeprefix("torch.")
        if dtype != "float32":
            return f"{label} is {dtype}, wanted float32; convert it with .float()"
    return None


def _shape_problem(_: Declaration, tensors: dict[str, Tensor]) -> str | None:
    m, k = tensors["a"].shape
    for label, rows in (("x", k), ("out", m)):
        shape = tensors[label].shape
        if shape[0] != rows or shape[1] != 1:
            return f"{label} has shape {_pair(shape)}, wanted {_pair((rows, 1))} to fit a's {_pair((m, k))}"
    return None


def _layout_problem(declaration: Declaration, tensors: dict[str, Tensor]) -> str | None:
    return _packing_problem(tensors) if declaration.layout == "PACKED" else _strides_problem(declaration, tensors)


def _packing_problem(tensors: dict[str, Tensor]) -> str | None:
    for label, tensor in tensors.items():
        if not tensor.is_contiguous():
            wanted = _pair((tensor.shape[1], 1))
            found = _pair(tensor.stride())
            return f"{label} has strides {found}, wanted {wanted}, row-major and packed; copy it with .contiguous()"
    return None


def _strides_problem(declaration: Declaration, tensors: dict[str, Tensor]) -> str | None:
    a, out = tensors["a"], tensors["out"]
    rows, columns = _is_row_major(a), _is_row_major(a.t())
    wanted, is_taken = {
        "ROWS": ("(any, 1), row-major; copy it with .contiguous()", rows),
        "COLUMNS": ("(1, any), column-major; copy it with .t().contiguous().t()", columns),
        "ROWS_OR_COLUMNS": ("(any, 1) or (1, any), row- or column-major; copy it with .contiguous()", rows or columns),
    }[declaration.layout]
    if not is_taken:
        return f"a has strides {_pair(a.stride())}, wanted {wanted}"
    if out.shape[0] > 1 and out.stride(0) == 0:
        return f"out has stride 0, wanted a place for each of its {out.shape[0]} values; allocate it with torch.empty"
    return None


def _is_row_major(a: Tensor) -> bool:
    """Sizes of 0 or 1 leave a stride without meaning."""
    return a.stride(1) == 1 or a.shape[1] <= 1 or a.shape[0] == 0


def _k_problem(declaration: Declaration, tensors: dict[str, Tensor]) -> str | None:
    problem = declaration.k_problem(tensors["a"].shape[1])
    if problem is None:
        return None
    padding = "pad a and x with zeros or " if declaration.k_rule == "K_MULTIPLE_OF" else ""
    return f"{problem}; {padding}use another kernel"


def _alignment_problem(declaration: Declaration, tensors: dict[str, Tensor]) -> str | None:
    """By the offset in the storage: these tensors have no address, and torch's allocations start well aligned."""
    alignment_bytes = declaration.alignment_bytes
    for label in ("a", "x"):
        tensor = tensors[label]
        past = tensor.storage_offset() * tensor.element_size() % alignment_bytes
        if past != 0 and tensor.numel() != 0:
            start = f"{past} bytes past a multiple of {alignment_bytes} bytes"
            return f"{label} starts {start}, wanted none; copy it with .clone()"
    return None


def _overlap_problem(declaration: Declaration, tensors: dict[str, Tensor]) -> str | None:
    """As csrc/overlap.h, by offsets in the storage that tensors share."""
    a, x, out = (tensors[label] for label in ("a", "x", "out"))
    by_columns = declaration.layout == "COLUMNS" or not _is_row_major(a)
    for label, rows in (("a", a.t() if by_columns else a), ("x", _as_rows(x))):
        if _share_storage(rows, out) and not _Runs.of(rows).are_apart_from(_Runs.of(_as_rows(out))):
            return f"out overlaps {label}, wanted memory of its own; allocate it with torch.empty"
    return None


def _as_rows(column: Tensor) -> Tensor:
    """Neighbours are one row."""
    return column.t() if column.stride(0) == 1 else column


@dataclass(frozen=True)
class _Runs:
    """The elements of an operand: `count` runs of `run` neighbours each, one run every `period` elements."""

    first: int
    run: int
    period: int
    count: int

    @classmethod
    def of(cls, rows: Tensor) -> _Runs:
        count, run = rows.shape
        return cls(int(rows.storage_offset()), run, rows.stride(0) if count > 1 else 0, count)

    def span(self) -> int:
        return 0 if self.run == 0 or self.count == 0 else (self.count - 1) * self.period + self.run

    def are_apart_from(self, other: _Runs) -> bool:
        """By their ranges, or by remainders in the period that both have."""
        offset = other.first - self.first
        if self.span() == 0 or other.span() == 0 or offset >= self.span() or offset + other.span() <= 0:
            return True
        period = math.gcd(self.period, other.period)
        return period != 0 and self.run <= offset % period <= period - other.run


def _share_storage(one: Tensor, other: Tensor) -> bool:
    return bool(one.untyped_storage()._cdata == other.untyped_storage()._cdata)  # noqa: SLF001 - fake ones have no address


def _pair(values: tuple[int, ...]) -> str:
    first, second = values
    return f"({first}, {second})"
