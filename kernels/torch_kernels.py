"""Torch's own kernels. For several columns they compute Y = X·Wᵀ as a linear layer: W = A, X = x.t(), Y = y.t()."""

from __future__ import annotations

from harness.model import Kernel, Launch, Operands, Problem, Role

DTYPES = ("float32", "tf32", "float16", "bfloat16")


def torch_kernels() -> tuple[Kernel, ...]:
    """`torch.matmul`, `F.linear` and `torch.mv`."""
    return (
        Kernel(
            name="torch.matmul",
            role=Role.GEMV,
            summary="torch.matmul(A, x, out=y); for several columns torch.matmul(X, W.t(), out=Y)",
            bind=_bind_matmul,
            dtypes=DTYPES,
        ),
        Kernel(
            name="F.linear",
            role=Role.GEMV,
            summary="torch.nn.functional.linear(X, W) without a bias, into Y",
            bind=_bind_linear,
            dtypes=DTYPES,
            by_name_only=True,
        ),
        Kernel(
            name="torch.mv",
            role=Role.GEMV,
            summary="torch.mv(A, x, out=y) on one-dimensional views of x and y",
            bind=_bind_mv,
            dtypes=DTYPES,
            unsupported=_not_a_vector,
        ),
    )


def _not_a_vector(problem: Problem) -> str | None:
    return f"n={problem.n} columns of x, wanted 1" if problem.n != 1 else None


def _bind_matmul(operands: Operands) -> Launch:
    import torch

    left, right, out = operands.a, operands.x, operands.y
    if right.shape[1] > 1:
        left, right, out = operands.x.t(), operands.a.t(), operands.y.t()

    def launch() -> None:
        torch.matmul(left, right, out=out)

    return launch


def _bind_linear(operands: Operands) -> Launch:
    """By the operator that torch.nn.functional.linear calls, in its form with `out`."""
    import torch

    linear = torch.ops.aten.linear.out
    tokens, weights, out = operands.x.t(), operands.a, operands.y.t()

    def launch() -> None:
        linear(tokens, weights, None, out=out)

    return launch


def _bind_mv(operands: Operands) -> Launch:
    import torch

    a, x, y = operands.a, operands.x.view(-1), operands.y.view(-1)

    def launch() -> None:
        torch.mv(a, x, out=y)

    return launch
