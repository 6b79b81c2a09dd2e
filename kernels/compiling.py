"""Turns a snapshot of csrc into a library in a folder of its own: one compiler process a source, then one that links.

The folder holds `src/` (the snapshot) and `obj/`; the compilers run in `src/` and see relative paths only, so that
neither code nor hashes depend on where a checkout or a cache lies.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from kernels.declarations import GLUE
from kernels.toolchain import BuildError, Compiler, Torch

TORCH_TARGET_VERSION = "0x020b000000000000"
"""2.11.0, the least torch that the library loads in."""

_CXX_FLAGS = ("-std=c++17", "-O3", "-fPIC", "-fvisibility=hidden", "-Wall")
_NVCC_FLAGS = ("-std=c++17", "-O3", "-Xcompiler", "-fPIC,-fvisibility=hidden,-Wall")


@dataclass(frozen=True, kw_only=True)
class Plan:
    """All that decides what a build gives."""

    target: str
    """`cuda` or `cpu`."""
    architectures: tuple[str, ...]
    """E.g. `sm_90`; empty for `cpu`."""
    nvcc: Compiler | None
    """None for `cpu`."""
    host: Compiler
    """The C++ compiler."""
    torch: Torch
    """Whose headers are used."""
    kernel_sources: tuple[str, ...]
    """Names of the sources with kernels, relative to csrc."""

    @property
    def library(self) -> str:
        """File name of the library."""
        return f"libsgemv_{self.target}.so"

    @property
    def flags(self) -> tuple[str, ...]:
        """Options that change the code, those from nvcc's environment variables included."""
        if self.target == "cpu":
            return _CXX_FLAGS
        codes = [f"-gencode=arch={arch.replace('sm_', 'compute_')},code={arch}" for arch in self.architectures]
        variables = ("NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS")
        return (*_NVCC_FLAGS, *codes, *(f"{name}={os.environ[name]}" for name in variables if name in os.environ))


@dataclass(frozen=True, kw_only=True)
class Compiled:
    """What the compilers did."""

    commands: tuple[tuple[str, ...], ...]
    """Every call, in order."""
    log: str
    """Every call with the compiler's words."""
    failed: str | None
    """The source (or library) that failed first; None: none did."""
    seconds: float
    """They took, on the wall clock."""


def run(plan: Plan, folder: Path) -> Compiled:
    """Compiles `folder`/src into `folder`/obj and links the library there; whether it failed is in the result."""
    started = time.monotonic()
    source_dir = folder / "src"
    names = [*plan.kernel_sources, *GLUE]
    commands = [_compile_command(plan, name) for name in names]
    for name in plan.kernel_sources:
        (folder / "obj" / f"{Path(name).stem}.keep").mkdir(parents=True)
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        results = list(pool.map(lambda command: call(command, source_dir), commands))
    failed = next((name for name, (code, _) in zip(names, results, strict=True) if code != 0), None)
    if failed is None:
        commands.append(_link_command(plan))
        results.append(call(commands[-1], source_dir))
        failed = plan.library if results[-1][0] != 0 else None
    log = "".join(f"$ {' '.join(c)}\n{words}\n" for c, (_, words) in zip(commands, results, strict=True))
    seconds = time.monotonic() - started
    return Compiled(commands=tuple(tuple(c) for c in commands), log=log, failed=failed, seconds=seconds)


def first_complaint(log: str) -> str:
    """The first line of a compiler's output that says what is wrong."""
    complaints = (r"unsupported GNU version[^\n]*", r"unsupported clang version[^\n]*", r"[^\n]*\berror\b[^\n]*")
    for pattern in (*complaints, r"[^\n]*\bfatal\b[^\n]*"):
        if match := re.search(pattern, log):
            return match[0].strip()
    lines = [line for line in log.splitlines() if line.strip() and not line.startswith("$")]
    return lines[-1].strip() if lines else "no words"


def machine_code(plan: Plan, folder: Path) -> dict[str, Path]:
    """The files with machine code, by `source:arch`: cubins for `cuda`, objects for `cpu`."""
    if plan.target == "cpu":
        machine = platform.machine()
        return {f"{name}:{machine}": folder / "obj" / f"{Path(name).stem}.o" for name in plan.kernel_sources}
    pairs = [(name, arch) for name in plan.kernel_sources for arch in plan.architectures]
    return {f"{name}:{arch}": kept(folder, name, arch, "cubin") for name, arch in pairs}


def kept(folder: Path, source: str, arch: str, suffix: str) -> Path:
    """The intermediate file of `source` for `arch` that nvcc kept; with one architecture it leaves that out."""
    stem = Path(source).stem
    keep = folder / "obj" / f"{stem}.keep"
    number = arch.removeprefix("sm_")
    names = (f"{stem}.compute_{number}.{suffix}", f"{stem}.compute_{number}.{arch}.{suffix}", f"{stem}.{suffix}")
    for name in names:
        if (keep / name).is_file():
            return keep / name
    raise BuildError(f"nvcc kept no {suffix} of {source} for {arch} in {keep}; report this with nvcc's version")


def sha256(path: Path) -> str:
    """Hash of a file's bytes."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _compile_command(plan: Plan, name: str) -> list[str]:
    stem = Path(name).stem
    output = ["-c", name, "-o", f"../obj/{stem}.o"]
    if name.endswith(".cu"):
        if plan.nvcc is None:
            raise BuildError(f"{name} needs nvcc, but the target is {plan.target}; build the target cuda")
        codes = [flag for flag in plan.flags if not flag.startswith("NVCC_")]
        keep = ["--keep", "--keep-dir", f"../obj/{stem}.keep"]
        return [plan.nvcc.path, "-ccbin", plan.host.path, *codes, "-Xptxas", "-v", *keep, *output]
    torch = [f"-DTORCH_TARGET_VERSION={TORCH_TARGET_VERSION}", "-isystem", plan.torch.include_dir]
    return [plan.host.path, *_CXX_FLAGS, *(torch if name in GLUE else []), *output]


def _link_command(plan: Plan) -> list[str]:
    objects = [f"../obj/{Path(name).stem}.o" for name in (*plan.kernel_sources, *GLUE)]
    # Never -ltorch_cuda: the library must also link and load where torch is CPU-only.
    libraries = ["-L", plan.torch.library_dir, "-ltorch_cpu", "-ldl"]
    output = ["-shared", "-o", f"../obj/{plan.library}"]
    if plan.nvcc is None:
        return [plan.host.path, *output, *objects, *libraries]
    own = [word for folder in plan.nvcc.library_dirs for word in ("-L", folder)]
    return [plan.nvcc.path, "-ccbin", plan.host.path, *output, "-cudart=static", *objects, *own, *libraries]


def call(command: list[str], folder: Path) -> tuple[int, str]:
    """Exit code and words of one compiler call."""
    done = subprocess.run(
        command,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    return done.returncode, done.stdout
