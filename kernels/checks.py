"""What the float32 ops refuse of tensors, in the order and the words of csrc/op.cpp; and what all ops look at alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from kernels.declarations import Declaration
from kernels.overlap import overlap_problem

if TYPE_CHECKING:
    from torch import Tensor

Tensors = Mapping[str, "Tensor"]
"""The operands of one call, by the names of the schema and in its order."""

Refusal = Callable[[Declaration, Tensors], str | None]
"""What of the operands a kernel does not take, in words, or None."""


def first_problem(refusals: tuple[Refusal, ...], declaration: Declaration, tensors: Tensors) -> str | None:
    """What the first of `refusals` that refuses says, or None."""
    return next((found for refuse in refusals if (found := refuse(declaration, tensors))), None)


def float32_problem(declaration: Declaration, tensors: Tensors) -> str | None:
    """What a float32 kernel does not take of a (M, K), x (K, 1), out (M, 1), or None."""
    refusals = (
        device_problem, _dims_problem, _dtype_problem, _shape_problem, _layout_problem, _k_problem,
        _alignment_problem, _overlap_problem,
    )  # fmt: skip
    return first_problem(refusals, declaration, tensors)


def dims_problem(tensors: Tensors, dims: Mapping[str, int], form: str) -> str | None:
    """Of the first tensor that has not the dimensions wanted, or None."""
    for label, tensor in tensors.items():
        if tensor.dim() != dims.get(label, 2):
            return f"{label} has {tensor.dim()} dimensions, wanted {dims.get(label, 2)}: {form}"
    return None


def dtype_problem(label: str, tensor: Tensor, wanted: str, advice: str) -> str | None:
    """Of a tensor that is not of the dtype wanted, or None."""
    dtype = str(tensor.dtype).removeprefix("torch.")
    return None if dtype == wanted else f"{label} is {dtype}, wanted {wanted}; {advice}"


def alignment_problem(label: str, tensor: Tensor, alignment_bytes: int) -> str | None:
    """By the offset in the storage: these tensors have no address, and torch's allocations start well aligned."""
    past = tensor.storage_offset() * tensor.element_size() % alignment_bytes
    if past == 0 or tensor.numel() == 0:
        return None
    start = f"{past} bytes past a multiple of {alignment_bytes} bytes"
    return f"{label} starts {start}, wanted none; copy it with .clone()"


def pair(values: tuple[int, ...]) -> str:
    """Two numbers as csrc/glue.h writes them."""
    first, second = values
    return f"({first}, {second})"


def device_problem(declaration: Declaration, tensors: Tensors) -> str | None:
    """Of the first tensor that is on another kind of device than the kernel's, or not where a is; None: none is."""
    wanted = {"cuda": "a CUDA tensor; move it with .cuda()", "cpu": "a CPU tensor; move it with .cpu()"}
    where = tensors["a"].device
    for label, tensor in tensors.items():
        if tensor.device.type not in (declaration.device_type, "meta"):
            return f"{label} is on {tensor.device}, wanted {wanted[declaration.device_type]}"
        if tensor.device != where:
            return f"{label} is on {tensor.device}, wanted {where} where a is; move one of them"
    return None


def _dims_problem(_: Declaration, tensors: Tensors) -> str | None:
    return dims_problem(tensors, {}, "a is (M, K), x is (K, 1), out is (M, 1)")


def _dtype_problem(_: Declaration, tensors: Tensors) -> str | None:
    found = (dtype_problem(label, t, "float32", "convert it with .float()") for label, t in tensors.items())
    return next(filter(None, found), None)


def _shape_problem(_: Declaration, tensors: Tensors) -> str | None:
    m, k = tensors["a"].shape
    for label, rows in (("x", k), ("out", m)):
        shape = tensors[label].shape
        if shape[0] != rows or shape[1] != 1:
            return f"{label} has shape {pair(shape)}, wanted {pair((rows, 1))} to fit a's {pair((m, k))}"
    return None


def _layout_problem(declaration: Declaration, tensors: Tensors) -> str | None:
    return _packing_problem(tensors) if declaration.layout == "PACKED" else _strides_problem(declaration, tensors)


def _packing_problem(tensors: Tensors) -> str | None:
    for label, tensor in tensors.items():
        if not tensor.is_contiguous():
            wanted = pair((tensor.shape[1], 1))
            found = pair(tensor.stride())
            return f"{label} has strides {found}, wanted {wanted}, row-major and packed; copy it with .contiguous()"
    return None


def _strides_problem(declaration: Declaration, tensors: Tensors) -> str | None:
    a, out = tensors["a"], tensors["out"]
    rows, columns = _is_row_major(a), _is_row_major(a.t())
    wanted, is_taken = {
        "ROWS": ("(any, 1), row-major; copy it with .contiguous()", rows),
        "COLUMNS": ("(1, any), column-major; copy it with .t().contiguous().t()", columns),
        "ROWS_OR_COLUMNS": ("(any, 1) or (1, any), row- or column-major; copy it with .contiguous()", rows or columns),
    }[declaration.layout]
    if not is_taken:
        return f"a has strides {pair(a.stride())}, wanted {wanted}"
    if out.shape[0] > 1 and out.stride(0) == 0:
        return f"out has stride 0, wanted a place for each of its {out.shape[0]} values; allocate it with torch.empty"
    return None


def _is_row_major(a: Tensor) -> bool:
    """Sizes of 0 or 1 leave a stride without meaning."""
    return a.stride(1) == 1 or a.shape[1] <= 1 or a.shape[0] == 0


def _k_problem(declaration: Declaration, tensors: Tensors) -> str | None:
    problem = declaration.k_problem(tensors["a"].shape[1])
    if problem is None:
        return None
    padding = "pad a and x with zeros or " if declaration.k_rule == "K_MULTIPLE_OF" else ""
    return f"{problem}; {padding}use another kernel"


def _alignment_problem(declaration: Declaration, tensors: Tensors) -> str | None:
    found = (alignment_problem(label, tensors[label], declaration.alignment_bytes) for label in ("a", "x"))
    return next(filter(None, found), None)


def _overlap_problem(declaration: Declaration, tensors: Tensors) -> str | None:
    a, x, out = (tensors[label] for label in ("a", "x", "out"))
    by_columns = declaration.layout == "COLUMNS" or not _is_row_major(a)
    return overlap_problem((("a", a.t() if by_columns else a), ("x", _as_rows(x))), _as_rows(out))


def _as_rows(column: Tensor) -> Tensor:
    """Neighbours are one row."""
    return column.t() if column.stride(0) == 1 else column
