"""pytest-benchmark's own record of a session."""

from __future__ import annotations

import json

import pytest

from harness.export.pytest_benchmark import DIGITS


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
