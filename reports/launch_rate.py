"""Why a rate of launches and the device's time disagree on small shapes, told with a run's own figures."""

from __future__ import annotations

from dataclasses import dataclass

from harness.model import Cache, Problem, Role
from harness.stats import Interval
from reports import format as fmt
from reports.figures import BASELINE, Figures, Row, Way
from reports.tables import Cell, Table, number, table, text

REFERENCE_PROBLEMS = (Problem(m=1024, k=128), Problem(m=1024, k=16))
"""The original's two: no view of such a shape is one of them."""

REFERENCE_US = {"sgemv_k32_f32": 2.83, "sgemv_k128_f32x4": 2.76, BASELINE: 7.66}
"""The original's figures in µs: RTX 4090, 1024×128, 10 warm-ups, mean of 200 back-to-back calls on the host clock."""

REFERENCE_TEXT = (
    "The published figures that this project starts from say that the hand-written kernels are «2.7× faster» than "
    f"{BASELINE} at 1024×128: 2.83{fmt.NBSP}µs (sgemv_k32_f32) and 2.76{fmt.NBSP}µs (sgemv_k128_f32x4) against "
    f"7.66{fmt.NBSP}µs, on an RTX 4090. They were taken on the host's clock: 10 calls to warm up, then 200 calls back "
    "to back with one synchronization at each end. No interval was published with them."
)

EXPLANATION = (
    "That protocol measures how often the host can start the kernel. At these sizes the device is done before the "
    "host has prepared the next call, so it waits, and the host's clock reads what a call costs there: the checks and "
    "the dispatch of the framework and the driver's launch. A leaner call looks like a faster kernel. A CUDA graph "
    "holds many launches that the device starts by itself, so nothing of the host is in it: what is left is the time "
    "of the kernel and the gap between two launches, which the empty kernel shows."
)

LAUNCHES = Way(timer="async", cache=Cache.HOT)
DEVICE = (Way(timer="graph", cache=Cache.HOT), Way(timer="graph", cache=Cache.COLD))


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What a run says of one problem, by each clock."""

    problem: str
    lines: tuple[tuple[str, str], ...]
    """(how it was timed, what it says)."""


@dataclass(frozen=True, kw_only=True)
class LaunchRate:
    """The section's content; exists only where a run has the reference's shapes by both clocks."""

    problems: tuple[Problem, ...]
    findings: tuple[Finding, ...]
    """What this run says, one a problem."""
    tables: tuple[Table, ...]
    """One a problem."""
    takeaway: str
    """What both clocks say of the same kernel on the first problem; "" where one has no ratio."""
    reference: str = REFERENCE_TEXT
    explanation: str = EXPLANATION


def launch_rate(f: Figures) -> LaunchRate | None:
    """The comparison of both clocks on the reference's shapes, None where the run lacks it."""
    problems = tuple(p for p in f.problems if p in REFERENCE_PROBLEMS and _has_both(f, p))
    if not problems:
        return None
    return LaunchRate(
        problems=problems,
        findings=tuple(_finding(f, p) for p in problems),
        tables=tuple(_table(f, p) for p in problems),
        takeaway=_takeaway(f, max(problems, key=lambda p: p == REFERENCE_PROBLEMS[0])),
    )


def ways(f: Figures) -> tuple[Way, ...]:
    """The ways of timing that the section sets side by side, launches first."""
    return tuple(w for w in (LAUNCHES, *DEVICE) if w in f.ways)


def rows_of(f: Figures, problem: Problem, way: Way) -> list[Row]:
    """The problem's passed rows by one way of timing, the limit kernel's too."""
    return [r for r in f.passed(way) if r.problem == problem]


def _has_both(f: Figures, problem: Problem) -> bool:
    return bool(_gemv(f, problem, LAUNCHES)) and any(_gemv(f, problem, way) for way in DEVICE)


def _gemv(f: Figures, problem: Problem, way: Way) -> list[Row]:
    return [r for r in rows_of(f, problem, way) if r.role is Role.GEMV]


def _takeaway(f: Figures, problem: Problem) -> str:
    fastest = _fastest(_gemv(f, problem, LAUNCHES))
    if fastest is None or fastest.speedup is None:
        return ""
    found = [f.find(fastest.kernel, problem, way) for way in DEVICE]
    known = [r for r in found if r is not None and r.speedup is not None]
    if not known:
        return ""
    by_device = " and ".join(f"{fmt.times_range(r.speedup)} ({r.way.label})" for r in known if r.speedup is not None)
    return (
        f"On {fmt.problem(problem)}, {fmt.name(fastest.kernel)} is {fmt.times_range(fastest.speedup)} as fast as "
        f"{BASELINE} by the rate of launches ({fastest.way.label}), and {by_device} by device time."
    )


