"""Whether this machine can measure tonight: everything is looked at, so that one night names all that is missing."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.answers import Unknown
from harness.children import Ended, ask
from harness.device import GpuStatus, Usability, gpu_status, installed_torch
from harness.device.gpus import Gpu, every_gpu
from harness.device.nvml import Nvml, NvmlDevice, NvmlUnavailable
from harness.device.turn import BUSY_PERCENT, BUSY_READINGS, LOCKS, take_turn
from harness.errors import CommandError
from harness.json_text import parsed
from harness.model import Environment
from harness.pool import ROOT
from harness.store import Store

FREE_BYTES = 2**30
"""Wanted in every folder that is written to; a run takes some tens of MB, what is built for it as much."""

POLL_S = 5.0
"""Between two looks at a GPU that is not idle."""

CPU = "cpu"
ALL = "all"
"""Of `--device`: every GPU of the host."""

ASK_TORCH = """
import json, os, sys
wanted = sys.argv[1]
if wanted.startswith(("GPU-", "MIG-")):
    os.environ["CUDA_VISIBLE_DEVICES"], wanted = wanted, "cuda:0"
from harness.device import torch_facts
print(json.dumps(torch_facts(wanted)))
"""
"""A program that prints what torch says of a device, named as `--device` has it."""


@dataclass(frozen=True, kw_only=True)
class Check:
    """One thing that was looked at."""

    what: str
    """In a word, such as `driver`."""
    said: str
    """What was found; of a fault also what was wanted and what to do. One line."""
    fault: bool = False
    """A bench cannot be run so."""


def _status(nvml: Nvml | NvmlUnavailable) -> GpuStatus:
    return gpu_status(nvml, installed_torch())


def _free_bytes(folder: Path) -> int:
    there = next(each for each in (folder.absolute(), *folder.absolute().parents) if each.exists())
    return shutil.disk_usage(there).free


def _ask(command: Sequence[str]) -> Ended:
    return ask(command, ROOT, os.environ)


@dataclass(frozen=True, kw_only=True)
class Machine:
    """How this machine is asked; a test gives other answers."""

    nvml: Callable[[], Nvml | NvmlUnavailable] = Nvml.open
    status: Callable[[Nvml | NvmlUnavailable], GpuStatus] = _status
    """Whether torch can use a GPU."""
    gpus: Callable[[Nvml | Unknown], tuple[Gpu, ...] | Unknown] = every_gpu
    """All that a bench may use."""
    ask: Callable[[Sequence[str]], Ended] = _ask
    """Runs a program for what it prints."""
    free_bytes: Callable[[Path], int] = _free_bytes
    """On the disk of a folder, which need not be there yet."""
    sleep: Callable[[float], object] = time.sleep
    """Waits so many seconds."""
    now: Callable[[], float] = time.monotonic
    """In seconds."""
    locks: Path = LOCKS
    """Folder of the GPUs' locks."""


def checks(
    machine: Machine, store: Store, device: str, idle_wait_s: float, say: Callable[[str], None]
) -> Iterator[Check]:
    """Everything that a bench needs, a fault or not; of a GPU nothing that hangs on what is at fault already.

    Args:
        machine: how it is asked.
        store: where the run goes.
        device: as `--device` has it; `cpu`: no GPU is looked at.
        idle_wait_s: how long the GPUs may take, together, until nobody else is at work on them.
        say: told in one line what is waited for.
    """
    yield from _disk(machine, store)
    if device == CPU:
        yield Check(what="GPU", said=f"not looked at: --device {CPU} asks for CPU numbers")
    else:
        yield from _gpu(machine, device, idle_wait_s, say)
    yield _compilers(machine, "cpu" if device == CPU else "cuda")  # last: without a GPU nox installs no nvcc


def _disk(machine: Machine, store: Store) -> Iterator[Check]:
    try:
        store.check_writable()
    except CommandError as error:
        yield Check(what="store", said=str(error), fault=True)
    wanted = f"wanted {FREE_BYTES / 2**30:.0f} GiB: make room, or name another place with"
    for what, folder, option in (
        ("the store", store.root, "--store"),
        ("temporary files", Path(tempfile.gettempdir()), "TMPDIR"),
    ):
        free = machine.free_bytes(folder)
        said = f"{free / 2**30:.1f} GiB free for {what} in {folder}"
        low = free < FREE_BYTES
        yield Check(what="disk", said=f"{said}, {wanted} {option}" if low else said, fault=low)


