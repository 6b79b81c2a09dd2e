"""Every CUDA kernel on the CPU under AddressSanitizer and UBSan: it passes the gate and touches nothing else.

The planted kernels hold the emulation itself to its word: those in right.cu must pass, those in wrong.cu be found.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from harness.gate import Gate
from harness.model import Kernel, Operands, Problem, Role, Verdict, Word
from kernels.declarations import CSRC, Declaration, declarations, kernel_sources, parse
from tests.emulation import emulated
from tests.emulation.emulated import Emulator, FaultError, Placement
from tests.emulation.translate import NotUnderstoodError, translate

PLANTED = Path(emulated.__file__).parent / "planted"
CUDA = {name: d for name, d in declarations().items() if d.device_type == "cuda"}

PLACEMENTS = (Placement(a=0, x=0, y=1), Placement(a=1, x=3, y=2), Placement(a=2, x=2, y=0), Placement(a=3, x=1, y=3))
FEW_ROWS = range(1, 10)
ROWS = (*FEW_ROWS, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129)
"""From 1 on: without rows nothing is launched, says csrc/op.h. Blocks have 1, 2, 4 … rows."""
TILES = (256, 512, 1024, 2048, 4096)
"""Columns that a row's threads read at once, or several times that."""


@pytest.fixture(scope="module")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    """Every kernel of csrc and every planted one, in one program."""
    need_sanitizers(tmp_path_factory.mktemp("probe"))
    sources = [path for path in kernel_sources(CSRC, "cuda") if emulated.left_out(path) is None]
    sources += kernel_sources(PLANTED, "cuda")
    emulator = Emulator(emulated.build(CSRC, sources, tmp_path_factory.mktemp("emulated")))
    yield emulator
    emulator.close()


def need_sanitizers(folder: Path) -> None:
    """Skip where the compiler lacks them; a CI runner must have them."""
    reason = emulated.no_sanitizers(folder)
    if reason is not None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(f"no sanitizers: {reason}")


def columns(declaration: Declaration) -> list[int]:
    """Every k up to 130 that the contract allows, and k around tiles and around multiples of the contract's own."""
    own = (declaration.k_value * times for times in (*range(1, 10), 15, 16, 17, 32, 33))
    around = (tile + offset for tile in TILES for offset in (-4, -1, 0, 1, 4))
    return [k for k in sorted({*range(1, 131), *own, *around}) if declaration.k_problem(k) is None]


def placements(declaration: Declaration) -> list[Placement]:
    """Those that the contract allows; no operand is ever aligned to more than it."""
    return [
        p for p in PLACEMENTS if p.a * 4 % declaration.alignment_bytes == p.x * 4 % declaration.alignment_bytes == 0
    ]


def problems(declaration: Declaration) -> Iterator[tuple[Problem, Placement]]:
    """Every k with some m, and every m with some k, in every placement in turn."""
    ks = columns(declaration)
    rows = itertools.cycle(FEW_ROWS)
    shapes = [(next(rows), k) for k in ks] + [(m, k) for m in ROWS for k in ks[:4:3]]  # K_ANY: the 1st and 4th are 1, 4
    where = itertools.cycle(placements(declaration))
    return ((Problem(m=m, k=k), placement) for (m, k), placement in zip(shapes, where, strict=False))


def judge(emulator: Emulator, declaration: Declaration, problem: Problem, placement: Placement) -> Verdict:
    """The gate's verdict on the emulated kernel."""
    # A limit kernel that meets a NaN waits for whoever owns y[0] to write it, so that one's turn must come first.
    bind = emulator.binder(declaration.name, placement, orders=1 if declaration.role is Role.LIMIT else 2)
    kernel = Kernel(name=declaration.name, role=declaration.role, summary="", bind=bind)
    return Gate(problem, "cpu").check(kernel, lambda _: None)


@pytest.mark.parametrize("name", CUDA)
def test_a_kernel_passes_the_gate_and_touches_nothing_else(emulator: Emulator, name: str) -> None:
    """At every edge of its contract; A, x and y end where their memory does."""
    need_emulation(CUDA[name])
    for problem, placement in problems(CUDA[name]):
        verdict = judge(emulator, CUDA[name], problem, placement)
        assert verdict.word is Word.PASSED, f"{problem.label}, {placement}: {verdict.reason}"


