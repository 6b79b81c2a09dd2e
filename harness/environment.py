"""Everything that could change a number, in one registry of keys and one table of values."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import platform
import re
import socket
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import psutil

from harness.answers import Fact, Unknown, table
from harness.device import cpu_llc_bytes, cpu_name, usable_cpus
from harness.device.nvml import NvmlDevice
from harness.model import Environment


class Group(StrEnum):
    """Where a key belongs on the page."""

    GPU = "gpu"
    DRIVER = "driver"
    SOFTWARE = "software"
    HOST = "host"
    SETTINGS = "settings"
    SOURCE = "source"


@dataclass(frozen=True, kw_only=True)
class EnvironmentKey:
    """What a key of `Environment.values` means."""

    name: str
    """The key."""
    group: Group
    """Where it belongs."""
    description: str
    """In a few words."""
    unit: str | None = None
    """Of the value, e.g. `MHz`."""
    must_match_to_compare: bool = False
    """True: runs that differ here measured different things; else the difference may be what is asked about."""


def _key(
    name: str, group: Group, unit: str | None, description: str, *, must_match: bool = False
) -> tuple[str, EnvironmentKey]:
    key = EnvironmentKey(name=name, group=group, unit=unit, description=description, must_match_to_compare=must_match)
    return name, key


ENVIRONMENT_KEYS: dict[str, EnvironmentKey] = dict(
    (
        _key("device_name", Group.GPU, None, "what was measured on: the GPU, or the CPU without one", must_match=True),
        _key("gpu_name", Group.GPU, None, "GPU, or MIG instance", must_match=True),
        _key("gpu_uuid", Group.GPU, None, "this very GPU, or MIG instance"),
        _key("gpu_pci_bus_id", Group.GPU, None, "its PCI address: domain:bus:device.function"),
        _key("compute_capability", Group.GPU, None, "CUDA compute capability", must_match=True),
        _key("sm_count", Group.GPU, None, "streaming multiprocessors", must_match=True),
        _key("l2_bytes", Group.GPU, "bytes", "L2 cache", must_match=True),
        _key("memory_bytes", Group.GPU, "bytes", "device memory that CUDA can use"),
        _key("vbios_version", Group.GPU, None, "firmware of the board"),
        _key("driver_version", Group.DRIVER, None, "NVIDIA driver"),
        _key("cuda_driver_version", Group.DRIVER, None, "newest CUDA that the driver supports"),
        _key("cuda_runtime_version", Group.SOFTWARE, None, "CUDA that torch is built for"),
        _key("cublas_version", Group.SOFTWARE, None, "cuBLAS that torch loaded"),
        _key("torch_version", Group.SOFTWARE, None, "torch"),
        _key("python_version", Group.SOFTWARE, None, "Python"),
        _key("pytest_benchmark_version", Group.SOFTWARE, None, "pytest-benchmark"),
        _key("os", Group.HOST, None, "operating system"),
        _key("kernel", Group.HOST, None, "operating system's kernel"),
        _key("cpu_name", Group.HOST, None, "CPU"),
        _key("cpu_count", Group.HOST, None, "logical CPUs that the run may use"),
        _key("cpu_llc_bytes", Group.HOST, "bytes", "last-level caches of these CPUs together"),
        _key("ram_bytes", Group.HOST, "bytes", "main memory"),
        _key("hostname", Group.HOST, None, "name of the machine"),
        _key("power_limit_mw", Group.SETTINGS, "mW", "board power limit in force"),
        _key("power_limit_default_mw", Group.SETTINGS, "mW", "board power limit after a reboot"),
        _key("max_sm_clock_mhz", Group.SETTINGS, "MHz", "highest SM clock"),
        _key("max_memory_clock_mhz", Group.SETTINGS, "MHz", "highest memory clock"),
        _key("application_sm_clock_mhz", Group.SETTINGS, "MHz", "SM clock set for applications"),
        _key("application_memory_clock_mhz", Group.SETTINGS, "MHz", "memory clock set for applications"),
        _key("locked_sm_clock_mhz", Group.SETTINGS, "MHz", "SM clock by NVML right after this bench locked it"),
        _key("ecc", Group.SETTINGS, None, "error-correcting memory is on"),
        _key("mig", Group.SETTINGS, None, "the GPU is split into instances"),
        _key("persistence", Group.SETTINGS, None, "the driver stays loaded between processes"),
        _key("compute_mode", Group.SETTINGS, None, "which processes may use the GPU"),
        _key("allow_tf32", Group.SETTINGS, None, "torch may compute float32 in TF32", must_match=True),
        _key(
            "allow_fp16_reduced_precision_reduction",
            Group.SETTINGS,
            None,
            "torch may add float16 products in float16",
            must_match=True,
        ),
        _key(
            "allow_bf16_reduced_precision_reduction",
            Group.SETTINGS,
            None,
            "torch may add bfloat16 products in bfloat16",
            must_match=True,
        ),
        _key("preferred_blas_library", Group.SETTINGS, None, "library that torch asks first for a product"),
        _key("torch_num_threads", Group.SETTINGS, None, "CPU threads of torch"),
        _key("environment_variables", Group.SETTINGS, None, "variables that CUDA, cuBLAS and torch heed, as JSON"),
        _key("git_commit", Group.SOURCE, None, "commit of this checkout"),
        _key("git_dirty", Group.SOURCE, None, "files differ from that commit"),
        _key("git_diff_sha256", Group.SOURCE, None, "hash of these changes and of the files that git does not know"),
        _key("constraints_sha256", Group.SOURCE, None, "hash of constraints.txt, the pinned versions"),
    )
)
"""Every key of `Environment.values`, in the order in which they are shown."""

RECORDED_VARIABLES = re.compile(r"(CUDA|NVIDIA(?!_REQUIRE_)|PYTORCH|CUBLAS)_\w+|OMP_NUM_THREADS")
"""Names of the environment variables that are recorded; no other is looked at. NVIDIA_REQUIRE_… only tell a container's
start which drivers its image accepts."""

NOT_LOCKED = Unknown(reason="it was not locked")

LEFT_OUT = "(left out)"
"""Stands for the value of a variable that looks like a secret."""

_SECRET_NAME = re.compile(r"TOKEN|SECRET|PASS|CREDENTIAL|AUTH|KEY", re.IGNORECASE)
_SECRET_VALUE = re.compile(r"://[^/\s]*@|\bnvapi-|\w{32,}")
"""A login inside an address, an NVIDIA API key, or one long unbroken word (a UUID has hyphens)."""

_GIT_TIMEOUT_S = 60
_UNTRACKED = ("--others", "--exclude-standard")


def collect(
    torch_facts: Mapping[str, Any],
    device: NvmlDevice | Unknown,
    *,
    root: Path,
    locked_sm_clock_mhz: Fact = NOT_LOCKED,
    environ: Mapping[str, str] = os.environ,
) -> Environment:
    """The whole environment: every key of `ENVIRONMENT_KEYS` with its value, or None and the reason.

    Args:
        torch_facts: what `device.torch_facts` gave in a worker; empty if no worker got that far.
        device: from `Nvml.find`, or why there is none.
        root: the checkout, with `constraints.txt`.
        locked_sm_clock_mhz: what NVML read once it was locked.
        environ: the environment variables; SGEMV_HOSTNAME=off leaves the hostname out.

    Raises:
        RecordError: `torch_facts` is neither empty nor an environment's dict.
    """
    worker = Environment.from_dict(torch_facts) if torch_facts else Environment(values={})
    nvml = Environment(values={}) if isinstance(device, Unknown) else device.facts()
    absent = device.reason if isinstance(device, Unknown) else "the worker process did not report it"
    host = table(_host_facts(environ) | {"locked_sm_clock_mhz": locked_sm_clock_mhz})
    return _merge((nvml, worker, host, table(_source_facts(root))), absent)


def recorded_variables(environ: Mapping[str, str]) -> str:
    """JSON object of the environment variables that may change a number; what looks like a secret is `LEFT_OUT`."""
    recorded = {
        name: LEFT_OUT if _SECRET_NAME.search(name) or _SECRET_VALUE.search(value) else value
        for name, value in environ.items()
        if RECORDED_VARIABLES.fullmatch(name)
    }
    return json.dumps(recorded, sort_keys=True)


def git_diff(root: Path) -> str | Unknown:
    """What `root` changed since its commit, as a patch below one comment per untracked file; "" if nothing.

    Untracked files are named only: nobody has decided yet that they may be published.
    """
    untracked = _git(root, "ls-files", *_UNTRACKED)
    patch = _git(root, "diff", "--no-color", "--no-ext-diff", "--no-textconv", "HEAD")
    if isinstance(untracked, Unknown) or isinstance(patch, Unknown):
        return untracked if isinstance(untracked, Unknown) else patch
    return "".join(f"# untracked, not in this patch: {name}\n" for name in untracked.splitlines()) + patch


def _merge(parts: Sequence[Environment], absent: str) -> Environment:
    """For each key the first part that knows it; else the first reason; else `absent`."""
    facts: dict[str, Fact] = {}
    for name in ENVIRONMENT_KEYS:
        known = (part.values[name] for part in parts if part.get(name) is not None)
        reasons = (part.unknown[name] for part in parts if name in part.unknown)
        value = next(known, None)
        facts[name] = Unknown(reason=next(reasons, absent)) if value is None else value
    return table(facts)


def _host_facts(environ: Mapping[str, str]) -> dict[str, Fact]:
    hide_hostname = environ.get("SGEMV_HOSTNAME", "").lower() == "off"
    return {
        "python_version": platform.python_version(),
        "pytest_benchmark_version": _package_version("pytest-benchmark"),
        "os": _os_name(),
        "kernel": platform.release(),
        "cpu_name": cpu_name(),
        "cpu_count": len(usable_cpus()),
        "cpu_llc_bytes": cpu_llc_bytes(),
        "ram_bytes": psutil.virtual_memory().total,
        "hostname": Unknown(reason="turned off") if hide_hostname else socket.gethostname(),
        "environment_variables": recorded_variables(environ),
    }


def _source_facts(root: Path) -> dict[str, Fact]:
    commit = _git(root, "rev-parse", "HEAD")
    status = _git(root, "status", "--porcelain")
    return {
        "git_commit": commit if isinstance(commit, Unknown) else commit.strip(),
        "git_dirty": status if isinstance(status, Unknown) else bool(status),
        "git_diff_sha256": _git_diff_sha256(root),
        "constraints_sha256": _sha256(root / "constraints.txt"),
    }


def _git_diff_sha256(root: Path) -> str | Unknown:
    """Of the patch that `git_diff` gives, so that two checkouts with changes are told apart.

    What is in untracked files counts too, a line of name and hash each behind the patch: it may be code that ran.
    """
    patch, names = git_diff(root), _git(root, "ls-files", "-z", *_UNTRACKED)
    if isinstance(patch, Unknown) or isinstance(names, Unknown):
        return patch if isinstance(patch, Unknown) else names
    if not patch:
        return Unknown(reason="no file differs from the commit")
    untracked = [name for name in names.split("\0") if (root / name).is_file()]  # no pipe, which would not end
    lines = [f"{name}: {_sha256(root / name)}\n" for name in untracked]
    return hashlib.sha256("".join([patch, *lines]).encode()).hexdigest()


def _package_version(package: str) -> str | Unknown:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return Unknown(reason=f"{package} is not installed")


def _os_name() -> str:
    """E.g. `Debian GNU/Linux 12 (bookworm)`, else `Linux`."""
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except OSError:
        return platform.system()


def _sha256(path: Path) -> str | Unknown:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        return Unknown(reason=f"{path.name}: {error.strerror}")


def _git(root: Path, *arguments: str) -> str | Unknown:
    """What a git command that changes nothing prints, or its first line of complaint."""
    command = ["git", "--no-optional-locks", "-c", "core.quotePath=off", "-C", str(root), *arguments]
    try:
        english = {**os.environ, "LC_ALL": "C"}
        done = subprocess.run(command, capture_output=True, timeout=_GIT_TIMEOUT_S, check=False, env=english)
    except FileNotFoundError:
        return Unknown(reason="git is not installed")
    except subprocess.TimeoutExpired:
        return Unknown(reason=f"git {arguments[0]} took over {_GIT_TIMEOUT_S} s")
    if done.returncode != 0:
        complaint = done.stderr.decode(errors="replace").strip().splitlines() or [f"exit code {done.returncode}"]
        return Unknown(reason=f"git {arguments[0]}: {complaint[0]}")
    return done.stdout.decode(errors="replace")
