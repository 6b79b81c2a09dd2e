"""Operands of the kernels for tokens, planted kernels that take them on the CPU, and what an op says of them."""

from __future__ import annotations

import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from kernels import ops
from kernels.build import build
from kernels.declarations import CSRC
from tests.built import shared_cache

PLANTED = Path(__file__).parent / "planted_csrc" / "tokens.cpp"
DEVICES = ("cpu", "meta")
"""Real tensors, which op_tokens.cpp checks, and such without memory, which token_checks.py does."""
HALF, BRAIN, INT8 = torch.float16, torch.bfloat16, torch.int8
OVERLAP = "wanted memory of its own; allocate it with torch.empty"


@cache
def load_planted() -> None:
    """The planted kernels with the project's op_tokens.cpp, beside the project's own library."""
    csrc = Path(tempfile.mkdtemp(prefix="tokens-", dir=shared_cache()))
    shutil.copytree(CSRC, csrc, dirs_exist_ok=True, ignore=shutil.ignore_patterns("*_cpu*.cpp", "*.cu"))
    shutil.copy(PLANTED, csrc)
    library = build("cpu", cache_dir=shared_cache(), csrc=csrc).library
    ops.load(Path(shutil.copy(library, csrc / "planted_tokens.so")), csrc)


def op(name: str) -> Any:
    """`torch.ops.sgemv.<name>`."""
    load_planted()
    return getattr(torch.ops.sgemv, name)


def refusal(name: str, *tensors: Tensor | None) -> str | None:
    """The words after the kernel's name; None: it ran."""
    try:
        op(name)(*tensors)
    except RuntimeError as error:
        return str(error).removeprefix(f"{name}: ")
    return None


def lines(
    count: int, length: int, period: int, dtype: torch.dtype = HALF, *, device: str = "cpu", first: int = 0
) -> Tensor:
    """(count, length) of small whole numbers, `period` elements from line to line, in memory of its own."""
    span = first + max(0, count - 1) * period + length
    memory = (torch.arange(span) % 7 - 3).to(dtype).to(device)
    return memory.as_strided((count, length), (period, 1), first)


def operands(
    m: int, k: int, tokens: int, dtype: torch.dtype = HALF, *, device: str = "cpu", gap: int = 0
) -> list[Tensor]:
    """a, x and out; of int8 also scale and zero, in the order of the schema."""
    half = HALF if dtype == INT8 else dtype
    a, x = lines(m, k, k + gap, dtype, device=device), lines(tokens, k, k + gap, half, device=device).t()
    out = torch.full((tokens, m + gap), torch.nan, dtype=half, device=device)[:, :m].t()
    if dtype != INT8:
        return [a, x, out]
    return [a, (torch.arange(m) % 3 + 1).to(HALF).to(device), (torch.arange(m) % 5 - 2).to(INT8).to(device), x, out]


def product(a: Tensor, x: Tensor) -> list[list[float]]:
    """In float64."""
    found: list[list[float]] = (a.double() @ x.double()).tolist()
    return found