@pytest.mark.parametrize("name", [name for name, d in CUDA.items() if d.k_problem(0) is None])
def test_no_columns_are_a_sum_of_nothing(emulator: Emulator, name: str) -> None:
    """K = 0, which the gate does not know: nothing is read, and y is 0 (floor: untouched)."""
    need_emulation(CUDA[name])
    for placement in placements(CUDA[name]):
        operands = Operands(a=torch.empty(5, 0), x=torch.empty(0, 1), y=torch.full((5, 1), 7.0))
        emulator.launch(name, operands, placement)
        assert operands.y.tolist() == [[7.0 if CUDA[name].role is Role.FLOOR else 0.0]] * 5


def need_emulation(declaration: Declaration) -> None:
    """Skip what its source says cannot run here."""
    reason = emulated.left_out(Path(declaration.where.rpartition(":")[0]))
    if reason is not None:
        pytest.skip(f"{declaration.name}: not on the CPU: {reason}")


@pytest.mark.parametrize("name", ["down", "halves", "shared"])
def test_a_planted_right_kernel_passes(emulator: Emulator, name: str) -> None:
    """Whatever it uses: shuffles down and by index, masks of half a warp, shared memory of both kinds, float2."""
    declaration = next(d for d in parse(PLANTED / "right.cu") if d.name == name)
    for (m, k), placement in itertools.product(((1, 2), (4, 64), (5, 202)), placements(declaration)):
        assert judge(emulator, declaration, Problem(m=m, k=k), placement).word is Word.PASSED, (m, k, placement)


