"""JSON for the GitHub action benchmark-action/github-action-benchmark, `tool: customSmallerIsBetter`.

A list of `{name, value, unit, range, extra}`. The action finds the figure to compare with by `name`, so names are case
ids, which stay the same from run to run. The unit is always ns, so that a chart has one scale. It reads `range` as a
number behind ±, in that unit: half the 95 % interval over trials; a figure of one trial has none.

Source: `extractCustomBenchmarkResult`, `extractRangeInfo` and `normalizeBenchmark` of that project.
"""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

from harness.export import Figures, benchmarks
from harness.model import Case, Run
from harness.stats import CENTRE
from harness.timing import Purpose
from harness.words import LONGEST_LINE, significant, visible

NAME = "github-action-benchmark"
HELP = "JSON for benchmark-action/github-action-benchmark, tool customSmallerIsBetter; ns per launch, ± over trials"

UNIT = "ns"
"""Per launch."""

_MARKUP = re.compile(r"[`|<>]")
"""Would break the table in a comment, where the action puts names between backticks."""

_ENVIRONMENT = {"device": "device_name", "driver": "driver_version", "CUDA": "cuda_runtime_version"}
_ENVIRONMENT |= {"torch": "torch_version", "commit": "git_commit"}
"""Lines of `extra`, by what they are called."""


def export(run: Run, folder: Path) -> str:  # noqa: ARG001 - the signature of every format
    """The text of the JSON file.

    Args:
        run: with its samples.
        folder: where it is.

    Raises:
        CommandError: no case has figures (USAGE): the action refuses an empty list.
    """
    return (
        json.dumps([_entry(run, each) for each in benchmarks(run, (Purpose.BENCH,))], indent=1, allow_nan=False) + "\n"
    )


def _entry(run: Run, found: Figures) -> dict[str, Any]:
    centre = found.summary.median_ns
    entry = {"name": name_of(found.measurement.case), "value": _rounded(centre.estimate), "unit": UNIT}
    if centre.low is not None and centre.high is not None:
        entry["range"] = f"± {_rounded((centre.high - centre.low) / 2)}"
    return entry | {"extra": "\n".join(_extra(run, found))}


def _rounded(ns: float) -> float:
    """The action shows every digit that it is given."""
    return float(f"{ns:.6g}")


def name_of(case: Case) -> str:
    """The case's id; one that cannot stand in a comment is made to, with a hash that keeps it apart from others."""
    shown = _MARKUP.sub("_", visible(case.id, LONGEST_LINE))
    return shown if shown == case.id else f"{shown}-{hashlib.sha256(case.id.encode()).hexdigest()[:8]}"


def _extra(run: Run, found: Figures) -> list[str]:
    """What the action shows beside a point, a line each."""
    trials, samples = len(found.summary.trial_medians_ns), found.summary.samples
    lines = [f"{CENTRE} of {trials} trials" if trials > 1 else "one trial, so no interval", f"{samples} samples"]
    if found.sm_clock_mhz is not None:
        lines.append(f"SM clock: {significant(found.sm_clock_mhz, thousands='')} MHz")
    if found.throttled is not None:
        lines.append(f"throttled: {found.throttled} of {samples} samples")
    known = {name: run.environment.get(key) for name, key in _ENVIRONMENT.items()}
    lines += [f"{name}: {visible(str(value))}" for name, value in known.items() if value is not None]
    return [*lines, f"run: {visible(run.id)}"]
