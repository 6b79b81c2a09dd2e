"""Runs of examples/ on different boards, held against each other: what did not change gets no word."""

from __future__ import annotations

import itertools
from functools import cache
from pathlib import Path

import pytest

from harness.compare import Change, compare
from harness.comparison.boards import are_two_boards
from harness.model import Run
from harness.store import load

EXAMPLES = Path(__file__).parents[1] / "examples"
RUNS = ("h200", "regimes", "roofline", "tune", "tune-tokens", "compare/base", "power/first", "power/second")


@cache
def kept(name: str) -> Run:
    return load(EXAMPLES / name)


@pytest.mark.parametrize(("base", "new"), list(itertools.combinations(RUNS, 2)))
def test_a_kernel_of_torch_gets_no_word_between_boards(base: str, new: str) -> None:
    """One torch, one cuBLAS, one driver: nothing of them changed between these runs, on as many boards."""
    assert are_two_boards(kept(base), kept(new))
    found = compare(kept(base), kept(new)).cases
    torchs = [each for each in found if each.case.kernel.startswith(("torch.", "F.")) and each.ratio is not None]
    words = [(each.case.id, each.ratio) for each in torchs if each.change in {Change.SLOWER, Change.FASTER}]
    assert not words


def test_they_share_cases() -> None:
    """So that the others may fail: cuBLAS alone differs by up to 6 % here."""
    ratios = [each.ratio for each in compare(kept("tune-tokens"), kept("roofline")).cases]
    shared = [ratio.estimate for ratio in ratios if ratio is not None]
    assert len(shared) > 60
    assert max(shared) > 1.05
