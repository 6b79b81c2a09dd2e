"""Roofline runs of few cases, some with times that are given, and the cells of a table of them."""

from __future__ import annotations

from dataclasses import replace

from harness.model import DeviceKernel, Measurement, Problem, Run, TrialResult
from reports.figures import Figures, figures
from reports.tables import Table
from tests.sample_roofline import PASSED, REFERENCE, case, roofline_run
from tests.sample_run import empty_run


def small(**wanted: object) -> Run:
    """One weight with few T."""
    return roofline_run(**{"weights": (REFERENCE,), "tokens": (1, 2, 8, 16, 512), **wanted})  # type: ignore[arg-type]


def timed(kernel: str, problem: Problem, *trials_ns: float, names: tuple[str, ...] = ()) -> Measurement:
    """By graph, cold, a trial a time."""
    launched = tuple(
        DeviceKernel(name=n, grid=(8, 1, 1), block=(32, 1, 1), registers=1, shared_bytes=0, duration_ns=None)
        for n in names
    )
    trials = [
        TrialResult(trial=i, verdict=PASSED, samples_ns=(ns,), device_kernels=launched)
        for i, ns in enumerate(trials_ns)
    ]
    return Measurement(case=case(kernel, problem), trials=tuple(trials))


def of(*measurements: Measurement) -> Figures:
    return figures(replace(empty_run(), measurements=measurements))


def cells(table: Table | None) -> list[list[str]]:
    assert table is not None
    return [[cell.text for cell in row] for row in table.rows]


def half(n: int) -> Problem:
    return Problem(m=4096, k=4096, n=n, dtype="float16")
