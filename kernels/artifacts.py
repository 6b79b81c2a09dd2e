"""What is kept of a build: its record, the compiler's words, the sources, the table of resources, PTX and SASS."""

from __future__ import annotations

import dataclasses
import os
import shutil
import subprocess
from pathlib import Path

from harness.model import BuildRecord, KernelResources
from kernels import compiling, ptxas, sass
from kernels.declarations import sources_by_kernel

ROOT = Path(__file__).resolve().parent.parent
"""The checkout."""

_TIMEOUT_S = 120


def record(
    plan: compiling.Plan,
    compiled: compiling.Compiled,
    work: Path,
    *,
    key: str,
    sources: dict[str, str],
) -> BuildRecord:
    """The record of a build that succeeded in the folder `work`.

    Args:
        plan: what was built.
        compiled: what the compilers did.
        work: holds src/ and obj/, as `compiling` leaves them.
        key: names the cache entry.
        sources: SHA-256 by name relative to csrc.
    """
    code = compiling.machine_code(plan, work)
    return BuildRecord(
        library=plan.library,
        target=plan.target,
        key=key,
        commands=tuple(tuple(_below_root(word) for word in command) for command in compiled.commands),
        compiler_version=(plan.nvcc or plan.host).version,
        host_compiler_version=plan.host.version,
        torch_version=plan.torch.version,
        flags=plan.flags,
        architectures=plan.architectures,
        sources_sha256=sources,
        device_code_sha256={name: compiling.sha256(path) for name, path in code.items()},
        resources=resources(compiled.log),
        seconds=round(compiled.seconds, 3),
        sources_by_kernel=sources_by_kernel(work / "src", plan.target),
    )


def _below_root(word: str) -> str:
    """`word` with a path inside the checkout, such as its environment under .nox, relative to it."""
    return word.removeprefix(f"{ROOT}{os.sep}")


def collect(plan: compiling.Plan, compiled: compiling.Compiled, work: Path, record: BuildRecord) -> Path:
    """Gathers what is kept into `work`/entry, which it returns."""
    entry = work / "entry"
    entry.mkdir()
    shutil.copy2(work / "obj" / plan.library, entry)
    (entry / "compiler.log").write_text(compiled.log, encoding="utf-8")
    (entry / "resources.txt").write_text(resource_table(record.resources), encoding="utf-8")
    for name in record.sources_sha256:  # the run keeps them: git knows nothing of a kernel that was never added
        kept = entry / "sources" / name
        kept.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(work / "src" / name, kept)
    if plan.target == "cuda":
        first = plan.architectures[0]
        (entry / "ptx").mkdir()
        for name in plan.kernel_sources:
            shutil.copy2(compiling.kept(work, name, first, "ptx"), entry / "ptx" / f"{Path(name).stem}.ptx")
        _disassemble(plan, work, entry, first)
    return entry


def resource_table(resources: tuple[KernelResources, ...]) -> str:
    """Plain text, one line a kernel and architecture."""
    heads = ("function", "arch", "registers", "spill stores B", "spill loads B", "stack B", "static shared B")
    rows = [
        (r.function, r.arch, *map(str, (r.registers, r.spill_store_bytes, r.spill_load_bytes, r.stack_bytes)),
         str(r.static_shared_bytes))
        for r in resources
    ]  # fmt: skip
    widths = [max(len(row[i]) for row in (heads, *rows)) for i in range(len(heads))]
    lines = ("  ".join(word.ljust(width) for word, width in zip(row, widths, strict=True)) for row in (heads, *rows))
    return "\n".join(line.rstrip() for line in lines) + "\n"


def resources(log: str) -> tuple[KernelResources, ...]:
    """What ptxas says in a compiler's words that each device function needs."""
    rows = ptxas.parse(log)
    names = ptxas.demangle(row.function for row in rows)
    return tuple(dataclasses.replace(row, function=names[row.function]) for row in rows)


def _disassemble(plan: compiling.Plan, work: Path, entry: Path, arch: str) -> None:
    """SASS of the first architecture, where nvdisasm or cuobjdump exists and reads this code; else none."""
    command = _disassembler(plan)
    if command is None:
        return
    for name in plan.kernel_sources:
        cubin = compiling.kept(work, name, arch, "cubin")
        try:
            done = subprocess.run([*command, cubin], capture_output=True, check=False, timeout=_TIMEOUT_S)
        except (OSError, subprocess.TimeoutExpired):
            return
        if done.returncode == 0:
            (entry / "sass").mkdir(exist_ok=True)
            (entry / "sass" / f"{Path(name).stem}.{arch}.sass").write_bytes(done.stdout)


def _disassembler(plan: compiling.Plan) -> list[str] | None:
    nvcc = None if plan.nvcc is None else plan.nvcc.path
    tools = (("nvdisasm", "-c"), ("cuobjdump", "-sass"))
    return next(([found, option] for tool, option in tools if (found := sass.find(tool, nvcc))), None)
