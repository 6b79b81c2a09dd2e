"""A registry of the kernels in sanitized_csrc: one is right, each of the others a fault that one sanitizer finds."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path

from harness.model import Kernel
from kernels import ops, registry
from kernels.build import Built, build
from kernels.declarations import CSRC, declarations

FAULTS = Path(__file__).parent / "sanitized_csrc"


@cache
def csrc() -> Path:
    """The planted kernels with the project's glue and headers, in a folder of this process."""
    folder = Path(tempfile.mkdtemp(prefix="sgemv-planted-csrc-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    shutil.copytree(CSRC, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("*_cpu*.cpp", "*.cu"))
    shutil.copytree(FAULTS, folder, dirs_exist_ok=True)
    return folder


def kernels() -> dict[str, Kernel]:
    return {name: registry._declared_kernel(declaration) for name, declaration in declarations(FAULTS).items()}


def prepare(device_type: str) -> tuple[Built, ...]:
    return (build(device_type, csrc=csrc()),)


def load(device_type: str) -> None:
    for built in prepare(device_type):
        ops.load(built.library, csrc())
