"""The device while the run was measured: clocks, temperature, power, and what held the clocks back."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from harness.model import DeviceState
from reports import format as fmt
from reports.cautions import HARMLESS_REASONS, reason_in_words
from reports.figures import Figures, Row
from reports.tables import Cell, Table, number, table, text

BUCKETS = 160
"""Most points of a line along the run: a page holds summaries, not every reading."""


@dataclass(frozen=True, kw_only=True)
class Quantity:
    """Something that NVML reads."""

    title: str
    unit: str
    field: str
    """Of `DeviceState`, where the reason stands if it is unknown."""
    read: Callable[[DeviceState], float | None]


QUANTITIES = (
    Quantity(title="SM clock", unit="MHz", field="sm_clock_mhz", read=lambda s: s.sm_clock_mhz),
    Quantity(title="memory clock", unit="MHz", field="memory_clock_mhz", read=lambda s: s.memory_clock_mhz),
    Quantity(title="temperature", unit="°C", field="temperature_c", read=lambda s: s.temperature_c),
    Quantity(
        title="board power", unit="W", field="power_mw", read=lambda s: None if s.power_mw is None else s.power_mw / 1e3
    ),
)


@dataclass(frozen=True, kw_only=True)
class Point:
    """Readings that are neighbours in time, in three figures."""

    seconds: float
    """Since the run's first reading."""
    low: float
    middle: float
    high: float
    held_back: bool
    """Something limited the clocks in at least one of them."""


def states_of(rows: Iterable[Row]) -> list[DeviceState]:
    """All readings of these rows in order of time."""
    states = [s for row in rows for t in row.measurement.trials for s in t.states]
    return sorted(states, key=lambda s: s.time_unix_s)


def limits_in(state: DeviceState) -> list[str]:
    """What held the clocks back, by NVML's names; empty also where it is not known."""
    return [r for r in state.clock_event_reasons or () if r not in HARMLESS_REASONS]


def line(quantity: Quantity, states: list[DeviceState]) -> list[Point]:
    """The quantity along the run, in at most `BUCKETS` points; empty where it was never read."""
    if not states:
        return []
    start, end = states[0].time_unix_s, states[-1].time_unix_s
    width = max((end - start) / BUCKETS, 1e-9)
    buckets: dict[int, list[DeviceState]] = {}
    for state in states:
        if quantity.read(state) is not None:
            place = min(int((state.time_unix_s - start) / width), BUCKETS - 1)
            buckets.setdefault(place, []).append(state)
    return [_point(quantity, found, start) for found in buckets.values()]


def _point(quantity: Quantity, states: list[DeviceState], start: float) -> Point:
    values = _values(quantity, states)
    return Point(
        seconds=statistics.fmean(s.time_unix_s for s in states) - start,
        low=min(values),
        middle=statistics.median(values),
        high=max(values),
        held_back=any(limits_in(s) for s in states),
    )


def _values(quantity: Quantity, states: list[DeviceState]) -> list[float]:
    return [value for s in states if (value := quantity.read(s)) is not None]


def device_tables(f: Figures) -> tuple[Table, ...]:
    """Quantities over the run, what held the clocks back, and both by problem and timer."""
    states = states_of(f.rows)
    if not states:
        return ()
    return (_quantities(states), _reasons(states), _by_place(f))


def _quantities(states: list[DeviceState]) -> Table:
    rows: list[list[Cell | str]] = []
    for quantity in QUANTITIES:
        values = _values(quantity, states)
        name = f"{quantity.title}, {quantity.unit}"
        if not values:
            rows.append([name, Cell(text=_why_unknown(quantity, states), mark="quiet", columns=4)])
            continue
        figures = [min(values), statistics.median(values), max(values)]
        rows.append([name, *(f"{v:.0f}" for v in figures), str(len(values))])
    heads = [text("quantity"), number("lowest"), number("median"), number("highest"), number("readings")]
    return table("Over the whole run", heads, rows, _power_note(states))


def _power_note(states: list[DeviceState]) -> str:
    kinds = {s.power_is_instant for s in states if s.power_mw is not None}
    words = {True: "instantaneous", False: "NVML's average over about a second", None: "of an unknown kind"}
    said = fmt.listing([words[kind] for kind in (True, False, None) if kind in kinds])
    return f"Power readings are {said}." if said else ""


def _why_unknown(quantity: Quantity, states: list[DeviceState]) -> str:
    reasons = dict.fromkeys(s.unknown.get(quantity.field, "no reason recorded") for s in states)
    return f"unknown: {fmt.line('; '.join(reasons))}"


def _reasons(states: list[DeviceState]) -> Table:
    known = [s for s in states if s.clock_event_reasons is not None]
    names = sorted({name for s in known for name in s.clock_event_reasons or ()})
    rows: list[list[Cell | str]] = []
    for name in names:
        hits = sum(name in (s.clock_event_reasons or ()) for s in known)
        words = "nothing ran at that moment" if name in HARMLESS_REASONS else reason_in_words(name)
        rows.append([Cell(text=fmt.name(name)), words, f"{hits} of {len(known)}"])
    nothing = sum(not s.clock_event_reasons for s in known)
    if nothing:
        rows.append(["(none)", "nothing held the clocks back", f"{nothing} of {len(known)}"])
    if len(known) < len(states):
        why = dict.fromkeys(s.unknown.get("clock_event_reasons", "no reason recorded") for s in states)
        unknown = f"unknown: {fmt.line('; '.join(why))}"
        rows.append(["(unknown)", Cell(text=unknown, mark="quiet"), f"{len(states) - len(known)} of {len(states)}"])
    return table("Clock event reasons", [text("NVML's name"), text("in words"), number("readings")], rows)


def _by_place(f: Figures) -> Table:
    places: dict[tuple[str, str], list[Row]] = {}
    for row in f.rows:
        place = "floor" if row.problem not in f.problems else fmt.problem(row.problem)
        places.setdefault((place, row.way.label), []).append(row)
    rows = []
    for (problem, way), found in places.items():
        states = states_of(found)
        if states:
            held = dict.fromkeys(name for s in states for name in limits_in(s))
            ranges = [_range(quantity, states) for quantity in QUANTITIES]
            rows.append([problem, way, *ranges, ", ".join(fmt.name(n) for n in held) or fmt.NONE])
    heads = [number(q.title, q.unit) for q in QUANTITIES]
    return table("By problem and timer", [text("problem"), text("timer, cache"), *heads, text("held back by")], rows)


def _range(quantity: Quantity, states: list[DeviceState]) -> str:
    values = _values(quantity, states)
    if not values:
        return "unknown"
    low, high = f"{min(values):.0f}", f"{max(values):.0f}"
    return low if low == high else f"{low}–{high}"
