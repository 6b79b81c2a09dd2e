"""Whether this machine has what a run was measured on."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import replace

from harness.answers import Unknown, table
from harness.children import ask
from harness.comparison.attribution import obstacles
from harness.device import Usability, cpu_name, gpu_status, installed_torch
from harness.device.gpus import VISIBLE, every_gpu
from harness.device.nvml import Nvml
from harness.environment import ENVIRONMENT_KEYS, Group
from harness.errors import Exit
from harness.model import Environment, Run
from harness.pool import ROOT
from harness.reproduce import cannot

_ASK_TORCH = "import json, sys; from harness.device import torch_facts; print(json.dumps(torch_facts(sys.argv[1])))"


def check_device(run: Run) -> str:
    """Find out before anything is built; the device to measure on, for `--device`.

    That is the very GPU that was asked for by its UUID, where it is here; else what torch called it.

    Raises:
        CommandError: no usable GPU for a run of a GPU (INFRASTRUCTURE), or another device (NOT_COMPARABLE).
    """
    uuid = None
    if run.options.device_type == "cpu":
        here = table({"device_name": cpu_name()})
    else:
        _check_gpu(run)
        uuid = _uuid_here(run)
        here = _gpu_facts(run.options.device, {} if uuid is None else {VISIBLE: uuid})
    known = {key: here.get(key) for key, about in ENVIRONMENT_KEYS.items() if about.group is Group.GPU}
    other = obstacles(run, replace(run, environment=Environment(values=known)))
    if other:
        raise cannot("; ".join(other), Exit.NOT_COMPARABLE)
    return uuid or run.options.device


def _check_gpu(run: Run) -> None:
    status = gpu_status(Nvml.open(), installed_torch())
    if status.word is not Usability.USABLE:
        name = run.environment.get("gpu_name") or "a GPU"
        raise cannot(f"the run is of {name}, this machine has no usable GPU: {status.reason}")


def _uuid_here(run: Run) -> str | None:
    wanted = run.options.uuid
    there = every_gpu(Nvml.open()) if wanted is not None else ()
    return wanted if not isinstance(there, Unknown) and wanted in {gpu.uuid for gpu in there} else None


def _gpu_facts(device: str, shown: Mapping[str, str]) -> Environment:
    """What torch says of the device, in a process of its own: this one never touches CUDA."""
    done = ask([sys.executable, "-c", _ASK_TORCH, device], ROOT, {**os.environ, **shown})
    if done.code:
        raise cannot(f"{device} cannot be used: {done.complaint}")
    return Environment.from_dict(json.loads(done.stdout))
