"""The ops of other dtypes and several tokens: every refusal in its words, on real and on meta tensors; marks.

Real tensors are those of planted kernels on the CPU, whose checks are the ones that CUDA tensors meet.
"""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from kernels.declarations import declarations, parse
from tests.built import loaded
from tests.token_operands import BRAIN, DEVICES, HALF, INT8, PLANTED, lines, op, operands, refusal

CUDA_NAMES = [d.name for d in declarations().values() if d.device_type == "cuda" and d.dtype != "float32"]


@pytest.mark.parametrize("device", DEVICES)
def test_refuses_wrong_dimensions(device: str) -> None:
    """X as a vector is a common slip; scales are one."""
    a, x, out = operands(4, 6, 1, device=device)
    form = "a is (M, K), x is (K, T), out is (M, T)"
    assert refusal("planted_half", a, x[:, 0], out) == f"x has 1 dimensions, wanted 2: {form}"
    a, scale, zero, x, out = operands(4, 6, 1, INT8, device=device)
    form = "a is (M, K), scale and zero are (M), x is (K, T), out is (M, T)"
    assert refusal("planted_w8", a, scale[:, None], zero, x, out) == f"scale has 2 dimensions, wanted 1: {form}"
    assert refusal("planted_w8", a, scale, zero[:, None], x, out) == f"zero has 2 dimensions, wanted 1: {form}"
    assert refusal("planted_w8", a[None], scale, None, x, out) == f"a has 3 dimensions, wanted 2: {form}"


@pytest.mark.parametrize("device", DEVICES)
def test_refuses_other_dtypes(device: str) -> None:
    """Each operand has one dtype, and the words say how to get it."""
    a, x, out = operands(4, 6, 2, device=device)
    half, brain = "wanted float16; convert it with .half()", "wanted bfloat16; convert it with .bfloat16()"
    assert refusal("planted_half", a.float(), x, out) == f"a is float32, {half}"
    assert refusal("planted_half", a, x.bfloat16(), out) == f"x is bfloat16, {half}"
    assert refusal("planted_brain", a, x, out) == f"a is float16, {brain}"
    a, scale, zero, x, out = operands(4, 6, 2, INT8, device=device)
    made = "wanted int8; make it with kernels.quantize.quantize"
    assert refusal("planted_w8", a.short(), scale, zero, x, out) == f"a is int16, {made}"
    assert refusal("planted_w8", a, scale.float(), zero, x, out) == f"scale is float32, {half}"
    assert refusal("planted_w8", a, scale, zero.half(), x, out) == f"zero is float16, {made}"
    assert refusal("planted_w8", a, scale, zero, x.float(), out) == f"x is float32, {half}"
    assert refusal("planted_w8", a, scale, None, x, out.float()) == f"out is float32, {half}"


@pytest.mark.parametrize("device", DEVICES)
def test_refuses_shapes_that_disagree(device: str) -> None:
    """X must have K rows, out M and as many columns, scales M."""
    a, x, out = operands(4, 6, 2, device=device)
    end = "to fit a's (4, 6)"
    assert refusal("planted_half", a, x[:5], out) == f"x has shape (5, 2), wanted (6, T) {end}"
    assert refusal("planted_half", a, x, out[:3]) == f"out has shape (3, 2), wanted (4, 2) {end} and x's (6, 2)"
    assert refusal("planted_half", a, x, out[:, :1]) == f"out has shape (4, 1), wanted (4, 2) {end} and x's (6, 2)"
    a, scale, zero, x, out = operands(4, 6, 2, INT8, device=device)
    assert refusal("planted_w8", a, scale[:3], zero, x, out) == f"scale has shape (3), wanted (4) {end}"
    assert refusal("planted_w8", a, scale, zero[:1], x, out) == f"zero has shape (1), wanted (4) {end}"


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("name", "most"), [("planted_half", 8), ("planted_half_few", 2)])
def test_refuses_more_tokens_than_are_declared(device: str, name: str, most: int) -> None:
    """And none at all."""
    for tokens in (0, most + 1):
        words = f"x has T={tokens} columns, wanted from 1 to {most}; use another kernel"
        assert refusal(name, *operands(4, 6, tokens, device=device)) == words
    assert refusal(name, *operands(4, 8, most, device=device)) is None


@pytest.mark.parametrize("device", DEVICES)
def test_refuses_misaligned_operands(device: str) -> None:
    """By bytes: 3 elements of float16 are 6, of int8 they are 3. What x's dtype itself needs is asked too."""
    end = "past a multiple of 16 bytes, wanted none; copy it with .clone()"
    a, x, out = operands(4, 16, 2, device=device)
    shifted = lines(4, 16, 16, HALF, device=device, first=3)
    assert refusal("planted_half_few", shifted, x, out) == f"a starts 6 bytes {end}"
    assert refusal("planted_half_few", a, shifted[:2].t(), out) == f"x starts 6 bytes {end}"
    _, scale, _, x, out = operands(4, 16, 2, INT8, device=device)
    shifted = lines(4, 16, 16, INT8, device=device, first=3)
    assert refusal("planted_w8_aligned", shifted, scale, None, x, out) == f"a starts 3 bytes {end}"
    assert refusal("planted_w8", shifted, scale, None, x, out) is None


