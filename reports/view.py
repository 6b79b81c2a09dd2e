"""A run → everything that its page says, as plain data in the order in which the page says it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from harness.model import Run
from reports import format as fmt
from reports.cases import case_table
from reports.cautions import Caution, cautions
from reports.device import device_tables
from reports.facts import BuildView, build_views, command, environment_tables, method
from reports.figures import Figures, figures
from reports.launch_rate import LaunchRate, launch_rate
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
    cases: tuple[Table, ...]
    """The full table, one a problem."""
    launch_rate: LaunchRate | None
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
    return View(
        figures=f,
        title=f"SGEMV on {_device(run)}",
        lede=lede(f),
        cautions=cautions(f),
        takeaway=takeaway(f),
        limit_takeaway=limit_takeaway(f),
        floor_note=floor_note(f),
        kernels=tuple((k, fmt.line(run.kernels.get(k, "no summary recorded"))) for k in f.kernels),
        cases=tuple(case_table(f, p) for p in f.problems),
        launch_rate=launch_rate(f),
        device=device_tables(f),
        environment=environment_tables(run),
        builds=build_views(run),
        method=method(f),
        command=command(run),
        files=tuple((fmt.line(path), fmt.data_bytes(size)) for path, size in files),
    )


def lede(f: Figures) -> str:
    """What ran where and when, in one sentence."""
    run, env = f.run, f.run.environment
    software = [f"{what} {env.get(key)}" for what, key in _SOFTWARE if env.get(key) is not None]
    where = _device(run) + (f" ({fmt.line(', '.join(software))})" if software else "")
    by_timer: dict[str, list[str]] = {}
    for way in f.ways:
        by_timer.setdefault(fmt.name(way.timer), []).append(way.cache)
    timed = fmt.listing([f"{timer} ({' and '.join(caches)})" for timer, caches in by_timer.items()])
    what = f"{fmt.count(len(f.kernels), 'kernel')} on {fmt.count(len(f.problems), 'problem')}"
    return (
        f"{where}: {what}, timed by {timed or 'nothing'}, {fmt.count(run.options.trials, 'trial')} each, on "
        f"{fmt.moment(run.started_utc)}, in {_duration(run)}."
    )


_SOFTWARE = (("driver", "driver_version"), ("CUDA", "cuda_runtime_version"), ("torch", "torch_version"))


def _device(run: Run) -> str:
    env = run.environment
    on_cpu = run.options.device.startswith("cpu")
    found = env.get("cpu_name") if on_cpu else env.get("gpu_name")
    return fmt.name(str(found or env.get("device_name") or f"an unknown device ({run.options.device})"))


def _duration(run: Run) -> str:
    try:
        taken = datetime.fromisoformat(run.finished_utc) - datetime.fromisoformat(run.started_utc)
    except (ValueError, TypeError):
        return "an unknown time"
    return fmt.span(max(0.0, taken.total_seconds()))
