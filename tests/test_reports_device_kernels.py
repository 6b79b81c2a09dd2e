"""What ran on the device, as a captured graph tells."""

from __future__ import annotations

import io
from dataclasses import replace

from rich.console import Console

from harness.model import DeviceKernel
from reports.device_kernels import device_kernels_view
from reports.figures import figures
from reports.terminal import summary_table
from tests.sample_run import gpu_run


def test_names_of_graphs_do_without_a_profiler() -> None:
    """Names, grids and blocks; no column of what only a profiler tells; a profiled launch comes first."""
    launched = DeviceKernel(
        name="gemv2T", grid=(64, 1, 1), block=(128, 1, 1), registers=None, shared_bytes=None, duration_ns=None
    )
    base = gpu_run(shapes=((1024, 128),), samples=2)
    of_graph = tuple(
        replace(m, trials=tuple(replace(t, device_kernels=(launched,)) for t in m.trials))
        if (m.case.kernel, m.case.timer) == ("torch.matmul", "graph")
        else m
        for m in base.measurements
    )
    seen = device_kernels_view(figures(replace(base, measurements=of_graph)))
    assert seen is not None
    assert seen.baseline is not None
    assert [c.title for c in seen.baseline.columns] == ["problem", "device kernel", "grid", "block"]
    assert [[c.text for c in row] for row in seen.baseline.rows] == [["1024×128", "gemv2T", "64", "128"]]
    assert seen.takeaway == "torch.matmul runs 1 device kernel on 1 problem, one a launch."
    assert "captured graph" in seen.note
    out = io.StringIO()
    Console(file=out, width=80).print(summary_table(replace(base, measurements=of_graph)))
    assert "torch.matmul runs 1 device kernel" in out.getvalue()
