"""A history → everything that its page says, as plain data in the order in which the page says it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from harness.comparison.attribution import MUST_MATCH
from harness.comparison.records import Change
from harness.environment import ENVIRONMENT_KEYS
from harness.history.devices import Device, History
from harness.history.standing import Standing, standings
from harness.model import Case
from reports import format as fmt
from reports.history.changes import in_short, what_changed
from reports.history.data import packed
from reports.history.rows import Row, by_effect, day, rows, stands_out

MOST_NAMED = 3
"""Cases that a sentence names; more are counted."""


@dataclass(frozen=True, kw_only=True)
class Beginning:
    """A run in which something became slower or failed and has been so since."""

    day: str
    newest: bool
    """Whether it is the newest run."""
    run_id: str
    cases: str
    """Which ones: by name where they are few."""
    changes: tuple[str, ...]
    """What differs from the run before."""


@dataclass(frozen=True, kw_only=True)
class Section:
    """One device."""

    title: str
    lede: str
    takeaway: str
    """Whether anything fails or is slower than in the run before."""
    details: str
    """What goes with it, what became faster, and what was slower already; "" for nothing."""
    alarming: bool
    """Whether the takeaway says so."""
    beginnings: tuple[Beginning, ...]
    """The latest first."""
    rows: tuple[Row, ...]
    data: str
    """For the page's script."""


@dataclass(frozen=True, kw_only=True)
class View:
    """The content of a history's page."""

    title: str
    lede: str
    selected: str
    """Which cases are shown, where not all are."""
    unreadable: tuple[str, ...]
    sections: tuple[Section, ...]
    kernels: tuple[tuple[str, str], ...]
    """(as recorded, fit to be shown), for the filter."""
    timers: tuple[tuple[str, str], ...]


def view(history: History, wanted: Callable[[Case], bool] = lambda _: True, selected: str = "") -> View:
    """What the page says.

    Args:
        history: with at least one device.
        wanted: cases to show; no word depends on it.
        selected: the same in words; "": all.
    """
    found = [(device, [each for each in standings(device) if wanted(each.case)]) for device in history.devices]
    sections = tuple(_section(device, by_effect(device, shown), history) for device, shown in found if shown)
    cases = [row for section in sections for row in section.rows]
    names = [_device_name(device, history) for device in history.devices]
    return View(
        title=f"SGEMV over time on {names[0]}" if len(names) == 1 else f"SGEMV over time on {len(names)} devices",
        lede="" if len(names) == 1 else f"{fmt.listing(names)}. Figures of different devices are never joined.",
        selected=fmt.line(selected),
        unreadable=tuple(fmt.line(str(error)) for error in history.unreadable),
        sections=sections,
        kernels=tuple(dict.fromkeys((row.kernel, row.name) for row in cases)),
        timers=tuple(dict.fromkeys((row.timer, fmt.name(row.timer)) for row in cases)),
    )


def _section(device: Device, shown: list[Standing], history: History) -> Section:
    current = [each for each in shown if each.newest == len(device.runs) - 1]
    alarms = [each for each in current if _is_alarming(each)]
    return Section(
        title=_device_name(device, history),
        lede=_lede(device, shown),
        takeaway=_takeaway(current),
        details=" ".join(_details(device, shown, current)),
        alarming=bool(alarms),
        beginnings=_beginnings(device, alarms),
        rows=tuple(rows(device, shown)),
        data=packed(device, shown),
    )


def _is_alarming(each: Standing) -> bool:
    words = (each.against_previous.change, each.against_best.change)
    return Change.FAILED in words or stands_out(each) or each.against_best.change is Change.SLOWER


def _device_name(device: Device, history: History) -> str:
    """The model, with the facts in which another device of the same name differs."""
    name = _model(device)
    alike = [other for other in history.devices if other is not device and _model(other) == name]
    keys = [key for key, about in ENVIRONMENT_KEYS.items() if about.must_match_to_compare or key in MUST_MATCH]
    facts = [
        f"{key.replace('_', ' ')} {_known(device, key)}"
        for key in keys
        if any(_known(other, key) != _known(device, key) for other in alike)
    ]
    return ", ".join([name, *facts])


def _model(device: Device) -> str:
    values = device.newest.environment
    return fmt.name(str(values.get("device_name") or values.get("gpu_name") or "an unknown device"))


def _known(device: Device, key: str) -> str:
    """Of the newest run that knows it."""
    known = (past.run.environment.get(key) for past in reversed(device.runs))
    value = next((each for each in known if each is not None), None)
    return ("off", "on")[value] if isinstance(value, bool) else "unknown" if value is None else fmt.name(str(value))


def _lede(device: Device, shown: Sequence[Standing]) -> str:
    run = device.newest
    values = run.environment
    software = [f"{what} {values.get(key)}" for what, key in _SOFTWARE if values.get(key) is not None]
    what = f"{fmt.count(len(device.runs), 'run')} since {day(device, 0)}, {fmt.count(len(shown), 'case')}"
    having = f" with {fmt.line(fmt.listing(software))}" if software else ""
    cut_short = ", and was cut short" if run.partial else ""
    return f"{what}. The newest run is of {fmt.moment(run.started_utc)}{having}{cut_short}."


