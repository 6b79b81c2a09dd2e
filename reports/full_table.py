"""All figures in one table, by problem, with what it can be filtered by."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from reports import format as fmt
from reports.cases import CaseRow, case_columns, case_note, case_rows
from reports.figures import Figures
from reports.tables import Cell, Column


@dataclass(frozen=True, kw_only=True)
class Facet:
    """Something that rows can be filtered by."""

    name: str
    values: tuple[str, ...]
    """As the page shows them."""
    chosen: int | None = None
    """Place of the value that is chosen at first; None: all are shown."""


@dataclass(frozen=True, kw_only=True)
class FacetRow:
    """A row of the table."""

    cells: tuple[Cell, ...]
    facets: tuple[tuple[int, ...], ...]
    """For each facet of rows the places of its values that the row is about."""


@dataclass(frozen=True, kw_only=True)
class ProblemRows:
    """The rows of one problem."""

    title: str
    note: str
    """Its least work, and the floors behind its short figures."""
    facets: tuple[int, int]
    """Places of problem and dtype."""
    rows: tuple[FacetRow, ...]


@dataclass(frozen=True, kw_only=True)
class CaseTable:
    """Every case with its figures, or with the reason why it has none."""

    columns: tuple[Column, ...]
    problems: tuple[ProblemRows, ...]
    facets: tuple[Facet, ...]
    """Problem and dtype, which a problem's rows share, then those of rows: kernel, timer, cache."""

    @property
    def rows(self) -> int:
        """Number of rows."""
        return sum(len(each.rows) for each in self.problems)


def full_table(f: Figures) -> CaseTable:
    """Every case of `f`. Of many timers a script shows the headline's alone at first."""
    kernels = _places((*f.kernels, *(row.kernel for row in f.rows)))
    timers, caches = _places(way.timer for way in f.ways), _places(str(way.cache) for way in f.ways)
    dtypes = _places(f.dtypes)
    found = case_rows(f)
    problems = tuple(
        ProblemRows(
            title=fmt.problem(problem),
            note=case_note(f, problem),
            facets=(place, dtypes[problem.dtype]),
            rows=tuple(_row(row, kernels, timers, caches) for row in found[problem]),
        )
        for place, problem in enumerate(f.problems)
    )
    led_by = timers[f.leading[0].timer] if f.folded else None
    facets = (
        Facet(name="problem", values=tuple(each.title for each in problems)),
        Facet(name="dtype", values=_shown(dtypes)),
        Facet(name="kernel", values=_shown(kernels)),
        Facet(name="timer", values=_shown(timers), chosen=led_by),
        Facet(name="cache", values=_shown(caches)),
    )
    return CaseTable(columns=tuple(case_columns(f.limit)), problems=problems, facets=facets)


def _places(values: Iterable[str]) -> dict[str, int]:
    return {value: place for place, value in enumerate(dict.fromkeys(values))}


def _shown(places: Mapping[str, int]) -> tuple[str, ...]:
    return tuple(fmt.name(value) for value in places)


def _row(row: CaseRow, kernels: Mapping[str, int], timers: Mapping[str, int], caches: Mapping[str, int]) -> FacetRow:
    by_timer = dict.fromkeys(timers[way.timer] for way in row.ways)
    by_cache = dict.fromkeys(caches[str(way.cache)] for way in row.ways)
    return FacetRow(cells=row.cells, facets=(tuple(kernels[k] for k in row.kernels), tuple(by_timer), tuple(by_cache)))
