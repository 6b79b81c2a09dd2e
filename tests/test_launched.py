"""harness.launched: which kernels a captured launch holds, by a fake driver, and against a profiler on a GPU."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from harness.capture import capture
from harness.device import driver
from harness.kernel_names import demangled, short_name
from harness.launched import launched
from harness.model import Cache, DeviceKernel, Launch
from harness.process import use_one_stream
from harness.timing import Sample, graph
from harness.timing.graph import measure_graph
from harness.timing.profiler import measure_profiler
from kernels import registry
from tests.built import loaded
from tests.fake_driver import FakeDriver, FakeFunction, FakeNode

DOT, REDUCE = 0x1000, 0x2000
FUNCTIONS = {
    DOT: FakeFunction(name=b"_ZN5sgemv4readILi8EEEvPKf", registers=40, static_bytes=512),
    REDUCE: FakeFunction(name=b"sm90_reduce_1Block", registers=22),
}
SPLIT = FakeDriver(
    nodes={
        0x30: FakeNode(func=REDUCE, grid=(1, 1, 1), block=(128, 1, 1)),
        0x10: FakeNode(kind=2),
        0x20: FakeNode(func=DOT, grid=(8, 2, 1), block=(32, 4, 1), dynamic_bytes=1024),
    },
    edges=((0x20, 0x30), (0x10, 0x20)),
    functions=FUNCTIONS,
)
"""A memory set, then a kernel in parts, then their sum: a driver may list them in any order."""


@pytest.fixture
def plays(monkeypatch: pytest.MonkeyPatch) -> Callable[[FakeDriver], tuple[tuple[DeviceKernel, ...], dict[str, str]]]:
    """What `launched` says where this is the driver."""

    def play(fake: FakeDriver) -> tuple[tuple[DeviceKernel, ...], dict[str, str]]:
        monkeypatch.setattr(driver, "_library", lambda: fake)
        return launched(fake.graph)

    return play


def test_kernels_in_the_order_of_the_edges(plays) -> None:
    """By name, grid, block, registers, shared memory of both kinds; no duration. What is no kernel is said apart."""
    kernels, unknown = plays(SPLIT)
    assert kernels == (
        DeviceKernel(
            name="void sgemv::read<8>(float const*)",
            grid=(8, 2, 1),
            block=(32, 4, 1),
            registers=40,
            shared_bytes=1536,
            duration_ns=None,
        ),
        DeviceKernel(
            name="sm90_reduce_1Block", grid=(1, 1, 1), block=(128, 1, 1), registers=22, shared_bytes=0, duration_ns=None
        ),
    )
    assert unknown == {"device_kernels": "beside the kernels that are named, a launch has: memory set (1)"}


def test_one_kernel_is_all_there_is(plays) -> None:
    """Nothing is unknown then; a node that only names a CUkernel gives its function."""
    fake = FakeDriver(nodes={0x10: FakeNode(kern=0x77)}, functions=FUNCTIONS, kernels={0x77: REDUCE})
    kernels, unknown = plays(fake)
    assert ([kernel.name for kernel in kernels], unknown) == (["sm90_reduce_1Block"], {})


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("cuFuncGetName", "cuFuncGetName: this driver lacks it; a newer one has it"),
        ("cuGraphGetEdges_v2", "cuGraphGetEdges_v2: this driver lacks it; a newer one has it"),
    ],
)
def test_an_old_driver_is_a_reason(plays, name: str, reason: str) -> None:
    """The figures stand all the same."""
    kernels, unknown = plays(replace(SPLIT, missing=frozenset({name})))
    assert kernels == ()
    assert unknown == {"device_kernels": f"the driver does not name the kernels of a graph: {reason}"}


def test_a_kernel_without_a_name_is_a_reason(plays) -> None:
    """Neither an error of the driver nor an empty name becomes half a list."""
    kernels, unknown = plays(replace(SPLIT, functions={DOT: FUNCTIONS[DOT]}))
    assert kernels == ()
    assert unknown["device_kernels"].endswith("cuFuncGetName: CUDA driver error 1")
    kernels, unknown = plays(replace(SPLIT, functions={**FUNCTIONS, DOT: FakeFunction(name=b"")}))
    assert kernels == ()
    assert unknown["device_kernels"].endswith("cuFuncGetName: it gave no name")


@pytest.mark.parametrize("fake", [SPLIT, replace(SPLIT, missing=frozenset({"cuFuncGetName"}))])
def test_the_headline_has_the_names(monkeypatch: pytest.MonkeyPatch, fake: FakeDriver) -> None:
    """Of one launch, beside its samples and what else is not known of them; without names the samples stand."""
    captured: list[int] = []

    def play(launches: list[Launch], rounds: int) -> object:
        captured.append(len(launches) * rounds)
        return fake.graph

    samples = (Sample(ns=5.0),)
    replay = SimpleNamespace(
        settle=lambda: True, draw=lambda _: (samples, {"sample_clocks_mhz": "no counters"}, "count"), run=None,
        launches=400, kernels_per_launch=2, placements_ns=lambda: (),
    )  # fmt: skip
    monkeypatch.setattr(driver, "_library", lambda: fake)
    monkeypatch.setattr(graph, "capture", play)
    monkeypatch.setattr(graph, "replay_lasting", lambda *_: replay)
    monkeypatch.setattr(torch.cuda, "device", lambda _: nullcontext())
    timing = measure_graph([lambda: None] * 3, Cache.COLD, "cuda:0", 0.1)
    assert (captured, timing.samples) == ([1], samples)
    kernels, unknown = launched(fake.graph)
    assert timing.device_kernels == kernels
    assert len(kernels) == (0 if fake.missing else 2)
    assert timing.unknown == {"sample_clocks_mhz": "no counters", **unknown}


@pytest.mark.parametrize(
    ("mangled", "plain"),
    [
        ("_ZN5sgemv4readILi8EEEvPKf", "void sgemv::read<8>(float const*)"),
        ("_Z12empty_kernelv", "empty_kernel()"),
        ("nvjet_hsh_64x8_64x16_4x1_v_bz_TNT", "nvjet_hsh_64x8_64x16_4x1_v_bz_TNT"),
        ("_Znothing", "_Znothing"),
        ("i", "i"),
    ],
)
def test_names_are_demangled_once(mangled: str, plain: str) -> None:
    """By the C++ ABI; a name of C is left alone, though `i` alone would be read as `int`."""
    assert demangled(mangled) == plain


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")
class TestOnAGpu:
    """The same as the device's own profiler says."""

    @pytest.fixture(autouse=True)
    def stream(self) -> None:
        """Graphs cannot be captured on the default one."""
        use_one_stream("cuda:0")

    @pytest.mark.parametrize(
        ("m", "k", "n", "dtype"),
        [
            (1024, 1024, 1, torch.float32),
            (8, 65536, 1, torch.float32),
            (4096, 4096, 16, torch.float16),
            (4096, 4096, 512, torch.bfloat16),
        ],
    )
    def test_matmul_is_named_as_by_the_profiler(self, m: int, k: int, n: int, dtype: torch.dtype) -> None:
        """Libraries' kernels too, one or several a launch: names, grids, blocks and registers.

        What a block takes of shared memory may differ by what the system reserves of it.
        """
        a, x = (torch.randn(shape, device="cuda", dtype=dtype) for shape in ((m, k), (k, n)))
        y = torch.empty(m, n, device="cuda", dtype=dtype)
        assert _as_profiled(lambda: torch.matmul(a, x, out=y))

    def test_empty_is_named(self) -> None:
        """Our own kernel, from a library that the CUDA runtime has loaded."""
        loaded("cuda")
        (kernel,), unknown = launched(capture([registry.kernels()["empty"].bind(_operands())], 1))
        assert "empty" in short_name(kernel.name)
        assert (kernel.grid[0] >= 1, kernel.duration_ns, unknown) == (True, None, {})

    def test_a_copy_is_said(self) -> None:
        """It takes time on the device, and is no kernel."""
        x, y = (torch.zeros(1 << 20, device="cuda") for _ in range(2))

        def launch() -> None:
            y.copy_(x)
            y.add_(1.0)

        kernels, unknown = launched(capture([launch], 1))
        assert "elementwise" in kernels[0].name
        assert len(kernels) == 1
        assert unknown["device_kernels"].endswith("a launch has: memory copy (1)")


def _operands():
    from harness.model import Operands

    a, x, y = (torch.zeros(1, 1, device="cuda") for _ in range(3))
    return Operands(a=a, x=x, y=y)


def _as_profiled(launch: Launch) -> bool:
    by_graph = measure_graph([launch], Cache.COLD, "cuda:0", 0.02).device_kernels
    by_profiler = measure_profiler([launch], Cache.COLD, "cuda:0", 0.02).device_kernels
    for own, seen in zip(by_graph, by_profiler, strict=True):
        assert own == replace(seen, duration_ns=None, shared_bytes=own.shared_bytes)
        assert 0 <= (seen.shared_bytes or 0) - (own.shared_bytes or 0) <= 1024
    return bool(by_graph)
