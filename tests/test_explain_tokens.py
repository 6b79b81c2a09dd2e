"""Asking the rule of the kernels for tokens: what it is asked, from a problem and from tensors, and whom it picks."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
import torch

from harness.model import Choice, Layout, Operands, Problem
from kernels import explain as module
from kernels import registry
from kernels.explain import H200, Machine, choose, explain
from kernels.rules import chooser_for
from tests import echo_rules
from tests.built import loaded

PROBLEM = Problem(m=40, k=30)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rule that repeats its question."""
    echo_rules.ask(monkeypatch)


@pytest.mark.usefixtures("asked")
@pytest.mark.parametrize(
    ("dtype", "n", "layout", "kernel", "words"),
    [
        ("float16", 1, Layout(), "hgemv_echo", "0: 40x30x1 30 30 40, past 0 0"),
        ("bfloat16", 3, Layout(row_stride=33), "bgemv_echo", "1: 40x30x3 33 30 40, past 0 0"),
        ("int8", 8, Layout(first_element=300), "gemv_w8_echo", "2: 40x30x8 30 30 40, past 44 0"),
        ("float16", 2, Layout(first_element=129), "hgemv_echo", "0: 40x30x2 30 30 40, past 2 0"),
    ],
)
def test_tokens_as_the_rule_sees_them(dtype: str, n: int, layout: Layout, kernel: str, words: str) -> None:
    """By the number of the dtype, and where A starts in bytes; the rule's name comes behind the dtype's kernel's."""
    problem = replace(PROBLEM, n=n, dtype=dtype, layout=layout)
    found = explain(problem, Machine(multiprocessors=108, clusters=False))
    assert found == Choice(kernel=kernel, reason=f"{words}, on 108 0")


@pytest.mark.usefixtures("asked")
@pytest.mark.parametrize(("m", "k", "n"), [(4, 3, 2), (4, 3, 1), (1, 3, 2), (4, 1, 8), (4, 0, 2)])
def test_tensors_of_tokens_as_the_launcher_sees_them(
    m: int, k: int, n: int, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """With gaps between rows and tokens, and starts apart; a stride without meaning is that of packed operands."""
    monkeypatch.setattr(module, "machine_of", lambda _: H200)
    a = torch.zeros(100, dtype=torch.int8).as_strided((m, k), (k + 3, 1), 5)
    memory = torch.zeros(200, dtype=torch.float16)
    x, y = memory.as_strided((k, n), (1, k + 2), 9), torch.zeros(99, dtype=torch.float16).as_strided((m, n), (1, m + 1))
    scale = torch.ones(m, dtype=torch.float16)
    torch.ops.sgemv.told_of_tokens(a, scale, None, x, y)
    found = choose(Operands(a=a, x=x, y=y, scale=scale))
    assert (found.kernel, f"{found.reason}\n") == ("gemv_w8_echo", capfd.readouterr().out)


def test_a_dtype_for_which_nobody_picks() -> None:
    """TF32 problems are torch's alone."""
    with pytest.raises(ValueError, match="dtype is tf32, wanted float32, float16, bfloat16, int8"):
        explain(replace(PROBLEM, dtype="tf32"), H200)


PICKED = {
    ("float16", 1): {
        (1024, 1024): "groups_32", (4096, 4096): "blocks_128", (11008, 4096): "blocks_128", (4096, 11008): "blocks_128",
        (32000, 4096): "blocks_128", (57344, 7168): "blocks_128", (200, 65536): "blocks_512",
        (400, 65536): "blocks_256", (8, 100): "groups_8", (65536, 256): "groups_8", (1024, 256): "groups_32",
    },
    ("bfloat16", 8): {
        (50000, 100): "lines_16x1x3", (65536, 256): "lines_16x2x3", (1024, 1024): "lines_16x8x2",
        (2048, 8192): "lines_16x16x2", (4096, 4096): "lines_16x8x2", (4096, 1000): "lines_16x8x2",
        (8192, 4096): "lines_16x4x3", (65536, 512): "lines_16x4x3", (11008, 4096): "lines_16x2x3",
        (14336, 4096): "lines_16x2x3", (32000, 4096): "lines_16x16x2", (128256, 4096): "lines_16x16x2",
    },
    ("int8", 1): {
        (1024, 1024): "groups_32", (4096, 4096): "blocks_64", (6144, 4096): "groups_32",
        (11008, 4096): "groups_32x4", (4096, 11008): "blocks_64", (14336, 4096): "groups_32x4",
        (4096, 14336): "blocks_64", (32000, 4096): "blocks_64",
        (57344, 7168): "blocks_64", (2048, 8192): "blocks_128", (1000, 16384): "blocks_256", (300, 32768): "blocks_512",
        (65536, 256): "groups_8", (65536, 1000): "groups_8",
    },
    ("int8", 8): {
        (1024, 1024): "tiles_16x8x2", (1024, 4096): "tiles_16x16x2", (4096, 4096): "tiles_16x8x3",
        (6144, 4096): "tiles_16x8x2", (11008, 4096): "tiles_16x4x2", (4096, 11008): "tiles_16x8x3",
        (14336, 4096): "tiles_16x4x2", (32000, 4096): "lines_32x4x2", (65536, 256): "tiles_16x1x2",
    },
}  # fmt: skip
"""Without the dtype, on an H200, by dtype and tokens and then by shape: m, k."""


@pytest.mark.parametrize(("dtype", "n"), PICKED)
def test_whom_the_rule_for_tokens_picks_on_an_h200(dtype: str, n: int) -> None:
    """By how many rows fill the GPU and how long they are."""
    for (m, k), stem in PICKED[dtype, n].items():
        choice = explain(Problem(m=m, k=k, n=n, dtype=dtype), H200)
        assert choice.kernel == f"{chooser_for(dtype)}_{stem}", (m, k, choice)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int8"])
def test_the_rule_for_tokens_picks_kernels_that_can(dtype: str) -> None:
    """Over shapes around each power of two, any stride and start, from 1 token to 8."""
    loaded("cpu")
    kernels = registry.kernels()
    sizes = sorted({max(1, 2**power + more) for power in range(18) for more in (-1, 0, 1)})
    for m, k, n in itertools.product(sizes[::3], sizes[1::2], range(1, 9)):
        for layout in (Layout(), Layout(row_stride=k + 3, first_element=1)):
            problem = Problem(m=m, k=k, n=n, dtype=dtype, layout=layout)
            choice = explain(problem, H200)
            assert choice.kernel in kernels, (problem, choice)
            assert kernels[choice.kernel].unsupported(problem) is None, (problem, choice)
