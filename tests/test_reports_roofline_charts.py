"""A roofline run's charts: what their labels say and which shapes tell kernels apart."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harness.model import Problem
from reports.charts import energy, latency
from reports.charts.roofline import shape_by_kernel
from reports.figures import Figures, figures
from reports.roofline.points import points
from tests.sample_claims import at, run_of
from tests.sample_roofline import roofline_run


def bounds(spec: dict[str, Any]) -> list[str]:
    """The bounds that are drawn, by what is said on hover."""
    drawn = (layer for layer in spec["layer"] if layer["mark"]["type"] == "rule")
    return [row["bound"] for layer in drawn for row in layer["data"]["values"]]


def batch(*dtypes: str) -> Figures:
    """4096×4096 with 1, 2 and 8 tokens, and what reading it takes with each."""
    problems = [Problem(m=4096, k=4096, n=n, dtype=dtype) for dtype in dtypes for n in (1, 2, 8)]
    found = [at(kernel, p, ns + p.n) for p in problems for kernel, ns in (("torch.matmul", 12e3), ("read", 11e3))]
    return figures(run_of(found))


@pytest.mark.parametrize(
    ("dtypes", "wanted"),
    [
        (("float16",), ["read, one token, float16"]),
        (("float16", "bfloat16"), ["read, one token, float16", "read, one token, bfloat16"]),
    ],
)
def test_a_bound_is_drawn_once_a_dtype(dtypes: tuple[str, ...], wanted: list[str]) -> None:
    """However many T the weight was read with; where two meet, one's dashes lie in the other's gaps."""
    [panel] = latency.panels(batch(*dtypes))
    assert bounds(panel.spec) == wanted
    marks = [layer["mark"] for layer in panel.spec["layer"] if layer["mark"]["type"] == "rule"]
    assert [mark["strokeDashOffset"] for mark in marks] == [0, 7][: len(wanted)]
    assert all(f"{bound}: 11.00\u00a0µs" in panel.description for bound in wanted)


def stretches(spec: dict[str, Any], kernel: str) -> list[list[int]]:
    """T of a kernel's points by the lines that join them."""
    lines = next(layer for layer in spec["layer"] if layer["mark"]["type"] == "line")
    assert {each["field"] for each in lines["encoding"]["detail"]} == {"kernel", "stretch"}
    found: dict[tuple[str, int], list[int]] = {}
    for row in (lines.get("data") or spec["data"])["values"]:
        if row["kernel"] == kernel:
            found.setdefault((row["dtype"], row["stretch"]), []).append(row["tokens"])
    return list(found.values())


def test_a_line_joins_neighbouring_t_alone() -> None:
    """F.linear at T = 1, 2, 8, 64 of 1 to 64: from 2 on its points stand alone, so that no path seems measured."""
    every, some = (1, 2, 4, 8, 16, 32, 64), (1, 2, 8, 64)
    timed = {n: Problem(m=4096, k=4096, n=n, dtype="float16") for n in every}
    found = [at("torch.matmul", timed[n], 12e3 + n) for n in every] + [at("F.linear", timed[n], 12e3) for n in some]
    [panel] = latency.panels(figures(run_of(found)))
    assert stretches(panel.spec, "torch.matmul") == [list(every)]
    assert stretches(panel.spec, "F.linear") == [[1, 2], [8], [64]]


def test_energy_breaks_its_lines_too() -> None:
    """float32 at T = 1 and 512 alone, float16 between too: two points, no line."""
    timed = [("float16", n) for n in (1, 8, 512)] + [("float32", n) for n in (1, 512)]
    found = [
        at("torch.matmul", Problem(m=4096, k=4096, n=n, dtype=dtype), 1e4, "energy", mj=10.0 + n) for dtype, n in timed
    ]
    [panel] = energy.panels(figures(run_of(found)))
    assert stretches(panel.spec, "torch.matmul") == [[1, 8, 512], [1], [512]]


def test_no_two_kernels_share_a_shape() -> None:
    """Colour tells dtypes apart there, so the shape alone tells kernels apart."""
    f = figures(roofline_run(weights=((4096, 4096),)))
    shown = list(dict.fromkeys(row.kernel for row in points(f)))
    more = [*shown, "sgemv_k16_f32", "sgemv_k32_f32", "sgemv_k128_f32x4"]
    for kernels in (shown, more):
        shapes = json.loads(json.dumps(shape_by_kernel(f, kernels).to_dict()))["scale"]["range"]
        assert len(set(shapes)) == len(kernels)