def _compilers(machine: Machine, target: str) -> Check:
    done = machine.ask([sys.executable, "-m", "kernels.build", "--compilers", "--target", target])
    said = done.complaint if done.code else "; ".join(done.stdout.splitlines())
    return Check(what="compiler", said=said, fault=done.code != 0)


def _gpu(machine: Machine, device: str, idle_wait_s: float, say: Callable[[str], None]) -> Iterator[Check]:
    nvml = machine.nvml()
    status = machine.status(nvml)
    if not isinstance(nvml, NvmlUnavailable):
        yield _driver(nvml)
    elif nvml.reason not in (status.reason or ""):
        yield Check(what="NVML", said=f"{nvml.reason}; without it no clock can be read", fault=True)
    if status.word is not Usability.USABLE:
        wanted = f"; wanted one that torch can use, and --device {CPU} asks for CPU numbers"
        said = f"{status.reason}{wanted if status.word is Usability.NONE else ''}"
        yield Check(what="GPU", said=said, fault=True)
        return
    gpus = machine.gpus(nvml) if device == ALL else (device,)
    if isinstance(gpus, Unknown):
        yield Check(what="GPU", said=f"none can be named: {gpus.reason}; see nvidia-smi -L", fault=True)
        return
    deadline = machine.now() + idle_wait_s
    for gpu in gpus:
        name = gpu if isinstance(gpu, str) else gpu.uuid
        done = machine.ask([sys.executable, "-c", ASK_TORCH, name])
        if done.code:
            yield Check(what="torch", said=f"{name} cannot be used: {done.complaint}; see nvidia-smi", fault=True)
            continue
        facts = Environment.from_dict(parsed(done.stdout))
        yield Check(what="GPU", said=f"{facts.get('gpu_name')}; torch {facts.get('torch_version')} sees it")
        if isinstance(nvml, Nvml):
            yield _idle(machine, nvml, facts, deadline, say)


def _driver(nvml: Nvml) -> Check:
    version = nvml.driver_version()
    if isinstance(version, Unknown):
        return Check(what="driver", said=f"its version cannot be read: {version.reason}; see nvidia-smi", fault=True)
    return Check(what="driver", said=version)


def _idle(machine: Machine, nvml: Nvml, facts: Environment, deadline: float, say: Callable[[str], None]) -> Check:
    """Whether nobody else is at work on the GPU by `deadline`; benches that take turns are waited for first."""
    uuid, bus_id = str(facts.get("gpu_uuid")), str(facts.get("gpu_pci_bus_id"))
    gpu = nvml.find(uuid=uuid, pci_bus_id=bus_id)
    if isinstance(gpu, Unknown):
        return Check(what="NVML", said=f"{gpu.reason}; without it no clock can be read", fault=True)
    try:
        turn = take_turn(uuid, say, folder=machine.locks, patience_s=max(0.0, deadline - machine.now()))
    except CommandError as error:
        return Check(what="idle", said=str(error), fault=True)
    try:
        return _alone(machine, gpu, deadline, say)
    finally:
        if not isinstance(turn, Unknown):
            turn.release()


def _alone(machine: Machine, gpu: NvmlDevice, deadline: float, say: Callable[[str], None]) -> Check:
    told = False
    while (others := _at_work(machine, gpu)) is not None:
        left_s = deadline - machine.now()
        if left_s <= 0:
            wanted = "wanted an idle GPU: end what runs there, or wait longer with --idle-wait"
            return Check(what="idle", said=f"{others}, {wanted}", fault=True)
        if not told:
            say(f"{others}: waiting for it, {left_s:.0f} s at most")
            told = True
        machine.sleep(min(POLL_S, left_s))
    return Check(what="idle", said="nobody else is at work on the GPU, as far as NVML tells")


def _at_work(machine: Machine, gpu: NvmlDevice) -> str | None:
    """Who else is; None: nobody that NVML tells of. Utilization is over up to a second, in which we looked at it."""
    others = gpu.processes()
    if others and not isinstance(others, Unknown):
        return f"other processes use the GPU: {', '.join(others)}"
    percent: int | Unknown = 0
    for reading in range(BUSY_READINGS):
        if reading:
            machine.sleep(1)
        percent = gpu.utilization_percent()
        if isinstance(percent, Unknown) or percent < BUSY_PERCENT:
            return None
    return f"the GPU is busy ({percent} % by NVML)"
