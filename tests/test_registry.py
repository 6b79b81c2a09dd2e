"""The registry: what is in it, what each kernel takes, and that it is light to import."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from harness.model import Layout, Operands, Problem, Role
from kernels import registry
from kernels.declarations import declarations
from tests.built import loaded, shared_cache


def test_names_and_roles() -> None:
    """Torch's three, the declared, the limit and the floor."""
    found = registry.kernels()
    assert {name: kernel.role for name, kernel in found.items() if not kernel.by_name_only} == {
        "torch.matmul": Role.GEMV,
        "torch.mv": Role.GEMV,
        "bgemv": Role.GEMV,
        "gemv_w8": Role.GEMV,
        "hgemv": Role.GEMV,
        "sgemv": Role.GEMV,
        "sgemv_k128_f32x4": Role.GEMV,
        "sgemv_k16_f32": Role.GEMV,
        "sgemv_k32_f32": Role.GEMV,
        "sgemv_cpu_f32": Role.GEMV,
        "read": Role.LIMIT,
        "empty": Role.FLOOR,
    }
    variants = {name for name, declaration in declarations().items() if declaration.variant}
    assert {name for name, kernel in found.items() if kernel.by_name_only} == variants | {"F.linear"}
    assert {name for name, kernel in found.items() if kernel.candidate} == variants
    assert all(found[name].role is Role.GEMV and found[name].devices == ("cuda",) for name in variants)


FLOATS = ("float32", "tf32", "float16", "bfloat16")


def test_dtypes() -> None:
    """Torch's are for every float; ours for one dtype each; `read` reads them all, TF32 as the floats that they are."""
    dtypes = {name: kernel.dtypes for name, kernel in registry.kernels().items()}
    assert [dtypes[name] for name in ("torch.matmul", "F.linear", "torch.mv")] == [FLOATS] * 3
    assert [dtypes[name] for name in ("sgemv", "hgemv", "bgemv", "gemv_w8")] == [
        ("float32",), ("float16",), ("bfloat16",), ("int8",),
    ]  # fmt: skip
    assert sorted(dtypes["read"]) == sorted((*FLOATS, "int8"))
    assert dtypes["empty"] == ("float32",)


def test_one_kernel_a_dtype_picks_among_its_own() -> None:
    """Each knows what its rule can pick, and asks it."""
    found = registry.kernels()
    picking = {name: kernel.picks for name, kernel in found.items() if kernel.choose is not None}
    assert set(picking) == {"sgemv", "hgemv", "bgemv", "gemv_w8"}
    for name, picks in picking.items():
        assert picks, name
        assert {found[pick].dtypes for pick in picks} == {found[name].dtypes}
    stems = {name: [pick.removeprefix(name) for pick in picking[name]] for name in ("hgemv", "bgemv", "gemv_w8")}
    assert stems["hgemv"] == stems["bgemv"] != stems["gemv_w8"]  # of halves there is one rule, of int8 another


def test_devices() -> None:
    """CUDA kernels need CUDA, the C++ one the CPU; the rest run on both."""
    devices = {name: kernel.devices for name, kernel in registry.kernels().items()}
    assert devices["sgemv_k32_f32"] == ("cuda",)
    assert devices["sgemv_cpu_f32"] == ("cpu",)
    assert all(devices[name] == ("cuda", "cpu") for name in ("torch.matmul", "torch.mv", "read", "empty"))
    for dtype in (*FLOATS, "int8"):
        variants = [variant for variant in registry.kernels()["read"].variants if dtype in variant.dtypes]
        assert {variant.devices for variant in variants} == {("cuda",), ("cpu",)}, dtype


ROW, COLUMN = "A's order is 'row', wanted 'col'", "A's order is 'col', wanted 'row'"


