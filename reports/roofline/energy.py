"""What the board took for a launch and for a token, by NVML."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass

from harness.model import Energy
from harness.stats import Interval, log_t_interval
from harness.words import significant
from reports import format as fmt
from reports.figures import Figures, Row
from reports.tables import Cell, Table, number, table, text

TIMER = "energy"

SOURCES = {"counter": "NVML's energy counter", "power": "instant power, integrated"}

NOTE = (
    "Energy of the whole board, idle power included, over at least 1.5 s of graph replays in a process of its own, by "
    "{way}. mJ a token is mJ a launch over T. Idle: mean power before, with the process there and nothing to do."
)


@dataclass(frozen=True, kw_only=True)
class Taken:
    """One case's energy over its trials."""

    row: Row
    mj_per_launch: Interval
    spread: float
    """(max − min) / median of the trials' mJ a launch, as a fraction."""
    watts: float
    """Mean over the trials."""
    idle_watts: float | None
    """Mean over the trials that read it."""
    source: str

    @property
    def mj_per_token(self) -> float:
        """Energy of a launch over T."""
        return self.mj_per_launch.estimate / self.row.problem.n


def taken(f: Figures) -> tuple[Taken, ...]:
    """Every passed case with energy, by problem."""
    found = [each for row in f.suite if row.summary is not None and (each := _taken(row)) is not None]
    return tuple(sorted(found, key=lambda t: (t.row.problem.dtype, t.row.problem.m, t.row.problem.k, t.row.problem.n)))


def _taken(row: Row) -> Taken | None:
    energies = [t.energy for t in row.measurement.trials if t.energy is not None]
    if not energies or any(each.millijoules <= 0 for each in energies):
        return None
    each_mj = [each.mj_per_launch for each in energies]
    idle = [each.idle_mw / 1000 for each in energies if each.idle_mw is not None]
    return Taken(
        row=row,
        mj_per_launch=log_t_interval([math.log(mj) for mj in each_mj]),
        spread=(max(each_mj) - min(each_mj)) / statistics.median(each_mj),
        watts=statistics.fmean(each.watts for each in energies),
        idle_watts=statistics.fmean(idle) if idle else None,
        source=_source(energies),
    )


def _source(energies: list[Energy]) -> str:
    named = dict.fromkeys(SOURCES.get(each.source, fmt.name(each.source)) for each in energies)
    return fmt.listing(list(named))


def energy_tables(f: Figures) -> list[Table]:
    """A row a case."""
    found = taken(f)
    if not found:
        return []
    heads = [
        text("problem"), text("kernel"), number("energy", "mJ a launch"), number("energy", "mJ a token"),
        number("spread of trials", "%"), number("board power", "W"), number("idle", "W"), text("source"),
    ]  # fmt: skip
    ways = fmt.listing(list(dict.fromkeys(each.row.way.label for each in found)))
    note = NOTE.format(way=ways)
    return [table("Energy a launch and a token", heads, [_cells(each) for each in found], note=note, group_by=0)]


def _cells(each: Taken) -> list[Cell | str]:
    trials = len(each.row.measurement.trials)
    return [
        fmt.problem(each.row.problem),
        Cell(text=fmt.name(each.row.kernel), kernel=each.row.kernel),
        fmt.millijoules_figure(each.mj_per_launch.estimate),
        fmt.millijoules_figure(each.mj_per_token),
        fmt.percent_figure(each.spread) if trials > 1 else fmt.NONE,
        significant(each.watts, 3),
        fmt.NONE if each.idle_watts is None else significant(each.idle_watts, 3),
        each.source,
    ]
