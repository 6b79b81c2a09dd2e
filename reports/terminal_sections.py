"""What a bench's end on the terminal says beside its figures: selfcheck, timers side by side, device kernels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from harness.kernel_names import short_name
from harness.model import Check
from harness.words import significant
from reports import format as fmt
from reports import selfcheck as checks
from reports import side_by_side as beside
from reports.device_kernels import duration, named, rows_of
from reports.device_kernels import takeaway as kernels_takeaway
from reports.figures import BASELINE, Figures, Row

SHARE_WIDTH = 6
"""Characters of a column of percentages: nine of them and a kernel's name fill 80."""


def sections(f: Figures) -> Iterator[RenderableType]:
    """Each with a head of its own; nothing where a run has nothing to say."""
    yield from _device_kernels(f)
    yield from _timers(f)
    yield from _selfcheck(f)


def _grid() -> Table:
    return Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="dim")


def _timers(f: Figures) -> Iterator[RenderableType]:
    """The baseline by every timer, where the figures above are not by all of them; the page has all kernels."""
    if not (f.folded or f.peers) or BASELINE not in f.kernels:
        return
    ways, rows = beside.ways(f), beside.index(f)
    spread = ", ± half its 95 % interval" if f.run.options.trials > 1 else ""
    yield Text(f"\n{BASELINE} by every timer, {ways[0].cache}: time in µs{spread}", style="bold")
    shown = _grid()
    shown.add_column("problem", overflow="fold", min_width=10)
    for way in ways:
        shown.add_column(Text(fmt.name(way.timer)), justify="right", min_width=6, overflow="fold")
    problems = [p for p in f.problems if p in beside.timed_problems(f, rows)]
    for problem in problems:
        shown.add_row(Text(fmt.problem(problem)), *(_time(rows.get((BASELINE, problem, way))) for way in ways))
    seconds = [beside.seconds_a_case(f, way.timer) for way in ways]
    if any(each is not None for each in seconds):
        spent = [fmt.NONE if each is None else significant(each, 3) for each in seconds]
        shown.add_row(Text("s a case", style="dim"), *(Text(each, style="dim") for each in spent))
    yield shown
    missing = [row for way in ways for p in problems if (row := rows.get((BASELINE, p, way))) and not row.summary]
    for line in dict.fromkeys(f"{row.way.timer}: {row.verdict.reason or 'no samples'}" for row in missing):
        yield Text(f"  {fmt.line(line)}", style="dim")
    yield Text("Timers measure different things, so no ratio is taken between them.", style="dim")


def _time(row: Row | None) -> Text:
    """A figure with its interval below it; a dash where it has one trial."""
    if row is None or row.summary is None:
        return Text(fmt.NONE, style="dim")
    median = row.summary.median_ns
    half = fmt.NONE if median.half_width is None else f"±{fmt.percent_figure(median.half_width)}%"
    return Text.assemble(fmt.microseconds_figure(median.estimate), (f"\n{half}", "dim"))


def _device_kernels(f: Figures) -> Iterator[RenderableType]:
    """What the baseline runs; the page has all kernels and the full names."""
    rows = [row for row in rows_of(f) if row.kernel == BASELINE]
    if not rows:
        return
    yield Text(f"\n{kernels_takeaway(f)}", style="bold")
    shown = _grid()
    for head in ("problem", "device kernel"):
        shown.add_column(head, overflow="fold")
    for head in ("grid", "block", "µs"):
        shown.add_column(head, justify="right", overflow="fold")
    for row in rows:
        for each in named(row):
            name = fmt.name(short_name(each.name))
            shape = (fmt.extents(each.grid), fmt.extents(each.block))
            cells = (fmt.problem(row.problem), name, *shape, duration(each))
            shown.add_row(*(Text(cell) for cell in cells))
    yield shown


def _selfcheck(f: Figures) -> Iterator[RenderableType]:
    """A line a kind of check, a line a kernel and problem, then every failed check."""
    made = f.run.selfcheck
    if made is None:
        return
    yield Text(f"\nSelfcheck: {checks.takeaway(f, made)}", style="bold")
    kinds = checks.asked(made)
    if not kinds:
        return
    shown = _grid()
    shown.add_column("check", overflow="fold")
    for head in ("passed", "not judged", "largest, µs", "%"):
        shown.add_column(head, justify="right", overflow="fold")
    shown.add_column("of", overflow="fold")
    for each in kinds:
        style = "red" if each.failed else ""
        shown.add_row(Text(fmt.name(each.name)), Text(each.passed, style=style), str(each.unjudged), *_worst(f, each))
    yield shown
    yield from _selfcheck_cases(f, made, [each.name for each in kinds])
    for caution in checks.failures(f):
        yield Text.assemble(("failed: ", "bold red"), caution.text)
        for detail in caution.details:
            yield Text(f"  {detail}")


def _selfcheck_cases(f: Figures, made: Sequence[Check], names: Sequence[str]) -> Iterator[RenderableType]:
    """Every check's difference in %, a row a kernel and problem; those that no check could judge are left out."""
    live = checks.with_figures(made)
    yield Text("\nDifference of each check in %; the page has them in µs, and why one was not judged", style="dim")
    shown = _grid()
    shown.add_column("kernel", overflow="fold", width=16)
    for name in names:
        head = "\n".join(word[:SHARE_WIDTH] for word in fmt.name(name).split())
        shown.add_column(Text(head), justify="right", width=SHARE_WIDTH, overflow="fold")
    for problem in dict.fromkeys(check.problem for check in live):
        shown.add_row(Text(fmt.problem(problem) if problem in f.problems else "", style="bold"))
        for kernel in dict.fromkeys(check.kernel for check in live if check.problem == problem):
            own = {check.name: check for check in live if (check.kernel, check.problem) == (kernel, problem)}
            shown.add_row(Text(fmt.name(kernel)), *(_share(own.get(name)) for name in names))
    yield shown


def _share(check: Check | None) -> Text:
    found = None if check is None else checks.difference(check)
    if check is None or found is None or found.share is None:
        return Text(fmt.NONE, style="dim")
    return Text(fmt.signed_percent_figure(found.share), style="bold red" if check.passed is False else "")


def _worst(f: Figures, each: checks.Asked) -> tuple[Text, Text, Text]:
    worst = each.worst
    if worst is None:
        return Text(fmt.NONE), Text(fmt.NONE), Text(fmt.NONE)
    share = fmt.NONE if worst.share is None else fmt.signed_percent_figure(worst.share)
    style = "red" if worst.check.passed is False else ""
    figure = Text(fmt.signed_microseconds_figure(worst.ns), style=style)
    return figure, Text(share, style=style), Text(checks.case(f, worst.check))
