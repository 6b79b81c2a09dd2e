"""The ops: every refusal in its words, on real and on meta tensors, and what they compute."""

from __future__ import annotations

import pytest
import torch

from kernels.declarations import declarations
from tests.built import loaded

GEMV = ("sgemv_k32_f32", "sgemv_k128_f32x4", "sgemv_k16_f32")
CUDA_NAMES = [d.name for d in declarations().values() if d.device_type == "cuda" and d.dtype == "float32"]
gpu = pytest.mark.gpu
needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")
PLACES = [
    pytest.param("sgemv_cpu_f32", "cpu", id="cpu"),
    pytest.param("sgemv_cpu_f32", "meta", id="meta"),
    pytest.param("sgemv_k32_f32", "cuda", id="cuda", marks=[gpu, needs_gpu]),
]


def op(name: str):
    loaded(declarations()[name].device_type)
    return getattr(torch.ops.sgemv, name)


def operands(m: int, k: int, device: str = "cpu") -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(m * 1000 + k)
    a = torch.randn(m, k, generator=generator)
    x = torch.randn(k, 1, generator=generator)
    return a.to(device), x.to(device), torch.full((m, 1), float("nan"), device=device)


def refusal(name: str, *tensors: torch.Tensor) -> str:
    with pytest.raises(RuntimeError) as caught:
        op(name)(*tensors)
    return str(caught.value)


@pytest.mark.parametrize(("name", "device"), PLACES)
def test_refuses_wrong_dimensions(name: str, device: str) -> None:
    """X as a vector is a common slip."""
    a, x, out = operands(4, 64, device)
    form = "a is (M, K), x is (K, 1), out is (M, 1)"
    assert refusal(name, a, x.view(-1), out) == f"{name}: x has 1 dimensions, wanted 2: {form}"
    assert refusal(name, a.view(2, 2, 64), x, out) == f"{name}: a has 3 dimensions, wanted 2: {form}"


@pytest.mark.parametrize(("name", "device"), PLACES)
@pytest.mark.parametrize("dtype", ["float64", "float16", "bfloat16", "int32", "int64", "complex64", "bool"])
def test_refuses_other_dtypes(name: str, device: str, dtype: str) -> None:
    """The dtype has torch's name for it."""
    a, x, out = operands(4, 64, device)
    other = a.to(getattr(torch, dtype))
    assert refusal(name, other, x, out) == f"{name}: a is {dtype}, wanted float32; convert it with .float()"
    assert refusal(name, a, x, out.double()) == f"{name}: out is float64, wanted float32; convert it with .float()"


@pytest.mark.parametrize(("name", "device"), PLACES)
def test_refuses_shapes_that_disagree(name: str, device: str) -> None:
    """X must have K rows, out M, both one column."""
    a, x, out = operands(4, 64, device)
    assert refusal(name, a, x[:32], out) == f"{name}: x has shape (32, 1), wanted (64, 1) to fit a's (4, 64)"
    assert refusal(name, a, x, out[:3]) == f"{name}: out has shape (3, 1), wanted (4, 1) to fit a's (4, 64)"
    wide = torch.empty(64, 2, device=device)
    assert refusal(name, a, wide, out) == f"{name}: x has shape (64, 2), wanted (64, 1) to fit a's (4, 64)"


@pytest.mark.parametrize(("name", "device"), PLACES)
def test_refuses_strides(name: str, device: str) -> None:
    """A transposed A, a padded A and a strided out are not packed."""
    a, x, out = operands(4, 64, device)
    advice = "row-major and packed; copy it with .contiguous()"
    transposed = a.view(64, 4).t()
    assert refusal(name, transposed, x, out) == f"{name}: a has strides (1, 4), wanted (64, 1), {advice}"
    padded = torch.empty(4, 96, device=device)[:, :64]
    assert refusal(name, padded, x, out) == f"{name}: a has strides (96, 1), wanted (64, 1), {advice}"
    strided = torch.empty(4, 2, device=device)[:, :1]
    assert refusal(name, a, x, strided) == f"{name}: out has strides (2, 1), wanted (1, 1), {advice}"


@pytest.mark.parametrize("device", ["meta", pytest.param("cuda", marks=[gpu, needs_gpu])])
def test_refuses_k_outside_the_contract(device: str) -> None:
    """The number is named, and what to do."""
    pad = "pad a and x with zeros or use another kernel"
    k32, k128, k16 = (f"sgemv_{name}" for name in ("k32_f32", "k128_f32x4", "k16_f32"))
    assert refusal(k32, *operands(4, 100, device)) == f"{k32}: K=100 is not a multiple of 32; {pad}"
    assert refusal(k128, *operands(4, 64, device)) == f"{k128}: K=64 is not a multiple of 128; {pad}"
    assert refusal(k16, *operands(4, 32, device)) == f"{k16}: K=32 is not 16; use another kernel"
    assert refusal(k16, *operands(4, 0, device)) == f"{k16}: K=0 is not 16; use another kernel"


