"""What one launch of each kernel runs on the device, as the device's own profiler or a captured graph tells."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from harness.kernel_names import short_name
from harness.model import Cache, DeviceKernel, Problem, Role
from harness.words import THIN
from reports import format as fmt
from reports.figures import BASELINE, Figures, Row
from reports.roofline.points import is_roofline
from reports.tables import Cell, Column, Table, number, table, text

NAMED_NOTE = (
    "From the captured graph of one launch, first trial. The number behind a name leads to the full one below: the "
    "same short name with another number is other code."
)

NOTE = (
    "Duration: from a device kernel's start to its end, the median over the profiled launches of the first trial. "
    "Span: from the start of a launch's first to the end of its last, by {way}. The number behind a name leads to the "
    "full one below: the same short name with another number is other code."
)


@dataclass(frozen=True, kw_only=True)
class DeviceKernels:
    """The section's content; exists only where a run tells of its launches."""

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
    """What the page says of the kernels on the device; None where nothing is known."""
    profiled = rows_of(f)
    if not profiled:
        return None
    names = list(dict.fromkeys(each.name for row in profiled for each in named(row)))
    timed = [row for row in profiled if of(row)]
    way = fmt.listing(list(dict.fromkeys(fmt.name(row.way.label) for row in timed)))
    baseline = [row for row in profiled if row.kernel == BASELINE]
    others = [row for row in profiled if row.kernel != BASELINE]
    return DeviceKernels(
        takeaway=takeaway(f),
        baseline=_baseline_table(baseline, names, timed=bool(timed)) if baseline else None,
        others=_others_table(others, names, timed=bool(timed)) if others else None,
        note=NOTE.format(way=way) if timed else NAMED_NOTE,
        names=tuple(fmt.code(name) for name in names),
    )


def rows_of(f: Figures) -> tuple[Row, ...]:
    """Cases whose device kernels are known, one a kernel and problem; by kernel, then problem.

    Profiled ones before those of which a graph gave the names, cold before hot. A run with several tokens tells of its
    graphs in a section of its own.
    """
    found: dict[tuple[str, Problem], Row] = {}
    known = of if is_roofline(f) else named
    for row in f.rows:
        place = (row.kernel, row.problem)
        if row.role is Role.FLOOR or not known(row):
            continue
        if place not in found or _rank(row) > _rank(found[place]):
            found[place] = row
    return tuple(sorted(found.values(), key=lambda r: (f.kernels.index(r.kernel), f.problems.index(r.problem))))


def _rank(row: Row) -> tuple[bool, bool]:
    return bool(of(row)), row.way.cache is Cache.COLD


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
    used = {each.name for row in baseline for each in named(row)}
    kinds = fmt.count(len(used), "device kernel") if len(used) == 1 else f"{len(used)} different device kernels"
    several = [row for row in baseline if len(named(row)) > 1]
    said = f"{BASELINE} runs {kinds} on {fmt.count(len(baseline), 'problem')}"
    if not several:
        return f"{said}, one a launch."
    where = fmt.listing([fmt.problem(row.problem) for row in several])
    return f"{said}; a launch starts several on {where}."


def _baseline_table(rows: Sequence[Row], names: Sequence[str], *, timed: bool) -> Table:
    lines = [[fmt.problem(row.problem), *cells] for row in rows for cells in _lines(row, names, timed=timed)]
    return table(f"What {BASELINE} runs", [text("problem"), *_heads(timed=timed)], lines)


def _others_table(rows: Sequence[Row], names: Sequence[str], *, timed: bool) -> Table:
    lines: list[list[Cell | str]] = []
    for row in rows:
        kernel = Cell(text=fmt.name(row.kernel), kernel=row.kernel)
        lines += [[kernel, fmt.problem(row.problem), *cells] for cells in _lines(row, names, timed=timed)]
    heads = [text("kernel"), text("problem"), *_heads(timed=timed)]
    return table("What the other kernels run", heads, lines, group_by=0)


def _heads(*, timed: bool) -> list[Column]:
    """What a graph tells, and what the profiler tells beside it."""
    heads = [text("device kernel"), number("grid", "blocks"), number("block", "threads")]
    if timed:
        heads += [number("registers", "a thread"), number("shared memory", "bytes a block")]
        heads += [number("duration", "µs"), number("span", "µs")]
    return heads


def _lines(row: Row, names: Sequence[str], *, timed: bool) -> list[list[Cell | str]]:
    """The cells of `_heads`, a line a device kernel; the launch's span stands in the first."""
    samples_ns = row.measurement.trials[0].samples_ns
    span = fmt.microseconds_figure(statistics.median(samples_ns)) if samples_ns and of(row) else fmt.NONE
    lines: list[list[Cell | str]] = []
    for place, each in enumerate(named(row)):
        name = Cell(text=fmt.name(short_name(each.name)), note=f"({names.index(each.name) + 1})")
        needs: list[Cell | str] = [_known(each.registers), _known(each.shared_bytes)]
        needs += [duration(each), fmt.NONE if place else span]
        lines.append([name, fmt.extents(each.grid), fmt.extents(each.block), *(needs if timed else [])])
    return lines


def duration(kernel: DeviceKernel) -> str:
    """In µs without its unit; a dash where it was not asked for."""
    return fmt.NONE if kernel.duration_ns is None else fmt.microseconds_figure(kernel.duration_ns)


def _known(value: int | None) -> Cell:
    return Cell(text="unknown", mark="quiet") if value is None else Cell(text=f"{value:,}".replace(",", THIN))
