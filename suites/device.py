"""Which device `--device` asks for. A GPU that is there but cannot be used is an error, never a silent CPU run."""

from __future__ import annotations

import re
from collections.abc import Sequence

from harness.answers import Unknown
from harness.device import Usability, gpu_status, installed_torch
from harness.device.gpus import PREFIXES, Gpu, every_gpu, numbered_gpus
from harness.device.nvml import Nvml
from harness.errors import CommandError, Exit
from harness.words import visible

EVERY = "all"
"""Asks for one run a GPU; `suites.every_gpu` makes them."""

WANTED = "cuda, cuda:N, a UUID (GPU-… or MIG-…), all or cpu"

SHOWN = "cuda:0"
"""What torch calls a GPU of which its process is shown nothing else."""


def device_of(wanted: str | None) -> tuple[str, str | None]:
    """The device as torch names it in a worker, and the UUID of the GPU that workers are shown alone, or None.

    Args:
        wanted: as typed, but `all`; None: nothing was typed.

    Raises:
        CommandError: no device is called so, or none is there (USAGE), or it cannot be used (INFRASTRUCTURE).
    """
    if wanted == "cpu":
        return "cpu", None
    numbered = re.fullmatch(r"cuda(?::(\d+))?", wanted or "cuda")
    if numbered is None and not (wanted or "").startswith(PREFIXES):
        raise CommandError(f"--device: found {wanted!r}, wanted {WANTED}", Exit.USAGE)
    status = gpu_status(Nvml.open(), installed_torch())
    if status.word is Usability.UNUSABLE or (status.word is Usability.NONE and wanted is not None):
        raise CommandError(f"{wanted or 'the GPU'} cannot be used: {status.reason}", Exit.INFRASTRUCTURE)
    if status.word is Usability.NONE:
        return "cpu", None
    if numbered is None:
        return SHOWN, _checked(wanted or "")
    return f"cuda:{_checked_number(int(numbered[1] or 0))}", None


def why_no_gpu() -> str | None:
    """Why nothing can be measured on a GPU here; None: it can."""
    return gpu_status(Nvml.open(), installed_torch()).reason


def gpus() -> tuple[Gpu, ...]:
    """All that a bench can be asked to measure on here.

    Raises:
        CommandError: there is none (INFRASTRUCTURE).
    """
    nvml = Nvml.open()
    status = gpu_status(nvml, installed_torch())
    found = every_gpu(nvml) if status.word is Usability.USABLE else Unknown(reason=status.reason or "")
    return _there(found)


def _checked(uuid: str) -> str:
    there = _there(every_gpu(Nvml.open()))
    if uuid not in {gpu.uuid for gpu in there}:
        raise CommandError(f"--device: found {uuid!r}, wanted {_listed([gpu.text for gpu in there])}", Exit.USAGE)
    return uuid


def _checked_number(number: int) -> int:
    if number == 0:
        return 0  # is there where any is: nobody has to wait for the driver's list
    there = _there(numbered_gpus())
    if number >= len(there):
        named = [f"cuda:{place} ({gpu.name})" for place, gpu in enumerate(there)]
        raise CommandError(f"--device: found 'cuda:{number}', wanted {_listed(named)}", Exit.USAGE)
    return number


def _there(found: tuple[Gpu, ...] | Unknown) -> tuple[Gpu, ...]:
    if isinstance(found, Unknown):
        raise CommandError(f"--device: no GPU can be named: {found.reason}", Exit.INFRASTRUCTURE)
    return found


def _listed(named: Sequence[str]) -> str:
    return visible(named[0] if len(named) == 1 else f"one of: {', '.join(named)}", 2000)
