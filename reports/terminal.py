"""The end of a bench on the terminal: a table by problem, fit for 80 columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from harness.model import Problem, Run, Word
from harness.stats import CENTRE
from reports import format as fmt
from reports.cautions import Level, cautions, is_wide
from reports.figures import BASELINE, Figures, Row, Way, figures
from reports.roofline.points import is_roofline, weights
from reports.roofline.terminal import roofline_sections
from reports.selfcheck import failed_elsewhere
from reports.takeaway import floor_note, side, takeaway
from reports.terminal_sections import sections

LONGEST_NAME = 20
"""Of a kernel, in characters; a longer one takes more lines."""

HEADS = f"Time in µs, the {CENTRE} of the trials, ± half its 95 % interval; GB/s; × {BASELINE} by the same timer."

MOST_PROBLEMS = 60
"""With a table each; the page has them all."""

FEW_PROBLEMS = 12
"""That many of a roofline run have a table each beside its own."""

MOST_DETAILS = 3
"""Lines below a warning; the page has them all."""


def summary_table(run: Run) -> RenderableType:
    """The end of a bench: figures by problem and kernel, what else there is to say of them, cautions, the takeaway.

    Of many ways of timing the headline timer's alone are shown; a line says that the page has the others.

    Args:
        run: with its samples.
    """
    f = figures(run)
    if not f.problems:
        return Group(*_warnings(f), Text(), Text(takeaway(f)))
    gemv, shown = f.gemv, _shown(f)
    parts: list[RenderableType] = [*roofline_sections(f), Text()] if is_roofline(f) else []
    parts += [Text(HEADS, style="dim")] if shown else []
    for problem in shown:
        parts += [Text(f"\n{fmt.problem(problem)}", style="bold"), _table(f, problem)]
    closing = [line for line in (takeaway(gemv), floor_note(gemv)) if line]
    parts += [*_left_out(f, shown), *sections(gemv)]
    return Group(*parts, Text(), *_warnings(f), Text(), *(Text(line) for line in closing))


def _shown(f: Figures) -> tuple[Problem, ...]:
    """Problems that get a table each: of many in a roofline run those timed in several ways, and never too many."""
    if not is_roofline(f) or len(f.problems) <= FEW_PROBLEMS:
        return f.problems[:MOST_PROBLEMS]
    ways: dict[Problem, set[Way]] = {}
    for row in f.gemv.rows:
        ways.setdefault(row.problem, set()).add(row.way)
    told = weights(f)
    return tuple(p for p in f.gemv.problems if len(ways[p]) > 1 and (p.m, p.k) not in told)[:MOST_PROBLEMS]


def _table(f: Figures, problem: Problem) -> Table:
    """All problems' columns stand below each other."""
    widest = min(LONGEST_NAME, max(len(fmt.name(kernel)) for kernel in f.kernels))
    ways = f.leading
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("kernel", width=widest, overflow="fold")
    for way in ways:
        table.add_column(way.label, justify="right", min_width=13, no_wrap=True)
    for kernel in f.kernels:
        rows = [f.find(kernel, problem, way) for way in ways]
        if any(row is not None and row.verdict.word is not Word.UNSUPPORTED for row in rows):
            table.add_row(Text(fmt.name(kernel)), *(_cell(row, "  " if len(ways) <= 2 else "\n") for row in rows))
    return table


def _left_out(f: Figures, shown: Sequence[Problem]) -> Iterator[Text]:
    """Where the figures of the other problems and timers are."""
    if len(shown) < len(f.problems):
        yield Text(f"\nThe page has the figures of all {fmt.count(len(f.problems), 'problem')}.", style="dim")
    if f.folded:
        timers = fmt.listing([fmt.name(timer) for timer in dict.fromkeys(way.timer for way in f.folded)])
        yield Text(f"\nTimed by {timers} too: the page has those figures.", style="dim")


def _warnings(f: Figures) -> Iterator[Text]:
    """What to know before the figures, gravest first, with the first few cases of each."""
    for caution in (*failed_elsewhere(f), *cautions(f)):
        yield Text.assemble((f"{caution.level}: ", _LEVEL_STYLES[caution.level]), caution.text)
        for detail in caution.details[:MOST_DETAILS]:
            yield Text(f"  {detail}", style="dim")
        if len(caution.details) > MOST_DETAILS:
            yield Text(f"  … and {len(caution.details) - MOST_DETAILS} more", style="dim")


_LEVEL_STYLES = {Level.BAD: "bold red", Level.CAUTION: "yellow", Level.NOTE: "dim"}


def _cell(row: Row | None, gap: str) -> Text:
    """A case's figures in two parts, of a width of their own so that they stand below each other.

    Every part has its sign, a dash at the least: blanks at the end would be stripped, and the rest moved.
    """
    if row is None:
        return Text(fmt.NONE)
    if row.summary is None:
        return Text(row.verdict.word, style="bold red" if row.verdict.word in (Word.WRONG, Word.CRASHED) else "dim")
    median = row.summary.median_ns
    half = fmt.NONE if median.half_width is None else f"±{fmt.percent_figure(median.half_width)}%"
    cell = Text(fmt.microseconds_figure(median.estimate))
    cell.append(f" {half:>6}", style="yellow" if is_wide(row) else "dim")
    bandwidth = fmt.NONE if row.gb_per_s is None else fmt.gb_per_s_figure(row.gb_per_s)
    cell.append(f"{gap}{bandwidth:>5}", style="dim")
    ratio = row.speedup if row.kernel != BASELINE else None
    style = {1: "green", -1: "red"}.get(side(row), "") if ratio is not None else ""
    cell.append(f" {fmt.times(ratio.estimate) if ratio is not None else fmt.NONE:>6}", style=style)
    return cell
