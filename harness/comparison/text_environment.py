"""What differs between the environments of two runs, on the terminal."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.table import Column, Table
from rich.text import Text

from harness.comparison.attribution import NOT_SET, VARIABLES
from harness.comparison.boards import allowance
from harness.comparison.records import Comparison, EnvironmentDifference
from harness.comparison.text_tables import NARROW
from harness.words import LONGEST_LINE, visible


def environment(found: Comparison, name: str = "new") -> Iterator[RenderableType]:
    """What it comes down to, what forbids the comparison, and the differing facts by group.

    Args:
        found: what to show.
        name: of the new run.
    """
    title = "\nenvironment: " if name == "new" else f"\nenvironment of {name}: "
    yield Text.assemble((title, "bold"), visible(found.attribution, LONGEST_LINE))
    if found.two_boards and not found.not_comparable:
        yield Text(allowance(), style="dim")
    for reason in found.not_comparable:
        yield Text.assemble(("not comparable: ", "yellow"), visible(reason, LONGEST_LINE))
    if found.environment:
        yield _Differences(found, name)


@dataclass(frozen=True)
class _Differences:
    """The differing facts by group, side by side where there is room for it."""

    found: Comparison
    name: str

    def __rich_console__(self, _console: Console, options: ConsoleOptions) -> RenderResult:
        if options.max_width >= NARROW:
            yield _table(self.found, self.name)
            return
        for each in self.found.environment:
            base, new = _values(each)
            yield Text(f"  {_key(each)}: ").append_text(base).append(" → ").append_text(new)


def _table(found: Comparison, name: str) -> Table:
    table = Table("", Column(overflow="fold"), Column("base", overflow="fold"), box=None, pad_edge=False)
    table.add_column(name, overflow="fold")
    table.columns[0].no_wrap = True
    for group, differences in found.by_group.items():
        for place, each in enumerate(differences):
            table.add_row(Text("" if place else group, style="dim"), Text(_key(each)), *_values(each))
    return table


def _key(difference: EnvironmentDifference) -> str:
    return visible(difference.key.removeprefix(f"{VARIABLES}."))


def _values(difference: EnvironmentDifference) -> Iterator[Text]:
    for value in (difference.base, difference.new):
        if value is None:
            yield Text("unknown", style="dim")
        elif value == NOT_SET:
            yield Text(NOT_SET, style="dim")
        elif value == "":
            yield Text('""')
        elif isinstance(value, bool):
            yield Text(("no", "yes")[value])
        elif difference.unit and isinstance(value, int):
            yield Text(f"{value:,} {difference.unit}".replace(",", " "))
        else:
            yield Text(visible(str(value), LONGEST_LINE) + (f" {difference.unit}" if difference.unit else ""))
