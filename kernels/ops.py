"""Loads a library of kernels into torch and teaches torch what its ops do to shapes.

The ops are `torch.ops.sgemv.<name>`, on one device, with the strides that the kernel declares to take, and write `out`:

* float32: `(a, x, out)`: a (M, K), x (K, 1), out (M, 1).
* float16, bfloat16: `(a, x, out)`: a (M, K), x (K, T), out (M, T), T from 1 on; x.t() and out.t() are row-major.
* int8: `(a, scale, zero, x, out)`: the same with a int8, scale (M,) float16, zero (M,) int8 or None: of row i the
  weights are scale[i]·(a[i] − zero[i]).

What they cannot compute they refuse with a RuntimeError of one line. The checks stand twice, for meta and fake tensors
in kernels/checks.py and token_checks.py, for real ones in csrc/op.cpp and op_tokens.cpp, in the same order and words.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from kernels.checks import float32_problem
from kernels.declarations import CSRC, Declaration, declarations
from kernels.token_checks import token_problem

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


def check(declaration: Declaration, **tensors: Tensor | None) -> None:
    """Refuses what the kernel cannot compute, in the words of csrc/op.cpp and op_tokens.cpp.

    Args:
        declaration: of the kernel.
        tensors: by the names of the op's schema, in its order.

    Raises:
        RuntimeError: where, what was found, what was wanted, what to do.
    """
    problem_of = float32_problem if declaration.dtype == "float32" else token_problem
    problem = problem_of(declaration, {label: each for label, each in tensors.items() if each is not None})
    if problem is not None:
        raise RuntimeError(f"{declaration.name}: {problem}")


def _fake(declaration: Declaration) -> Callable[..., None]:
    """What torch calls for tensors without memory; of the op's own signature."""

    def fake(a: Tensor, x: Tensor, out: Tensor) -> None:
        check(declaration, a=a, x=x, out=out)

    def fake_int8(a: Tensor, scale: Tensor, zero: Tensor | None, x: Tensor, out: Tensor) -> None:
        check(declaration, a=a, scale=scale, zero=zero, x=x, out=out)

    return fake_int8 if declaration.dtype == "int8" else fake
