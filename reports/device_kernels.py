"""What one launch of each kernel runs on the device, as the device's own profiler saw it."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from harness.kernel_names import short_name
from harness.model import Cache, DeviceKernel, Problem, Role
from harness.words import THIN
from reports import format as fmt
from reports.figures import BASELINE, Figures, Row
from reports.tables import Cell, Table, number, table, text

NOTE = (
    "Duration: from a device kernel's start to its end, the median over the profiled launches of the first trial. "
    "Span: from the start of a launch's first to the end of its last, by {way}. The number behind a name leads to the "
    "full one below: the same short name with another number is other code."
)


@dataclass(frozen=True, kw_only=True)
class DeviceKernels:
    """The section's content; exists only where a run has profiled launches."""

    takeaway: str
    baseline: Table | None
    """The baseline's, a row a problem and device kernel; None where it was not profiled."""
    others: Table | None
    """Every other kernel's."""
    names: tuple[str, ...]
    """Full names, which the tables refer to by number, from 1."""
    note: str
    """What the figures are."""


def device_kernels_view(f: Figures) -> DeviceKernels | None:
    """What the page says of the kernels on the device; None where nothing was profiled."""
    profiled = rows_of(f)
    if not profiled:
        return None
    names = list(dict.fromkeys(each.name for row in profiled for each in of(row)))
    baseline = [row for row in profiled if row.kernel == BASELINE]
    others = [row for row in profiled if row.kernel != BASELINE]
    return DeviceKernels(
        takeaway=takeaway(f),
        baseline=_baseline_table(baseline, names) if baseline else None,
        others=_others_table(others, names) if others else None,
        note=NOTE.format(way=fmt.listing(list(dict.fromkeys(fmt.name(row.way.label) for row in profiled)))),
        names=tuple(fmt.code(name) for name in names),
    )


def rows_of(f: Figures) -> tuple[Row, ...]:
    """Profiled cases, one a kernel and problem, cold where there are both; by kernel, then problem."""
    found: dict[tuple[str, Problem], Row] = {}
    for row in f.rows:
        place = (row.kernel, row.problem)
        if row.role is not Role.FLOOR and of(row) and (place not in found or row.way.cache is Cache.COLD):
            found[place] = row
    return tuple(sorted(found.values(), key=lambda r: (f.kernels.index(r.kernel), f.problems.index(r.problem))))


def of(row: Row) -> tuple[DeviceKernel, ...]:
    """What one launch ran, in order, in the first trial; nothing where only names were asked for."""
    return tuple(each for each in named(row) if each.duration_ns is not None)


def named(row: Row) -> tuple[DeviceKernel, ...]:
    """What one launch ran, in order, in the first trial, timed or not."""
    trials = row.measurement.trials
    return trials[0].device_kernels if trials else ()


def takeaway(f: Figures) -> str:
    """How many device kernels the baseline chose from."""
    baseline = [row for row in rows_of(f) if row.kernel == BASELINE]
    if not baseline:
        return f"{BASELINE} was not profiled."
    used = {each.name for row in baseline for each in of(row)}
    kinds = fmt.count(len(used), "device kernel") if len(used) == 1 else f"{len(used)} different device kernels"
    several = [row for row in baseline if len(of(row)) > 1]
    said = f"{BASELINE} runs {kinds} on {fmt.count(len(baseline), 'problem')}"
    if not several:
        return f"{said}, one a launch."
    where = fmt.listing([fmt.problem(row.problem) for row in several])
    return f"{said}; a launch starts several on {where}."


def _baseline_table(rows: Sequence[Row], names: Sequence[str]) -> Table:
    lines = [[fmt.problem(row.problem), *cells] for row in rows for cells in _lines(row, names)]
    return table(f"What {BASELINE} runs", [text("problem"), *HEADS], lines)


def _others_table(rows: Sequence[Row], names: Sequence[str]) -> Table:
    lines: list[list[Cell | str]] = []
    for row in rows:
        kernel = Cell(text=fmt.name(row.kernel), kernel=row.kernel)
        lines += [[kernel, fmt.problem(row.problem), *cells] for cells in _lines(row, names)]
    return table("What the other kernels run", [text("kernel"), text("problem"), *HEADS], lines, group_by=0)


HEADS = (
    text("device kernel"),
    number("grid", "blocks"),
    number("block", "threads"),
    number("registers", "a thread"),
    number("shared memory", "bytes a block"),
    number("duration", "µs"),
    number("span", "µs"),
)


def _lines(row: Row, names: Sequence[str]) -> list[list[Cell | str]]:
    """The cells of `HEADS`, a line a device kernel; the launch's span stands in the first."""
    samples_ns = row.measurement.trials[0].samples_ns
    span = fmt.microseconds_figure(statistics.median(samples_ns)) if samples_ns else fmt.NONE
    lines: list[list[Cell | str]] = []
    for place, each in enumerate(of(row)):
        name = Cell(text=fmt.name(short_name(each.name)), note=f"({names.index(each.name) + 1})")
        shape: list[Cell | str] = [fmt.extents(each.grid), fmt.extents(each.block)]
        needs = [_known(each.registers), _known(each.shared_bytes)]
        lines.append([name, *shape, *needs, duration(each), fmt.NONE if place else span])
    return lines


def duration(kernel: DeviceKernel) -> str:
    """In µs without its unit; a dash where it was not asked for."""
    return fmt.NONE if kernel.duration_ns is None else fmt.microseconds_figure(kernel.duration_ns)


def _known(value: int | None) -> Cell:
    return Cell(text="unknown", mark="quiet") if value is None else Cell(text=f"{value:,}".replace(",", THIN))
