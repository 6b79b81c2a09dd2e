"""The device that torch measures on: whether this machine has a usable GPU, and what torch says of the device.

`torch_facts` runs in a worker process; everything else here is safe in the parent, which never touches CUDA.
"""

from __future__ import annotations

import ast
import ctypes
import importlib.util
import os
import platform
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from harness.answers import Fact, Unknown, table
from harness.device.nvml import Nvml, NvmlUnavailable

TORCH_INSTALL_PAGE = "https://pytorch.org/get-started/locally/"
"""Where each CUDA build of torch is found."""

CUDA_FACTS = (
    "gpu_name",
    "gpu_uuid",
    "gpu_pci_bus_id",
    "compute_capability",
    "sm_count",
    "l2_bytes",
    "memory_bytes",
    "cuda_runtime_version",
    "cublas_version",
)
"""What `torch_facts` reports of a GPU only."""

ASSUMED_LLC_BYTES = 64 * 2**20
"""Where a device does not say; more than most CPUs have on a die: a guess too large costs memory, one too small calls
cached operands cold."""

_CACHE_UNITS = {"K": 2**10, "M": 2**20, "G": 2**30}


class Usability(StrEnum):
    """Whether torch can measure on a GPU of this machine."""

    USABLE = "usable"
    """As far as can be told without touching CUDA."""
    NONE = "none"
    """No GPU, or none that this process is shown: measure on the CPU."""
    UNUSABLE = "unusable"
    """A GPU is there, but torch cannot use it: never a silent CPU run."""


@dataclass(frozen=True, kw_only=True)
class GpuStatus:
    """What `gpu_status` found."""

    word: Usability
    """The finding."""
    reason: str | None = None
    """Why, and for `unusable` what to do, in one line; None only for `usable`."""


@dataclass(frozen=True, kw_only=True)
class TorchBuild:
    """The installed torch."""

    version: str
    """E.g. `2.11.0+cu130`."""
    cuda: str | None
    """CUDA version that it was built for, e.g. `13.0`; None: built without."""


def gpu_status(
    nvml: Nvml | NvmlUnavailable,
    build: TorchBuild | Unknown,
    *,
    environ: Mapping[str, str] = os.environ,
    device_nodes: Path = Path("/dev"),
) -> GpuStatus:
    """Whether torch can measure on a GPU here, found without importing torch or touching CUDA.

    Args:
        nvml: from `Nvml.open`.
        build: from `installed_torch`.
        environ: where CUDA_VISIBLE_DEVICES is looked up.
        device_nodes: folder in which the driver makes `nvidia0`, `nvidia1` …
    """
    visible = environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None and (visible == "" or visible.startswith(("-1", "NoDevFiles"))):
        return GpuStatus(word=Usability.NONE, reason="CUDA_VISIBLE_DEVICES hides every GPU")
    if isinstance(nvml, NvmlUnavailable) and nvml.blocks_cuda:
        return GpuStatus(word=Usability.UNUSABLE, reason=nvml.reason)
    absent = _why_no_gpu(nvml, device_nodes)
    if absent is not None:
        return GpuStatus(word=Usability.NONE, reason=absent)
    trouble = build.reason if isinstance(build, Unknown) else _why_torch_cannot(build, nvml)
    return GpuStatus(word=Usability.USABLE if trouble is None else Usability.UNUSABLE, reason=trouble)


def installed_torch(version_file: Path | None = None) -> TorchBuild | Unknown:
    """Version and CUDA of the installed torch, read from its `version.py` without importing it."""
    if version_file is None:
        spec = importlib.util.find_spec("torch")
        if spec is None or spec.origin is None:
            return Unknown(reason=f"torch is not installed: see {TORCH_INSTALL_PAGE}")
        version_file = Path(spec.origin).with_name("version.py")
    try:
        constants = _constants(version_file.read_text())
    except OSError as error:
        return Unknown(reason=f"the installed torch is incomplete: {error}")
    if "__version__" not in constants:
        return Unknown(reason=f"the installed torch is incomplete: {version_file} names no version")
    return TorchBuild(version=constants["__version__"], cuda=constants.get("cuda"))


