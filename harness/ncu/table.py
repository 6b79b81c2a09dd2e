"""The terminal's table of what Nsight Compute saw."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.table import Column, Table

from harness.kernel_names import short_name
from harness.model import Problem
from harness.ncu.output import ProfiledKernel
from harness.problems import shape_text
from harness.roofline import least_bytes

CAPTION = (
    "One launch, cold: ncu flushes the caches before every pass over every device kernel (--cache-control all) and "
    "leaves the clocks as they are (--clock-control none). Its times are not the harness's figures: nox -s bench "
    "measures those, and checks the results."
)

UNKNOWN = "–"

NUMBERS = (
    *("grid", "block", "regs/\nthread", "ncu's\nµs", "DRAM\nread +\nwritten", "× its\nleast"),
    *("DRAM\n% of\npeak", "occu-\npancy\n%", "load\nsect./\nreq.", "L2\nhit\n%"),
)
"""Headers of the columns of numbers; narrow, so that a row fits a terminal."""

LEAST_WIDTH = 100
"""Of a terminal: on less, rich would leave out the columns that do not fit."""


def table(problem: Problem, profiles: Iterable[tuple[str, Sequence[ProfiledKernel]]]) -> Table:
    """A row a device kernel, and one for the sum of what moved where a launch starts several.

    Args:
        problem: what was computed.
        profiles: name of the kernel, and what one launch of it started.
    """
    least = least_bytes(problem)
    shown = Table(
        Column("kernel\n  device kernel", overflow="fold", min_width=16),
        *(Column(name, justify="right", no_wrap=True, vertical="bottom") for name in NUMBERS),
        title=f"{shape_text(problem)}: {_bytes(least)} at least",
        title_justify="left",
        box=None,
        pad_edge=False,
    )
    for kernel, device_kernels in profiles:
        for number, each in enumerate(device_kernels):
            name = f"  {short_name(each.name)}"
            shown.add_row(name if number else f"{kernel}\n{name}", *_cells(each, least))
        if len(device_kernels) > 1:
            total = _sum([each.dram_bytes for each in device_kernels])
            shown.add_row(f"  all {len(device_kernels)}", "", "", "", "", _bytes(total), _ratio(total, least))
    return shown


def notes(device_kernels: Sequence[ProfiledKernel]) -> list[str]:
    """Why a cell is empty, a line a reason."""
    missing = dict.fromkeys(metric for each in device_kernels for metric in each.missing)
    lines = [f"{UNKNOWN}: ncu gives no value for {', '.join(missing)} on this GPU."] if missing else []
    if any(each.load_requests == 0 for each in device_kernels):
        lines.append(f"{UNKNOWN} under load sectors per request: no load instruction went to global memory through L1.")
    return lines


def _cells(each: ProfiledKernel, least: int) -> list[str]:
    return [
        _extents(each.grid),
        _extents(each.block),
        _number(each.registers, 0),
        _number(None if each.duration_ns is None else each.duration_ns / 1e3, 2),
        _bytes(each.dram_bytes),
        _ratio(each.dram_bytes, least),
        _number(each.dram_throughput_pct, 1),
        _number(each.occupancy_pct, 1),
        _number(each.sectors_per_request, 2),
        _number(each.l2_hit_pct, 1),
    ]


def _sum(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


def _ratio(moved: float | None, least: int) -> str:
    return _number(None if moved is None else moved / least, 3)


def _number(value: float | None, digits: int) -> str:
    return UNKNOWN if value is None else f"{value:.{digits}f}"


def _bytes(count: float | None) -> str:
    """In powers of 1000, as memory bandwidth is counted."""
    if count is None:
        return UNKNOWN
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            return f"{count / size:.4g} {unit}"
    return f"{count:.0f} B"


def _extents(extents: tuple[int, ...]) -> str:
    """Without the dimensions that are 1 from there on: `512`, `64×8`."""
    used = max((i for i, extent in enumerate(extents, start=1) if extent != 1), default=1)
    return "×".join(map(str, extents[:used])) or UNKNOWN
