"""Tables as plain data: what a template, a test or a terminal can show without knowing where it comes from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Column:
    """A column's head."""

    title: str
    unit: str = ""
    """Of every figure in the column; "" for text and bare counts."""
    number: bool = False
    """True: right-aligned, digits of one width."""


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One cell."""

    text: str
    note: str = ""
    """Smaller text behind it."""
    kernel: str = ""
    """Name of the kernel whose mark stands before the text; "" for none."""
    mark: str = ""
    """Name of a CSS class: `best`, `bad`, `quiet` or ""."""
    columns: int = 1
    """How many columns it spans."""


@dataclass(frozen=True, kw_only=True)
class Table:
    """A caption, columns and rows; a row's first cell is its head."""

    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""
    """A line below the table."""
    group_by: int | None = None
    """Index of the column whose change starts a new group of rows, set off by a line."""

    @property
    def numbers_from(self) -> int:
        """Place, from 1, of the first column of figures where no column of words follows; 0 where one does.

        The page says it once a table then, not in every cell.
        """
        first = next((place for place, column in enumerate(self.columns) if column.number), 0)
        return first + 1 if first and all(column.number for column in self.columns[first:]) else 0


def text(title: str) -> Column:
    """A column of words."""
    return Column(title=title)


def number(title: str, unit: str = "") -> Column:
    """A column of figures."""
    return Column(title=title, unit=unit, number=True)


def table(
    caption: str,
    columns: Sequence[Column],
    rows: Sequence[Sequence[Cell | str]],
    note: str = "",
    group_by: int | None = None,
) -> Table:
    """A table from rows of cells, where plain text is a cell of its own.

    Raises:
        ValueError: a row does not fill the columns.
    """
    filled = tuple(tuple(c if isinstance(c, Cell) else Cell(text=c) for c in row) for row in rows)
    for row in filled:
        if sum(cell.columns for cell in row) != len(columns):
            raise ValueError(f"table {caption!r}: a row {row} does not fill {len(columns)} columns")
    return Table(caption=caption, columns=tuple(columns), rows=filled, note=note, group_by=group_by)
