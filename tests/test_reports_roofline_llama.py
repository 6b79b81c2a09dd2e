"""reports.roofline.llama: one decode step against one prefill, summed by hand."""

from __future__ import annotations

import pytest

from harness.model import Problem
from harness.roofline import least_bytes
from reports.roofline.llama import DECODE, LAYERS, PREFILL, slower_per_token, step
from tests.planted_roofline import of, timed

SEVEN_B = tuple(layer.weight for layer in LAYERS)


def test_llama_sums_every_layer() -> None:
    """32·(100 + 40 + 2·90 + 91) + 250 µs is 13 402 µs; prefill of the same at ten times that: 51.2 times a token.

    F.linear, twice as fast by chance, is the same product and in no sum.
    """
    decode_us = dict(zip(SEVEN_B, (100, 40, 90, 91, 250), strict=True))
    found = []
    for (m, k), us in decode_us.items():
        for n, factor in ((DECODE, 1), (PREFILL, 10)):
            problem = Problem(m=m, k=k, n=n, dtype="float16")
            found.append(timed("torch.matmul", problem, us * factor * 1e3, us * factor * 1e3))
            found.append(timed("F.linear", problem, us * factor * 5e2, us * factor * 5e2))
    decode, prefill = step(of(*found), "float16", DECODE), step(of(*found), "float16", PREFILL)
    assert decode is not None
    assert prefill is not None
    assert decode.ns.estimate == pytest.approx(13_402e3)
    assert decode.kernels == ("torch.matmul",)
    assert decode.tokens_per_s == pytest.approx(1e9 / 13_402e3)
    assert prefill.flops == 512 * decode.flops
    assert decode.flops == 2 * (32 * (12288 * 4096 + 4096 * 4096 + 2 * 11008 * 4096 + 4096 * 11008) + 32000 * 4096)
    layers = [(layer.count, Problem(m=layer.weight[0], k=layer.weight[1], dtype="float16")) for layer in LAYERS]
    assert decode.bytes == sum(count * least_bytes(problem) for count, problem in layers)
    ratio = slower_per_token(decode, prefill)
    assert ratio is not None
    assert ratio.estimate == pytest.approx(51.2)
    assert step(of(*found), "float32", DECODE) is None
    assert step(of(*found[4:]), "float16", DECODE) is None
