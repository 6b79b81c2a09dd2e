"""pytest-benchmark's JSON, for `pytest-benchmark compare` and whatever else reads it; times are in seconds.

A run that ended well has the file that pytest-benchmark itself wrote. A partial one gets it made from its samples, in
the same way: all trials pooled, with the statistics of pytest-benchmark's own class.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from harness.errors import CommandError, Exit, first_line
from harness.export import benchmarks
from harness.json_text import parsed
from harness.model import Case, Measurement, Run
from harness.problems import shape_text
from harness.roofline import ITEM_BYTES, bandwidth_gb_per_s, flops, least_bytes
from harness.stats import summarize
from harness.timing import Purpose

NAME = "pytest-benchmark"
HELP = "JSON that `pytest-benchmark compare FILE` reads; trials pooled, seconds"

FILE = "pytest-benchmark.json"
"""In a run's folder."""

DIGITS = 13
"""Of a sample in seconds: 0.1 ps. What lies below came of adding samples up to a clock and taking differences."""

SUITE = "suites/test_{0}.py::test_{0}"
"""A case's test, by the name of its suite: pytest-benchmark compares by test. Of several, a run does not say which one
a case was of, and the first is named."""

_OPTIONS = {
    "disable_gc": False,
    "timer": "read",
    "min_rounds": 5,
    "max_time": 1.0,
    "min_time": 5e-06,
    "precision": None,
    "confidence": None,
    "warmup": False,
}
"""What pytest-benchmark writes under the suites; none has an effect there."""


def export(run: Run, folder: Path) -> str:
    """The text of the JSON file.

    Args:
        run: with its samples.
        folder: where it is.

    Raises:
        CommandError: no case has figures (USAGE), the kept file is no JSON (RUN), or pytest-benchmark is not installed
            (INFRASTRUCTURE).
    """
    kept = folder / FILE
    if kept.is_file():
        return _checked(kept)
    found = benchmarks(run, (Purpose.BENCH, Purpose.SUITE, Purpose.PEER))
    data = {
        "machine_info": _machine(run),
        "commit_info": _commit(run),
        "benchmarks": [_benchmark(each.measurement, next(iter(run.options.suites), "")) for each in found],
        "datetime": run.finished_utc,
        "version": run.environment.get("pytest_benchmark_version"),
    }
    return json.dumps(data, indent=1, allow_nan=False) + "\n"


def describe(measurement: Measurement) -> dict[str, Any]:
    """Columns for `extra_info`: what was measured, and figures that its table does not compute. No NaN: it is JSON."""
    case, summary = measurement.case, summarize(measurement)
    counted = case.problem.dtype in ITEM_BYTES
    described: dict[str, Any] = {
        "kernel": case.kernel,
        "role": str(case.role),
        "problem": case.problem.to_dict(),
        "timer": case.timer,
        "cache": str(case.cache),
        "flops": flops(case.problem),
        "least_bytes": least_bytes(case.problem) if counted else None,
        "trials": [trial.trial for trial in measurement.trials],
        "samples_by_trial": [len(trial.samples_ns) for trial in measurement.trials],
    }
    if summary is not None:
        described["trial_medians_ns"] = list(summary.trial_medians_ns)
        described["gb_per_s"] = bandwidth_gb_per_s(case.problem, summary.median_ns.estimate) if counted else None
    return described


def group_of(case: Case) -> str:
    """The group of the cases that a case may be compared with."""
    return f"{shape_text(case.problem)} {case.timer} {case.cache}"


def _checked(kept: Path) -> str:
    try:
        text = kept.read_text(encoding="utf-8")
        parsed(text, constant=_refuse)
    except ValueError as error:  # of UTF-8 too
        raise CommandError(f"{kept}: not JSON: {first_line(error)}", Exit.RUN) from error
    return text


def _refuse(constant: str) -> None:
    raise ValueError(f"found {constant}")


def _benchmark(measurement: Measurement, suite: str) -> dict[str, Any]:
    case = measurement.case
    fullname = f"{SUITE.format(suite)}[{case.id}]"
    return {
        "group": group_of(case),
        "name": fullname.partition("::")[2],
        "fullname": fullname,
        "params": {"case": str(case)},
        "param": case.id,
        "extra_info": describe(measurement),
        "options": _OPTIONS,
        "stats": _stats(measurement),
    }


def _stats(measurement: Measurement) -> dict[str, Any]:
    try:
        from pytest_benchmark.stats import Stats
    except ImportError as error:
        raise CommandError(
            "pytest-benchmark is not installed: pip install pytest-benchmark", Exit.INFRASTRUCTURE
        ) from error
    make: Any = Stats  # which says nothing of its types
    stats = make()
    for ns in measurement.samples_ns:
        stats.update(ns / 1e9)
    return {**stats.as_dict(), "data": [round(seconds, DIGITS) for seconds in stats.data], "iterations": 1}


def _machine(run: Run) -> dict[str, Any]:
    """As far as the run knows it, under pytest-benchmark's names."""
    known = run.environment.get
    return {
        "node": known("hostname"),
        "processor": known("cpu_name"),
        "machine": None,
        "python_version": known("python_version"),
        "release": known("kernel"),
        "system": known("os"),
        "cpu": {"brand_raw": known("cpu_name"), "count": known("cpu_count")},
        "environment": {key: value if _finite(value) else None for key, value in run.environment.values.items()},
    }


def _finite(value: object) -> bool:
    return not isinstance(value, float) or math.isfinite(value)


def _commit(run: Run) -> dict[str, Any]:
    known = run.environment.get
    unknown = dict.fromkeys(("time", "author_time", "project", "branch"))
    return {"id": known("git_commit"), "dirty": known("git_dirty"), **unknown}
