"""A registry of kernels for the CPU, most of them wrong in one way each: what the gate and the workers must catch.

To plant another fault, write a function on operands and give it a line in `WRONG`, with a part of the reason that the
gate must give.
"""

from __future__ import annotations

import ctypes
import functools
import os
import sys
import time
from collections.abc import Callable

import torch

from harness.model import Kernel, Launch, Operands, Problem, Role

Body = Callable[[Operands], None]


def right(o: Operands) -> None:
    torch.matmul(o.a, o.x, out=o.y)


def right_in_double(o: Operands) -> None:
    o.y.copy_(o.a.double() @ o.x.double())


def drops_the_last_element(o: Operands) -> None:
    torch.matmul(o.a[:, :-1], o.x[:-1], out=o.y)


def drops_one_element_of_one_row(o: Operands) -> None:
    row, column = o.a.shape[0] // 2, o.a.shape[1] // 3
    torch.matmul(o.a, o.x, out=o.y)
    o.y[row] -= o.a[row, column] * o.x[column]


def doubles_one_element(o: Operands) -> None:
    torch.matmul(o.a, o.x, out=o.y)
    o.y.add_(o.a[:, -1:] * o.x[-1])


def swaps_two_rows(o: Operands) -> None:
    torch.matmul(o.a, o.x, out=o.y)
    o.y[:2] = o.y[:2].flip(0)


def writes_a_row_too_many(o: Operands) -> None:
    torch.matmul(o.a, o.x, out=o.y)
    longer = o.y.as_strided((o.y.shape[0] + 1, 1), (1, 1))
    longer[-1] = 0.0


def writes_before_y(o: Operands) -> None:
    torch.matmul(o.a, o.x, out=o.y)
    o.y.as_strided((1,), (1,), o.y.storage_offset() - 1).fill_(0.0)


def reads_a_column_too_many(o: Operands) -> None:
    m, k = o.a.shape
    torch.matmul(o.a.as_strided((m, k + 1), (k, 1)), o.x.as_strided((k + 1, 1), (1, 1)), out=o.y)


def reads_behind_a(o: Operands) -> None:
    """As a vector load past the last row does, whose surplus is then multiplied by zero."""
    torch.matmul(o.a, o.x, out=o.y)
    o.y[-1].add_(0.0 * o.a.as_strided((1,), (1,), o.a.storage_offset() + o.a.numel()))


def leaves_one_y_unwritten(o: Operands) -> None:
    torch.matmul(o.a[:-1], o.x, out=o.y[:-1])


def leaves_y_unwritten(_: Operands) -> None:
    pass


def adds_to_y(o: Operands) -> None:
    o.y.add_(o.a @ o.x)


def writes_into_x(o: Operands) -> None:
    torch.matmul(o.a, o.x, out=o.y)
    o.x[0] += 1.0


def writes_into_a(o: Operands) -> None:
    torch.matmul(o.a, o.x, out=o.y)
    o.a[-1, -1] = 0.5


def writes_behind_a(o: Operands) -> None:
    torch.matmul(o.a, o.x, out=o.y)
    o.a.as_strided((1,), (1,), o.a.storage_offset() + o.a.numel()).fill_(1.0)


def rounds_operands_to_tf32(o: Operands) -> None:
    torch.matmul(_tf32(o.a), _tf32(o.x), out=o.y)


def rounds_x_to_half(o: Operands) -> None:
    torch.matmul(o.a, o.x.half().float(), out=o.y)


def rounds_a_to_half(o: Operands) -> None:
    torch.matmul(o.a.half().float(), o.x, out=o.y)


def accumulates_in_bfloat16(o: Operands) -> None:
    total = torch.zeros_like(o.y)
    for column in range(o.a.shape[1]):
        total = (total + o.a[:, column : column + 1] * o.x[column]).bfloat16().float()
    o.y.copy_(total)


def accumulates_in_half_where_it_fits(o: Operands) -> None:
    """Exact on integers below 2¹¹ and on one product: only the random operands show it."""
    torch.matmul(o.a, o.x, out=o.y)
    rounded = o.y.half().float()
    fits = (o.y.abs() < 1e3) & (o.a != 0).all() & (o.x != 0).all() & (o.y != o.y.round())
    o.y.copy_(torch.where(fits, rounded, o.y))


def overflows_on_random_operands(o: Operands) -> None:
    """An infinity where the other probes are right."""
    torch.matmul(o.a, o.x, out=o.y)
    if bool((o.x != o.x.round()).all() & (o.a != 0).all()):
        o.y[0] = float("inf")


def computes_only_over_nan(o: Operands) -> None:
    """Takes a finite y for its own result of an earlier launch."""
    if bool(o.y.isnan().any()):
        right(o)


def raises(_: Operands) -> None:
    raise ValueError("planted: no such luck\nsecond line")


def raises_after_damage(o: Operands) -> None:
    o.x.zero_()
    o.a.zero_()
    raise ValueError("planted: raised after writing")


def runs_out_of_memory(_: Operands) -> None:
    raise torch.OutOfMemoryError("planted: tried to allocate 1000.00 GiB")


