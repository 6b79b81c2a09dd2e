"""What a kernel that picks among others by a rule picked on each problem, and why."""

from __future__ import annotations

from collections.abc import Iterator

from harness.model import Problem
from reports import format as fmt
from reports.figures import Figures, Row
from reports.tables import Cell, Table, table, text

HEADS = (text("problem"), text("kernel"), text("reason"))


def choice_tables(f: Figures) -> tuple[Table, ...]:
    """One for each kernel that recorded choices, a row a problem; more where its timers or trials differ."""
    found = dict.fromkeys(each for row in f.rows for each in _choices(row))
    lines: dict[str, list[list[Cell | str]]] = {}
    for kernel, problem, chosen, reason in found:
        cells: list[Cell | str] = [fmt.problem(problem), Cell(text=fmt.name(chosen), kernel=chosen), fmt.line(reason)]
        lines.setdefault(kernel, []).append(cells)
    return tuple(table(f"What {fmt.name(kernel)} chose", HEADS, rows) for kernel, rows in lines.items())


def _choices(row: Row) -> Iterator[tuple[str, Problem, str, str]]:
    """Kernel, problem, the picked kernel and why, by trial."""
    for trial in row.measurement.trials:
        if trial.variant is not None and trial.variant_reason is not None:
            yield row.kernel, row.problem, trial.variant, trial.variant_reason
