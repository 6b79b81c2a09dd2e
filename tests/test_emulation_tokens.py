"""Every CUDA kernel for tokens on the CPU under AddressSanitizer and UBSan: `hgemv`, `bgemv`, `gemv_w8`, variants.

As tests/test_emulation_kernels.py has it for float32: exact on a grid of edges, and nothing else is touched.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest
import torch

from harness.model import Operands, Role
from kernels.declarations import declarations
from tests.emulation import emulated, token_grid
from tests.emulation.emulated import FEW, Emulator
from tests.emulation.placement import TokenPlacement
from tests.emulation.token_grid import HALF, ITEMS, same

TOKENS = {name: d for name, d in declarations().items() if d.device_type == "cuda" and d.dtype != "float32"}
GEMV = [name for name, d in TOKENS.items() if d.role is Role.GEMV]
LIMITS = [name for name, d in TOKENS.items() if d.role is Role.LIMIT]
MACHINES = ((0, 1), (1, 132), (0, FEW), (0, 132), (1, 1), (1, FEW), (1, 132))
"""An order of the lanes, and how many multiprocessors there are."""


@pytest.fixture(scope="module")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    """Every kernel for tokens that can run on a CPU, in one program."""
    with emulated.emulator_of(TOKENS.values(), tmp_path_factory) as started:
        yield started


def bits(tensor: torch.Tensor) -> torch.Tensor:
    return tensor if tensor.dtype is torch.int8 else tensor.view(torch.int16)


def launched(
    emulator: Emulator, name: str, values: token_grid.Values, placement: TokenPlacement, machine: tuple[int, int]
) -> str | None:
    """What is wrong with y; y is NaN before, A and x must be as they were."""
    operands, (order, multiprocessors) = values.operands, machine
    before = [each.clone() for each in (operands.a, operands.x)]
    emulator.launch_tokens(
        name, operands, placement, zero=values.zero, order=order, multiprocessors=multiprocessors
    )  # fmt: skip
    for label, old, new in zip(("A", "x"), before, (operands.a, operands.x), strict=True):
        if not torch.equal(bits(old), bits(new)):
            return f"changed {label}"
    return same(operands.y, values.wanted)


@pytest.mark.parametrize("name", GEMV)
def test_a_kernel_is_exact_at_every_edge(emulator: Emulator, name: str) -> None:
    """Every k, every m, every n, every start and gap; for int8 every other time with zero points."""
    declaration = emulated.needs_no_gpu(TOKENS[name])
    step = 1 if declaration.variant else 5  # what the rule picks are the variants
    for number, trial in enumerate(token_grid.edges(declaration, step)):
        zero = declaration.dtype == "int8" and number % 2 == 1
        values = token_grid.integers(declaration, trial.m, trial.k, trial.n, zero=zero)
        fault = launched(emulator, name, values, trial.placement, MACHINES[number % len(MACHINES)])
        assert fault is None, f"{trial}: {fault}"


@pytest.mark.parametrize("name", GEMV)
def test_special_values_are_those_of_ieee_arithmetic(emulator: Emulator, name: str) -> None:
    """NaN and infinities come through to their row and token alone, subnormals are kept."""
    declaration = emulated.needs_no_gpu(TOKENS[name])
    where = itertools.cycle(token_grid.ARRANGEMENTS)
    tokens = itertools.cycle((1, declaration.most_n, 3) if declaration.most_n > 1 else (1,))
    for k in (1, 3, 16, 33, 200):
        for values in token_grid.specials(declaration, k, next(tokens)):
            m, n = values.wanted.shape
            placement = next(where).place(m, k, n, ITEMS[declaration.dtype])
            fault = launched(emulator, name, values, placement, (k % 2, FEW))
            assert fault is None, f"m={m}, k={k}, n={n}, {placement}: {fault}"


@pytest.mark.parametrize("name", GEMV)
def test_the_same_launch_gives_the_same_bits_near_the_exact_sum(emulator: Emulator, name: str) -> None:
    """Whichever order lanes, warps and blocks come in; float32 rounding, then one to y's dtype."""
    declaration = emulated.needs_no_gpu(TOKENS[name])
    generator, n = torch.Generator().manual_seed(1), declaration.most_n
    for k in (130, 1024, 4099):
        numbers = torch.randn(3, k, generator=generator)
        half = HALF[declaration.dtype]
        a = (numbers * 40).round().clamp(-128, 127) if declaration.dtype == "int8" else numbers.to(half)
        x = torch.randn(k, n, generator=generator).to(half).double()
        values = token_grid.values(declaration, a.double(), x)
        found = []
        for order in (0, 1, 0):
            values.operands.y.fill_(torch.nan)
            emulator.launch_tokens(name, values.operands, TokenPlacement(), order=order)
            found.append(values.operands.y.clone())
        assert torch.equal(found[0], found[1])
        assert torch.equal(found[0], found[2])
        exact = a.double() @ x
        norms = (a.double().square() @ x.square()).sqrt()
        u = 2.0**-8 if half is torch.bfloat16 else 2.0**-11
        bound = u * exact.abs() + 4 * 2.0**-24 * k**0.5 * norms
        assert bool(((found[0].double() - exact).abs() <= bound).all()), k


@pytest.mark.parametrize("name", LIMITS)
def test_a_limit_kernel_reads_every_element_and_writes_every_value(emulator: Emulator, name: str) -> None:
    """A mark anywhere makes y[0] NaN: a NaN in x, A or a scale, in int8 the -128."""
    declaration = emulated.needs_no_gpu(TOKENS[name])
    half = HALF[declaration.dtype]
    for number, (m, k, n) in enumerate(((1, 1, 1), (5, 24, 3), (3, 130, 2), (40, 64, 1), (2, 1031, 8))):
        int8 = declaration.dtype == "int8"
        a = torch.full((m, k), 3, dtype=torch.int8 if int8 else half)
        operands = Operands(
            a=a, x=torch.ones(n, k, dtype=half).t(), y=torch.full((n, m), 7.0, dtype=half).t(),
            scale=torch.ones(m, dtype=half) if int8 else None,
        )  # fmt: skip
        machine = {"order": 0, "multiprocessors": MACHINES[number][1]}
        emulator.launch_tokens(name, operands, TokenPlacement(), **machine)
        assert bool((operands.y == 0).all()), (m, k, n)
        marks = [(operands.a, -128 if int8 else torch.nan), (operands.x, torch.nan)]
        marks += [(operands.scale, torch.nan)] if operands.scale is not None else []
        for tensor, mark in marks:
            for place in {0, tensor.numel() // 2, tensor.numel() - 1}:
                at = (place,) if tensor.dim() == 1 else (place // tensor.shape[1], place % tensor.shape[1])
                old = tensor[at].clone()
                tensor[at] = mark
                emulator.launch_tokens(name, operands, TokenPlacement(), **machine)
                assert bool(operands.y[0, 0].isnan()), (m, k, n, at)
                tensor[at] = old
