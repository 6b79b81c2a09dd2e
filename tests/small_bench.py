"""Small benches on the CPU: their options, and the cases of planted kernels."""

from __future__ import annotations

from harness.cases import Grid, cases_for
from harness.model import Cache, Case, Options, Problem
from tests import planted_kernels

PROBLEM = Problem(m=6, k=10)


def options(**changes: object) -> Options:
    values = {"trials": 2, "max_time_s": 0.002, "quick": False, "device": "cpu", "command": ("a", "test")}
    return Options(**{**values, **changes})  # type: ignore[arg-type]


def cases(names: list[str], caches: tuple[Cache, ...] = (Cache.HOT,)) -> list[Case]:
    found = planted_kernels.kernels()
    grid = Grid(problems=(PROBLEM,), timers=("graph", "async"), caches=caches)
    return cases_for([found[name] for name in names], [grid], "cpu")