@pytest.mark.parametrize("device", ["meta", pytest.param("cuda", marks=[gpu, needs_gpu])])
def test_refuses_misaligned_operands(device: str) -> None:
    """float4 loads need 16 bytes; scalar loads do not."""
    a, x, out = operands(4, 128, device)
    shifted = torch.empty(4 * 128 + 1, device=device)[1:].view(4, 128)
    start = "starts 4 bytes past a multiple of 16 bytes, wanted none; copy it with .clone()"
    assert refusal("sgemv_k128_f32x4", shifted, x, out) == f"sgemv_k128_f32x4: a {start}"
    shifted_x = torch.empty(129, device=device)[1:].view(128, 1)
    assert refusal("sgemv_k128_f32x4", a, shifted_x, out) == f"sgemv_k128_f32x4: x {start}"
    op("sgemv_k32_f32")(shifted, shifted_x, out)


def test_the_real_check_sees_addresses() -> None:
    """A misaligned float tensor is refused by its address, whatever its storage offset says."""
    raw = bytearray(4 * 65 + 2)
    offset = 2 + (-torch.frombuffer(raw, dtype=torch.uint8).data_ptr()) % 4
    a = torch.frombuffer(raw, dtype=torch.float32, offset=offset % 4, count=64).view(1, 64)
    wanted = "sgemv_cpu_f32: a starts 2 bytes past a multiple of 4 bytes, wanted none; copy it with .clone()"
    assert refusal("sgemv_cpu_f32", a, torch.zeros(64, 1), torch.zeros(1, 1)) == wanted


@pytest.mark.parametrize("name", CUDA_NAMES)
def test_cuda_ops_say_on_cpu_tensors_that_cuda_is_wanted(name: str) -> None:
    """The library compiled by nvcc loads in a CPU-only torch and refuses in words."""
    assert refusal(name, *operands(4, 16)) == f"{name}: a is on cpu, wanted a CUDA tensor; move it with .cuda()"


@gpu
@needs_gpu
def test_refuses_two_devices() -> None:
    """X left on the CPU; a CPU kernel with CUDA tensors."""
    a, x, out = operands(4, 64, "cuda")
    advice = "wanted a CUDA tensor; move it with .cuda()"
    assert refusal("sgemv_k32_f32", a, x.cpu(), out) == f"sgemv_k32_f32: x is on cpu, {advice}"
    assert refusal("sgemv_k32_f32", a.cpu(), x, out) == f"sgemv_k32_f32: a is on cpu, {advice}"
    wanted = "sgemv_cpu_f32: a is on cuda:0, wanted a CPU tensor; move it with .cpu()"
    assert refusal("sgemv_cpu_f32", a, x, out) == wanted


def test_fake_tensors_on_two_gpus_are_refused() -> None:
    """Device indices are compared, without two GPUs."""
    loaded("cuda")
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode(allow_non_fake_inputs=True):
        a = torch.empty(4, 64, device="cuda:0")
        x = torch.empty(64, 1, device="cuda:1")
        out = torch.empty(4, 1, device="cuda:0")
        found = refusal("sgemv_k32_f32", a, x, out)
    assert found == "sgemv_k32_f32: x is on cuda:1, wanted cuda:0 where a is; move one of them"


@pytest.mark.parametrize("m", [1, 7, 64])
@pytest.mark.parametrize("k", [1, 31, 32, 33, 1000])
def test_cpu_kernel_against_float64(m: int, k: int) -> None:
    """Within 4·u·√K·‖A_i∘x‖₂ a row (u = 2⁻²⁴), as the gate asks."""
    a, x, out = operands(m, k)
    op("sgemv_cpu_f32")(a, x, out)
    assert_close(a, x, out)


def assert_close(a: torch.Tensor, x: torch.Tensor, out: torch.Tensor) -> None:
    products = a.double() * x.double().view(1, -1)
    bound = 4 * 2**-24 * a.shape[1] ** 0.5 * products.norm(dim=1)
    error = (out.double().view(-1) - products.sum(dim=1)).abs()
    assert bool((error <= bound).all()), f"error / bound is {(error / bound).max().item()}"


@pytest.mark.parametrize(
    ("name", "device"),
    [("sgemv_cpu_f32", "cpu"), *(pytest.param(name, "cuda", marks=[gpu, needs_gpu]) for name in GEMV[:2])],
)
def test_nothing_to_do(name: str, device: str) -> None:
    """M = 0 does nothing; K = 0 writes zeros."""
    op(name)(*operands(0, 128, device))
    a, x, out = operands(3, 0, device)
    op(name)(a, x, out)
    assert out.tolist() == [[0.0], [0.0], [0.0]]


