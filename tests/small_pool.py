"""Pools of workers on the CPU for planted kernels, and a case of each kernel."""

from __future__ import annotations

from pathlib import Path

from harness.model import Cache, Case, Problem
from harness.pool import WorkerSpec
from tests import planted_kernels

REGISTRY = "tests.planted_kernels"
KERNELS = planted_kernels.kernels()
PROBLEM = Problem(m=5, k=9)


def spec(log_folder: Path, **changes: object) -> WorkerSpec:
    values = {"registry": REGISTRY, "device": "cpu", "log_folder": log_folder, "trials": 1, "silence_s": 30.0}
    return WorkerSpec(**{**values, **changes})  # type: ignore[arg-type]


def case(name: str) -> Case:
    return Case(kernel=name, role=KERNELS[name].role, problem=PROBLEM, timer="async", cache=Cache.HOT)