@pytest.mark.parametrize(
    ("name", "problem", "reason"),
    [
        ("sgemv_k32_f32", Problem(m=4, k=100), "K=100 is not a multiple of 32"),
        ("sgemv_k128_f32x4", Problem(m=4, k=64), "K=64 is not a multiple of 128"),
        ("sgemv_k16_f32", Problem(m=4, k=0), "K=0 is not 16"),
        ("sgemv_k32_f32", Problem(m=4, k=0), None),
        ("sgemv_k32_f32", Problem(m=4, k=64, dtype="float16"), "dtype is float16, wanted float32"),
        ("sgemv_k32_f32", Problem(m=4, k=64, n=2), "n=2 columns of x, wanted 1"),
        ("sgemv_k32_f32", Problem(m=4, k=64, layout=Layout(order="col")), "A's order is 'col', wanted 'row'"),
        ("read", Problem(m=4, k=64, layout=Layout(row_stride=96)), "A's row stride is 96, wanted 64 (packed)"),
        ("sgemv_k32_f32", Problem(m=4, k=64, layout=Layout(row_stride=64, first_element=1)), None),
        (
            "sgemv_k128_f32x4",
            Problem(m=4, k=128, layout=Layout(first_element=1)),
            "A starts 4 bytes past a multiple of 16 bytes, wanted none",
        ),
        ("torch.matmul", Problem(m=4, k=100, n=3, dtype="float16"), None),
        ("F.linear", Problem(m=4, k=100, n=512, dtype="tf32"), None),
        ("sgemv", Problem(m=4, k=64, dtype="tf32"), "dtype is tf32, wanted float32"),
        ("hgemv", Problem(m=4, k=63, n=8, dtype="float16", layout=Layout(row_stride=65, first_element=1)), None),
        ("hgemv", Problem(m=4, k=64, n=9, dtype="float16"), "n=9 columns of x, wanted 1 to 8"),
        ("hgemv", Problem(m=4, k=64), "dtype is float32, wanted float16"),
        ("hgemv", Problem(m=4, k=64, dtype="float16", layout=Layout(order="col")), COLUMN),
        ("gemv_w8", Problem(m=4, k=63, n=8, dtype="int8", layout=Layout(first_element=1)), None),
        ("gemv_w8", Problem(m=4, k=64, dtype="bfloat16"), "dtype is bfloat16, wanted int8"),
        ("read", Problem(m=4, k=64, n=512, dtype="int8"), None),
        ("read", Problem(m=4, k=64, dtype="tf32"), None),
        ("read", Problem(m=4, k=64, n=2, dtype="tf32"), "n=2 columns of x, wanted 1"),
        (
            "read",
            Problem(m=4, k=64, dtype="int8", layout=Layout(first_element=4)),
            "A starts 4 bytes past a multiple of 16 bytes, wanted none",
        ),
        (
            "read",
            Problem(m=4, k=64, dtype="int8", layout=Layout(row_stride=65)),
            "A's row stride is 65, wanted 64 (packed)",
        ),
        ("torch.mv", Problem(m=4, k=100, n=3), "n=3 columns of x, wanted 1"),
    ],
)
def test_unsupported_gives_the_reason(name: str, problem: Problem, reason: str | None) -> None:
    """A reason in words, or None."""
    assert registry.kernels()[name].unsupported(problem) == reason


LAYOUTS = {
    "PACKED": (None, "A's row stride is 96, wanted 64 (packed)", COLUMN, COLUMN),
    "ROWS": (None, None, COLUMN, COLUMN),
    "COLUMNS": (ROW, ROW, None, None),
    "ROWS_OR_COLUMNS": (None, None, None, None),
}
"""What is said of a packed A, one with a stride of 96, and the same by columns."""


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_declared_layout_is_a_contract(tmp_path: Path, layout: str) -> None:
    """A reason for what it does not take."""
    tail = 'K_ANY, 1, PACKED, 4, "mine") {'
    kernel = f'SGEMV_KERNEL(mine, K_ANY, 1, {layout}, 4, "mine") {{'
    (tmp_path / "mine.cu").write_text(f"{kernel}\nSGEMV_LIMIT(limit, {tail}\nSGEMV_FLOOR(floor, {tail}\n")
    mine = registry.kernels(tmp_path)["mine"]
    layouts = [Layout(order=order, row_stride=stride) for order in ("row", "col") for stride in (None, 96)]
    assert tuple(mine.unsupported(Problem(m=64, k=64, layout=layout)) for layout in layouts) == LAYOUTS[layout]


@pytest.mark.parametrize("name", ["torch.matmul", "F.linear", "torch.mv", "sgemv_cpu_f32"])
def test_bound_kernels_compute_in_place(name: str) -> None:
    """A launch writes into the operands that it was bound to: 1·1 + 2·10 = 21, 3·1 + 4·10 = 43."""
    loaded("cpu")
    operands = Operands(a=torch.tensor([[1.0, 2.0], [3.0, 4.0]]), x=torch.tensor([[1.0], [10.0]]), y=torch.zeros(2, 1))
    launch = registry.kernels()[name].bind(operands)
    assert operands.y.tolist() == [[0.0], [0.0]]
    launch()
    assert operands.y.tolist() == [[21.0], [43.0]]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", ["torch.matmul", "F.linear"])
