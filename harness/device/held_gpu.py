"""The GPU of a bench, from before its workers start until they have ended: its turn, its readings, its SM clock."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import filelock

from harness.answers import Fact, Unknown
from harness.device.clock_lock import OPTION, ClockLock, check, undo_killed
from harness.device.gpus import bare, uuid_of
from harness.device.nvml import Nvml, NvmlDevice
from harness.device.turn import take_turn, use_by_others
from harness.environment import NOT_LOCKED
from harness.errors import CommandError, Exit
from harness.model import DeviceState, Options

ON_CPU = Unknown(reason="the run is on a CPU")


class HeldGpu:
    """What a bench has of its GPU. On a CPU there is nothing to have: every part of it is `Unknown`."""

    def __init__(self, options: Options, say: Callable[[str], None], sleep: Callable[[float], object]) -> None:
        """Name it; nothing is held yet.

        Args:
            options: which one, and what to lock its clock at.
            say: told in one line what is waited for, and of what others left.
            sleep: waits so many seconds.

        Raises:
            CommandError: its clock cannot be locked as asked (USAGE), or at all (INFRASTRUCTURE).
        """
        self._options, self._say, self._sleep = options, say, sleep
        self.device: NvmlDevice | Unknown = ON_CPU
        self.turn: filelock.BaseFileLock | Unknown = ON_CPU
        self._clock: ClockLock | None = None
        self._still_locked: str | None = None
        self._uuid = self._name()
        if options.lock_clocks_mhz is not None:
            check(self._lockable(_find(None if isinstance(self._uuid, Unknown) else self._uuid)), self._mhz)

    def take_turn(self) -> None:
        """Wait until no other bench measures on it, then undo what a killed one left."""
        if self._on_gpu:
            self.turn = self._uuid if isinstance(self._uuid, Unknown) else take_turn(self._uuid, self._say)
        held = isinstance(self.turn, filelock.BaseFileLock) and isinstance(self._uuid, str)
        self._still_locked = undo_killed(str(self._uuid) if held else None, self._say)

    def find(self, facts: Mapping[str, object]) -> None:
        """Find what NVML knows as the device of the workers; `facts` are what torch told them of it."""
        uuid, bus_id = self._options.uuid or facts.get("gpu_uuid"), facts.get("gpu_pci_bus_id")
        if self._on_gpu:
            self.device = _find(str(uuid) if uuid else None, str(bus_id) if bus_id else None)

    def lock_clock(self) -> Fact:
        """Lock the SM clock, if it was asked for; what NVML then reads in MHz.

        Raises:
            CommandError: it may not be locked, or nobody would know that it is (INFRASTRUCTURE).
        """
        if self._options.lock_clocks_mhz is None:
            return NOT_LOCKED
        device = self._lockable(self.device)
        if isinstance(self.turn, Unknown) or isinstance(self._uuid, Unknown):
            what = f"{OPTION}: no lock tells others that this bench lives"
            raise CommandError(f"{what}: {_reason(self.turn, self._uuid)}", Exit.INFRASTRUCTURE)
        self._clock = ClockLock(device, self._uuid)
        return self._clock.acquire(self._mhz)

    def state(self) -> DeviceState | None:
        """One reading; None where there is none to be had."""
        return None if isinstance(self.device, Unknown) else self.device.state()

    def warnings(self, pids: Sequence[int]) -> Iterator[str]:
        """What a run says of it first.

        Args:
            pids: of our own workers.
        """
        if not self._on_gpu:
            return
        if isinstance(self.turn, Unknown):
            yield f"Whether another bench measured on this GPU at the same time is not known: {self.turn.reason}."
        if self._still_locked is not None:
            yield f"{self._still_locked[0].upper()}{self._still_locked[1:]}."
        if self._clock is not None:
            yield f"{self._clock.text}: these are not the times of this GPU as it is."
        if isinstance(self.device, Unknown):
            yield f"Clocks, temperature and power are unknown: {self.device.reason}."
            return
        if self.device.is_instance:
            yield "This is a MIG instance: clocks, power and energy are its board's, which other instances share."
        yield from use_by_others(self.device, pids, self._sleep)

    def release(self) -> None:
        """Let go of the clock, then of the turn. Can be called again."""
        try:
            if self._clock is not None and (line := self._clock.release()):
                self._say(line)
        finally:
            if not isinstance(self.turn, Unknown):
                self.turn.release()

    @property
    def _on_gpu(self) -> bool:
        return self._options.device_type == "cuda"

    @property
    def _mhz(self) -> int:
        return self._options.lock_clocks_mhz or 0

    def _name(self) -> str | Unknown:
        """Its bare UUID."""
        if not self._on_gpu:
            return ON_CPU
        return bare(self._options.uuid) if self._options.uuid else uuid_of(self._options.device)

    def _lockable(self, device: NvmlDevice | Unknown) -> NvmlDevice:
        if isinstance(device, Unknown):
            raise CommandError(f"{OPTION}: {_reason(self._uuid, device)}; leave it out", Exit.INFRASTRUCTURE)
        return device


def _find(uuid: str | None, pci_bus_id: str | None = None) -> NvmlDevice | Unknown:
    library = Nvml.open()
    return library if isinstance(library, Unknown) else library.find(uuid=uuid, pci_bus_id=pci_bus_id)


def _reason(*answers: object) -> str:
    """Of the first that is unknown."""
    return next(answer.reason for answer in answers if isinstance(answer, Unknown))
