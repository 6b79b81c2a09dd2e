"""Which device kernel torch's products ran, and where that changes with T, dtype and layout."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from harness.kernel_names import short_name
from harness.model import Problem
from reports import format as fmt
from reports.device_kernels import named
from reports.figures import BASELINE, Figures, Row
from reports.roofline.points import SAME_PRODUCT, points
from reports.tables import Cell, Table, table, text

NOTE = (
    "From the captured graph of one launch, first trial. A new line is another kernel: the name's number leads to the "
    "full one below. Grid: blocks at the first T of the line."
)


@dataclass(frozen=True, kw_only=True)
class Ran:
    """The section's content."""

    takeaway: str
    tables: tuple[Table, ...]
    """One a dtype."""
    names: tuple[str, ...]
    """Full names, which the tables refer to by number, from 1."""


@dataclass(frozen=True, kw_only=True)
class Stretch:
    """Neighbouring T that run the same device kernels."""

    rows: tuple[Row, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Of one launch, in order."""
        return tuple(each.name for each in named(self.rows[0]))

    @property
    def tokens(self) -> str:
        """E.g. `2–16`."""
        first, last = self.rows[0].problem.n, self.rows[-1].problem.n
        return str(first) if first == last else f"{first}–{last}"


def ran(f: Figures) -> Ran | None:
    """What the page says of torch's choices; None where no graph told of names."""
    rows = [r for r in points(f) if r.kernel == BASELINE and named(r)]
    if not rows:
        return None
    names = list(dict.fromkeys(each.name for r in rows for each in named(r)))
    found = tuple(_table(dtype, [r for r in rows if r.problem.dtype == dtype], names) for dtype in f.dtypes)
    return Ran(
        takeaway=_takeaway(f, rows, names),
        tables=tuple(each for each in found if each.rows),
        names=tuple(fmt.code(name) for name in names),
    )


def stretches(rows: Sequence[Row]) -> list[Stretch]:
    """Rows of one weight in order of T, cut where the device kernels change."""
    found: list[Stretch] = []
    for row in sorted(rows, key=lambda r: r.problem.n):
        if found and found[-1].names == tuple(each.name for each in named(row)):
            found[-1] = Stretch(rows=(*found[-1].rows, row))
        else:
            found.append(Stretch(rows=(row,)))
    return found


def _by_weight(rows: Sequence[Row]) -> dict[Problem, list[Row]]:
    """By the problem that they are with one token."""
    found: dict[Problem, list[Row]] = {}
    for row in rows:
        found.setdefault(replace(row.problem, n=1), []).append(row)
    return found


def _table(dtype: str, rows: Sequence[Row], names: Sequence[str]) -> Table:
    lines: list[list[Cell | str]] = []
    for weight, own in _by_weight(rows).items():
        for stretch in stretches(own):
            first = named(stretch.rows[0])
            said = ", ".join(f"{fmt.name(short_name(name))} ({names.index(name) + 1})" for name in stretch.names)
            grid = ", ".join(fmt.extents(each.grid) for each in first)
            lines.append([fmt.problem(replace(weight, dtype="float32")), stretch.tokens, said, grid])
    heads = [text("weight"), text("T"), text("device kernel"), text("grid")]
    return table(f"What {BASELINE} ran: {fmt.name(dtype)}", heads, lines, note=NOTE, group_by=0)


def _takeaway(f: Figures, rows: Sequence[Row], names: Sequence[str]) -> str:
    kinds = fmt.count(len(names), "device kernel")
    said = f"{BASELINE} ran {kinds} on {fmt.count(len(rows), 'problem')}"
    changes = sum(len(stretches(own)) - 1 for own in _by_weight(rows).values())
    said += f"; as T grows, its choice changes {fmt.count(changes, 'time')} over {len(_by_weight(rows))} weights"
    linear = {r.problem: r for r in points(f) if r.kernel == SAME_PRODUCT and named(r)}
    pairs = [(r, linear[r.problem]) for r in rows if r.problem in linear]
    if not pairs:
        return f"{said}."
    same = sum(_names(a) == _names(b) for a, b in pairs)
    return f"{said}. {SAME_PRODUCT} ran the same one on {fmt.out_of(same, len(pairs), 'problem')}."


def _names(row: Row) -> tuple[str, ...]:
    return tuple(each.name for each in named(row))
