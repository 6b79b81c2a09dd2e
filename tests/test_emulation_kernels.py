"""Every float32 CUDA kernel on the CPU under AddressSanitizer and UBSan: exact at edges, and it touches nothing else.

How sources become C++, and what the emulation finds, is tests/test_emulation.py's.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import cache

import pytest
import torch

from harness.gate import Gate, Probe, compare
from harness.model import Kernel, Operands, Problem, Role, Verdict, Word
from kernels.declarations import Declaration, declarations
from tests.emulation import emulated, grid
from tests.emulation.emulated import FEW, Emulator
from tests.emulation.placement import Placement
from tests.special_values import faults, specials

CUDA = {name: d for name, d in declarations().items() if d.device_type == "cuda" and d.dtype == "float32"}
MANY_PARTS = 100_003
"""Columns."""
MANY = 132
"""Multiprocessors of a large device: small problems leave most of them without a block."""
GEMV = [name for name, d in CUDA.items() if d.role is Role.GEMV]
Machine = tuple[int, int]
MACHINES = ((0, 1), (1, MANY), (0, FEW), (0, MANY), (1, 1), (1, MANY), (1, FEW))
"""An order of the lanes, and how many multiprocessors there are: seven, so that every arrangement meets each."""
STRIDED = [name for name in GEMV if CUDA[name].layout != "PACKED"]


@pytest.fixture(scope="module")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    """Every float32 kernel of csrc that can run on a CPU, in one program."""
    with emulated.emulator_of(CUDA.values(), tmp_path_factory) as started:
        yield started


@cache
def integers(problem: Problem) -> Probe:
    """The gate's probe on which every order of additions is exact; shared by all kernels."""
    return Gate(problem, "cpu").probes()[0]


def exact(emulator: Emulator, name: str, problem: Problem, placement: Placement, machine: Machine) -> str | None:
    """One launch over a y of NaN; what is wrong with it."""
    order, multiprocessors = machine
    probe = integers(problem)
    y = torch.full((problem.m, 1), torch.nan)
    operands = Operands(a=probe.a.values[0], x=probe.x.values[0], y=y)
    emulator.launch(name, operands, placement, order=order, multiprocessors=multiprocessors)
    return compare(y, probe.expected, None)[0] or probe.touched()


def gate(emulator: Emulator, declaration: Declaration, problem: Problem, placement: Placement) -> Verdict:
    """The whole gate's verdict."""
    # A limit kernel that meets a NaN waits for whoever owns y[0] to write it, so that one's turn must come first.
    bind = emulator.binder(declaration.name, placement, orders=1 if declaration.role is Role.LIMIT else 2)
    kernel = Kernel(name=declaration.name, role=declaration.role, summary="", bind=bind)
    return Gate(problem, "cpu").check(kernel, lambda _: None)


@pytest.mark.parametrize("name", GEMV)
def test_a_kernel_is_exact_at_every_edge(emulator: Emulator, name: str) -> None:
    """Every k, every m, every start and stride that it takes; A, x and y end where their memory does."""
    declaration = emulated.needs_no_gpu(CUDA[name])
    trials = itertools.chain(grid.edges(declaration), grid.crossings(declaration))
    for machine, (problem, placement) in zip(itertools.cycle(MACHINES), trials, strict=False):
        fault = exact(emulator, name, problem, placement, machine)
        assert fault is None, f"{problem.label}, {placement}: {fault}"


@pytest.mark.parametrize("name", [name for name in GEMV if CUDA[name].k_problem(MANY_PARTS) is None])
def test_few_rows_may_be_shared_by_many_blocks(emulator: Emulator, name: str) -> None:
    """More parts of a row than a warp has lanes."""
    declaration = emulated.needs_no_gpu(CUDA[name])
    where = grid.arrangements(declaration)
    for by_columns, (m, arrangement) in itertools.product(grid.orders(declaration), ((1, where[-1]), (3, where[0]))):
        problem = Problem(m=m, k=MANY_PARTS)
        fault = exact(emulator, name, problem, arrangement.place(problem, by_columns=by_columns), (m % 2, MANY))
        assert fault is None, f"{problem.label}, {arrangement}: {fault}"