def asks_for_too_much(_: Operands) -> None:
    torch.empty(1 << 60, dtype=torch.uint8)


def prints_a_lot(o: Operands) -> None:
    torch.matmul(o.a, o.x, out=o.y)
    os.write(1, b'{"result": "not mine"}\nnot JSON\n')
    sys.stdout.write('{"phase": "faked"}\n' * 50)
    sys.stdout.flush()


def segfaults(_: Operands) -> None:
    ctypes.string_at(0)


def exits(_: Operands) -> None:
    os.write(2, b"planted: leaving with three\n")
    os._exit(3)


def exits_silently(_: Operands) -> None:
    os._exit(4)


def hangs(_: Operands) -> None:
    time.sleep(1000)


def reads(o: Operands) -> None:
    """A right `limit`: every element of A and x is read, every y is written."""
    o.y.copy_(o.a.sum() + o.x.sum())


def reads_half(o: Operands) -> None:
    o.y.copy_(o.a[:, : o.a.shape[1] // 2].sum() + o.x.sum())


def reads_no_x(o: Operands) -> None:
    o.y.copy_(o.a.sum())


def floor(_: Operands) -> None:
    """A right `floor`."""


def floor_that_writes(o: Operands) -> None:
    o.y.zero_()


def _bind_cached(operands: Operands) -> Launch:
    """Computes once, then gives the same result whatever the operands are now."""
    results: list[torch.Tensor] = []

    def launch() -> None:
        if not results:
            results.append(operands.a @ operands.x)
        operands.y.copy_(results[0])

    return launch


WRONG: tuple[tuple[Body, str], ...] = (
    (drops_the_last_element, "integers: "),
    (drops_one_element_of_one_row, "integers: 1 of "),
    (doubles_one_element, "integers: "),
    (swaps_two_rows, "integers: 2 of "),
    (writes_a_row_too_many, "integers: wrote outside y"),
    (writes_before_y, "integers: wrote outside y"),
    (reads_a_column_too_many, "found nan"),
    (reads_behind_a, "found nan"),
    (leaves_one_y_unwritten, " y not written"),
    (leaves_y_unwritten, "y not written"),
    (adds_to_y, "found nan"),
    (writes_into_x, "changed A or x"),
    (writes_into_a, "changed A or x"),
    (writes_behind_a, "wrote outside A"),
    (rounds_operands_to_tf32, "one-hot x at 0: "),
    (rounds_x_to_half, "one-hot rows of A: "),
    (rounds_a_to_half, "one-hot x at 0: "),
    (accumulates_in_bfloat16, "integers: "),
    (accumulates_in_half_where_it_fits, "random: "),
    (overflows_on_random_operands, "random: "),
    (computes_only_over_nan, "integers, launch 3: "),
)
"""Caught by the gate, with how its reason begins or what is in it."""


def bind_every_other(operands: Operands) -> Launch:
    """A launch that computes the first, third, fifth … time only, as one with a counter that is not reset."""
    launches = 0

    def launch() -> None:
        nonlocal launches
        launches += 1
        if launches % 2:
            right(operands)

    return launch


def kernels() -> dict[str, Kernel]:
    """All by name: the right ones, the wrong ones, and those that never come to a result."""
    bodies: list[tuple[Body, Role]] = [
        *((body, Role.GEMV) for body in (right, right_in_double, prints_a_lot)),
        *((body, Role.GEMV) for body, _ in WRONG),
        *((body, Role.GEMV) for body in (raises, raises_after_damage, runs_out_of_memory, asks_for_too_much)),
        *((body, Role.GEMV) for body in (segfaults, exits, exits_silently, hangs)),
        *((body, Role.LIMIT) for body in (reads, reads_half, reads_no_x)),
        *((body, Role.FLOOR) for body in (floor, floor_that_writes)),
    ]
    found = {body.__name__: _kernel(body, role) for body, role in bodies}
    found["caches_its_result"] = _planted("caches_its_result", Role.GEMV, _bind_cached)
    found["only_even_k"] = Kernel(
        name="only_even_k", role=Role.GEMV, summary="planted", bind=found["right"].bind, unsupported=_odd_k
    )
    found["only_cuda"] = Kernel(
        name="only_cuda", role=Role.GEMV, summary="planted", bind=found["right"].bind, devices=("cuda",)
    )
    return found


def prepare(_device_type: str) -> tuple[()]:
    """Nothing to build."""
    return ()


def load(_device_type: str) -> None:
    """Nothing to load."""


def _planted(name: str, role: Role, bind: Callable[[Operands], Launch]) -> Kernel:
    return Kernel(name=name, role=role, summary=f"planted: {name}", bind=bind, devices=("cpu",))


def _kernel(body: Body, role: Role) -> Kernel:
    return _planted(body.__name__, role, lambda operands: functools.partial(body, operands))


def _odd_k(problem: Problem) -> str | None:
    return f"K={problem.k} is odd" if problem.k % 2 else None


def _tf32(values: torch.Tensor) -> torch.Tensor:
    """Rounded to 10 bits of mantissa, to nearest, as tensor cores take float32."""
    return ((values.view(torch.int32) + 0x1000) & ~0x1FFF).view(torch.float32)