def test_torchs_kernels_compute_tokens_in_place(name: str, dtype: torch.dtype) -> None:
    """Of x = (1, 10), (2, 0), (0, 1) a column each; what lies around Y in its memory stays."""
    a = torch.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=dtype)
    x = torch.tensor([[1.0, 10.0], [2.0, 0.0], [0.0, 1.0]], dtype=dtype).t()
    memory = torch.full((8,), 7.0, dtype=dtype)
    y = memory[1:-1].view(3, 2).t()
    registry.kernels()[name].bind(Operands(a=a, x=x, y=y))()
    assert memory.tolist() == [7.0, 21.0, 43.0, 2.0, 6.0, 2.0, 4.0, 7.0]


def test_read_binds_by_dtype() -> None:
    """With the scales where there are some: a NaN among them makes every y NaN."""
    loaded("cpu")
    for dtype in (torch.float16, torch.bfloat16, torch.int8):
        half = torch.float16 if dtype == torch.int8 else dtype
        scale = torch.ones(3, dtype=half) if dtype == torch.int8 else None
        tokens = [torch.full((2, size), torch.nan, dtype=half).t() for size in (5, 3)]
        operands = Operands(a=torch.ones(3, 5, dtype=dtype), x=tokens[0].nan_to_num(1.0), y=tokens[1], scale=scale)
        launch = registry.kernels()["read"].bind(operands)
        launch()
        assert operands.y.tolist() == [[0.0] * 2] * 3
        (operands.x if scale is None else scale)[-1] = torch.nan
        launch()
        assert bool(operands.y.isnan().all())


def test_a_dtype_without_a_kernel_is_not_bound() -> None:
    """The message says what was found and what was wanted."""
    operands = Operands(a=torch.ones(2, 2).double(), x=torch.ones(2, 1).double(), y=torch.zeros(2, 1).double())
    with pytest.raises(RuntimeError, match=r"read_\w+: a is float64, wanted float32 or float16 or bfloat16 or int8"):
        registry.kernels()["read"].bind(operands)


def test_read_and_empty_bind_by_device() -> None:
    """On the CPU they are the CPU's."""
    loaded("cpu")
    operands = Operands(a=torch.ones(2, 2), x=torch.ones(2, 1), y=torch.zeros(2, 1))
    registry.kernels()["empty"].bind(operands)()
    assert operands.y.tolist() == [[0.0], [0.0]]
    registry.kernels()["read"].bind(operands)()
    assert operands.y.tolist() == [[6.0], [6.0]]


def test_a_cuda_kernel_is_not_bound_to_cpu_operands() -> None:
    """The message says what was found and what was wanted."""
    operands = Operands(a=torch.ones(2, 32), x=torch.ones(32, 1), y=torch.zeros(2, 1))
    with pytest.raises(RuntimeError, match="sgemv_k32_f32: a is on cpu, wanted cuda"):
        registry.kernels()["sgemv_k32_f32"].bind(operands)


@pytest.mark.parametrize("taken", ["read", "empty"])
def test_a_declared_name_that_is_taken_is_refused(tmp_path: Path, taken: str) -> None:
    """Both places are named."""
    (tmp_path / "mine.cu").write_text(f'SGEMV_KERNEL({taken}, K_ANY, 1, PACKED, 4, "mine") {{\n')
    with pytest.raises(ValueError, match=rf"mine\.cu:1: kernel '{taken}' is already in .*registry\.py; rename it"):
        registry.kernels(tmp_path)


def test_preparing_imports_no_torch() -> None:
    """The parent process lists and builds kernels without torch, hence without a CUDA context."""
    loaded("cpu")
    program = (
        "import sys; from kernels import registry; registry.kernels(); built, = registry.prepare('cpu'); "
        "assert built.library.is_file(); assert 'torch' not in sys.modules and 'pynvml' not in sys.modules"
    )
    environment = {**os.environ, "SGEMV_CACHE": str(shared_cache())}
    root = Path(registry.__file__).parents[1]
    subprocess.run([sys.executable, "-c", program], check=True, env=environment, cwd=root, timeout=120)