@pytest.mark.parametrize("name", CUDA)
def test_a_kernel_passes_the_gate(emulator: Emulator, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole of it; those that compute nothing at every edge, since there is no other check of them."""
    monkeypatch.setattr("harness.gate.check.READ_TRIES", 2)  # at every edge, which makes hundreds
    declaration = emulated.needs_no_gpu(CUDA[name])
    trials = grid.gated(declaration) if declaration.role is Role.GEMV else grid.edges(declaration)
    for problem, placement in trials:
        verdict = gate(emulator, declaration, problem, placement)
        assert verdict.word is Word.PASSED, f"{problem.label}, {placement}: {verdict.reason}"


@pytest.mark.parametrize("name", [name for name, d in CUDA.items() if d.k_problem(0) is None])
def test_no_columns_are_a_sum_of_nothing(emulator: Emulator, name: str) -> None:
    """K = 0, which the gate does not know: nothing is read, and y is 0 (floor: untouched)."""
    declaration = emulated.needs_no_gpu(CUDA[name])
    wanted = 7.0 if declaration.role is Role.FLOOR else 0.0
    for m, arrangement in itertools.product((1, 5, 130), grid.arrangements(declaration)):
        for by_columns in grid.orders(declaration):
            placement = arrangement.place(Problem(m=m, k=0), by_columns=by_columns)
            operands = Operands(a=torch.empty(m, 0), x=torch.empty(0, 1), y=torch.full((m, 1), 7.0))
            emulator.launch(name, operands, placement)
            assert operands.y.view(-1).tolist() == [wanted] * m, (m, placement)


@pytest.mark.parametrize("name", STRIDED)
def test_elements_may_lie_in_one_place(emulator: Emulator, name: str) -> None:
    """An expanded x; rows (columns) that overlap, and an expanded one."""
    declaration = emulated.needs_no_gpu(CUDA[name])
    for by_columns, m, k in itertools.product(grid.orders(declaration), (1, 6), (1, 7, 64, 130)):
        run, count = (m, k) if by_columns else (k, m)
        for a_stride in {0, 1, run - 1, run}:
            lines = torch.arange(1.0, run + 1) + torch.arange(count).view(-1, 1) * a_stride
            a = (lines.t() if by_columns else lines).contiguous()
            operands = Operands(a=a, x=torch.full((k, 1), 3.0), y=torch.full((m, 1), torch.nan))
            emulator.launch(name, operands, Placement(by_columns=by_columns, gap=a_stride - run, x_stride=0))
            assert operands.y.tolist() == (3.0 * a.sum(1, keepdim=True)).tolist(), (m, k, by_columns, a_stride)


@pytest.mark.parametrize("name", GEMV)
def test_special_values_are_those_of_ieee_arithmetic(emulator: Emulator, name: str) -> None:
    """NaN and infinities come through, subnormals are kept."""
    declaration = emulated.needs_no_gpu(CUDA[name])
    where = itertools.cycle(grid.arrangements(declaration))
    sizes = grid.columns(declaration, (1, 3, 16, 33, 1030)) or grid.columns(declaration)[:2]
    for by_columns, k in itertools.product(grid.orders(declaration), sizes):
        for special in specials(k):
            y = torch.full((len(special.wanted), 1), -7.0)
            placement = next(where).place(Problem(m=len(y), k=k), by_columns=by_columns)
            emulator.launch(name, Operands(a=special.a, x=special.x, y=y), placement)
            assert faults(special, y) is None, (k, placement)


@pytest.mark.parametrize("name", GEMV)
def test_the_same_launch_gives_the_same_bits(emulator: Emulator, name: str) -> None:
    """Whichever order lanes, warps and blocks come in: sums are added in a fixed one."""
    declaration = emulated.needs_no_gpu(CUDA[name])
    generator = torch.Generator().manual_seed(1)
    for by_columns, k in itertools.product(grid.orders(declaration), grid.columns(declaration)[-3:]):
        a, x = torch.randn(3, k, generator=generator), torch.randn(k, 1, generator=generator)
        found = set()
        for order in (0, 1, 0):
            y = torch.full((3, 1), torch.nan)
            emulator.launch(name, Operands(a=a, x=x, y=y), Placement(by_columns=by_columns), order=order)
            found.add(tuple(y.view(-1).tolist()))
        assert len(found) == 1, (k, by_columns)
