"""The device while the run was measured: clocks, temperature, power, and what held the clocks back."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from harness.model import DeviceState
from harness.throttling import CLOCK_OFF, reference_clock_mhz
from harness.words import significant
from reports import format as fmt
from reports.figures import Figures, Row
from reports.held_back import HARMLESS_REASONS, counted_limits, held_ns, reason_in_words, value_range, watched_s
from reports.tables import Cell, Column, Table, number, table, text

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


def line(
    quantity: Quantity, states: list[DeviceState], growth_times_unix_s: frozenset[float] = frozenset()
) -> list[Point]:
    """The quantity along the run, in at most `BUCKETS` points; empty where it was never read.

    Args:
        quantity: what to read.
        states: in order of time.
        growth_times_unix_s: readings before which a limit's counter had grown.
    """
    if not states:
        return []
    start, end = states[0].time_unix_s, states[-1].time_unix_s
    width = max((end - start) / BUCKETS, 1e-9)
    buckets: dict[int, list[DeviceState]] = {}
    for state in states:
        if quantity.read(state) is not None:
            place = min(int((state.time_unix_s - start) / width), BUCKETS - 1)
            buckets.setdefault(place, []).append(state)
    return [_point(quantity, found, start, growth_times_unix_s) for found in buckets.values()]


def _point(quantity: Quantity, states: list[DeviceState], start: float, growth_times_unix_s: frozenset[float]) -> Point:
    values = _values(quantity, states)
    return Point(
        seconds=statistics.fmean(s.time_unix_s for s in states) - start,
        low=min(values),
        middle=statistics.median(values),
        high=max(values),
        held_back=any(limits_in(s) or s.time_unix_s in growth_times_unix_s for s in states),
    )


def _values(quantity: Quantity, states: list[DeviceState]) -> list[float]:
    return [value for s in states if (value := quantity.read(s)) is not None]


def device_tables(f: Figures) -> tuple[Table, ...]:
    """Quantities over the run, what held the clocks back, and both by problem and timer."""
    states = states_of(f.rows)
    if not states and not sample_clocks_mhz(f.rows):
        return ()
    over_the_run = (_quantities(states), _reasons(f, states)) if states else ()
    return (*over_the_run, _by_place(f))


def sample_clocks_mhz(rows: Iterable[Row]) -> list[float]:
    """SM clocks of all samples of these rows, by the device's own counters, where they were read."""
    return [mhz for row in rows for mhz in row.measurement.sample_clocks_mhz]


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


def _reasons(f: Figures, states: list[DeviceState]) -> Table:
    """What held the clocks back: in how many readings, and for how long where a limit's counter has grown."""
    known = [s for s in states if s.clock_event_reasons is not None]
    held = held_ns(f.rows)
    grown = {name for name, ns in held.items() if ns}
    rows: list[list[Cell | str]] = []
    for name in sorted({name for s in known for name in s.clock_event_reasons or ()} | grown):
        hits = sum(name in (s.clock_event_reasons or ()) for s in known)
        words = "nothing ran at that moment" if name in HARMLESS_REASONS else reason_in_words(name)
        time = [_milliseconds(held[name]) if name in held else fmt.NONE] if grown else []
        rows.append([Cell(text=fmt.name(name)), words, f"{hits} of {len(known)}" if known else fmt.NONE, *time])
    no_time = [fmt.NONE] if grown else []
    rows += [[*row, *no_time] for row in _without_reasons(states)]
    heads = [text("NVML's name"), text("in words"), number("readings")]
    heads += [number("held back", "ms")] if grown else []
    return table("Clock event reasons", heads, rows, _counters_note(f, held))


def _without_reasons(states: list[DeviceState]) -> list[list[Cell | str]]:
    """Readings that name nothing, and those that could not be had."""
    known = [s for s in states if s.clock_event_reasons is not None]
    nothing = sum(not s.clock_event_reasons for s in known)
    rows: list[list[Cell | str]] = []
    if nothing:
        rows.append(["(none)", "nothing held the clocks back", f"{nothing} of {len(known)}"])
    if len(known) < len(states):
        why = dict.fromkeys(s.unknown.get("clock_event_reasons", "no reason recorded") for s in states)
        unknown = f"unknown: {fmt.line('; '.join(why))}"
        rows.append(["(unknown)", Cell(text=unknown, mark="quiet"), f"{len(states) - len(known)} of {len(states)}"])
    return rows