@pytest.mark.parametrize(
    ("name", "device"),
    [("read_cpu_thread", "cpu"), *(pytest.param(n, "cuda", marks=[gpu, needs_gpu]) for n in CUDA_NAMES if "read" in n)],
)
@pytest.mark.parametrize(("m", "k"), [(1, 1), (1, 16), (3, 5), (1024, 16), (5, 1023), (2, 100_000), (300_000, 1)])
def test_read_writes_m_values(name: str, device: str, m: int, k: int) -> None:
    """Any shape: every y is written and finite, and nothing around it."""
    a, x, _ = operands(m, k, device)
    guarded = torch.full((m + 2, 1), 7.0, device=device)
    guarded[1:-1] = float("nan")
    op(name)(a, x, guarded[1:-1])
    assert bool(guarded[1:-1].isfinite().all())
    assert guarded[0].item() == guarded[-1].item() == 7.0


def test_read_on_the_cpu_adds_every_element() -> None:
    """One thread reads all, so its sum is that of A and x; integers make it exact."""
    a = torch.arange(1000, dtype=torch.float32).view(8, 125)
    x = torch.ones(125, 1)
    out = torch.empty(8, 1)
    op("read_cpu_thread")(a, x, out)
    assert out.unique().tolist() == [999 * 1000 / 2 + 125]


def test_empty_leaves_the_output_alone() -> None:
    """It does nothing."""
    a, x, out = operands(4, 16)
    op("empty_cpu")(a, x, out)
    assert bool(out.isnan().all())


OPCHECKED = [pytest.param("sgemv_cpu_f32", "cpu", 33, id="cpu")]
OPCHECKED += [pytest.param(n, "cuda", 16, marks=[gpu, needs_gpu]) for n in CUDA_NAMES if n not in GEMV[:2]]
OPCHECKED += [pytest.param(n, "cuda", 128, marks=[gpu, needs_gpu]) for n in GEMV[:2]]


@pytest.mark.parametrize(("name", "device", "k"), OPCHECKED)
def test_opcheck(name: str, device: str, k: int) -> None:
    """Schema, fake tensors and dynamic shapes, by torch's own check."""
    a, x, _ = operands(5, k, device)
    a = a.t().contiguous().t() if declarations()[name].layout == "COLUMNS" else a
    results = torch.library.opcheck(op(name).default, (a, x, torch.zeros(5, 1, device=device)))
    assert set(results.values()) == {"SUCCESS"}


CONTRACTS = [("sgemv_k32_f32", 32), ("sgemv_k32_f32", 4096), ("sgemv_k128_f32x4", 128), ("sgemv_k128_f32x4", 11008)]


@gpu
@needs_gpu
@pytest.mark.parametrize(("name", "k"), [*CONTRACTS, ("sgemv_k16_f32", 16)])
@pytest.mark.parametrize("m", [1, 4, 5, 8, 9, 1023])
def test_cuda_kernels_against_float64(name: str, k: int, m: int) -> None:
    """Full and ragged last blocks; nothing written outside y."""
    a, x, _ = operands(m, k, "cuda")
    guarded = torch.full((m + 2, 1), 7.0, device="cuda")
    op(name)(a, x, guarded[1:-1])
    assert_close(a, x, guarded[1:-1])
    assert guarded[0].item() == guarded[-1].item() == 7.0


@gpu
@needs_gpu
@pytest.mark.parametrize("name", GEMV)
def test_launches_on_the_callers_stream(name: str) -> None:
    """Captured on a side stream, the launch is in the graph, and runs only on replay."""
    a, x, out = operands(64, 16 if "k16" in name else 128, "cuda")
    op(name)(a, x, out)
    torch.cuda.synchronize()
    out.fill_(float("nan"))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        op(name)(a, x, out)
    torch.cuda.synchronize()
    assert bool(out.isnan().all())
    graph.replay()
    torch.cuda.synchronize()
    assert_close(a, x, out)


@gpu
@needs_gpu
@pytest.mark.parametrize(("name", "k"), [("sgemv_k32_f32", 32), ("sgemv_k128_f32x4", 128), ("sgemv_k16_f32", 16)])
def test_more_than_two_to_the_31_elements(name: str, k: int) -> None:
    """The last rows lie beyond 2³¹ elements: 64-bit offsets."""
    m = 2**31 // k + 1000
    if torch.cuda.mem_get_info()[0] < 4 * m * k + 2**30:
        pytest.skip("needs 9 GB of free GPU memory")
    a = torch.ones(m, k, device="cuda")
    a[-1000:] = 2.0
    out = torch.full((m, 1), float("nan"), device="cuda")
    op(name)(a, torch.ones(k, 1, device="cuda"), out)
    assert bool((out[:-1000] == k).all())
    assert bool((out[-1000:] == 2 * k).all())
