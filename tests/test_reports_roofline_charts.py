"""A roofline run's charts: what their labels say and which shapes tell kernels apart."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harness.model import Problem
from reports.charts import latency
from reports.charts.roofline import shape_by_kernel
from reports.figures import Figures, figures
from reports.roofline.points import points
from tests.sample_claims import at, run_of
from tests.sample_roofline import roofline_run


def labelled(spec: dict[str, Any]) -> list[str]:
    """All that is written at a bound."""
    written = (layer for layer in spec["layer"] if layer["mark"]["type"] == "text")
    return [row["bound"] for layer in written for row in layer["data"]["values"]]


def batch(*dtypes: str) -> Figures:
    """4096×4096 with 1, 2 and 8 tokens, and what reading it takes with each."""
    problems = [Problem(m=4096, k=4096, n=n, dtype=dtype) for dtype in dtypes for n in (1, 2, 8)]
    found = [at(kernel, p, ns + p.n) for p in problems for kernel, ns in (("torch.matmul", 12e3), ("read", 11e3))]
    return figures(run_of(found))


@pytest.mark.parametrize(
    ("dtypes", "wanted"),
    [(("float16",), ["read, float16"]), (("float16", "bfloat16"), ["read, float16 · bfloat16"])],
)
def test_a_bound_names_each_dtype_once(dtypes: tuple[str, ...], wanted: list[str]) -> None:
    """However many T the weight was read with."""
    [panel] = latency.panels(batch(*dtypes))
    assert labelled(panel.spec) == wanted


def test_no_two_kernels_share_a_shape() -> None:
    """Colour tells dtypes apart there, so the shape alone tells kernels apart."""
    f = figures(roofline_run(weights=((4096, 4096),)))
    shown = list(dict.fromkeys(row.kernel for row in points(f)))
    more = [*shown, "sgemv_k16_f32", "sgemv_k32_f32", "sgemv_k128_f32x4"]
    for kernels in (shown, more):
        shapes = json.loads(json.dumps(shape_by_kernel(f, kernels).to_dict()))["scale"]["range"]
        assert len(set(shapes)) == len(kernels)
