"""A roofline run on the terminal: ceilings, what T costs on each weight, claims. The page has everything else."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from reports import format as fmt
from reports.claims import Word
from reports.figures import BASELINE, Figures, Row
from reports.roofline.points import (
    SAME_PRODUCT,
    Weight,
    fastest_product,
    median_ns,
    of_attainable,
    of_weight,
    points,
    tokens,
    weight_label,
    weights,
)
from reports.roofline.tables import rate
from reports.roofline.verdicts import judged
from reports.roofline.verdicts import takeaway as claims_takeaway
from reports.roofline.view import best_takeaway, takeaway

SHOWN_TOKENS = (1, 8, 64, 512)
"""T of the columns, where more were measured; the page has all."""

MOST_ROWS = 45
"""Weights and dtypes; the page has all."""

STYLES = {Word.CONFIRMED: "green", Word.REFUTED: "red", Word.UNDECIDED: "yellow"}


def roofline_sections(f: Figures) -> Iterator[RenderableType]:
    """Each with a head of its own."""
    yield Text(takeaway(f), style="bold")
    yield from _ceilings(f)
    yield from _weights(f)
    for line in best_takeaway(f):
        yield Text(f"  {line}")
    yield from _claims(f)


def _grid() -> Table:
    return Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")


def _ceilings(f: Figures) -> Iterator[RenderableType]:
    if not f.ceilings.measured:
        yield Text("\nNo ceiling of the device was measured in this run.", style="dim")
        return
    yield Text("\nCeilings, measured in this run by graph/cold, ± half their 95 % interval", style="bold")
    shown = _grid()
    for head in ("ceiling", "measured", "SM clock"):
        shown.add_column(head, justify="left" if head == "ceiling" else "right", overflow="fold")
    missing = []
    for each in f.ceilings.every:
        if each.per_s is None:
            missing.append(each.what)
            continue
        clock = fmt.NONE if each.sm_clock_mhz is None else f"{each.sm_clock_mhz:.0f}{fmt.NBSP}MHz"
        shown.add_row(each.what, f"{rate(each, each.per_s.estimate)} {fmt.plus_minus(each.per_s)}", clock)
    yield shown
    if missing:
        yield Text(f"  not measured: {fmt.listing(missing)}", style="dim")


def _weights(f: Figures) -> Iterator[RenderableType]:
    """The fastest kernel of each weight, dtype and T."""
    rows = {(weight, dtype): own for weight in weights(f) for dtype in f.dtypes if (own := _own(f, weight, dtype))}
    if not rows:
        return
    measured = tokens(r for own in rows.values() for r in own)
    columns = [n for n in measured if n in SHOWN_TOKENS or len(measured) <= len(SHOWN_TOKENS)]
    way = f.headline.label if f.headline else ""
    yield Text(f"\nFastest kernel by T: µs a launch by {way}, % of what the ceilings allow", style="bold")
    yield Text(f"Without {SAME_PRODUCT}: it is {BASELINE}'s product by another call.", style="dim")
    spreads = _spreads(rows.values())
    if spreads:
        half, most = fmt.percent(statistics.median(spreads)), fmt.percent(max(spreads))
        yield Text(f"Trials of half of these cases lie within {half}, of all within {most}.", style="dim")
    shown = _grid()
    for head in ("weight", "dtype"):
        shown.add_column(head, overflow="fold")
    for n in columns:
        shown.add_column(f"T = {n}", justify="right", no_wrap=True)
    last: Weight | None = None
    for (weight, dtype), own in list(rows.items())[:MOST_ROWS]:
        best = [fastest_product([r for r in own if r.problem.n == n]) for n in columns]
        shown.add_row(
            weight_label(weight) if weight != last else "", Text(fmt.name(dtype)), *(_cell(f, r) for r in best)
        )
        last = weight
    yield shown
    if len(rows) > MOST_ROWS:
        yield Text(f"  … and {len(rows) - MOST_ROWS} more weights and dtypes: the page has them", style="dim")


def _spreads(rows: Iterable[Sequence[Row]]) -> list[float]:
    summaries = [r.summary for own in rows for r in own if r.summary is not None]
    return [summary.spread for summary in summaries if len(summary.trial_medians_ns) > 1]


def _own(f: Figures, weight: Weight, dtype: str) -> Sequence[Row]:
    return [r for r in of_weight(points(f), weight) if r.problem.dtype == dtype]


def _cell(f: Figures, row: Row | None) -> Text:
    if row is None:
        return Text(fmt.NONE, style="dim")
    share = of_attainable(f, row)
    near = "" if share is None else f" {fmt.percent_figure(share):>3}%"
    style = "green" if row.written_here else ""
    return Text.assemble((fmt.microseconds_figure(median_ns(row)), style), (near, "dim"))


def _claims(f: Figures) -> Iterator[RenderableType]:
    if not f.ceilings.measured:
        return
    found = judged(f)
    yield Text(f"\n{claims_takeaway(found)}", style="bold")
    shown = _grid()
    for head in ("claim", "word"):
        shown.add_column(head, overflow="fold")
    for claim, answer in found:
        shown.add_row(Text(claim.says), Text(answer.word, style=STYLES.get(answer.word, "dim")))
    yield shown
