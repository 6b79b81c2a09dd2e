"""What pytest-benchmark's own record is given beside the samples."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harness.model import Measurement
from harness.roofline import bandwidth_gb_per_s, flops, least_bytes
from harness.stats import summarize

DIGITS = 13
"""Of a sample in seconds: 0.1 ps. What lies below came of adding samples up to a clock and taking differences."""


def describe(measurement: Measurement) -> dict[str, Any]:
    """Columns for `extra_info`: what was measured, and figures that its table does not compute. No NaN: it is JSON."""
    case, summary = measurement.case, summarize(measurement)
    described: dict[str, Any] = {
        "kernel": case.kernel,
        "role": str(case.role),
        "problem": case.problem.to_dict(),
        "timer": case.timer,
        "cache": str(case.cache),
        "flops": flops(case.problem),
        "least_bytes": least_bytes(case.problem),
        "trials": [trial.trial for trial in measurement.trials],
        "samples_by_trial": [len(trial.samples_ns) for trial in measurement.trials],
    }
    if summary is not None:
        described["trial_medians_ns"] = list(summary.trial_medians_ns)
        described["gb_per_s"] = bandwidth_gb_per_s(case.problem, summary.median_ns.estimate)
    return described


def benchmark_json(config: pytest.Config) -> str | None:
    """pytest-benchmark's JSON of this session as its own hooks make it; None if no benchmark ran."""
    session = config._benchmarksession  # noqa: SLF001 - where pytest-benchmark keeps its session, public hooks apart
    if not session.benchmarks:
        return None
    commit = config.hook.pytest_benchmark_generate_commit_info(config=config)
    config.hook.pytest_benchmark_update_commit_info(config=config, commit_info=commit)
    output = config.hook.pytest_benchmark_generate_json(
        config=config,
        benchmarks=session.benchmarks,
        include_data=True,
        machine_info=session.get_machine_info(),
        commit_info=commit,
    )
    config.hook.pytest_benchmark_update_json(config=config, benchmarks=session.benchmarks, output_json=output)
    for benchmark in output["benchmarks"]:
        benchmark["stats"]["data"] = [round(seconds, DIGITS) for seconds in benchmark["stats"]["data"]]
    return json.dumps(output, default=str, allow_nan=False)
