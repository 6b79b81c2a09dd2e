"""Runs to be exported, and how what is made of them is read: a CSV's rows, the action's entries, a table of medians."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema

from harness.export import github_action
from harness.model import Cache, Case, Measurement, Problem, Role, Run, TrialResult, Verdict, Word
from tests.planted_runs import publish
from tests.sample_run import gpu_run

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "examples" / "h200"
PASSED = Verdict(word=Word.PASSED)


def kept(folder: Path, run: Run) -> Path:
    """The folder of a published run."""
    return publish(folder, run.id, run)


def case(kernel: str, timer: str = "graph", dtype: str = "float32") -> Case:
    problem = Problem(m=1000, k=250, dtype=dtype)
    return Case(kernel=kernel, role=Role.GEMV, problem=problem, timer=timer, cache=Cache.COLD)


def timed(of: Case, *trials: tuple[float, ...]) -> Measurement:
    """With these samples, ns."""
    results = (TrialResult(trial=i, verdict=PASSED, samples_ns=samples) for i, samples in enumerate(trials))
    return Measurement(case=of, trials=tuple(results))


def run_of(*measurements: Measurement) -> Run:
    return replace(gpu_run(shapes=((64, 64),), kernels={}, trials=1, samples=2), measurements=measurements)


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def compare(folder: Path, *files: Path) -> str:
    """What pytest-benchmark's own program prints of the files."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest_benchmark", "compare", *map(str, files)],
        cwd=folder, capture_output=True, text=True, timeout=60, check=False, env={**os.environ, "COLUMNS": "300"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


RESULT = {
    "type": "array",
    "minItems": 1,
    "items": {
        "type": "object",
        "properties": {
            "name": {"type": "string", "minLength": 1, "pattern": r"^[^`|\x00-\x1f]+$"},
            "value": {"type": "number", "exclusiveMinimum": 0},
            "unit": {"const": "ns"},
            "range": {"type": "string", "pattern": r"^± \d[\d.]*(e-?\d+)?$"},
            "extra": {"type": "string"},
        },
        "required": ["name", "value", "unit", "extra"],
        "additionalProperties": False,
    },
}
"""`BenchmarkResult` of benchmark-action/github-action-benchmark, which reads a range as a number behind ±, and what its
comments hold: names between backticks in a table."""


def entries(run: Run, folder: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(github_action.export(run, folder))
    jsonschema.validate(found, RESULT)
    names = [each["name"] for each in found]
    assert len(set(names)) == len(names)
    return found
