"""The emulation of CUDA on the CPU: planted kernels hold it to its word; those in wrong.cu it must find.

Which of the project's own kernels are tried on which problems is tests/test_emulation_kernels.py's.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from harness.gate import Gate
from harness.model import Kernel, Operands, Problem, Role, Verdict, Word
from kernels.declarations import CSRC, declarations, kernel_sources, parse
from tests.emulation import emulated, grid
from tests.emulation.emulated import Emulator, FaultError, need_sanitizers
from tests.emulation.placement import Placement
from tests.emulation.translate import NotUnderstoodError, translate

PLANTED = Path(emulated.__file__).parent / "planted"
PACKED = Placement()


@pytest.fixture(scope="module")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    """Every planted kernel, in one program."""
    need_sanitizers(tmp_path_factory.mktemp("probe"))
    emulator = Emulator(emulated.build(CSRC, kernel_sources(PLANTED, "cuda"), tmp_path_factory.mktemp("emulated")))
    yield emulator
    emulator.close()


def judge(emulator: Emulator, name: str, problem: Problem, placement: Placement) -> Verdict:
    """The gate's verdict on the emulated kernel."""
    kernel = Kernel(name=name, role=Role.GEMV, summary="", bind=emulator.binder(name, placement))
    return Gate(problem, "cpu").check(kernel, lambda _: None)


@pytest.mark.parametrize("name", ["down", "halves", "shared", "copied", "rows", "columns", "either", "stages"])
def test_a_planted_right_kernel_passes(emulator: Emulator, name: str) -> None:
    """Whatever it uses: shuffles, masks, shared memory of both kinds, copies, strides, scratch, others."""
    declaration = declarations(PLANTED)[name]
    sides = itertools.product(grid.orders(declaration), ((1, 2), (4, 64), (5, 202)), grid.arrangements(declaration))
    for by_columns, (m, k), arrangement in sides:
        problem = Problem(m=m, k=k)
        placement = arrangement.place(problem, by_columns=by_columns)
        assert judge(emulator, name, problem, placement).word is Word.PASSED, (m, k, placement)


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
    "early_reader": "integers: 1 of 1 wrong, first y[0]: found nan, ",
    "early_writer": "integers: 1 of 1 wrong, first y[0]: found ",
    "static_overrun": "wrong.cu: runtime error: index 2 out of bounds for type 'float [2]'",
    "dynamic_overrun": "READ of size 4 at wrong.cu; 0 bytes behind dynamic shared memory, which has 256 bytes; in ",
    "shared_misaligned": "for type 'struct float2', which requires 8 byte alignment",
    "block_too_large": "the launch failed: invalid configuration argument",
    "no_block": "the launch failed: invalid configuration argument",
    "as_packed": "integers: 2 of 3 wrong, first y[1]: found nan, ",
    "reads_gap": "integers: 2 of 3 wrong, first y[0]: found nan, ",
    "x_as_packed": "integers: 3 of 3 wrong, first y[0]: found nan, ",
    "y_as_packed": "wrote between the elements of y, 1 elements behind its first",
    "writes_gap": "wrote between the elements of y, 1 elements behind its first",
    "writes_gap_of_a": "wrote between the elements of A, 32 elements behind its first",
    "as_rows": "integers: 3 of 3 wrong, first y[0]: found ",
    "hands_k_on": "picks early_writer, which does not take this K; in ",
    "hands_strides_on": "picks changes_a, which does not take this layout; in ",
    "hands_columns_on": "picks as_packed, which does not take this layout; in ",
    "hands_start_on": "picks shared, which does not take this alignment; in ",
    "scratch_unwritten": "integers: 1 of 1 wrong, first y[0]: found nan, ",
    "scratch_overrun": "READ of size 4 at wrong.cu; 0 bytes behind scratch, which has 32 bytes; in thread ",
}
"""What is said of each kernel of wrong.cu, without line numbers."""
ONE_ROW = {
    "unwritten",
    "no_barrier",
    "late_reader",
    "early_reader",
    "early_writer",
    "static_overrun",
    "dynamic_overrun",
    "shared_misaligned",
    "scratch_unwritten",
    "scratch_overrun",
}
"""Found on one row."""
PLACED = {
    "misaligned": Placement(a=1),
    "as_packed": Placement(gap=3),
    "reads_gap": Placement(gap=1),
    "x_as_packed": Placement(x_stride=2),
    "y_as_packed": Placement(y_stride=2),
    "writes_gap": Placement(y_stride=3),
    "writes_gap_of_a": Placement(gap=1),
    "as_rows": Placement(by_columns=True, gap=64),
    "hands_strides_on": Placement(x_stride=2),
    "hands_columns_on": Placement(by_columns=True),
    "hands_start_on": Placement(a=1),
}
"""Found only where operands lie so."""


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_found(emulator: Emulator, name: str) -> None:
    """In one line that says what, where in the source, and which thread of which launch; the next launch is served."""
    problem = Problem(m=1, k=128) if name in ONE_ROW else Problem(m=3, k=32)
    try:
        found = judge(emulator, name, problem, PLACED.get(name, PACKED)).reason
    except (FaultError, RuntimeError) as error:
        found = str(error)
    assert found is not None, "not found"
    assert FAULTS[name] in re.sub(r"(\.cuh?)(:\d+)+", r"\1", found)
    assert "\n" not in found
    assert judge(emulator, "rows", problem, PACKED).word is Word.PASSED


@pytest.mark.parametrize("name", ["as_packed", "reads_gap", "x_as_packed", "y_as_packed"])
def test_packed_operands_do_not_show_what_is_wrong_with_strides(emulator: Emulator, name: str) -> None:
    """So it is the strides that do: without them, the gate passes these."""
    assert judge(emulator, name, Problem(m=3, k=32), PACKED).word is Word.PASSED


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
