"""Builds the kernels into a library, once per content: `python -m kernels.build`.

An entry of the cache is a folder named by the hash of all that decides the build. It is made under a lock in a hidden
folder and published by one rename, so a build that is killed leaves nothing that a later one waits on or uses.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import filelock
import platformdirs

from harness.model import BuildRecord, RecordError
from kernels import artifacts, compiling
from kernels.declarations import CSRC, GLUE, declarations, kernel_sources
from kernels.toolchain import (
    BuildError,
    check_nvcc_fits,
    find_host_compiler,
    find_nvcc,
    find_torch,
    gpu_architectures,
)

__all__ = ["BuildError", "Built", "build", "cache_folder", "cached", "keep_log"]

RECORD = "build-record.json"
SUMS = "SHA256SUMS"
LAYOUT = 3
"""Part of the key: raised when an entry holds more than before, so that an older one is not taken for it."""


@dataclass(frozen=True, kw_only=True)
class Built:
    """A library in the cache."""

    library: Path
    """The shared library, for `kernels.ops.load`."""
    record: BuildRecord
    """How it was built."""
    directory: Path
    """The entry: library, build-record.json, compiler.log, resources.txt, sources/, ptx/, sass/ (given a tool)."""


def build(
    target: str,
    *,
    architectures: tuple[str, ...] | None = None,
    cache_dir: Path | None = None,
    csrc: Path = CSRC,
) -> Built:
    """The library of `target`, compiled if the cache does not hold it.

    Args:
        target: `cuda` or `cpu`.
        architectures: e.g. ("sm_90",); None: of the GPUs present, else sm_80, sm_90 and sm_100. Ignored for `cpu`.
        cache_dir: the cache; None: SGEMV_CACHE, else the user's cache folder.
        csrc: the sources.

    Raises:
        BuildError: in one line, what failed, what to do, and where the compiler's words are.
        DeclarationError: a source does not declare its kernels as wanted.
    """
    plan = _plan(target, architectures, csrc)
    sources = _snapshot(csrc)
    key = _key(plan, sources)
    name = f"{target}-{key[:16]}"

    def make(work: Path) -> tuple[BuildRecord, Path]:
        for relative, content in sources.items():
            path = work / "src" / relative
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        compiled = compiling.run(plan, work)
        if compiled.failed is not None:
            raise _compile_error(plan, compiled, keep_log(name, compiled.log, cache_dir))
        record = artifacts.record(plan, compiled, work, key=key, sources=_of_target(plan, sources))
        return record, artifacts.collect(plan, compiled, work, record)

    return cached(name, key, make, cache_dir)


def cached(name: str, key: str, make: Callable[[Path], tuple[BuildRecord, Path]], cache_dir: Path | None) -> Built:
    """The entry `name` of the cache, made if it is not there, not whole, or of another key.

    Args:
        name: of the entry.
        key: hash of all that decides what is in it; its record says the same.
        make: given an empty folder, makes the entry in a folder below it: its record, and that folder.
        cache_dir: the cache; None: `cache_folder`.

    Raises:
        BuildError: the cache cannot be written to; and what `make` raises.
    """
    cache = cache_dir or cache_folder()
    entry = cache / name
    if (built := _usable(entry, key)) is not None:
        return built
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with filelock.FileLock(cache / f".{entry.name}.lock"):
            return _usable(entry, key) or _fill(entry, make)
    except OSError as error:
        raise BuildError(f"the build cache {cache} cannot be written ({error}); set SGEMV_CACHE to a folder") from error


def cache_folder() -> Path:
    """Where builds are kept: SGEMV_CACHE, else the user's cache folder.

    Raises:
        BuildError: the user has no home folder and SGEMV_CACHE is not set.
    """
    asked = os.environ.get("SGEMV_CACHE")
    folder = Path(asked).absolute() if asked else platformdirs.user_cache_path("sgemv-bench")
    if not folder.is_absolute():
        raise BuildError(f"no home folder for the build cache (found {folder}); set SGEMV_CACHE to a folder")
    return folder


def _plan(target: str, architectures: tuple[str, ...] | None, csrc: Path) -> compiling.Plan:
    if target not in ("cuda", "cpu"):
        raise BuildError(f"target is {target!r}, wanted cuda or cpu")
    declarations(csrc)
    torch = find_torch()
    nvcc = find_nvcc() if target == "cuda" else None
    if nvcc is not None:
        check_nvcc_fits(nvcc, torch)
    return compiling.Plan(
        target=target,
        architectures=(architectures or gpu_architectures()) if target == "cuda" else (),
        nvcc=nvcc,
        host=find_host_compiler(),
        torch=torch,
        kernel_sources=tuple(path.name for path in kernel_sources(csrc, target)),
    )


def _snapshot(csrc: Path) -> dict[str, bytes]:
    """Every file below csrc by relative path: what is hashed is what is compiled, whatever is edited meanwhile."""
    paths = (path for path in sorted(csrc.rglob("*")) if path.is_file())
    return {path.relative_to(csrc).as_posix(): path.read_bytes() for path in paths}


def _of_target(plan: compiling.Plan, sources: dict[str, bytes]) -> dict[str, str]:
    """Hashes of the sources of this target and of every header."""
    used = {*plan.kernel_sources, *GLUE}
    headers = (".h", ".cuh", ".hpp", ".inc")
    return {
        name: hashlib.sha256(content).hexdigest()
        for name, content in sources.items()
        if name in used or name.endswith(headers)
    }


def _key(plan: compiling.Plan, sources: dict[str, bytes]) -> str:
    parts = {
        "layout": LAYOUT,
        "target": plan.target,
        "nvcc": plan.nvcc and (plan.nvcc.path, plan.nvcc.version),
        "host": (plan.host.path, plan.host.version),
        "torch": plan.torch.version,
        "flags": plan.flags,
        "torch_target": compiling.TORCH_TARGET_VERSION,
        "sources": _of_target(plan, sources),
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _usable(entry: Path, key: str) -> Built | None:
    """The entry if it is whole; None if it is absent or damaged."""
    try:
        for line in (entry / SUMS).read_text(encoding="utf-8").splitlines():
            wanted, name = line.split("  ", 1)
            if compiling.sha256(entry / name) != wanted:
                return None
        record = BuildRecord.from_dict(json.loads((entry / RECORD).read_text(encoding="utf-8")))
    except (OSError, ValueError, RecordError):
        return None
    return Built(library=entry / record.library, record=record, directory=entry) if record.key == key else None


def _fill(entry: Path, make: Callable[[Path], tuple[BuildRecord, Path]]) -> Built:
    """Builds under the entry's lock and publishes by one rename."""
    cache = entry.parent
    prefix = f".building-{entry.name}-"
    for stale in (entry, *cache.glob(f"{prefix}*")):  # damaged, or left by a build that was killed
        shutil.rmtree(stale, ignore_errors=True)
    work = Path(tempfile.mkdtemp(prefix=prefix, dir=cache))
    try:
        record, draft = make(work)
        (draft / RECORD).write_text(json.dumps(record.to_dict(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        files = sorted(path for path in draft.rglob("*") if path.is_file())
        sums = "".join(f"{compiling.sha256(path)}  {path.relative_to(draft).as_posix()}\n" for path in files)
        (draft / SUMS).write_text(sums, encoding="utf-8")
        draft.rename(entry)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return Built(library=entry / record.library, record=record, directory=entry)


def keep_log(name: str, log: str, cache_dir: Path | None) -> Path:
    """Keep a compiler's words in the cache, for the entry `name` that could not be made; where they are."""
    path = (cache_dir or cache_folder()) / "failed" / f"{name}.log"
    path.parent.mkdir(exist_ok=True)
    path.write_text(log, encoding="utf-8")
    return path


def _compile_error(plan: compiling.Plan, compiled: compiling.Compiled, log: Path) -> BuildError:
    complaint = compiling.first_complaint(compiled.log)
    if plan.nvcc is not None and complaint.startswith("unsupported"):
        return BuildError(
            f"{plan.nvcc.path} refuses the C++ compiler {plan.host.path} ({plan.host.version}): {complaint}; "
            f"install an older g++ and set CXX to it; the compiler's words are in {log}",
        )
    return BuildError(f"{compiled.failed} does not build: {complaint}; the compiler's words are in {log}")


if __name__ == "__main__":
    from kernels.cli import main

    raise SystemExit(main())