_SOFTWARE = (("driver", "driver_version"), ("torch", "torch_version"))


def _takeaway(current: Sequence[Standing]) -> str:
    """Failures, then what is slower since the run before."""
    failed = [each for each in current if Change.FAILED in (each.against_previous.change, each.against_best.change)]
    slower = [each for each in current if stands_out(each)]
    compared = [each for each in current if each.against_previous.ratio is not None]
    said = [f"{_which(failed)} {'fails' if len(failed) == 1 else 'fail'} in the newest run."] if failed else []
    if slower:
        of = f"{len(slower)} of {fmt.count(len(compared), 'case')} {_be(slower)}"
        said.append(f"{of} slower than in the run before, {_worst(slower)}.")
    elif compared:
        none = "The one case is not" if len(compared) == 1 else f"None of {fmt.count(len(compared), 'case')} is"
        said.append(f"{none} slower than in the run before.")
    elif not failed:
        said.append("No case of the newest run was measured before: there is nothing to hold it against.")
    return " ".join(said)


def _details(device: Device, shown: Sequence[Standing], current: Sequence[Standing]) -> Iterator[str]:
    slower = [each for each in current if stands_out(each)]
    faster = [each for each in current if each.against_previous.change is Change.FASTER and not each.usual_step]
    if slower:
        what = in_short(device, len(device.runs) - 1)
        yield f"The {what} in between." if what else "Nothing recorded changed in between."
        yield from _throttled(device, slower)
    if faster:
        yield f"{fmt.count(len(faster), 'case')} {_be(faster)} faster."
    yield from _behind(device, [each for each in current if each.against_best.change is Change.SLOWER], slower)
    if missing := len(shown) - len(current):
        yield f"The newest run lacks {fmt.count(missing, 'case')}, which stand as they were measured last."


def _be(some: Sequence[Standing]) -> str:
    return "is" if len(some) == 1 else "are"


def _throttled(device: Device, slower: Sequence[Standing]) -> Iterator[str]:
    """How many were measured by a device that was held back: that is no change of the code."""
    count = sum(bool(device.held_back[each.newest, each.place] > 0) for each in slower)
    if count:
        which = "it" if len(slower) == 1 else "all of them" if count == len(slower) else f"{count} of them"
        yield f"A limit held the clocks back during {which}."


def _behind(device: Device, behind: Sequence[Standing], slower: Sequence[Standing]) -> Iterator[str]:
    """What was slower than its best before the newest run, and where most of it began."""
    earlier = [each for each in behind if each not in slower]
    if not earlier:
        return
    more = f"{len(earlier)} more" if slower else fmt.count(len(earlier), "case")
    began, count = Counter(each.began for each in earlier).most_common(1)[0]
    which = "all" if count == len(earlier) > 1 else f"{count} of them" if len(earlier) > 1 else ""
    what = in_short(device, began) if began is not None else ""
    since = " ".join(part for part in (which, f"since {day(device, began)}") if part)
    were = "was" if len(earlier) == 1 else "were"
    yield f"{more} {were} slower than at best already, {since}{', when the ' + what if what else ''}."


def _worst(slower: Sequence[Standing]) -> str:
    """The largest, named."""
    first = max(slower, key=lambda each: each.against_previous.ratio.estimate if each.against_previous.ratio else 0.0)
    ratio = first.against_previous.ratio
    by = "" if ratio is None else f" by {fmt.percent(ratio.estimate - 1)}"
    return f"{_name(first.case)}{by}" + (" the most" if len(slower) > 1 else "")


def _beginnings(device: Device, alarms: Sequence[Standing]) -> tuple[Beginning, ...]:
    by_run: dict[int, list[Standing]] = {}
    for each in alarms:
        by_run.setdefault(each.newest if each.began is None else each.began, []).append(each)
    return tuple(
        Beginning(
            day=day(device, run),
            newest=run == len(device.runs) - 1,
            run_id=fmt.line(device.runs[run].run.id),
            cases=_which(cases),
            changes=tuple(what_changed(device, run, [each.case.kernel for each in cases])),
        )
        for run, cases in sorted(by_run.items(), reverse=True)
    )


def _which(cases: Sequence[Standing]) -> str:
    """By name where they are few, else how many and of which kernels."""
    if len(cases) <= MOST_NAMED:
        return fmt.listing([_name(each.case) for each in cases])
    kernels = list(dict.fromkeys(fmt.name(each.case.kernel) for each in cases))
    named = fmt.listing(kernels) if len(kernels) <= MOST_NAMED else f"{len(kernels)} kernels"
    return f"{fmt.count(len(cases), 'case')} of {named}"


def _name(case: Case) -> str:
    return f"{fmt.name(case.kernel)} on {fmt.problem(case.problem)} ({fmt.name(case.timer)}, {case.cache})"