def _counters_note(f: Figures, held: dict[str, int]) -> str:
    """What the limits' counters are about; "" where they were not read."""
    if not held:
        return ""
    watched = f"in the {watched_s(f.rows):.1f}{fmt.NBSP}s in which cases were timed, warm-up included"
    if not any(held.values()):
        return f"By the driver's counters, no limit held the clocks back {watched}."
    return f"Held back: by how much the driver's counters grew {watched}. Limits can hold at the same time."


def _milliseconds(ns: int) -> str:
    return significant(ns / 1e6, 3)


def _by_place(f: Figures) -> Table:
    places: dict[tuple[str, str], list[Row]] = {}
    for row in f.rows:
        place = "floor" if row.problem not in f.problems else fmt.problem(row.problem)
        places.setdefault((place, row.way.label), []).append(row)
    counted = bool(sample_clocks_mhz(f.rows))
    rows: list[list[Cell | str]] = []
    for (problem, way), found in places.items():
        states, clocks = states_of(found), sample_clocks_mhz(found)
        if states or clocks:
            own = [_own_clock(clocks)] if counted else []
            ranges = [_range(quantity, states) for quantity in QUANTITIES]
            rows.append([problem, way, *own, *ranges, _held_by(found)])
    heads = [text("problem"), text("timer, cache"), *_clock_heads(counted), text("held back by")]
    return table("By problem and timer", heads, rows, _clocks_note(f))


def _clock_heads(counted: bool) -> list[Column]:
    """Quantities as NVML reads them; before them, where it was read, the SM clock of the samples."""
    heads = [number(q.title, q.unit) for q in QUANTITIES]
    if not counted:
        return heads
    return [number("SM clock of samples", "MHz"), number(f"{QUANTITIES[0].title} by NVML", "MHz"), *heads[1:]]


def _own_clock(clocks_mhz: list[float]) -> Cell:
    """Median, with the lowest and the highest."""
    if not clocks_mhz:
        return Cell(text=fmt.NONE)
    return Cell(text=f"{statistics.median(clocks_mhz):.0f}", note=value_range(clocks_mhz))


def _clocks_note(f: Figures) -> str:
    """What the SM clock of samples is held against, and why it is not known where a timer could not read it."""
    trials = (t for row in f.rows for t in row.measurement.trials)
    reasons = dict.fromkeys(t.unknown["sample_clocks_mhz"] for t in trials if "sample_clocks_mhz" in t.unknown)
    why = fmt.line("; ".join(reasons))
    reference_mhz = reference_clock_mhz(f.run.measurements)
    if reference_mhz is None:
        return f"The SM clock of samples is unknown: {why}." if why else ""
    maximum = f.run.environment.get("max_sm_clock_mhz")
    said = (
        "SM clock of samples: by the device's own counters from a sample's start to its end, by event with the delay "
        "before it; median, lowest–highest. "
        f"Reference: {reference_mhz:.0f}{fmt.NBSP}MHz, the highest median of a trial; samples more than "
        f"{CLOCK_OFF * 100:g}{fmt.NBSP}% below it are marked."
    )
    said += "" if maximum is None else f" The device's maximum by NVML: {maximum}{fmt.NBSP}MHz."
    return f"{said} Where it was not read: {why}." if why else said


def _held_by(rows: list[Row]) -> str:
    """Limits with the time by their counters, then what only moments say."""
    times = [f"{fmt.name(name)} ({_milliseconds(ns)}{fmt.NBSP}ms)" for name, ns in held_ns(rows).items() if ns]
    trials = [(t, counted_limits(t)) for row in rows for t in row.measurement.trials]
    seen = dict.fromkeys(
        name for t, counted in trials for s in t.states for name in limits_in(s) if name not in counted
    )
    return ", ".join([*times, *(fmt.name(name) for name in seen)]) or fmt.NONE


def _range(quantity: Quantity, states: list[DeviceState]) -> str:
    values = _values(quantity, states)
    if not states:
        return fmt.NONE
    return value_range(values) if values else "unknown"
