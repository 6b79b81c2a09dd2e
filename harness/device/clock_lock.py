"""A GPU's SM clock held at one frequency while a bench measures, and let go on every way out.

NVML keeps a clock locked when the process that locked it has ended, for every user. So a note is on disk before it is
locked and goes when it is unlocked; whoever starts a bench next undoes what a killed one left. The notes lie beside the
locks of `harness.device.turn`: a bench that lives holds its GPU's lock, so a note of a GPU whose lock is free is that
of a dead one. NVML does not say what was locked before: a lock that `nvidia-smi -lgc` set is gone, too, when a bench
unlocks.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import psutil

from harness.answers import NotPermitted, Unknown
from harness.device.nvml import Nvml, NvmlDevice
from harness.device.turn import LOCKS, lock_of
from harness.errors import CommandError, Exit
from harness.json_text import parsed
from harness.model import Record
from harness.words import visible

OPTION = "--lock-clocks"

NOTE = re.compile(r"sgemv-([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.clocks")
"""Name of a note, with the bare UUID of its GPU."""

MOST_BYTES = 4096
"""Of a note; the folder is everybody's, so it may hold anything."""

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
"""Another one after every start of the machine, which unlocks all clocks."""

LONGEST_USER = 40


@dataclass(frozen=True, kw_only=True)
class Note(Record):
    """What a bench is about to lock."""

    mhz: int | None = None
    """The SM clock."""
    user: str | None = None
    """Who locks it."""
    boot_id: str | None = None
    """Of the machine's start; None: it does not say."""

    @property
    def text(self) -> str:
        """For a line about it."""
        at = "" if self.mhz is None else f" at {self.mhz} MHz"
        whose = "" if self.user is None else f" of {visible(self.user, LONGEST_USER)}"
        return f"locked{at} by a bench{whose} that was killed"


def check(device: NvmlDevice, mhz: int) -> None:
    """Find out before anything is built.

    Raises:
        CommandError: it is an instance, or has no such clock (USAGE).
    """
    if device.is_instance:
        what = f"{OPTION}: the clocks of a MIG instance are its board's, which other instances share"
        raise CommandError(f"{what}; leave it out", Exit.USAGE)
    known = device.supported_sm_clocks_mhz()
    if isinstance(known, Unknown) or not known or mhz in known:
        return  # where the driver lists none, it decides
    below, above = next((pair for pair in pairwise(known) if pair[0] < mhz < pair[1]), (known[0], known[-1]))
    what = f"{OPTION}: found {mhz}, wanted a clock of this GPU in MHz, from {known[0]} to {known[-1]}"
    nearest = f"; nearest are {below} and {above}" if below < mhz < above else ""
    raise CommandError(f"{what}{nearest}", Exit.USAGE)


class ClockLock:
    """The lock of one GPU's SM clock. It is held by whoever holds the GPU's turn."""

    def __init__(self, device: NvmlDevice, gpu: str, folder: Path = LOCKS) -> None:
        """Of the GPU with the bare UUID `gpu`; nothing is locked yet."""
        self._device, self._gpu, self._path, self._held = device, gpu, note_path(gpu, folder), False
        self.text = ""
        """What is locked, in words."""

    def acquire(self, mhz: int) -> int | Unknown:
        """Lock; what NVML then reads, in MHz.

        Raises:
            CommandError: it may not be locked, or there can be no note of it (INFRASTRUCTURE).
        """
        check(self._device, mhz)
        self._held = True  # whatever interrupts what follows, there is something to undo
        try:
            _write(self._path, Note(mhz=mhz, user=psutil.Process().username(), boot_id=_boot_id()))
        except OSError as error:
            self._held = False
            what = f"{OPTION}: {self._path} cannot be written: {error.strerror or error}"
            raise CommandError(f"{what}; after kill -9 nobody would unlock the clock", Exit.INFRASTRUCTURE) from error
        refused = self._device.lock_sm_clock(mhz)
        if refused is not None:
            _clear(self._path)
            self._held = False
            hint = "run as root, or leave it out" if isinstance(refused, NotPermitted) else "leave it out"
            raise CommandError(f"{OPTION}: GPU {self._gpu}: {refused.reason}; {hint}", Exit.INFRASTRUCTURE)
        read = self._device.sm_clock_mhz()
        then = f"did not say what it then was ({read.reason})" if isinstance(read, Unknown) else f"then read {read} MHz"
        self.text = f"The SM clock was locked at {mhz} MHz ({OPTION}), and NVML {then}"
        return read

    def release(self) -> str | None:
        """Unlock, if it is locked; a line where that fails: the note then stays. Can be called again."""
        if not self._held:
            return None
        refused = self._device.unlock_sm_clock()
        self._held = False
        if refused is not None:
            return f"the SM clock could not be unlocked: {refused.reason}; {_by_hand(self._gpu)}"
        _clear(self._path)
        return None


