"""A run in the formats of other tools: a module each, found by looking into this folder.

A format's module holds `NAME`, as `--to` takes it, `HELP` in one line, and `export(run, folder)`, which gives the text
of the file. To add a format, add a module.
"""

from __future__ import annotations

import importlib
import pkgutil
import statistics
from collections.abc import Collection
from dataclasses import dataclass
from types import ModuleType

from harness.comparison.sides import side
from harness.errors import CommandError, Exit
from harness.model import Case, Measurement, Role, Run, Word
from harness.roofline import ITEM_BYTES, bandwidth_gb_per_s
from harness.stats import Summary, summarize
from harness.throttling import reference_clock_mhz, throttled_share
from harness.timing import Purpose, timers


@dataclass(frozen=True, kw_only=True)
class Figures:
    """What a case that passed has to show."""

    measurement: Measurement
    """With its samples."""
    summary: Summary
    """Time with its interval, spread, number of samples."""
    gb_per_s: float | None
    """Least bytes over the time; None for the floor, and for a dtype of unknown size."""
    throttled: int | None
    """Samples during which a limit held the clocks back; None where nothing tells."""
    sm_clock_mhz: float | None
    """Median over the samples; None where none was read."""


@dataclass(frozen=True, kw_only=True)
class Exported:
    """A case, whatever became of it."""

    case: Case
    """What was measured."""
    verdict: Word
    """The gate's word."""
    reason: str | None
    """Why there are no figures, in one line; None: there are."""
    figures: Figures | None
    """None: see the reason."""


def formats() -> dict[str, ModuleType]:
    """The formats' modules by name."""
    names = sorted(found.name for found in pkgutil.iter_modules(__path__))
    modules = [importlib.import_module(f"{__name__}.{name}") for name in names]
    return {module.NAME: module for module in modules}


def exported(run: Run) -> list[Exported]:
    """Every case in order of measuring; of a case that was measured twice, whose samples are kept together, one.

    Args:
        run: with its samples, as `store.load` gives it.
    """
    reference_mhz = reference_clock_mhz(run.measurements)
    return [_exported(each, reference_mhz) for each in {each.case.id: each for each in run.measurements}.values()]


def benchmarks(run: Run, purposes: Collection[Purpose]) -> list[Figures]:
    """The figures of timers that are there for one of `purposes`, or that this program lacks.

    Raises:
        CommandError: there are none (USAGE).
    """
    others = {name for name, timer in timers().items() if timer.purpose not in purposes}
    found = [each.figures for each in exported(run) if each.figures and each.case.timer not in others]
    if not found:
        total = len(run.measurements)
        what = f"none of its {total} cases has figures" if total else "it has no cases"
        raise CommandError(f"run {run.id}: {what}: nothing to export; csv has failed cases too", Exit.USAGE)
    return found


def _exported(measurement: Measurement, reference_mhz: float | None) -> Exported:
    found = side(measurement)
    summary = None if found.fault else summarize(measurement)
    return Exported(
        case=measurement.case,
        verdict=found.word,
        reason=found.fault and found.fault.removeprefix(f"{found.word}: "),
        figures=None if summary is None else _figures(measurement, summary, reference_mhz),
    )


def _figures(measurement: Measurement, summary: Summary, reference_mhz: float | None) -> Figures:
    problem, ns = measurement.case.problem, summary.median_ns.estimate
    counted = measurement.case.role is not Role.FLOOR and problem.dtype in ITEM_BYTES
    return Figures(
        measurement=measurement,
        summary=summary,
        gb_per_s=bandwidth_gb_per_s(problem, ns) if counted else None,
        throttled=throttled_share(measurement, reference_mhz)[0] if _tells(measurement) else None,
        sm_clock_mhz=_clock_mhz(measurement),
    )


def _tells(measurement: Measurement) -> bool:
    """Whether clocks or counters of limits were read at all: else no sample can be marked, and 0 says nothing."""
    return any(
        trial.sample_clocks_mhz or any(state.limited_ns for state in trial.states) for trial in measurement.trials
    )


def _clock_mhz(measurement: Measurement) -> float | None:
    clocks = measurement.sample_clocks_mhz
    return statistics.median(clocks) if clocks else None
