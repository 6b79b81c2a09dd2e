"""What every float32 CUDA kernel must compute on a GPU, however operands lie: views, special values, the same bits."""

from __future__ import annotations

import pytest
import torch

from harness.model import Role
from kernels.declarations import declarations
from tests.built import loaded
from tests.special_values import faults, specials

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")]

CUDA = {
    name: d
    for name, d in declarations().items()
    if d.device_type == "cuda" and d.role is Role.GEMV and d.dtype == "float32"
}


def op(name: str):
    loaded("cuda")
    return getattr(torch.ops.sgemv, name)


def some_k(name: str, wanted: int) -> int:
    """`wanted`, or the next smaller one that the kernel takes, or its least."""
    return next(k for k in (wanted, wanted // 128 * 128, 16, 32, 128) if k > 0 and CUDA[name].k_problem(k) is None)


@pytest.mark.parametrize("name", [name for name, d in CUDA.items() if d.layout != "PACKED"])
@pytest.mark.parametrize(("m", "k"), [(1, 1000), (7, 1023), (300, 513), (2, 70_001)])
def test_kernels_compute_views(name: str, m: int, k: int) -> None:
    """Exact on whole numbers, with NaN between the rows (columns), and nothing else written."""
    k = some_k(name, k)
    generator = torch.Generator().manual_seed(m + k)
    values = torch.randint(-9, 10, (m, k), generator=generator).float()
    for by_columns in {"ROWS": (False,), "COLUMNS": (True,), "ROWS_OR_COLUMNS": (False, True)}[CUDA[name].layout]:
        for gap, first, x_stride, y_stride in ((0, 1, 1, 1), (3, 0, 1, 2), (4, 2, 3, 1), (8 - k % 4, 0, 0, 3)):
            run, count = (m, k) if by_columns else (k, m)
            memory = torch.full((first + count * (run + gap),), torch.nan, device="cuda")
            lines = memory.as_strided((count, run), (run + gap, 1), first)
            a = lines.t() if by_columns else lines
            a.copy_(values)
            x = (torch.arange(float(x_stride * k + 1)) % 7 - 3).cuda().as_strided((k, 1), (x_stride, 1))
            y = torch.full((m * y_stride,), torch.nan, device="cuda")
            out = y.as_strided((m, 1), (y_stride, 1))
            op(name)(a, x, out)
            assert out.tolist() == (values.double() @ x.cpu().double()).tolist(), (by_columns, gap, first)
            assert int(y.isnan().sum()) == m * (y_stride - 1)


@pytest.mark.parametrize("name", CUDA)
def test_kernels_compute_special_values_by_ieee_arithmetic(name: str) -> None:
    """NaN and infinities come through, subnormals are not flushed."""
    for k in dict.fromkeys(some_k(name, wanted) for wanted in (1, 3, 33, 1030)):
        for special in specials(k):
            a, y = special.a.cuda(), torch.full((len(special.wanted), 1), -7.0, device="cuda")
            if CUDA[name].layout == "COLUMNS":
                a = a.t().contiguous().t()
            op(name)(a, special.x.cuda(), y)
            assert faults(special, y) is None, k


@pytest.mark.parametrize("name", CUDA)
def test_kernels_give_the_same_bits_every_time(name: str) -> None:
    """Sums are added in a fixed order, whatever else runs."""
    k = some_k(name, 70_001)
    a, x = torch.randn(8, k, device="cuda"), torch.randn(k, 1, device="cuda")
    a = a.t().contiguous().t() if CUDA[name].layout == "COLUMNS" else a
    found = set()
    for _ in range(20):
        y = torch.empty(8, 1, device="cuda")
        op(name)(a, x, y)
        found.add(tuple(y.view(-1).tolist()))
    assert len(found) == 1


def problem(name: str, m: int, k: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Whole numbers in a layout that the kernel takes, and a y of NaN."""
    a = torch.randint(-9, 10, (m, k), device="cuda").float()
    a = a.t().contiguous().t() if CUDA[name].layout == "COLUMNS" else a
    x = torch.randint(-9, 10, (k, 1), device="cuda").float()
    return a, x, torch.full((m, 1), torch.nan, device="cuda")


@pytest.mark.parametrize("name", CUDA)
def test_kernels_are_captured_with_their_scratch(name: str) -> None:
    """All of a launch is in the graph, and every replay gives the result, whatever memory was used for in between."""
    k = some_k(name, 70_001)
    a, x, y = problem(name, 8, k)
    op(name)(a, x, y)
    wanted = (a.double() @ x.double()).tolist()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        op(name)(a, x, y)
    for _ in range(3):
        y.fill_(torch.nan)
        torch.full((1 << 20,), torch.nan, device="cuda")
        graph.replay()
        torch.cuda.synchronize()
        assert y.tolist() == wanted


@pytest.mark.parametrize("name", CUDA)
def test_kernels_run_on_several_streams_at_once(name: str) -> None:
    """None gets another one's scratch."""
    k = some_k(name, 70_001)
    streams = [torch.cuda.Stream() for _ in range(4)]
    problems = [problem(name, 3, k) for _ in streams]
    wanted = [(a.double() @ x.double()).tolist() for a, x, _ in problems]
    torch.cuda.synchronize()
    for _ in range(50):
        for stream, (a, x, y) in zip(streams, problems, strict=True):
            with torch.cuda.stream(stream):
                op(name)(a, x, y)
    torch.cuda.synchronize()
    assert [y.tolist() for _, _, y in problems] == wanted


@pytest.mark.parametrize("name", CUDA)
def test_kernels_count_beyond_two_to_the_31_elements(name: str) -> None:
    """The last rows (columns) of A lie there."""
    k = some_k(name, 4096)
    m = 2**31 // k + 1000
    if torch.cuda.mem_get_info()[0] < 4 * m * k + 2**30:
        pytest.skip("needs 10 GB of free GPU memory")
    flat = torch.ones(m * k, device="cuda")
    x, y = torch.ones(k, 1, device="cuda"), torch.full((m, 1), torch.nan, device="cuda")
    by_columns = CUDA[name].layout == "COLUMNS"
    flat[-3 * (m if by_columns else k) :] = 2.0
    op(name)(flat.view(k, m).t() if by_columns else flat.view(m, k), x, y)
    wanted = torch.full_like(y, k + 3.0 if by_columns else k)
    if not by_columns:
        wanted[-3:] = 2.0 * k
    assert torch.equal(y, wanted)
