"""What the ops of other dtypes and several tokens refuse of tensors, in order and words as csrc/op_tokens.cpp."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernels.checks import (
    Tensors,
    alignment_problem,
    device_problem,
    dims_problem,
    dtype_problem,
    first_problem,
    pair,
)
from kernels.declarations import Declaration
from kernels.overlap import overlap_problem

if TYPE_CHECKING:
    from torch import Tensor

_VECTORS = ("scale", "zero")
_HALF_BYTES = 2
_ADVICE = {
    "float16": "convert it with .half()",
    "bfloat16": "convert it with .bfloat16()",
    "int8": "make it with kernels.quantize.quantize",
}


def token_problem(declaration: Declaration, tensors: Tensors) -> str | None:
    """What a kernel does not take of a (M, K), x (K, T), out (M, T), for int8 scale (M,) and zero (M,); or None."""
    refusals = (
        device_problem, _dims_problem, _dtype_problem, _shape_problem, _strides_problem, _alignment_problem,
        _overlap_problem,
    )  # fmt: skip
    return first_problem(refusals, declaration, tensors)


def _dims_problem(declaration: Declaration, tensors: Tensors) -> str | None:
    vectors = "scale and zero are (M), " if declaration.dtype == "int8" else ""
    return dims_problem(tensors, dict.fromkeys(_VECTORS, 1), f"a is (M, K), {vectors}x is (K, T), out is (M, T)")


def _dtype_problem(declaration: Declaration, tensors: Tensors) -> str | None:
    activations = "float16" if declaration.dtype == "int8" else declaration.dtype
    for label, tensor in tensors.items():
        wanted = declaration.dtype if label in ("a", "zero") else activations
        if problem := dtype_problem(label, tensor, wanted, _ADVICE[wanted]):
            return problem
    return None


def _shape_problem(declaration: Declaration, tensors: Tensors) -> str | None:
    a, x, out = (tensors[label] for label in ("a", "x", "out"))
    (m, k), tokens = a.shape, x.shape[1]
    end = f"to fit a's {pair(a.shape)}"
    for label in _VECTORS:
        if label in tensors and tensors[label].shape[0] != m:
            return f"{label} has shape ({tensors[label].shape[0]}), wanted ({m}) {end}"
    if x.shape[0] != k:
        return f"x has shape {pair(x.shape)}, wanted ({k}, T) {end}"
    if not 1 <= tokens <= declaration.most_n:
        return f"x has T={tokens} columns, wanted from 1 to {declaration.most_n}; use another kernel"
    if out.shape[0] != m or out.shape[1] != tokens:
        return f"out has shape {pair(out.shape)}, wanted {pair((m, tokens))} {end} and x's {pair(x.shape)}"
    return None


def _strides_problem(declaration: Declaration, tensors: Tensors) -> str | None:
    for label, tensor in tensors.items():
        if label in _VECTORS:
            if tensor.shape[0] > 1 and tensor.stride(0) != 1:
                return f"{label} has stride {tensor.stride(0)}, wanted 1; copy it with .contiguous()"
        elif problem := _lines_problem(label, tensor, packed=declaration.layout == "PACKED"):
            return problem
    return None


def _lines_problem(label: str, matrix: Tensor, *, packed: bool) -> str | None:
    """Of the rows of a, and of the tokens of x and out, which are their columns; sizes of 0 or 1 give no stride."""
    lines = _lines(label, matrix)
    count, length = lines.shape
    stride, step = lines.stride()
    period = stride if count > 1 and length > 0 else length
    neighbours = step == 1 or length <= 1 or count == 0
    if neighbours and (period == length or (not packed and period > length)):
        return None
    run = f"{length}" if packed else f"{length} or more"
    wanted = f"({run}, 1), row-major" if label == "a" else f"(1, {run}), column-major"
    advice = ".contiguous()" if label == "a" else ".t().contiguous().t()"
    packing = " and packed" if packed else ""
    return f"{label} has strides {pair(matrix.stride())}, wanted {wanted}{packing}; copy it with {advice}"


def _alignment_problem(declaration: Declaration, tensors: Tensors) -> str | None:
    """Those of whole elements are met by any tensor that has a storage offset, so none is asked of scale and out."""
    alignment_bytes = declaration.alignment_bytes
    for label, wanted in (("a", alignment_bytes), ("x", max(alignment_bytes, _HALF_BYTES))):
        if problem := alignment_problem(label, tensors[label], wanted):
            return problem
    return None


def _overlap_problem(_: Declaration, tensors: Tensors) -> str | None:
    inputs = [(label, _lines(label, tensor)) for label, tensor in tensors.items() if label != "out"]
    return overlap_problem(inputs, _lines("out", tensors["out"]))


def _lines(label: str, tensor: Tensor) -> Tensor:
    """Rows of neighbours; of one element each where neighbours are none."""
    if label in _VECTORS:
        return tensor.view(1, -1)
    return tensor if label == "a" else tensor.t()
