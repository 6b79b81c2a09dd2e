"""Which kernel is the best choice at which T, by measurement, and where a GEMV kernel stops being it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from harness.stats import Interval
from reports import format as fmt
from reports.figures import Figures, Row
from reports.roofline.points import (
    Weight,
    against,
    fastest,
    of_weight,
    points,
    side,
    tokens,
    weight_label,
    weights,
)
from reports.tables import Cell, Table, number, table, text

NOTE = (
    "Speed of the fastest hand-written GEMV kernel as a multiple of that of the fastest of torch's own on the same "
    "problem, paired by trial, with its 95 % interval, {how}. «Ambiguous»: that interval holds 1. A T without a "
    "figure was not measured with both. int8 weights are held against torch's float16 product of the same "
    "shape."
)

RIVAL_DTYPE = {"int8": "float16"}
"""torch has no product with int8 weights: its float16 one is what they are chosen against."""


@dataclass(frozen=True, kw_only=True)
class Choice:
    """One weight and T: the fastest hand-written GEMV kernel against the fastest of torch's."""

    tokens: int
    own: Row
    ratio: Interval
    """Speed of `own` as a multiple of that of torch's fastest."""

    @property
    def side(self) -> int:
        """1: `own` is surely best; −1: surely not; 0: ambiguous."""
        return side(self.ratio)


def choices(f: Figures, weight: Weight, dtype: str) -> tuple[Choice, ...]:
    """The choice at every T that both were measured with on this weight, ascending."""
    rows = of_weight(points(f), weight)
    own = [r for r in rows if r.written_here and r.problem.dtype == dtype]
    other = [r for r in rows if not r.written_here and r.problem.dtype == RIVAL_DTYPE.get(dtype, dtype)]
    found = (_choice(own, other, n) for n in tokens(own))
    return tuple(choice for choice in found if choice is not None)


def _choice(own: Sequence[Row], other: Sequence[Row], n: int) -> Choice | None:
    ours = fastest([r for r in own if r.problem.n == n])
    theirs = fastest([r for r in other if r.problem.n == n])
    ratio = against(ours, theirs) if ours is not None and theirs is not None else None
    return None if ours is None or ratio is None else Choice(tokens=n, own=ours, ratio=ratio)


def in_words(found: Sequence[Choice], asked: Sequence[int] = ()) -> str:
    """Every T, neighbours with one answer together: `best up to T = 1, no longer at T = 2, best again at T = 8`.

    Args:
        found: on one weight, ascending.
        asked: T of other weights too: `up to` is not said over one that is missing here.
    """
    groups = [(at, [choice.tokens for choice in own]) for at, own in groupby(found, key=lambda choice: choice.side)]
    parts: list[str] = []
    for place, (at, own) in enumerate(groups):
        was_best = any(side > 0 for side, _ in groups[:place])
        told = f"T = {fmt.listing([str(n) for n in own])}"
        if at > 0 and place == 0 and any(n < own[-1] and n not in own for n in asked):
            parts.append(f"best at {told}{', all that was measured' if len(groups) == 1 else ''}")
        elif at > 0 and place == 0:
            parts.append(f"best up to T = {own[-1]}{', the most measured' if len(groups) == 1 else ''}")
        elif at > 0:
            parts.append(f"best {'again ' if was_best else ''}at {told}")
        else:
            parts.append(
                f"ambiguous at {told}" if at == 0 else f"{'no longer' if was_best else 'not the best'} at {told}"
            )
    return ", ".join(parts).replace("T = ", f"T{fmt.NBSP}={fmt.NBSP}")


def best_table(f: Figures) -> Table | None:
    """A row a dtype and weight, a column a T that a GEMV kernel was measured with; None where none was."""
    found = [(dtype, weight, own) for dtype in f.dtypes for weight in weights(f) if (own := choices(f, weight, dtype))]
    if not found:
        return None
    columns = sorted({choice.tokens for _, _, own in found for choice in own})
    rows = []
    for dtype, weight, own in found:
        at = {choice.tokens: choice for choice in own}
        kernels = dict.fromkeys(choice.own.kernel for choice in own)
        name = Cell(text=fmt.listing([fmt.name(kernel) for kernel in kernels]), kernel=next(iter(kernels)))
        cells = [name, Cell(text=fmt.name(dtype)), Cell(text=weight_label(weight))]
        rows.append([*cells, *(_cell(at.get(n)) for n in columns), Cell(text=in_words(own, columns))])
    heads = [text("kernel"), text("dtype"), text("weight"), *(number(f"T = {n}", "×") for n in columns)]
    heads.append(text("by measurement it is"))
    how = f.headline.label if f.headline else "not timed"
    caption = "Best choice by T: a hand-written GEMV kernel, or torch"
    return table(caption, heads, rows, note=NOTE.format(how=how), group_by=0)


def _cell(choice: Choice | None) -> Cell:
    if choice is None:
        return Cell(text=fmt.NONE, mark="quiet")
    note = "ambiguous" if choice.side == 0 else fmt.plus_minus(choice.ratio)
    mark = {1: "best", -1: "bad"}.get(choice.side, "quiet")
    return Cell(text=fmt.times_figure(choice.ratio.estimate), note=note, mark=mark)
