"""Kernels for the CPU that compute problems of any dtype and any number of tokens, right or wrong in one way each."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from harness.dtypes import DTYPES
from harness.model import Kernel, Operands, Role

NARROW = ("float16", "bfloat16", "int8")
"""Dtypes whose y is narrower than float32."""


def product(o: Operands) -> Tensor:
    """(m, n): the sum in float32, times the scale in float32, not yet rounded to y's dtype."""
    return scaled(o, o.a.float() @ o.x.float())


def scaled(o: Operands, sums: Tensor) -> Tensor:
    return sums if o.scale is None else sums.float() * o.scale.float().unsqueeze(1)


def kernel(body: Callable[[Operands], None], role: Role = Role.GEMV) -> Kernel:
    """Of that body, for every dtype."""

    def bind(o: Operands) -> Callable[[], None]:
        return lambda: body(o)

    return Kernel(name=body.__name__, role=role, summary="planted", bind=bind, devices=("cpu",), dtypes=DTYPES)


# right


def right(o: Operands) -> None:
    o.y.copy_(product(o))


def right_by_torch(o: Operands) -> None:
    """As torch.matmul computes it, Y = X·Wᵀ."""
    if o.scale is not None:
        right(o)
    else:
        torch.matmul(o.x.t(), o.a.t(), out=o.y.t())


def right_in_double(o: Operands) -> None:
    sums = o.a.double() @ o.x.double()
    o.y.copy_(sums if o.scale is None else sums * o.scale.double().unsqueeze(1))


def right_by_tensor_cores(o: Operands, block: int = 4) -> None:
    """Blocks of some products, cut off below the last bit of the largest, and each sum cut off to 24 bits."""
    k = o.a.shape[1]
    a, x = o.a.double(), o.x.double()
    sums = torch.zeros(o.y.shape, dtype=torch.float64)
    for first in range(0, k, block):
        terms = a[:, None, first : first + block] * x.t()[None, :, first : first + block]
        terms = torch.cat([terms, sums.unsqueeze(2)], dim=2)
        sums = _cut(terms, terms.abs().amax(2, keepdim=True)).sum(2)
        sums = _cut(sums, sums.abs())
    o.y.copy_(scaled(o, sums.float()))


def _cut(values: Tensor, largest: Tensor) -> Tensor:
    """Towards zero, to the bits that a float32 as large as `largest` has."""
    last = torch.ldexp(torch.ones_like(largest), torch.frexp(largest).exponent - 24)
    return torch.trunc(values / last) * last


def reads(o: Operands) -> None:
    """A right `read`."""
    found = (o.a == -128).any() if o.scale is not None else o.a.isnan().any()
    found = found | o.x.isnan().any() | (o.scale is not None and o.scale.isnan().any())
    o.y.copy_(torch.where(found, torch.nan, 0.0).expand(o.y.shape))


# wrong


def drops_the_last_element(o: Operands) -> None:
    o.y.copy_(scaled(o, o.a[:, :-1].float() @ o.x[:-1].float()))


def doubles_one_element(o: Operands) -> None:
    o.y.copy_(product(o) + scaled(o, o.a[:, -1:].float() * o.x[-1].float()))


def drops_one_element_of_one_token(o: Operands) -> None:
    row, column, token = o.a.shape[0] // 2, o.a.shape[1] // 3, o.x.shape[1] - 1
    sums = o.a.float() @ o.x.float()
    sums[row, token] -= o.a[row, column].float() * o.x[column, token].float()
    o.y.copy_(scaled(o, sums))


def swaps_two_rows(o: Operands) -> None:
    o.y.copy_(product(o)[[1, 0, *range(2, o.a.shape[0])]])


def swaps_tokens(o: Operands) -> None:
    o.y.copy_(product(o).flip(1))


def takes_one_token_for_all(o: Operands) -> None:
    o.y.copy_(product(o)[:, :1].expand(o.y.shape))


def takes_x_as_rows(o: Operands) -> None:
    """Of k rows of tokens, where x is n tokens of k."""
    k, n = o.x.shape
    x = o.x.as_strided((k, n), (n, 1))
    o.y.copy_(scaled(o, o.a.float() @ x.float()))


def takes_y_as_rows(o: Operands) -> None:
    m, n = o.y.shape
    o.y.as_strided((m, n), (n, 1)).copy_(product(o))


def forgets_a_token(o: Operands) -> None:
    o.y[:, :-1].copy_(product(o)[:, :-1])


def accumulates_in_float16(o: Operands) -> None:
    _accumulate(o, torch.float16)


def accumulates_in_bfloat16(o: Operands) -> None:
    _accumulate(o, torch.bfloat16)


def _accumulate(o: Operands, dtype: torch.dtype) -> None:
    """One addition after the other."""
    sums = torch.zeros(o.y.shape, dtype=dtype)
    for column in range(o.a.shape[1]):
        sums = (sums.float() + o.a[:, column : column + 1].float() * o.x[column].float()).to(dtype)
    o.y.copy_(scaled(o, sums))


def accumulates_in_float16_by_pairs(o: Operands) -> None:
    """A tree, as threads of a block may."""
    terms = (o.a.float().unsqueeze(2) * o.x.float().unsqueeze(0)).half()
    while terms.shape[1] > 1:
        left, right = terms[:, 0::2], terms[:, 1::2]
        odd = left[:, right.shape[1] :]
        terms = torch.cat([(left[:, : right.shape[1]].float() + right.float()).half(), odd], dim=1)
    o.y.copy_(scaled(o, terms[:, 0]))


def rounds_the_sum_to_float16(o: Operands) -> None:
    o.y.copy_(scaled(o, (o.a.float() @ o.x.float()).half()))


def rounds_operands_to_bfloat16(o: Operands) -> None:
    o.y.copy_(scaled(o, o.a.bfloat16().float() @ o.x.bfloat16().float()))


def cuts_y_off(o: Operands) -> None:
    """Towards zero, where it must be rounded to nearest."""
    result = product(o)
    nearest = result.to(o.y.dtype)
    towards = torch.nextafter(nearest.float(), torch.zeros(())) if o.y.dtype is torch.float32 else _next_down(nearest)
    o.y.copy_(torch.where(nearest.float().abs() > result.abs(), towards, nearest))


def _next_down(values: Tensor) -> Tensor:
    """The neighbour nearer to zero."""
    return (values.view(torch.int16) - 1).view(values.dtype)


def ignores_the_scale(o: Operands) -> None:
    o.y.copy_(o.a.float() @ o.x.float())


def takes_the_scale_of_the_next_row(o: Operands) -> None:
    o.y.copy_((o.a.float() @ o.x.float()) * o.scale.roll(1).float().unsqueeze(1))


def rounds_weights_to_float16(o: Operands) -> None:
    """Scale times A, before the sum."""
    o.y.copy_((o.a.half() * o.scale.unsqueeze(1)).float() @ o.x.float())


def takes_a_as_unsigned(o: Operands) -> None:
    o.y.copy_(scaled(o, o.a.view(torch.uint8).float() @ o.x.float()))


def writes_into_the_scale(o: Operands) -> None:
    right(o)
    o.scale[0] *= 2


def reads_behind_the_scale(o: Operands) -> None:
    right(o)
    o.y[-1] += 0.0 * o.scale.as_strided((1,), (1,), o.scale.storage_offset() + o.scale.numel())


def writes_behind_a(o: Operands) -> None:
    right(o)
    o.a.as_strided((1,), (1,), o.a.storage_offset() + o.a.numel()).fill_(1)