def torch_facts(device: str) -> dict[str, Any]:
    """What torch says of the device and of its own settings, as `Environment.to_dict` writes it.

    Runs in the worker, since it makes a CUDA context; call it after torch's flags are set.

    Args:
        device: as torch names it, e.g. `cuda:0` or `cpu`.

    Raises:
        RuntimeError: torch cannot use the device.
    """
    import torch

    facts: dict[str, Fact] = {
        "torch_version": str(torch.__version__),
        "torch_num_threads": torch.get_num_threads(),
        **_precision_flags(torch.backends.cuda),
    }
    if torch.device(device).type == "cuda":
        facts |= _gpu_facts(torch.cuda.get_device_properties(device), torch.version.cuda)
    else:
        facts |= dict.fromkeys(CUDA_FACTS, Unknown(reason="measured on the CPU"))
        facts["device_name"] = cpu_name()
    return table(facts).to_dict()


def cublas_version(cuda_major: str) -> str | Unknown:
    """Version of the cuBLAS that this process has loaded, e.g. `13.1.0`; never loads one itself.

    Source: cublasGetProperty of the cuBLAS documentation, with libraryPropertyType 0 major, 1 minor, 2 patch.
    """
    name = f"libcublas.so.{cuda_major}"
    try:
        library = ctypes.CDLL(name, mode=os.RTLD_NOLOAD | os.RTLD_NOW)
    except OSError as error:
        return Unknown(reason=f"cuBLAS is not loaded under its usual name: {error}")
    parts = []
    for part in range(3):
        value = ctypes.c_int()
        status = library.cublasGetProperty(part, ctypes.byref(value))
        if status != 0:
            return Unknown(reason=f"cublasGetProperty({part}) failed with status {status}")
        parts.append(str(value.value))
    return ".".join(parts)


def cpu_name(cpuinfo: Path = Path("/proc/cpuinfo")) -> str | Unknown:
    """The CPU's model name, or what the platform calls its processor."""
    try:
        lines = cpuinfo.read_text().splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    found = next(names, "") or platform.processor() or platform.machine()
    return found or Unknown(reason=f"{cpuinfo} names no model, and the platform no processor")


def cpu_llc_bytes(cpus: Path = Path("/sys/devices/system/cpu"), usable: Collection[int] | None = None) -> int | Unknown:
    """Bytes of last-level cache together: a CPU of several dies has one on each, and data in any of them is not cold.

    Args:
        cpus: the kernel's folder of CPUs, with a cache/index* a cache.
        usable: numbers of the CPUs that count (default: `usable_cpus`).
    """
    counted = usable_cpus() if usable is None else usable
    bytes_by_cache: dict[tuple[int, str], int] = {}
    try:
        for index in (index for cpu in counted for index in cpus.glob(f"cpu{cpu}/cache/index*")):
            level, sharers = int((index / "level").read_text()), (index / "shared_cpu_list").read_text().strip()
            size = (index / "size").read_text().strip()
            bytes_by_cache[level, sharers] = int(size[:-1]) * _CACHE_UNITS[size[-1]]
    except (OSError, ValueError, KeyError, IndexError) as error:
        return Unknown(reason=f"a cache size below {cpus} cannot be read: {error!r}")
    if not bytes_by_cache:
        return Unknown(reason=f"{cpus} lists no caches")
    last = max(level for level, _ in bytes_by_cache)
    return sum(size for (level, _), size in bytes_by_cache.items() if level == last)


def usable_cpus() -> frozenset[int]:
    """Numbers of the logical CPUs that this process may run on; a container's CPU quota is not seen."""
    if hasattr(os, "sched_getaffinity"):
        return frozenset(os.sched_getaffinity(0))
    return frozenset(range(os.cpu_count() or 1))


def last_level_cache_bytes(device: str) -> int:
    """Bytes of cache that operands must exceed to be cold, of `device` as torch names it; a GPU's context is made."""
    import torch

    if torch.device(device).type == "cuda":
        return int(torch.cuda.get_device_properties(device).L2_cache_size) or ASSUMED_LLC_BYTES
    size = cpu_llc_bytes()
    return ASSUMED_LLC_BYTES if isinstance(size, Unknown) else size


def memory_bytes(device: str) -> int:
    """Bytes of the device's memory; for a CPU, of the machine's."""
    import psutil
    import torch

    if torch.device(device).type == "cuda":
        return int(torch.cuda.get_device_properties(device).total_memory)
    return int(psutil.virtual_memory().total)