SHUFFLE = "thread 0 waits in __shfl_xor_sync (wrong.cu, mask 0xffffffff) for thread 16, which "
FAULTS = {
    "a_overrun": "heap-buffer-overflow; READ of size 4 at wrong.cu; 0 bytes behind A, which has 384 bytes; in thread "
    "(2, 0, 0) of block (0, 0, 0) of a_overrun, m=3, k=32",
    "a_underrun": "use-after-poison; READ of size 4 at wrong.cu; 4 bytes before A, which has 384 bytes; in ",
    "x_overrun": "heap-buffer-overflow; READ of size 4 at wrong.cu; 0 bytes behind x, which has 128 bytes; in ",
    "y_overrun": "heap-buffer-overflow; WRITE of size 4 at wrong.cu; 0 bytes behind y, which has 12 bytes; in ",
    "changes_a": "integers: changed A or x",
    "misaligned": "for type 'const struct float4', which requires 16 byte alignment",
    "shuffle_without_some": SHUFFLE.replace("wrong.cu", "common.cuh") + "has ended; in thread (0, 0, 0) of block (1, ",
    "two_shuffles": SHUFFLE + "waits in __shfl_down_sync (wrong.cu, mask 0xffffffff); in ",
    "part_of_a_warp": SHUFFLE + "the block does not have; in ",
    "asks_one_left_out": "lane 0 asks lane 16 in __shfl_xor_sync (wrong.cu), which mask 0x0000ffff leaves out; in ",
    "left_out": "lane 16 calls __ballot_sync (wrong.cu) with mask 0x0000ffff, which leaves it out; in ",
    "barrier_without_some": "thread 0 waits in __syncthreads (wrong.cu) for thread 32, which has ended; in ",
    "unwritten": "integers: 1 of 1 wrong, first y[0]: found nan, ",
    "no_barrier": "integers: 1 of 1 wrong, first y[0]: found nan, ",
    "late_reader": "integers, launch 2: 1 of 1 wrong, first y[0]: found nan, ",
    "early_writer": "integers: 1 of 1 wrong, first y[0]: found ",
    "static_overrun": "wrong.cu: runtime error: index 2 out of bounds for type 'float [2]'",
    "dynamic_overrun": "READ of size 4 at wrong.cu; 0 bytes behind dynamic shared memory, which has 256 bytes; in ",
    "shared_misaligned": "for type 'struct float2', which requires 8 byte alignment",
    "block_too_large": "the launch failed: invalid configuration argument",
    "no_block": "the launch failed: invalid configuration argument",
}
"""What is said of each kernel of wrong.cu, without line numbers."""
TILED = {
    "unwritten",
    "no_barrier",
    "late_reader",
    "early_writer",
    "static_overrun",
    "dynamic_overrun",
    "shared_misaligned",
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_found(emulator: Emulator, name: str) -> None:
    """In one line that says what, where in the source, and which thread of which launch; the next launch is served."""
    declaration = next(d for d in parse(PLANTED / "wrong.cu") if d.name == name)
    problem = Problem(m=1, k=128) if name in TILED else Problem(m=3, k=32)
    placement = Placement(a=1) if name == "misaligned" else Placement()
    try:
        found = judge(emulator, declaration, problem, placement).reason
    except (FaultError, RuntimeError) as error:
        found = str(error)
    assert found is not None, "not found"
    assert FAULTS[name] in re.sub(r"(\.cuh?)(:\d+)+", r"\1", found)
    assert "\n" not in found
    assert judge(emulator, CUDA["sgemv_k32_f32"], Problem(m=3, k=32), Placement()).word is Word.PASSED


def test_every_planted_fault_is_tried() -> None:
    """None is forgotten in the table above; the endless one has a test of its own."""
    assert {d.name for d in parse(PLANTED / "wrong.cu")} == {*FAULTS, "endless"}


def test_a_kernel_that_never_ends_is_ended(emulator: Emulator, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a CI job would be."""
    monkeypatch.setattr(emulated, "LIMIT_S", 1)
    operands = Operands(a=torch.ones(1, 1), x=torch.ones(1, 1), y=torch.zeros(1, 1))
    with pytest.raises(
        FaultError, match=r"^the launch took longer than 1 s; in thread \(0, 0, 0\) of .* of endless, m=1, k=1\n"
    ):
        emulator.launch("endless", operands, Placement())


@pytest.mark.parametrize("order", [0, 1])
def test_ballots_and_shuffles_lane_by_lane(emulator: Emulator, order: int) -> None:
    """By hand: elements 1, 4, 7, 10 and 13 are positive; 40 mod 8 = 0; 3 down in 4 is there for the first only."""
    a = torch.tensor([[i + 1.0 if i % 3 == 1 else -i - 1.0] for i in range(128)])
    operands = Operands(a=a, x=torch.ones(1, 1), y=torch.zeros(128, 1))
    emulator.launch("words", operands, Placement(), order=order)
    positive, of_group, down, clamped = operands.y.view(4, 32).tolist()
    assert positive == [2.0 + 16.0 + 128.0 + 1024.0 + 8192.0] * 32
    assert of_group == [a[lane // 8 * 8, 0] for lane in range(32)]
    assert down == [a[lane + 3 if lane % 4 == 0 else lane, 0] for lane in range(32)]
    assert clamped[:12] == [-1.0, 2.0, -3.0, -4.0, 5.0, -6.0, -7.0, 8.0, -8.0, -8.0, 8.0, -8.0]


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        ("f<<<1, dim3(32, 4)>>>(a);", "cuda::launch(f, 1, dim3(32, 4))(a);"),
        ("n::f<a, 4>\n    <<<g(x), 32, 0, s>>>(\n  a);", "cuda::launch(n::f<a, 4>,\n     g(x), 32, 0, s)(\n  a);"),
        ("extern __shared__ __align__(16) float t[];", "float* t = cuda::dynamic_shared<float>();"),
        ("__shared__ float t[4][w / 2];", 'auto& t = cuda::shared<float[4][w / 2], alignof(float)>("t", [] {});'),
        ("__shared__ alignas(16) unsigned char t[4];", 'auto& t = cuda::shared<unsigned char[4], 16>("t", [] {});'),
    ],
)
def test_translation(source: str, wanted: str) -> None:
    """Launches and shared memory, each line where it was."""
    assert translate(source, "mine.cu") == f'#line 1 "mine.cu"\n{wanted}'


@pytest.mark.parametrize(
    "line", ["f<(a > b)><<<1, 32>>>(a);", "__shared__ float s, t;", "f<<<1,", "__shared__ S s(1);"]
)
def test_what_is_not_understood_is_refused(line: str) -> None:
    """With file and line, before a compiler complains of something else."""
    with pytest.raises(NotUnderstoodError, match=r"^mine\.cu:2: found '.*', wanted kernel<<<grid, block"):
        translate(f"// first\n{line}\n", "mine.cu")


def test_a_source_may_say_why_it_is_left_out(tmp_path: Path) -> None:
    """And none that is not left out is skipped."""
    source = tmp_path / "mine.cu"
    source.write_text("// An idea.\n// Not on the CPU: clusters of blocks\n")
    assert emulated.left_out(source) == "clusters of blocks"
    assert emulated.left_out(CSRC / "sgemv_k32_f32.cu") is None


def test_a_compiler_without_sanitizers_is_skipped_but_not_on_ci(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A CI runner without them would check nothing and be green."""
    compiler = tmp_path / "g++"
    compiler.write_text('#!/bin/sh\necho "no such option: $1" >&2\n[ "$1" = --version ]\n')
    compiler.chmod(0o755)
    monkeypatch.setenv("CXX", str(compiler))
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="no such option: -fsanitize=address,undefined"):
        need_sanitizers(tmp_path)
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="no such option: -fsanitize=address,undefined"):
        need_sanitizers(tmp_path)
