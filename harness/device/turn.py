"""Whose turn it is on a GPU: benches that share one would slow each other down, so each waits for the one before it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import filelock

from harness.answers import Unknown
from harness.device.nvml import NvmlDevice
from harness.errors import CommandError, Exit

LOCKS = Path("/tmp")  # noqa: S108 - TMPDIR differs between users, and all that share a GPU must meet
"""Folder of the locks, one a GPU: a lock of the store would not be seen by a bench into another store."""

PATIENCE_S = 3600.0
"""How long a bench waits for its turn, about what the longest one takes."""

BUSY_PERCENT = 10
"""Of NVML's utilization: what an idle GPU may still show."""

BUSY_READINGS = 3
"""Of the utilization, 1 s apart: it averages over up to a second, in which our own workers may still have started."""


def take_turn(
    gpu: str, say: Callable[[str], None], *, folder: Path = LOCKS, patience_s: float = PATIENCE_S
) -> filelock.BaseFileLock | Unknown:
    """The lock of a GPU, held; its process's end releases it, whatever that end is. `Unknown`: there can be none.

    Args:
        gpu: its UUID, as CUDA writes it: without a prefix.
        say: told in one line that another bench must be waited for.
        folder: of the locks.
        patience_s: how long.

    Raises:
        CommandError: another bench was not done by then (INFRASTRUCTURE).
    """
    lock = lock_of(gpu, folder)
    path = lock.lock_file
    try:
        try:
            lock.acquire(timeout=0)
        except filelock.Timeout:
            say(f"another bench measures on GPU {gpu}: waiting for it, {patience_s / 60:.0f} min at most")
            lock.acquire(timeout=patience_s, poll_interval=0.2)
    except filelock.Timeout as error:
        what = f"another bench has held GPU {gpu} for {patience_s / 60:.0f} min ({path})"
        raise CommandError(f"{what}; end it, or choose another GPU with --device", Exit.INFRASTRUCTURE) from error
    except OSError as error:
        return Unknown(reason=f"{path}: {error.strerror or error}")
    return lock


def lock_of(gpu: str, folder: Path = LOCKS) -> filelock.BaseFileLock:
    """The lock of a GPU, not held; any user may be the next to take it."""
    return filelock.FileLock(folder / f"sgemv-{gpu}.lock", mode=0o666)


def use_by_others(device: NvmlDevice, pids: Sequence[int], sleep: Callable[[float], object]) -> Iterator[str]:
    """Who else is at work on the GPU; where nobody is named, as in a container, whether it is while ours idle.

    Args:
        device: the GPU.
        pids: of our own workers.
        sleep: waits so many seconds.
    """
    others = device.processes(exclude_pids=pids)
    if others and not isinstance(others, Unknown):
        yield f"Other processes used this GPU when the run began: {', '.join(others)}."
        return
    percent = device.utilization_percent()
    for _ in range(BUSY_READINGS - 1):
        if isinstance(percent, Unknown) or percent < BUSY_PERCENT:
            break
        sleep(1)
        percent = device.utilization_percent()
    if not isinstance(percent, Unknown):
        if percent >= BUSY_PERCENT:
            busy = f"The GPU was already busy ({percent} % by NVML) before the first sample"
            yield f"{busy}, while no worker of this bench ran."
    elif isinstance(others, Unknown):
        yield f"Whether others used this GPU when the run began is not known: {others.reason}; {percent.reason}."