def undo_killed(own: str | None, say: Callable[[str], object], folder: Path = LOCKS) -> str | None:
    """Unlock what benches that were killed left locked; what is still locked of one's own GPU, in a line, or None.

    Args:
        own: bare UUID of the GPU whose turn this process holds; None: it holds none.
        say: told in a line of every GPU that was unlocked, or should have been.
        folder: of notes and locks.
    """
    names = (NOTE.fullmatch(path.name) for path in sorted(folder.glob("sgemv-*.clocks")))
    left = {name[1]: note for name in names if name and (note := _read(folder / name[0])) is not None}
    nvml = Nvml.open() if left else Unknown(reason="no note")
    if isinstance(nvml, Unknown):
        return None
    still = None
    for gpu, note in left.items():
        line = _undo(nvml, gpu, note, own, folder)
        if line is not None:
            say(line)
        if gpu == own and _read(note_path(gpu, folder)) is not None:
            still = line
    nvml.close()
    return still


def note_path(gpu: str, folder: Path = LOCKS) -> Path:
    """Where the note of a GPU lies."""
    return folder / f"sgemv-{gpu}.clocks"


def _undo(nvml: Nvml, gpu: str, note: Note, own: str | None, folder: Path) -> str | None:
    """A line of what came of it; None: there is nothing to undo, or not by this process."""
    path = note_path(gpu, folder)
    if note.boot_id is not None and note.boot_id != _boot_id():
        _clear(path)
        return None
    device = nvml.find(uuid=gpu, pci_bus_id=None)
    if isinstance(device, Unknown):
        return None  # gone, or not shown to this container
    with _free(gpu, own, folder) as free:
        if not free or _read(path) is None:  # let go meanwhile
            return None
        refused = device.unlock_sm_clock()
        if refused is not None:
            return f"the SM clock of GPU {gpu} is still {note.text}: {refused.reason}; {_by_hand(gpu)}"
        _clear(path)
    return f"unlocked the SM clock of GPU {gpu}, which was {note.text}"


def _by_hand(gpu: str) -> str:
    return f"sudo nvidia-smi --id=GPU-{gpu} --reset-gpu-clocks"


@contextmanager
def _free(gpu: str, own: str | None, folder: Path) -> Iterator[bool]:
    """Whether no living bench holds the GPU; none begins meanwhile."""
    if gpu == own:
        yield True
        return
    lock = lock_of(gpu, folder)
    try:
        lock.acquire(timeout=0)
    except OSError:  # filelock.Timeout is one
        yield False
        return
    try:
        yield True
    finally:
        lock.release()


def _boot_id() -> str | None:
    try:
        return BOOT_ID.read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return None


def _write(path: Path, note: Note) -> None:
    """Into the file that is there, which may be another user's, else into a new one that any user may write to.

    Raises:
        OSError: it is no file of its own, or may not be written to.
    """
    try:
        number = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        number = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_CREAT | os.O_EXCL, 0o600)
        os.fchmod(number, 0o666)
    with os.fdopen(number, "wb") as file:
        about = os.fstat(number)
        if not stat.S_ISREG(about.st_mode) or about.st_nlink != 1:
            raise OSError(0, "it is no file of its own")
        os.ftruncate(number, 0)
        file.write(json.dumps(note.to_dict()).encode())


def _read(path: Path) -> Note | None:
    """None: nothing is locked. Of a note that cannot be understood the fact that it is there is believed."""
    try:
        number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        said = os.read(number, MOST_BYTES) if stat.S_ISREG(os.fstat(number).st_mode) else b""
    finally:
        os.close(number)
    if not said:
        return None
    try:
        return Note.from_dict(parsed(said.decode()))
    except (ValueError, TypeError):  # RecordError is one
        return Note()


def _clear(path: Path) -> None:
    """Another user's file in /tmp can be emptied, and not be deleted."""
    try:
        path.unlink(missing_ok=True)
    except OSError:
        with suppress(OSError):
            number = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            os.ftruncate(number, 0)
            os.close(number)
