"""What every CUDA kernel for tokens must do on a GPU, however its operands lie: views, marks, streams, graphs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from harness.model import Role
from kernels.declarations import Declaration, declarations
from tests.built import loaded
from tests.token_operands import INT8

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")]

CUDA = {name: d for name, d in declarations().items() if d.device_type == "cuda" and d.dtype != "float32"}
GEMV = [name for name, d in CUDA.items() if d.role is Role.GEMV]
LIMITS = [name for name, d in CUDA.items() if d.role is Role.LIMIT]


def launch(name: str, tensors: list[Tensor | None]) -> None:
    loaded("cuda")
    getattr(torch.ops.sgemv, name)(*tensors)


def guarded(rows: int, length: int, gap: int, first: int, dtype: torch.dtype) -> Tensor:
    """(rows, length) with NaN, or in int8 -128, around and between the rows."""
    fill = -128 if dtype == INT8 else float("nan")
    memory = torch.full((first + rows * (length + gap) + 8,), fill, dtype=dtype, device="cuda")
    return memory.as_strided((rows, length), (length + gap, 1), first)


def operands(
    declaration: Declaration, shape: tuple[int, int, int], *, gap: int = 0, first: int = 0, zero: bool = False
) -> list[Tensor | None]:
    """Whole numbers so small that every sum is exact; Y of NaN; a place of its own behind every row and token."""
    m, k, n = shape
    dtype = getattr(torch, declaration.dtype)
    half = torch.float16 if dtype == INT8 else dtype
    generator = torch.Generator().manual_seed(m + k + n)
    a, x = guarded(m, k, gap, first, dtype), guarded(n, k, gap, first, half)
    most = max(1, min(2, 256 // max(1, k)))
    a.copy_(torch.randint(-1, 2, (m, k), generator=generator))
    x.copy_(torch.randint(-most, most + 1, (n, k), generator=generator))
    y = guarded(n, m, gap, first, half)
    if dtype != INT8:
        return [a, x.t(), y.t()]
    shift = torch.randint(-2, 3, (m,), generator=generator).to(INT8).cuda() if zero else None
    return [a, torch.full((m,), 0.5, dtype=half, device="cuda"), shift, x.t(), y.t()]


def wanted(tensors: list[Tensor | None]) -> Tensor:
    """The exact result, rounded once."""
    *weights, x, _ = (None if t is None else t.cpu().double() for t in tensors)
    assert weights[0] is not None
    assert x is not None
    a = weights[0]
    if len(weights) > 1 and weights[1] is not None:
        a = weights[1][:, None] * (a - (0 if weights[2] is None else weights[2][:, None]))
    return (a @ x).to(tensors[-1].dtype)  # type: ignore[union-attr]


def cases(name: str) -> Iterator[list[Tensor | None]]:
    most = CUDA[name].most_n
    for m, k in ((1, 1), (3, 7), (5, 33), (17, 128), (130, 513), (4, 4096), (2, 20_001), (33, 0)):
        for n in sorted({1, min(2, most), min(5, most), most}):
            for gap, first in ((0, 0), (0, 8), (16 - k % 16, 0), (1, 1), (3, 5)):
                yield operands(CUDA[name], (m, k, n), gap=gap, first=first, zero=gap == 3)


@pytest.mark.parametrize("name", GEMV)
def test_kernels_compute_views(name: str) -> None:
    """Exact on whole numbers, with marks between rows and tokens, and nothing else written."""
    for tensors in cases(name):
        y = tensors[-1]
        assert y is not None
        before = int(y.untyped_storage().nbytes()) // 2
        launch(name, tensors)
        assert torch.equal(y.cpu(), wanted(tensors)), (name, y.shape, [t.stride() for t in tensors if t is not None])
        whole = y.as_strided((before,), (1,), 0)
        assert int(whole.isnan().sum()) == before - y.numel()


@pytest.mark.parametrize("name", LIMITS)
@pytest.mark.parametrize(
    ("m", "k", "n"), [(1, 1, 1), (3, 5, 2), (64, 48, 1), (5, 1023, 3), (300, 128, 16), (7, 4096, 8)]
)
def test_read_sees_every_mark(name: str, m: int, k: int, n: int) -> None:
    """Any y is finite and every y written without one; with one, anywhere, some y is NaN."""
    tensors = operands(CUDA[name], (m, k, n))
    *inputs, y = [t for t in tensors if t is not None]
    launch(name, tensors)
    assert bool(y.isfinite().all())
    for each in inputs:
        flat = each.as_strided((each.numel(),), (1,), each.storage_offset())
        drawn = torch.randint(flat.numel(), (12,)).tolist()
        for i in {0, flat.numel() - 1, *drawn}:
            kept = flat[i].clone()
            flat[i] = -128 if each.dtype == INT8 else float("nan")
            y.zero_()
            launch(name, tensors)
            flat[i] = kept
            assert bool(y.isnan().any()), (tuple(each.shape), i)


@pytest.mark.parametrize("name", CUDA)
def test_launches_are_captured_on_the_callers_stream(name: str) -> None:
    """In the graph, and run only on replay, whatever memory was used for in between."""
    tensors = operands(CUDA[name], (40, 4096, CUDA[name].most_n if CUDA[name].role is Role.GEMV else 3))
    y = tensors[-1]
    assert y is not None
    launch(name, tensors)
    torch.cuda.synchronize()
    right = y.clone()
    y.fill_(torch.nan)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        launch(name, tensors)
    torch.cuda.synchronize()
    assert bool(y.isnan().all())
    for _ in range(2):
        torch.full((1 << 20,), torch.nan, device="cuda")
        graph.replay()
        torch.cuda.synchronize()
        assert torch.equal(y, right)
        y.fill_(torch.nan)


@pytest.mark.parametrize("name", GEMV)
def test_kernels_give_the_same_bits_every_time(name: str) -> None:
    """Sums are added in a fixed order, whatever else runs."""
    tensors = operands(CUDA[name], (8, 10_001, CUDA[name].most_n))
    x, y = tensors[-2:]
    assert x is not None
    assert y is not None
    x.copy_(torch.randn(x.shape))
    found = set()
    for _ in range(20):
        y.fill_(torch.nan)
        launch(name, tensors)
        found.add(tuple(y.flatten().tolist()))
    assert len(found) == 1


@pytest.mark.parametrize("name", CUDA)
def test_kernels_count_beyond_two_to_the_31_elements(name: str) -> None:
    """The last rows of A lie there, and hold what the first do not."""
    k = 4096
    m = 2**31 // k + 100
    if torch.cuda.mem_get_info()[0] < 3 * m * k + 2**30:
        pytest.skip("needs 8 GB of free GPU memory")
    dtype = getattr(torch, CUDA[name].dtype)
    half = torch.float16 if dtype == INT8 else dtype
    a = torch.zeros(m, k, dtype=dtype, device="cuda")
    a[-3:] = 1
    x, y = torch.ones(k, 1, dtype=half, device="cuda"), torch.full((m, 1), torch.nan, dtype=half, device="cuda")
    tensors = [a, torch.ones(m, dtype=half, device="cuda"), None, x, y] if dtype == INT8 else [a, x, y]
    launch(name, tensors)
    if CUDA[name].role is Role.GEMV:
        assert y[-4:].view(-1).tolist() == [0.0, 4096.0, 4096.0, 4096.0]
        assert bool((y[:-3] == 0).all())
    else:
        a[-1, -1] = -128 if dtype == INT8 else float("nan")
        launch(name, tensors)
        assert bool(y.isnan().any())
