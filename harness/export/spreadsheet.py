"""CSV: one row a case, failed ones too, with units in the columns' names and the run in every row.

Files of several runs can be put under each other. What is not known is an empty cell. Text that a spreadsheet would
take for a formula gets a `'` in front, and control characters stand as their codes.
"""

from __future__ import annotations

import csv
import io
import math
import re
from pathlib import Path

from harness.export import Figures, exported
from harness.model import Case, Run
from harness.words import LONGEST_LINE, visible

NAME = "csv"
HELP = "a row a case, failed ones too, for pandas or a spreadsheet; a ' stands before what would be a formula"

ENVIRONMENT = (
    "device_name",
    "gpu_uuid",
    "driver_version",
    "cuda_runtime_version",
    "cublas_version",
    "torch_version",
    "power_limit_mw",
    "git_commit",
    "git_dirty",
)
"""Keys of the environment that every row carries."""

FIGURES: tuple[str, ...] = (
    "trials",
    "samples",
    "median_ns",
    "median_low_ns",
    "median_high_ns",
    "trial_spread_fraction",
)
FIGURES += ("bandwidth_gb_per_s", "throttled_samples", "sm_clock_mhz")
"""`median_ns` is the case's figure, the geometric mean of the trials' medians; `median_low_ns` to `median_high_ns` is
its 95 % interval over trials, empty with one trial;
`trial_spread_fraction` is (max − min) / median of the trials' medians. All are empty where a case has no figures."""

COLUMNS: tuple[str, ...] = ("run_id", "started_utc", "partial", "case_id", "kernel", "role", "m", "k", "n", "dtype")
COLUMNS += ("order", "row_stride", "first_element", "seed", "timer", "cache", "verdict", "reason", *FIGURES)
COLUMNS += ENVIRONMENT
"""In the order of the file."""

_FORMULA = re.compile(r"(^\s*|;\s*)(?=[=+\-@\uFF1D\uFF0B\uFF0D\uFF20])")
"""Where a cell begins with =, +, - or @, narrow or wide; where commas mark decimals, a semicolon ends a cell."""


def export(run: Run, folder: Path) -> str:  # noqa: ARG001 - the signature of every format
    """The text of the CSV file; with a header alone for a run without cases.

    Args:
        run: with its samples.
        folder: where it is.
    """
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for each in exported(run):
        row = {**_run(run), **_case(each.case), "verdict": each.verdict, "reason": each.reason}
        if each.figures is not None:
            row |= _figures(each.figures)
        writer.writerow({name: _cell(value) for name, value in row.items()})
    return text.getvalue()


def _run(run: Run) -> dict[str, object]:
    facts = {name: run.environment.get(name) for name in ENVIRONMENT}
    return {"run_id": run.id, "started_utc": run.started_utc, "partial": run.partial, **facts}


def _case(case: Case) -> dict[str, object]:
    problem, layout = case.problem, case.problem.layout
    return {
        "case_id": case.id,
        "kernel": case.kernel,
        "role": case.role,
        "m": problem.m,
        "k": problem.k,
        "n": problem.n,
        "dtype": problem.dtype,
        "order": layout.order,
        "row_stride": layout.row_stride,
        "first_element": layout.first_element,
        "seed": problem.seed,
        "timer": case.timer,
        "cache": case.cache,
    }


def _figures(found: Figures) -> dict[str, object]:
    centre, trials = found.summary.median_ns, len(found.summary.trial_medians_ns)
    return {
        "trials": trials,
        "samples": found.summary.samples,
        "median_ns": centre.estimate,
        "median_low_ns": centre.low,
        "median_high_ns": centre.high,
        "trial_spread_fraction": found.summary.spread if trials > 1 else None,
        "bandwidth_gb_per_s": found.gb_per_s,
        "throttled_samples": found.throttled,
        "sm_clock_mhz": found.sm_clock_mhz,
    }


def _cell(value: object) -> object:
    """Numbers as they are, digit for digit; text that is neither a formula nor hides anything."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return _FORMULA.sub(r"\1'", visible(value, LONGEST_LINE)) if isinstance(value, str) else value
