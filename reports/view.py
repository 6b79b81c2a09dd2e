"""A run → everything that its page says, as plain data in the order in which the page says it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from harness.model import Problem, Run
from reports import format as fmt
from reports.cases import case_table
from reports.cautions import Caution, Level, cautions
from reports.choices import choice_tables
from reports.device import device_tables
from reports.device_kernels import DeviceKernels, device_kernels_view
from reports.facts import BuildView, build_views, command, device_name, environment_tables, method
from reports.figures import Figures, figures
from reports.launch_rate import LaunchRate, launch_rate
from reports.roofline.view import Roofline, roofline_view
from reports.selfcheck import Selfcheck, failed_elsewhere, failures, selfcheck_view
from reports.side_by_side import SideBySide, side_by_side
from reports.tables import Table
from reports.takeaway import floor_note, limit_takeaway, takeaway


@dataclass(frozen=True, kw_only=True)
class Cases:
    """The full table of one problem."""

    title: str
    open: Table
    """By the ways of timing that lead."""
    folded: Table | None
    """By the others; None where there are none."""
    summary: str
    """What is folded, with its number of rows."""


@dataclass(frozen=True, kw_only=True)
class CaseGroup:
    """The full tables of the problems of one dtype."""

    title: str
    """The dtype with its number of problems; "" where the run has one dtype."""
    first: int
    """Place of its first problem among all, from 1."""
    cases: tuple[Cases, ...]
    folded: bool


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
    case_groups: tuple[CaseGroup, ...]
    """The full tables, one a problem, by dtype."""
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

    @property
    def cases(self) -> tuple[Cases, ...]:
        """The full tables of all dtypes."""
        return tuple(each for group in self.case_groups for each in group.cases)


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
        case_groups=_case_groups(gemv),
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


def _case_groups(f: Figures) -> tuple[CaseGroup, ...]:
    """By dtype; the first is shown at once."""
    groups: list[CaseGroup] = []
    first = 1
    for dtype in f.dtypes:
        own = f.of_dtype(dtype)
        cases = tuple(_cases(own, problem) for problem in own.problems)
        title = f"{fmt.name(dtype)}: {fmt.count(len(cases), 'problem')}" if len(f.dtypes) > 1 else ""
        groups.append(CaseGroup(title=title, first=first, cases=cases, folded=bool(groups)))
        first += len(cases)
    return tuple(groups)


def _cases(f: Figures, problem: Problem) -> Cases:
    led = case_table(f.by(f.leading), problem)
    folded = case_table(f.by(f.folded), problem) if f.folded else None
    timers = fmt.listing([fmt.name(timer) for timer in dict.fromkeys(way.timer for way in f.folded)])
    summary = f"By {timers}: {fmt.count(len(folded.rows), 'row')}" if folded else ""
    return Cases(title=led.caption, open=led, folded=folded, summary=summary)


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
