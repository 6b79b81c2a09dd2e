"""What differs between the environments of a base run and of each new one, as one table of the differing fields."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from harness.comparison.attribution import BUILD, OPTIONS, SAME, UNKNOWN_CHANGES, VARIABLES
from harness.comparison.records import Comparison, EnvironmentDifference, Value
from harness.environment import ENVIRONMENT_KEYS, Group
from harness.model import Run
from reports import format as fmt
from reports.comparison.columns import Column as RunColumn
from reports.facts import GROUP_TITLES, fact
from reports.tables import Cell, Table, table, text

HASH_SHOWN = 10
"""Characters of a hash: enough to see that it differs."""

AS_BASE = "as base"

ALL_THE_SAME = "Whatever is recorded of the device, the software, the settings, the source and its build is the same."

OPTION_NAMES = {
    "quick": "a quick look, coarser",
    "trials": "trials asked for",
    "max_time_s": "time for a case and trial",
}
"""How an option of a bench is called."""


@dataclass(frozen=True, kw_only=True)
class Field:
    """One fact in which a new run differs from the base."""

    key: str
    group: Group
    unit: str | None
    base: Value
    news: tuple[Value, ...]
    """By new run."""
    differs: tuple[bool, ...]
    """By new run: whether it differs from the base in it."""


def fields(found: Sequence[Comparison]) -> tuple[Field, ...]:
    """What differs in any of the new runs: in the order of the environment's keys.

    Args:
        found: of one base, one for each new run.
    """
    by_run = [{each.key: each for each in comparison.environment} for comparison in found]
    known = {key: each for differences in by_run for key, each in differences.items()}
    places = {key: place for place, key in enumerate(ENVIRONMENT_KEYS)}
    keys = sorted(known, key=lambda key: (list(Group).index(known[key].group), places.get(key, len(places)), key))
    return tuple(_field(known[key], [each.get(key) for each in by_run]) for key in keys)


def environment_table(found: Sequence[Comparison], runs: Sequence[RunColumn]) -> Table | None:
    """Base against new runs, those that agree in all of it in one column; None where nothing differs.

    Args:
        found: of one base, one for each new run.
        runs: the base, then the new runs.
    """
    differing = fields(found)
    if not differing:
        return None
    alike: dict[tuple[Value, ...], list[int]] = {}
    for place in range(len(found)):
        alike.setdefault(tuple(each.news[place] for each in differing), []).append(place)
    heads = [text("what"), text("group"), text(f"base: {runs[0].text}")]
    heads += [text(_head([runs[place + 1] for place in places])) for places in alike.values()]
    firsts = [places[0] for places in alike.values()]
    rows = [_cells(each, runs, firsts) for each in differing]
    return table("Where the runs differ", heads, rows, group_by=1)


def attribution(found: Sequence[Comparison]) -> str:
    """What the environments differ by, in a line: `driver only`; by number of new runs where they differ in it."""
    said = Counter(fmt.line(each.attribution) for each in found)
    if len(said) == 1:
        return next(iter(said))
    return "; ".join(f"{what} ({fmt.count(runs, 'run')})" for what, runs in said.items())


def what_else(found: Sequence[Comparison]) -> str:
    """What stands where the table would, if nothing differs; "" where the table does, or where a run was cut short.

    Args:
        found: of one base, one for each new run.
    """
    if fields(found) or any(each.base_partial or each.new_partial for each in found):
        return ""
    if any(UNKNOWN_CHANGES in each.attribution for each in found):
        return "No recorded fact differs, but which uncommitted changes the checkouts had is not recorded."
    return ALL_THE_SAME if all(each.attribution == SAME for each in found) else ""


def _head(runs: Sequence[RunColumn]) -> str:
    """Of a column: new runs that agree in all of it share one."""
    if len(runs) == 1:
        return f"new: {runs[0].text}"
    first, last = (" ".join(runs[place].label[-1]).strip() for place in (0, -1))
    return f"{len(runs)} new: {first} … {last}"


def _field(like: EnvironmentDifference, by_run: Sequence[EnvironmentDifference | None]) -> Field:
    return Field(
        key=like.key,
        group=like.group,
        unit=like.unit,
        base=like.base,
        news=tuple(like.base if each is None else each.new for each in by_run),
        differs=tuple(each is not None for each in by_run),
    )


def _cells(field: Field, runs: Sequence[RunColumn], firsts: Sequence[int]) -> list[Cell | str]:
    about = ENVIRONMENT_KEYS.get(field.key)
    what = about.description if about else _in_words(field.key)
    head = Cell(text=fmt.line(what), note=fmt.name(field.key) if about else "")
    values = [_value(field, field.base, runs[0].run)]
    for place in firsts:
        same = Cell(text=AS_BASE, mark="quiet")
        values.append(_value(field, field.news[place], runs[place + 1].run) if field.differs[place] else same)
    return [head, GROUP_TITLES[field.group], *values]


def _in_words(key: str) -> str:
    """`build.cuda.compiler_version` → `compiler version of the cuda build`; a variable by its name."""
    if key.startswith(OPTIONS):
        name = key.removeprefix(OPTIONS)
        return OPTION_NAMES.get(name, f"option {name}")
    if key.startswith(BUILD):
        target, _, name = key.removeprefix(BUILD).partition(".")
        return f"{name.replace('_', ' ')} of the {target} build"
    return key.replace(f"{VARIABLES}.", "variable ", 1)


def _value(field: Field, value: Value, run: Run) -> Cell:
    if value is None:
        reason = run.environment.unknown.get(field.key)
        return Cell(text="unknown", note=fmt.line(reason) if reason else "", mark="quiet")
    shown = fact(field.key, value, field.unit)
    is_hash = field.key.endswith(("git_commit", "_sha256")) and len(shown) > HASH_SHOWN
    return Cell(text=f"{shown[:HASH_SHOWN]}…" if is_hash else shown)