def _finding(f: Figures, problem: Problem) -> Finding:
    """The kernel that is fastest by the reference's protocol, against the baseline, by each clock."""
    fastest = _fastest(_gemv(f, problem, LAUNCHES)) or _gemv(f, problem, LAUNCHES)[0]
    lines = [(f"the reference's protocol ({_protocol(fastest)})", _sentence(f, fastest, LAUNCHES))]
    for way in DEVICE:
        row = f.find(fastest.kernel, problem, way)
        if row is not None and row.summary is not None:
            lines.append((f"device time ({way.label})", _sentence(f, row, way)))
    return Finding(problem=f"{fmt.problem(problem)}, in this run", lines=tuple(lines))


def _protocol(row: Row) -> str:
    launches = {t.launches_per_sample for t in row.measurement.trials}
    calls = ", ".join(str(n) for n in sorted(n for n in launches if n is not None)) or "unknown number of"
    return f"{row.way.label}: {calls} calls back to back, host clock"


def _sentence(f: Figures, row: Row, way: Way) -> str:
    """Row's kernel against the baseline in words, and what the empty kernel takes by the same clock."""
    said = f"{fmt.name(row.kernel)} takes {_time(row)}"
    baseline = f.find(BASELINE, row.problem, way)
    if row.speedup is not None and baseline is not None and row.kernel != BASELINE:
        said += f", {BASELINE} {_time(baseline)}: {fmt.times_range(row.speedup)} its speed"
    return said + (f"; {_floor(f, way)}." if way in f.floors else ".")


def _time(row: Row) -> str:
    return fmt.microseconds_pm(row.summary.median_ns) if row.summary is not None else "an unknown time"


def _floor(f: Figures, way: Way) -> str:
    return f"an empty kernel takes {fmt.microseconds_pm(f.floors[way].median_ns)}"


def _fastest(rows: list[Row]) -> Row | None:
    timed = [(r.summary.median_ns.estimate, r) for r in rows if r.written_here and r.summary is not None]
    return min(timed, key=lambda pair: pair[0])[1] if timed else None


def _table(f: Figures, problem: Problem) -> Table:
    shown = ways(f)
    kernels = dict.fromkeys(r.kernel for way in shown for r in rows_of(f, problem, way))
    rows: list[list[Cell | str]] = [_kernel_cells(f, kernel, problem, shown) for kernel in kernels]
    rows += [_reference_cells(shown)] if problem == REFERENCE_PROBLEMS[0] else []
    floors = [c for way in shown for c in _pair(f.floors[way].median_ns if way in f.floors else None, None)]
    rows.append([Cell(text="empty kernel", note="floor of the timer", mark="quiet"), *floors])
    columns = [text("kernel")]
    for way in shown:
        columns += [number(way.label, "µs"), number(f"× {BASELINE}")]
    caption = f"{fmt.problem(problem)}: time of a launch, and speed against {BASELINE} by the same timer"
    return table(caption, columns, rows)


def _kernel_cells(f: Figures, kernel: str, problem: Problem, shown: tuple[Way, ...]) -> list[Cell | str]:
    cells: list[Cell | str] = [Cell(text=fmt.name(kernel), kernel=kernel)]
    for way in shown:
        row = f.find(kernel, problem, way)
        known = row is not None and row.summary is not None
        cells += _pair(row.summary.median_ns, row.speedup) if known and row and row.summary else _pair(None, None)
    return cells


def _pair(median: Interval | None, ratio: Interval | None) -> list[Cell]:
    time = Cell(text=fmt.NONE)
    if median is not None:
        time = Cell(text=fmt.microseconds_figure(median.estimate), note=fmt.plus_minus(median))
    speed = Cell(text=fmt.NONE)
    if ratio is not None:
        speed = Cell(text=fmt.times(ratio.estimate), note=fmt.plus_minus(ratio))
    return [time, speed]


def _reference_cells(shown: tuple[Way, ...]) -> list[Cell | str]:
    published = f"{REFERENCE_US['sgemv_k32_f32']} and {REFERENCE_US['sgemv_k128_f32x4']}"
    cells: list[Cell | str] = [
        Cell(text="published", note=f"RTX 4090, {BASELINE} {REFERENCE_US[BASELINE]}", mark="quiet")
    ]
    for way in shown:
        if way == LAUNCHES:
            cells += [Cell(text=published, note="no interval", mark="quiet"), Cell(text="2.7×", mark="quiet")]
        else:
            cells += [Cell(text=fmt.NONE), Cell(text=fmt.NONE)]
    return cells
