"""What a run keeps of a user's file: its sources, and the libraries that its `.cu` files became; once per content."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from harness.model import BuildRecord
from kernels import artifacts, compiling
from kernels.build import Built, cached, keep_log
from kernels.own import launcher
from kernels.own.declare import Launcher
from kernels.own.load import FileError, Listed, Listing
from kernels.toolchain import Compiler, check_nvcc_fits, find_host_compiler, find_nvcc, find_torch, gpu_architectures

TARGET = "own"
"""Starts the target of their records, and names the folder of a run's build/ that keeps them."""

LAYOUT = 1
"""Part of the key: raised when an entry holds more than before."""

SOURCES = "sources"

_FLAGS = ("-O3", "-Xcompiler", "-fPIC,-fvisibility=hidden", "-Xptxas", "-v")
_STANDARD = "-std=c++17"
_NOTHING = compiling.Compiled(commands=(), log="", failed=None, seconds=0.0)


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Unit:
    """A `.cu` file that becomes a library."""

    name: str
    """Of the library, without lib and .so."""
    source: str
    """Of the user."""
    flags: tuple[str, ...]
    text: str
    """Of the file that is compiled, which includes it."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Tools:
    nvcc: Compiler
    host: Compiler
    flags: tuple[str, ...]
    """Of every unit, without its own."""
    architectures: tuple[str, ...]

    def command(self, unit: _Unit) -> list[str]:
        """Compile and link; what is written where comes behind."""
        standard = [] if any(flag.startswith(("-std", "--std")) for flag in unit.flags) else [_STANDARD]
        folders = [word for folder in self.nvcc.library_dirs for word in ("-L", folder)]
        return [self.nvcc.path, "-ccbin", self.host.path, *standard, *self.flags, *folders, *unit.flags]


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Asked:
    """All that decides what a build gives."""

    path: Path
    listing: Listing
    target: str
    units: Sequence[_Unit]
    tools: _Tools | None
    sources: Mapping[str, str]
    """SHA-256 by absolute path of every file that takes part."""

    @property
    def key(self) -> str:
        """The hash of it all."""
        parts = {
            "layout": LAYOUT,
            "target": self.target,
            "packages": self.listing.packages,
            "units": [dataclasses.asdict(unit) for unit in self.units],
            "tools": self.tools and dataclasses.asdict(self.tools),
            "variables": {name: os.environ.get(name) for name in ("NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS")},
            "sources": dict(self.sources),
        }
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    @property
    def entry(self) -> str:
        """Its name in the cache."""
        return f"{TARGET}-{self.key[:16]}"


def build(  # noqa: PLR0913 - what is built, for what, where
    path: Path,
    listing: Listing,
    target: str,
    device_type: str,
    cache_dir: Path | None = None,
    *,
    architectures: tuple[str, ...] | None = None,
) -> Built:
    """Compile the `.cu` files that `path` declares, for a GPU, and gather all that the run keeps of it.

    Args:
        path: of the file.
        listing: what is in it.
        target: for the record: `TARGET`, a slash and a name of its own.
        device_type: `cuda` or `cpu`; on a CPU nothing is compiled.
        cache_dir: the cache; None: as for the project's own kernels.
        architectures: e.g. ("sm_90",); None: as for those.

    Raises:
        FileError: a `.cu` file does not compile, with the compiler's first words (USAGE).
        BuildError: there is no nvcc, or the cache cannot be written to (INFRASTRUCTURE).
    """
    units = _units(path, listing) if device_type == "cuda" else []
    tools = _tools(architectures or gpu_architectures()) if units else None
    sources = {**listing.sources, **_hashes(each.launcher.source for each in listing.kernels if each.launcher)}
    if tools is not None:
        sources |= _hashes(name for unit in units for name in _dependencies(path.parent, tools, unit))
    asked = _Asked(path=path, listing=listing, target=target, units=units, tools=tools, sources=sources)

    def make(work: Path) -> tuple[BuildRecord, Path]:
        compiled = _compile(path.parent, tools, units, work) if tools else _NOTHING
        if compiled.failed is not None:
            words = re.sub(r"^(.+?)\((\d+)\):", r"\1:\2:", compiling.first_complaint(compiled.log))
            log = keep_log(asked.entry, compiled.log, cache_dir)
            where = "" if re.match(r".+?:\d+:", words) else f"{path}: "  # of a flag the compiler tells no place
            raise FileError(f"{where}{words}; so {compiled.failed} does not build; the compiler's words are in {log}")
        kept = _keep_sources(path.parent, sources, work / "entry")
        compiled = _without_folders(compiled, work, path.parent)
        record = _record(asked, compiled, kept)
        _collect(record, compiled, work, work / "entry")
        return record, work / "entry"

    return cached(asked.entry, asked.key, make, cache_dir)


def library(built: Built, path: Path, listing: Listing, name: str) -> Path:
    """The library that holds the launcher of the kernel `name`."""
    kernel = next(each for each in listing.kernels if each.name == name)
    unit = next(each for each in _units(path, listing) if kernel.launcher and _is_of(each, kernel.launcher))
    return built.directory / f"lib{unit.name}.so"


def _is_of(unit: _Unit, declared: Launcher) -> bool:
    return (unit.source, unit.flags) == (declared.source, declared.flags)


def _units(path: Path, listing: Listing) -> list[_Unit]:
    """One a `.cu` file and its flags, with all launchers that are declared of it."""
    together: dict[tuple[str, tuple[str, ...]], list[Listed]] = {}
    for kernel in listing.kernels:
        if kernel.launcher is not None:
            together.setdefault((kernel.launcher.source, kernel.launcher.flags), []).append(kernel)
    found: list[_Unit] = []
    for number, ((source, flags), kernels) in enumerate(together.items()):
        name = f"{re.sub(r'[^A-Za-z0-9_]', '_', Path(source).stem)}_{number}"
        functions = [
            function
            for each in kernels
            if each.launcher
            for function in launcher.functions(each.name, each.launcher, each.dtypes, str(path), each.line)
        ]
        found.append(_Unit(name=name, source=source, flags=flags, text=launcher.source(source, functions)))
    return found


def _tools(architectures: tuple[str, ...]) -> _Tools:
    nvcc, host = find_nvcc(), find_host_compiler()
    check_nvcc_fits(nvcc, find_torch())
    codes = [f"-gencode=arch={arch.replace('sm_', 'compute_')},code={arch}" for arch in architectures]
    return _Tools(nvcc=nvcc, host=host, flags=(*_FLAGS, *codes), architectures=architectures)


def _dependencies(folder: Path, tools: _Tools, unit: _Unit) -> list[str]:
    """Every file that the user's includes; none where that cannot be told, as compiling then tells why."""
    command = [*tools.command(unit), "-M", unit.source]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode:
        return []
    words = re.split(r"(?<!\\)\s+", done.stdout.partition(":")[2].replace("\\\n", " "))
    return [os.path.realpath(word.replace("\\ ", " ")) for word in words if word]


