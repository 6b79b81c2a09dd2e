"""A run → everything that its page says, as plain data in the order in which the page says it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from harness.model import Run
from reports import format as fmt
from reports.cautions import Caution, Level, cautions
from reports.choices import choice_tables
from reports.device import device_tables
from reports.device_kernels import DeviceKernels, device_kernels_view
from reports.facts import BuildView, build_views, command, device_name, environment_tables, method
from reports.figures import Figures, figures
from reports.full_table import CaseTable, full_table
from reports.launch_rate import LaunchRate, launch_rate
from reports.roofline.view import Roofline, roofline_view
from reports.selfcheck import Selfcheck, failed_elsewhere, failures, selfcheck_view
from reports.side_by_side import SideBySide, side_by_side
from reports.tables import Table
from reports.takeaway import floor_note, limit_takeaway, takeaway


@dataclass(frozen=True, kw_only=True)
class View:
    """The content of a run's page."""

    figures: Figures
    title: str
    lede: str
    """What ran where, in a sentence."""
    cautions: tuple[Caution, ...]
    takeaway: str
    """The headline in a sentence."""
    limit_takeaway: str
    floor_note: str
    """What the timers themselves cost; "" where it was not measured or matters to no figure."""
    kernels: tuple[tuple[str, str], ...]
    """(name, design in a line)."""
    cases: CaseTable
    """Every case."""
    roofline: Roofline | None
    """None where the run has neither several tokens nor a suite's own timers."""
    choices: tuple[Table, ...]
    """What a kernel that picks among others picked, one such kernel a table; empty where there is none."""
    launch_rate: LaunchRate | None
    side_by_side: SideBySide | None
    selfcheck: Selfcheck | None
    device_kernels: DeviceKernels | None
    device: tuple[Table, ...]
    environment: tuple[Table, ...]
    builds: tuple[BuildView, ...]
    method: tuple[tuple[str, str], ...]
    command: str
    files: tuple[tuple[str, str], ...]
    """(path within the run, size)."""


def view(run: Run, files: Sequence[tuple[str, int]] = ()) -> View:
    """What the page of `run` says.

    Args:
        run: with samples and device states, as `harness.store.load` gives it.
        files: (path, bytes) of the run's files.
    """
    f = figures(run)
    gemv = f.gemv
    return View(
        figures=f,
        title=f"{'GEMM and GEMV' if gemv is not f else 'SGEMV'} on {device_name(run)}",
        lede=lede(f),
        cautions=all_cautions(f),
        takeaway=takeaway(gemv),
        limit_takeaway=limit_takeaway(gemv),
        floor_note=floor_note(gemv),
        kernels=tuple((k, fmt.line(run.kernels.get(k, "no summary recorded"))) for k in f.kernels),
        cases=full_table(f),
        roofline=roofline_view(f),
        choices=choice_tables(gemv),
        launch_rate=launch_rate(gemv),
        side_by_side=side_by_side(gemv),
        selfcheck=selfcheck_view(f),
        device_kernels=device_kernels_view(f),
        device=device_tables(f),
        environment=environment_tables(run),
        builds=build_views(run),
        method=method(f),
        command=command(run),
        files=tuple((fmt.line(path), fmt.data_bytes(size)) for path, size in files),
    )


def all_cautions(f: Figures) -> tuple[Caution, ...]:
    """What to know before the figures, the selfcheck's failures among it; the gravest first."""
    order = list(Level)
    return tuple(sorted((*cautions(f), *failed_elsewhere(f), *failures(f)), key=lambda c: order.index(c.level)))


def lede(f: Figures) -> str:
    """What ran where and when, in one sentence."""
    run, env = f.run, f.run.environment
    software = [f"{what} {env.get(key)}" for what, key in _SOFTWARE if env.get(key) is not None]
    where = device_name(run) + (f" ({fmt.line(', '.join(software))})" if software else "")
    timed = fmt.listing([_timed(f, timer) for timer in f.timers])
    what = f"{fmt.count(len(f.kernels), 'kernel')} on {fmt.count(len(f.problems), 'problem')}"
    return (
        f"{where}: {what}, timed by {timed or 'nothing'}, {fmt.count(run.options.trials, 'trial')} each, on "
        f"{fmt.moment(run.started_utc)}, in {_duration(run)}."
    )


def _timed(f: Figures, timer: str) -> str:
    """A timer with its states of the cache, and its trials where the others had more."""
    own = [row for row in (*f.rows, *f.suite) if row.way.timer == timer]
    said = " and ".join(sorted({row.way.cache for row in own}))
    trials = max((len(row.measurement.trials) for row in own), default=0)
    fewer = f", {fmt.count(trials, 'trial')}" if trials < f.run.options.trials else ""
    return f"{fmt.name(timer)} ({said}{fewer})"


_SOFTWARE = (("driver", "driver_version"), ("CUDA", "cuda_runtime_version"), ("torch", "torch_version"))


def _duration(run: Run) -> str:
    try:
        taken = datetime.fromisoformat(run.finished_utc) - datetime.fromisoformat(run.started_utc)
    except (ValueError, TypeError):
        return "an unknown time"
    return fmt.span(max(0.0, taken.total_seconds()))
