"""harness.gate.probes in every dtype and for several tokens: exact, scaled, one for each token, placed as operands."""

from __future__ import annotations

import pytest
import torch

from harness.dtypes import DTYPES
from harness.gate import Gate
from harness.model import Problem
from harness.problems import Guarded, OperandSets
from tests.planted_dtypes import NARROW

EVERY_DTYPE = pytest.mark.parametrize("dtype", DTYPES)


@EVERY_DTYPE
@pytest.mark.parametrize(("m", "k", "n"), [(1, 1, 1), (3, 3, 2), (40, 1000, 4), (3, 65536, 2), (2, 131072, 1)])
def test_the_integers_are_exact_in_any_order(dtype: str, m: int, k: int, n: int) -> None:
    """The claims that equality rests on: whole numbers that the dtype holds, Σ|a·x| ≤ 2²⁴, no zero where all count."""
    probes = {probe.name: probe for probe in Gate(Problem(m=m, k=k, n=n, dtype=dtype), "cpu").probes()}
    assert ("large integers" in probes) is (dtype in NARROW)
    for name in {"integers", "large integers"} & probes.keys():
        probe = probes[name]
        a, x = probe.a.values[0].double(), probe.x.values[0].double()
        assert torch.equal(a, a.round())
        assert torch.equal(x, x.round())
        assert bool((x != 0).all())
        assert float((a.abs() @ x.abs()).max()) <= 2**24
        scale = 1.0 if probe.scale is None else probe.scale.values[0].double()
        assert torch.equal(probe.expected, (a @ x * scale).to(probe.expected.dtype))
    a, x = (getattr(probes["integers"], part).values[0].double() for part in ("a", "x"))
    sums = a @ x
    assert bool((a != 0).all())
    if dtype == "float32":
        assert float(sums[0].max()) > 2**23
    if dtype == "tf32":
        assert float(a.abs().max()) <= 2**11
        assert float(x.abs().max()) <= 2**11
    if dtype in NARROW:
        assert float(sums.abs().max()) < (2**8 if dtype == "bfloat16" else 2**11)
        large = probes["large integers"]
        a, x = large.a.values[0].double(), large.x.values[0].double()
        assert bool((a >= 0).all())
        assert bool((x > 0).all())
        assert float((a @ x).max()) <= 2**15
        assert k < 100 or float((a @ x).min()) > 2**11


@EVERY_DTYPE
def test_tokens_differ_in_every_probe(dtype: str) -> None:
    """Or a kernel could give one the other's result."""
    for probe in Gate(Problem(m=8, k=64, n=4, dtype=dtype), "cpu").probes():
        tokens = probe.x.values[0].t()
        assert all(not torch.equal(tokens[i], tokens[j]) for i in range(4) for j in range(i))
        results = probe.expected.t()
        assert all(not torch.equal(results[i], results[j]) for i in range(4) for j in range(i))


def test_one_hot_tokens_pick_columns_of_their_own() -> None:
    """From the first, the middle and the last column on."""
    probes = {probe.name: probe for probe in Gate(Problem(m=4, k=9, n=3, dtype="float16"), "cpu").probes()}
    for first, columns in ((0, [0, 1, 2]), (4, [4, 5, 6]), (8, [8, 0, 1])):
        probe = probes[f"one-hot x at {first}"]
        assert probe.x.values[0].argmax(0).tolist() == columns
        assert float(probe.x.values.sum()) == 3.0
        assert torch.equal(probe.expected, probe.a.values[0][:, columns])


def test_int8_is_scaled_in_float32_and_rounded_once() -> None:
    """By hand for one product: 96·x·scale of 11 bits each, from the exact product in float64."""
    probes = {probe.name: probe for probe in Gate(Problem(m=50, k=7, n=2, dtype="int8"), "cpu").probes()}
    probe = probes["one-hot rows of A"]
    picks = probe.a.values[0].int().argmax(1)
    exact = 96.0 * probe.x.values[0][picks].double() * probe.scale.values[0].double()
    assert torch.equal(exact.float().double(), exact)
    assert torch.equal(probe.expected, exact.half())
    assert float(probe.scale.values.min()) > 0
    powers = set(probes["integers"].scale.values.flatten().tolist())
    assert powers == {0.125, 0.25, 0.5}


@EVERY_DTYPE
def test_probes_lie_as_operands_do(dtype: str) -> None:
    """Token by token, sentinels around every part, in float16 too where 64 elements are but 128 bytes."""
    problem = Problem(m=6, k=10, n=4, dtype=dtype)
    wanted = OperandSets(problem, "cpu", 1)
    for probe in Gate(problem, "cpu").probes():
        assert probe.inputs().keys() == wanted.inputs().keys()
        for name, part in probe.inputs().items():
            assert isinstance(part, Guarded)
            assert part.values.stride() == wanted.inputs()[name].values.stride()
            assert part.values.dtype is wanted.inputs()[name].values.dtype
            assert part.values.storage_offset() * part.values.element_size() == 256
        assert probe.touched() is None