def held_bytes(device: str) -> int:
    """Bytes of the device's memory that this process holds."""
    import psutil
    import torch

    if torch.device(device).type == "cuda":
        return int(torch.cuda.memory_reserved(device))
    return int(psutil.Process().memory_info().rss)


def release_memory(device: str) -> None:
    """Give freed memory back to the device; on a CPU, where workers keep what they free, to the system (glibc)."""
    import torch

    if torch.device(device).type == "cuda":
        torch.cuda.empty_cache()
    elif hasattr(library := ctypes.CDLL(None), "malloc_trim"):
        library.malloc_trim(0)


def _why_no_gpu(nvml: Nvml | NvmlUnavailable, device_nodes: Path) -> str | None:
    """None where NVML lists a GPU or the driver has made one's device node."""
    if any(device_nodes.glob("nvidia[0-9]*")):
        return None
    if isinstance(nvml, NvmlUnavailable):
        return f"no NVIDIA GPU found ({nvml.reason})"
    count = nvml.device_count()
    if isinstance(count, Unknown):
        return f"no NVIDIA GPU found ({count.reason})"
    return None if count > 0 else "no NVIDIA GPU found (NVML lists none)"


def _why_torch_cannot(build: TorchBuild, nvml: Nvml | NvmlUnavailable) -> str | None:
    """None where this torch fits the driver; a driver runs every minor version of its CUDA's major version."""
    if build.cuda is None:
        return (
            f"this machine has an NVIDIA GPU, but torch {build.version} is built without CUDA: install a CUDA build "
            f"({TORCH_INSTALL_PAGE}), or choose the CPU with --device cpu"
        )
    if isinstance(nvml, NvmlUnavailable):
        return None
    supported = nvml.cuda_driver_version()
    if isinstance(supported, Unknown) or _major(supported) >= _major(build.cuda):
        return None
    driver = nvml.driver_version()
    name = "" if isinstance(driver, Unknown) else f" {driver}"
    return (
        f"the NVIDIA driver{name} supports CUDA {supported}, but torch {build.version} needs CUDA {build.cuda}: "
        f"update the driver, or install a torch built for CUDA {_major(supported)} ({TORCH_INSTALL_PAGE})"
    )


def _major(version: str) -> int:
    return int(version.partition(".")[0])


def _constants(source: str) -> dict[str, str]:
    """The module-level names of `source` that are bound to plain strings."""
    found: dict[str, str] = {}
    for node in ast.parse(source).body:
        if not isinstance(node, ast.Assign | ast.AnnAssign):
            continue
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            found |= {target.id: node.value.value for target in targets if isinstance(target, ast.Name)}
    return found


def _precision_flags(cuda: Any) -> dict[str, Fact]:
    """How `torch.backends.cuda` may round; `fp32_precision` answers whichever API set it, `allow_tf32` raises."""
    return {
        "allow_tf32": cuda.matmul.fp32_precision == "tf32",
        "allow_fp16_reduced_precision_reduction": bool(cuda.matmul.allow_fp16_reduced_precision_reduction),
        "allow_bf16_reduced_precision_reduction": bool(cuda.matmul.allow_bf16_reduced_precision_reduction),
        "preferred_blas_library": cuda.preferred_blas_library().name.lower(),
    }


def _gpu_facts(properties: Any, cuda: str | None) -> dict[str, Fact]:
    """The facts of `CUDA_FACTS`; the UUID is bare, since torch does not say whether it is a MIG instance's."""
    no_cuda = Unknown(reason="torch is built without CUDA")
    bus_id = f"{properties.pci_domain_id:08X}:{properties.pci_bus_id:02X}:{properties.pci_device_id:02X}.0"
    return {
        "device_name": properties.name,
        "gpu_name": properties.name,
        "gpu_uuid": str(properties.uuid),
        "gpu_pci_bus_id": bus_id,
        "compute_capability": f"{properties.major}.{properties.minor}",
        "sm_count": properties.multi_processor_count,
        "l2_bytes": properties.L2_cache_size,
        "memory_bytes": properties.total_memory,
        "cuda_runtime_version": cuda or no_cuda,
        "cublas_version": cublas_version(cuda.partition(".")[0]) if cuda else no_cuda,
    }
