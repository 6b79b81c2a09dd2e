"""harness.gate.probes: the integers are exact in any order, and one-hot operands pick single elements."""

from __future__ import annotations

import pytest
import torch

from harness.gate import Gate
from harness.model import Problem


@pytest.mark.parametrize(("m", "k"), [(1, 1), (1, 2), (3, 3), (64, 1000), (2, 2**16), (2, 2**20)])
def test_the_integers_are_exact_in_any_order(m: int, k: int) -> None:
    """The claims that equality rests on, for every row: Σ|a·x| ≤ 2²⁴, nothing zero; row 0 of one sign, above 2²³."""
    probe = next(probe for probe in Gate(Problem(m=m, k=k), "cpu").probes() if probe.name == "integers")
    a, x = probe.a.values[0].double(), probe.x.values[0].double()
    products = a * x.T
    assert torch.equal(a, a.round())
    assert torch.equal(x, x.round())
    assert bool((products != 0).all())
    assert float(products.abs().sum(1).max()) <= 2**24
    assert float(products[0].sum()) > 2**23
    assert bool((products[0] > 0).all())
    assert torch.equal(probe.expected.double(), products.sum(1, keepdim=True))


@pytest.mark.parametrize(("m", "k"), [(1, 1), (1, 5), (2, 2), (37, 129)])
def test_the_one_hot_probes_pick_single_elements(m: int, k: int) -> None:
    """First, middle and last column of A by x; a column a row of A, of which the first and the last are k's ends."""
    probes = {probe.name: probe for probe in Gate(Problem(m=m, k=k), "cpu").probes()}
    for column in {0, k // 2, k - 1}:
        probe = probes[f"one-hot x at {column}"]
        assert probe.x.values[0, :, 0].nonzero().tolist() == [[column]]
        assert torch.equal(probe.expected[:, 0], probe.a.values[0, :, column])
    rows = probes["one-hot rows of A"]
    picks = rows.a.values[0].argmax(1)
    assert torch.equal(rows.a.values[0], torch.nn.functional.one_hot(picks, k).float())
    assert int(picks[-1]) == k - 1
    assert m == 1 or int(picks[0]) == 0
    assert torch.equal(rows.expected[:, 0], rows.x.values[0, picks, 0])
