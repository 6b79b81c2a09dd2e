"""What a library's machine code does, as NVIDIA's disassemblers print it (SASS): which loads, which local memory."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sysconfig
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from kernels.ptxas import demangle
from kernels.toolchain import BuildError, nvcc_path

PACKAGES = "nvidia-cuda-cuobjdump nvidia-cuda-nvdisasm"
"""On PyPI; they read the code of older CUDAs too."""

_TIMEOUT_S = 300
_FUNCTION = re.compile(r"^\s*Function : (?P<name>\w+)", re.MULTILINE)
_OPCODE = re.compile(r"^\s*/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?(?P<opcode>[A-Z][\w.]*)", re.MULTILINE)
_GLOBAL_LOADS = {"LDG", "LDGSTS", "LD"}  # plain, asynchronous into shared memory, through a generic address
_BULK_LOADS = {"UBLKCP", "UTMALDG"}  # by the copy engine, 16 bytes or a multiple
_GLOBAL_STORES = {"STG", "ST", "RED", "ATOMG", "ATOM", "UBLKCP", "UTMASTG"}
_LOCAL = {"LDL", "STL"}


@dataclass(frozen=True, kw_only=True)
class Code:
    """What is read off the machine code of one device function."""

    function: str
    """Demangled name, as in `harness.model.KernelResources`."""
    arch: str
    """E.g. `sm_90`."""
    load_bytes: int
    """Of the widest load from global memory that one thread does; 0: it loads nothing."""
    stores: bool
    """Whether it writes global memory; what is compiled to nothing for an architecture does not."""
    local_accesses: int
    """Instructions that read or write local memory: spilled registers, and arrays that are not in registers."""


def find(tool: str, nvcc: str | None) -> str | None:
    """Path of `cuobjdump` or `nvdisasm`: beside nvcc, on PATH, then PyPI's wheels; None if there is none."""
    wheels = Path(sysconfig.get_path("purelib"), "nvidia", "cu13", "bin")
    places = (*([str(Path(nvcc).parent)] if nvcc else []), None, str(wheels))
    return next((found for place in places if (found := shutil.which(tool, path=place))), None)


def no_disassembler() -> str | None:
    """Which tool `read` needs and does not find, and what to do; None if it has them."""
    missing = [tool for tool in ("cuobjdump", "nvdisasm") if find(tool, nvcc_path()) is None]
    if not missing:
        return None
    return f"no {' and no '.join(missing)} (looked beside nvcc, at PATH, PyPI's wheels); pip install {PACKAGES}"


def read(library: Path, architectures: tuple[str, ...]) -> tuple[Code, ...]:
    """Every device function in `library`, by architecture.

    Raises:
        BuildError: there is no disassembler, or it cannot read the library.
    """
    if (missing := no_disassembler()) is not None:
        raise BuildError(missing)
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        texts = list(pool.map(lambda arch: _disassemble(library, arch), architectures))
    return tuple(code for arch, text in zip(architectures, texts, strict=True) for code in parse(text, arch))


def parse(text: str, arch: str) -> Iterator[Code]:
    """The functions in what `cuobjdump -sass` printed for one architecture."""
    _, *parts = _FUNCTION.split(text)
    names = demangle(parts[::2])
    for name, body in zip(parts[::2], parts[1::2], strict=True):
        opcodes = [match["opcode"].split(".") for match in _OPCODE.finditer(body)]
        yield Code(
            function=names[name],
            arch=arch,
            load_bytes=max(map(_load_bytes, opcodes), default=0),
            stores=any(opcode[0] in _GLOBAL_STORES for opcode in opcodes),
            local_accesses=sum(opcode[0] in _LOCAL for opcode in opcodes),
        )


def _load_bytes(opcode: list[str]) -> int:
    """Bytes that an instruction such as LDG.E.128.CONSTANT loads from global memory into one thread's registers."""
    name, *modifiers = opcode
    if name in _BULK_LOADS:
        return 16
    if name not in _GLOBAL_LOADS:
        return 0
    narrow = {"U8": 1, "S8": 1, "U16": 2, "S16": 2}
    return next((int(m) // 8 if m.isdigit() else narrow[m] for m in modifiers if m.isdigit() or m in narrow), 4)


def _disassemble(library: Path, arch: str) -> str:
    nvcc = nvcc_path()
    cuobjdump, nvdisasm = find("cuobjdump", nvcc), find("nvdisasm", nvcc)
    environment = {**os.environ, "NVDISASM_PATH": str(Path(str(nvdisasm)).parent)}
    command = [str(cuobjdump), "-sass", "-arch", arch, str(library)]
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, check=False, timeout=_TIMEOUT_S
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BuildError(f"{cuobjdump} cannot be run ({error}); pip install {PACKAGES}") from error
    if done.returncode != 0 or _FUNCTION.search(done.stdout) is None:
        words = (done.stderr or done.stdout).strip().splitlines() or ["it said nothing"]
        raise BuildError(f"{cuobjdump} finds no code for {arch} in {library}: {words[-1]}; pip install -U {PACKAGES}")
    return done.stdout
