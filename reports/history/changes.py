"""What changed from a device's run to the next, as marks on its time line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from harness.comparison.attribution import BUILD, OPTIONS
from harness.comparison.records import EnvironmentDifference, Value
from harness.environment import ENVIRONMENT_KEYS
from harness.history.devices import Device
from harness.words import visible
from reports import format as fmt
from reports.comparison.environment import OPTION_NAMES

KINDS = {"driver_version": "driver", "torch_version": "torch", "git_commit": "commit"}
"""Keys with a mark of their own kind; every other difference is of kind `other`."""

OTHER = "other"

CHECKOUT = "git_dirty"
"""The key that reads as a state of the checkout: clean, or with changes."""

COMMIT_DIGITS = 8

HASHES = ("git_commit", "git_diff_sha256")
"""Keys whose values are told apart by their first digits."""

NAMES = {CHECKOUT: "checkout", "git_diff_sha256": "uncommitted changes"}
"""How a key is called where its own name says nothing to a reader."""

LONGEST_VALUE = 60
"""Characters of a value in a line of many."""


@dataclass(frozen=True, kw_only=True)
class Mark:
    """What one run has that the run before it had not."""

    run: int
    """Its place among the device's runs."""
    kind: str
    """Of `KINDS`, or `other`."""
    label: str
    """A few characters for a picture."""
    text: str
    """From what to what."""


def marks(device: Device) -> Iterator[Mark]:
    """Of every run, in their order; one mark for all other differences of a run together."""
    for run, found in enumerate(device.differences):
        own = [each for each in found if each.key in KINDS]
        others = [each for each in found if each.key not in KINDS]
        for each in own:
            kind = KINDS[each.key]
            yield Mark(run=run, kind=kind, label=f"{kind} {_value(each, each.new)}", text=_in_words(each))
        if others:
            what = _name(others[0].key) if len(others) == 1 else f"{len(others)} facts"
            yield Mark(run=run, kind=OTHER, label=f"{what} changed", text="; ".join(map(_in_words, others)))


def what_changed(device: Device, run: int, kernels: Iterable[str] = ()) -> list[str]:
    """A line a change from the run before: the environment's, then those of the kernels' code.

    Args:
        device: whose run it is.
        run: its place.
        kernels: whose code to look at.
    """
    found = sorted(device.differences[run], key=lambda each: _place(each.key))
    codes = {kernel: device.kernel_changes[kernel].get(run) for kernel in kernels}
    return [*map(_in_words, found), *(f"{fmt.name(kernel)}: {note}" for kernel, note in codes.items() if note)]


def in_short(device: Device, run: int, most: int = 2) -> str:
    """The same in a few words: `driver and torch changed`; "" where nothing did."""
    kinds = list(dict.fromkeys(KINDS.get(each.key, _name(each.key)) for each in device.differences[run]))
    ordered = sorted(kinds, key=lambda kind: [*KINDS.values(), kind].index(kind))
    shown: Sequence[str] = ordered if len(ordered) <= most else [*ordered[:most], f"{len(ordered) - most} more"]
    return f"{fmt.listing(list(shown))} changed" if shown else ""


def _place(key: str) -> int:
    return [*KINDS, key].index(key)


def _name(key: str) -> str:
    if key in NAMES:
        return NAMES[key]
    if key.startswith(OPTIONS):
        return OPTION_NAMES.get(key.removeprefix(OPTIONS), fmt.name(key))
    if key.startswith(BUILD):
        return fmt.name(key.replace(".", " "))
    return fmt.name(key.replace("_", " "))


def _in_words(each: EnvironmentDifference) -> str:
    return f"{KINDS.get(each.key) or _name(each.key)}: {_value(each, each.base)} → {_value(each, each.new)}"


def _value(each: EnvironmentDifference, value: Value) -> str:
    if value is None:
        return "unknown"
    if isinstance(value, bool):
        names = ("clean", "with changes") if each.key == CHECKOUT else ("off", "on")
        return names[value]
    text = str(value)[:COMMIT_DIGITS] if each.key in HASHES else str(value)
    unit = ENVIRONMENT_KEYS[each.key].unit if each.key in ENVIRONMENT_KEYS else None
    return visible(text, LONGEST_VALUE) + (f"{fmt.NBSP}{unit}" if unit else "")
