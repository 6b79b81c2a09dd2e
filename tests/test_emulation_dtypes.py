"""The emulation of kernels for tokens: planted ones are right or found out, its float16 and bfloat16 are torch's."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from harness.model import Operands
from kernels.declarations import CSRC, declarations
from tests.emulation import emulated, token_grid
from tests.emulation.emulated import Emulator, FaultError, need_sanitizers
from tests.emulation.placement import TokenPlacement

PLANTED = Path(emulated.__file__).parent / "planted"
STRIDED = TokenPlacement(a_gap=3, x_gap=2, y_gap=1)


@pytest.fixture(scope="module")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    """The planted kernels for tokens, in one program."""
    need_sanitizers(tmp_path_factory.mktemp("probe"))
    emulator = Emulator(emulated.build(CSRC, [PLANTED / "tokens.cu"], tmp_path_factory.mktemp("emulated")))
    yield emulator
    emulator.close()


def found(emulator: Emulator, name: str, placement: TokenPlacement) -> str | None:
    """What is found wrong with a launch on 5×32 and 3 tokens."""
    declaration = declarations(PLANTED)[name]
    values = token_grid.integers(declaration, 5, 32, 3, zero=declaration.dtype == "int8")
    try:
        emulator.launch_tokens(name, values.operands, placement, zero=values.zero)
    except (FaultError, RuntimeError) as error:
        return str(error)
    return token_grid.same(values.operands.y, values.wanted)


@pytest.mark.parametrize("name", ["plain_h", "plain_b", "plain_w8"])
@pytest.mark.parametrize("placement", [TokenPlacement(), STRIDED, TokenPlacement(a=3, x=1, y=0, a_gap=1)])
def test_a_planted_right_kernel_passes(emulator: Emulator, name: str, placement: TokenPlacement) -> None:
    """Of every dtype, packed or not, wherever it starts."""
    assert found(emulator, name, placement) is None


FAULTS = {
    "packed_a": ("12 of 15 wrong, first row 1 of token 0: found nan", STRIDED),
    "packed_x": ("10 of 15 wrong, first row 0 of token 1: found nan", STRIDED),
    "packed_y": ("wrote between the elements of y, 5 elements behind its first", STRIDED),
    "a_token_more": ("READ of size 2 at tokens.cu; 0 bytes behind x, which has 192 bytes; in ", TokenPlacement()),
    "a_row_more": ("0 bytes behind zero, which has 5 bytes; in thread (5, ", TokenPlacement()),
    "no_zero": ("15 of 15 wrong, first row 0 of token 0: found ", TokenPlacement()),
    "one_only": ("picks plain_h_one, which does not take so many tokens; in ", TokenPlacement()),
}
"""What is said of each, without line numbers, and where operands lie."""


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_found(emulator: Emulator, name: str) -> None:
    """In one line that says what and where; the next launch is served."""
    words, placement = FAULTS[name]
    said = found(emulator, name, placement)
    assert said is not None, "not found"
    assert words in re.sub(r"(\.cuh?)(:\d+)+", r"\1", said)
    assert "\n" not in said
    assert found(emulator, "plain_h", TokenPlacement()) is None


@pytest.mark.parametrize("half", [torch.float16, torch.bfloat16])
def test_sixteen_bits_become_numbers_and_numbers_sixteen_bits(emulator: Emulator, half: torch.dtype) -> None:
    """All of them, times numbers that make results subnormal, halfway between two, and too large: as torch rounds."""
    a = torch.arange(65536).to(torch.int32).to(torch.uint16).view(half).view(-1, 1)
    for factor in (1.0, 1 / 3, 1.5, 700.0, 2.0**-9, 0.0):
        x = torch.tensor([[factor]]).to(half)
        y = torch.zeros(65536, 1, dtype=half)
        name = "plain_h" if half is torch.float16 else "plain_b"
        emulator.launch_tokens(name, Operands(a=a, x=x, y=y), TokenPlacement())
        wanted = (a.float() * x.float() + 0.0).to(half)  # a sum that starts at 0 has no -0
        assert token_grid.same(y, wanted) is None
        assert torch.equal(y.signbit() & ~y.isnan(), wanted.signbit() & ~wanted.isnan())
