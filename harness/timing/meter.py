"""What a board takes, through NVML: by its counter of energy or its power, over a window of time; and idle power."""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

from harness.answers import Unknown
from harness.device import torch_facts
from harness.device.nvml import Nvml, NvmlDevice
from harness.timing import NotMeasurable

WINDOW_S = 1.5
"""A window is at least so long: a reading that comes 15 ms late is 1 % of it."""

LEAST_REPLAYS = 4
"""Replays that a window holds at least."""

IDLE_S = 1.0
"""Over which idle power is averaged."""

IDLE_POLL_S = 0.05
SETTLING_POLL_S = 0.3
MOST_SETTLING_S = 5.0
SETTLED_WITHIN = 0.02
"""Power falls for a while after work: idle power is read when two readings in a row are so near, or time is spent."""

Read = Callable[[], int | Unknown]


@dataclass(frozen=True, kw_only=True)
class Reading:
    """One reading while replays run."""

    at_s: float
    """By `time.perf_counter`: the middle of the call."""
    value: int
    """mJ of the counter, or mW."""
    done: int
    """Replays that the device had finished."""


@dataclass(frozen=True, kw_only=True)
class Window:
    """The time that counts."""

    first: Reading
    last: Reading
    millijoules: float
    """Taken between the two."""

    @property
    def seconds(self) -> float:
        """From the first reading to the last."""
        return self.last.at_s - self.first.at_s


@dataclass(frozen=True, kw_only=True)
class Source:
    """Where the energy is known from."""

    name: str
    """As `Energy.source` says it."""
    read: Read
    window: Callable[[Sequence[Reading]], Window | None]
    """The window of the readings so far; None: not complete."""


def counter_window(readings: Sequence[Reading]) -> Window | None:
    """From the first tick of a counter in mJ to one that is far enough behind it."""
    ticks = [now for before, now in itertools.pairwise(readings) if now.value != before.value]
    if not ticks or not _enough(ticks[0], ticks[-1]):
        return None
    return Window(first=ticks[0], last=ticks[-1], millijoules=float(ticks[-1].value - ticks[0].value))


def power_window(readings: Sequence[Reading]) -> Window | None:
    """From the first reading of power in mW to the last, integrated by trapezoids."""
    if not readings or not _enough(readings[0], readings[-1]):
        return None
    pairs = itertools.pairwise(readings)
    taken = sum((now.at_s - before.at_s) * (before.value + now.value) / 2 for before, now in pairs)
    return Window(first=readings[0], last=readings[-1], millijoules=taken)


def _enough(first: Reading, last: Reading) -> bool:
    return last.at_s - first.at_s >= WINDOW_S and last.done - first.done >= LEAST_REPLAYS


def energy_source(board: NvmlDevice) -> Source:
    """The counter, or where the board has none, its power.

    Raises:
        NotMeasurable: neither can be read.
    """
    taken, power = board.energy_mj(), board.instant_power_mw()
    if not isinstance(taken, Unknown):
        return Source(name="counter", read=board.energy_mj, window=counter_window)
    if not isinstance(power, Unknown):
        return Source(name="power", read=board.instant_power_mw, window=power_window)
    raise NotMeasurable(f"neither energy nor instant power can be read: {taken.reason}; {power.reason}")


@cache
def board_of(device: str) -> NvmlDevice:
    """The board of `device`, as torch names it, through this process's own NVML.

    Raises:
        NotMeasurable: there is no NVML, or it does not know the board.
    """
    nvml = Nvml.open()
    if isinstance(nvml, Unknown):
        raise NotMeasurable(f"energy cannot be read: {nvml.reason}")
    facts = torch_facts(device)["values"]
    board = nvml.find(uuid=facts["gpu_uuid"], pci_bus_id=facts["gpu_pci_bus_id"])
    if isinstance(board, Unknown):
        raise NotMeasurable(f"energy cannot be read: {board.reason}")
    return board


@cache
def idle_of_process(device: str) -> float | Unknown:
    """Idle power in mW, read once a process: before its first replay, when it has been idle longest."""
    return idle_mw(board_of(device).instant_power_mw)


def idle_mw(read: Read) -> float | Unknown:
    """Mean power in mW over `IDLE_S`, once it has stopped falling; why not, where it cannot be read."""
    started = time.perf_counter()
    before = read()
    while time.perf_counter() - started < MOST_SETTLING_S:
        time.sleep(SETTLING_POLL_S)
        now = read()
        if isinstance(before, Unknown) or isinstance(now, Unknown):
            break
        if abs(now - before) <= SETTLED_WITHIN * before:
            break
        before = now
    readings: list[int] = []
    for _ in range(round(IDLE_S / IDLE_POLL_S)):
        power = read()
        if isinstance(power, Unknown):
            return power
        readings.append(power)
        time.sleep(IDLE_POLL_S)
    return statistics.fmean(readings)