def test_the_real_check_sees_addresses() -> None:
    """Half an element past an even address, which no storage offset says."""
    raw = bytearray(200)
    odd = 1 - torch.frombuffer(raw, dtype=torch.uint8).data_ptr() % 2
    a, scale, zero, x, out = operands(4, 6, 1, INT8)
    words = "starts 1 bytes past a multiple of 2 bytes, wanted none; copy it with .clone()"

    def at_odd(tensor: Tensor) -> Tensor:
        return torch.frombuffer(raw, dtype=HALF, offset=odd, count=tensor.numel()).view(tensor.shape)

    assert refusal("planted_w8", a, at_odd(scale), zero, x, out) == f"scale {words}"
    assert refusal("planted_w8", a, scale, zero, at_odd(x), out) == f"x {words}"
    assert refusal("planted_w8", a, scale, zero, x, at_odd(out)) == f"out {words}"


@pytest.mark.parametrize("name", CUDA_NAMES)
def test_cuda_ops_say_on_cpu_tensors_that_cuda_is_wanted(name: str) -> None:
    """The library compiled by nvcc loads in a CPU-only torch and refuses in words."""
    loaded("cuda")
    dtype = getattr(torch, declarations()[name].dtype)
    words = "a is on cpu, wanted a CUDA tensor; move it with .cuda()"
    assert refusal(name, *operands(4, 16, 1, dtype)) == words
    assert refusal(name, *operands(4, 16, 1, dtype, device="meta")) is None


def test_fake_tensors_on_two_gpus_are_refused() -> None:
    """Device indices are compared, without two GPUs."""
    loaded("cuda")
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode(allow_non_fake_inputs=True):
        a, scale = torch.empty(4, 6, dtype=INT8, device="cuda:0"), torch.empty(4, dtype=HALF, device="cuda:1")
        x, out = (torch.empty(size, 1, dtype=HALF, device="cuda:0") for size in (6, 4))
        found = refusal("gemv_w8", a, scale, None, x, out)
    assert found == "scale is on cuda:1, wanted cuda:0 where a is; move one of them"


@pytest.mark.parametrize(("name", "dtype"), [("planted_half", HALF), ("planted_brain", BRAIN), ("planted_w8", INT8)])
@pytest.mark.parametrize("tokens", [1, 3])
def test_opcheck(name: str, dtype: torch.dtype, tokens: int) -> None:
    """Schema, fake tensors and dynamic shapes, by torch's own check."""
    tensors = operands(5, 3, tokens, dtype, gap=2)
    tensors[-1].zero_()  # opcheck compares
    results = torch.library.opcheck(op(name).default, tuple(tensors))
    assert set(results.values()) == {"SUCCESS"}


@pytest.mark.parametrize("dtype", [HALF, BRAIN, INT8])
@pytest.mark.parametrize(("m", "k", "tokens"), [(1, 1, 1), (3, 5, 2), (4, 33, 1), (2, 16, 8)])
def test_read_on_the_cpu_sees_every_mark(dtype: torch.dtype, m: int, k: int, tokens: int) -> None:
    """A NaN, or in int8 -128, in any one element of A, x or the scales makes y NaN; nothing else does."""
    loaded("cpu")
    tensors = operands(m, k, tokens, dtype)
    if dtype == INT8:
        tensors[2] = None  # type: ignore[call-overload]
    name = f"read_cpu_thread_{str(dtype).removeprefix('torch.')}"
    *inputs, out = tensors
    largest = 127 if dtype == INT8 else float("inf")
    inputs[0].view(-1)[-1] = largest
    inputs[-1].t()[0, 0] = -float("inf")
    op(name)(*tensors)
    assert out.unique().tolist() == [0.0]
    for each in filter(lambda t: t is not None, inputs):
        flat = each if each.dim() == 1 else (each if each is inputs[0] else each.t()).view(-1)
        for i in range(flat.numel()):
            kept = flat[i].item()
            flat[i] = -128 if each.dtype == INT8 else float("nan")
            op(name)(*tensors)
            assert bool(out.isnan().all()), i
            flat[i] = kept


def test_every_planted_kernel_is_declared() -> None:
    """The names above are those of the file."""
    assert {d.name.removeprefix("planted").removeprefix("_") for d in parse(PLANTED)} == {
        "", "half", "brain", "w8", "half_few", "w8_aligned", "half_packed", "w8_packed", "half_told", "half_scratch",
    }  # fmt: skip