def _hashes(paths: Iterable[str]) -> dict[str, str]:
    return {path: compiling.sha256(Path(path)) for path in dict.fromkeys(paths)}


def _compile(folder: Path, tools: _Tools, units: Sequence[_Unit], work: Path) -> compiling.Compiled:
    """Each unit into a library in `work`, one after the other, until one fails; paths in flags are of `folder`."""
    started, commands, log, failed = time.monotonic(), list[tuple[str, ...]](), "", None
    for unit in units:
        keep, file = work / f"{unit.name}.keep", work / f"{unit.name}.cu"
        keep.mkdir()
        file.write_text(unit.text, encoding="utf-8")
        output = [
            "--keep",
            "--keep-dir",
            str(keep),
            "-shared",
            "-cudart=static",
            "-o",
            str(work / f"lib{unit.name}.so"),
        ]
        command = [*tools.command(unit), *output, str(file)]
        code, words = compiling.call(command, folder)
        commands.append(tuple(command))
        log += f"$ {' '.join(command)}\n{words}\n"
        if code:
            failed = Path(unit.source).name
            break
    seconds = time.monotonic() - started
    return compiling.Compiled(commands=tuple(commands), log=log, failed=failed, seconds=seconds)


def _keep_sources(folder: Path, sources: Mapping[str, str], entry: Path) -> dict[str, str]:
    """Copies of those in the file's folder and below; their hashes by path relative to it.

    Raises:
        FileError: one is not what it was.
    """
    kept = {os.path.relpath(name, folder): sources[name] for name in sources if Path(name).is_relative_to(folder)}
    for name, digest in kept.items():
        copy = entry / SOURCES / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(folder / name, copy)
        if compiling.sha256(copy) != digest:
            raise FileError(f"{folder / name}: was changed while it was built; start again")
    return kept


def _without_folders(compiled: compiling.Compiled, *folders: Path) -> compiling.Compiled:
    """What the compiler did, with paths relative to the folders: those of a user's home are nobody's business."""

    def shown(text: str) -> str:
        for folder in folders:
            text = text.replace(f"{folder}{os.sep}", "")
        return text

    commands = tuple(tuple(map(shown, command)) for command in compiled.commands)
    return dataclasses.replace(compiled, commands=commands, log=shown(compiled.log))


def _record(asked: _Asked, compiled: compiling.Compiled, kept: dict[str, str]) -> BuildRecord:
    tools = asked.tools
    versions = [*((tools.nvcc.version,) if tools else ()), *asked.listing.packages]
    return BuildRecord(
        library=asked.path.name,
        target=asked.target,
        key=asked.key,
        commands=compiled.commands,
        compiler_version=", ".join(versions) or "none",
        host_compiler_version=tools.host.version if tools else "none",
        torch_version=find_torch().version,
        flags=tools.flags if tools else (),
        architectures=tools.architectures if tools else (),
        sources_sha256=kept,
        device_code_sha256={},
        resources=artifacts.resources(compiled.log),
        seconds=round(compiled.seconds, 3),
        sources_by_kernel={each.name: tuple(kept) for each in asked.listing.kernels},
    )


def _collect(record: BuildRecord, compiled: compiling.Compiled, work: Path, entry: Path) -> None:
    """Libraries, PTX, the compiler's words and the table of resources, where something was compiled."""
    if not compiled.commands:
        return
    (entry / "ptx").mkdir()
    for found in work.glob("*.keep/*.ptx"):
        shutil.copyfile(found, entry / "ptx" / found.name)
    for found in work.glob("lib*.so"):
        shutil.copyfile(found, entry / found.name)
    (entry / "compiler.log").write_text(compiled.log, encoding="utf-8")
    (entry / "resources.txt").write_text(artifacts.resource_table(record.resources), encoding="utf-8")
