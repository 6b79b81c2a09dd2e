"""What ptxas says about a kernel's needs: the words of `nvcc -Xptxas -v` as records."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable

from harness.model import KernelResources

_ENTRY = re.compile(r"Compiling entry function '(?P<name>\w+)' for '(?P<arch>\w+)'")
_PROPERTIES = re.compile(r"Function properties for (?P<name>\w+)")
_STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"Used (\d+) registers")
_SHARED = re.compile(r"(\d+) bytes smem")


def parse(log: str) -> tuple[KernelResources, ...]:
    """The kernels in the compiler's output `log`, in its order; functions that are no entry are left out."""
    found: list[KernelResources] = []
    entry = arch = properties_of = ""
    stack = (0, 0, 0)
    for line in log.splitlines():
        if match := _ENTRY.search(line):
            entry, arch, stack = match["name"], match["arch"], (0, 0, 0)
        elif match := _PROPERTIES.search(line):
            properties_of = match["name"]
        elif (match := _STACK.search(line)) and properties_of == entry:
            stack = (int(match[1]), int(match[2]), int(match[3]))
        elif (match := _USED.search(line)) and entry:
            shared = _SHARED.search(line)
            found.append(
                KernelResources(
                    function=entry,
                    arch=arch,
                    registers=int(match[1]),
                    stack_bytes=stack[0],
                    spill_store_bytes=stack[1],
                    spill_load_bytes=stack[2],
                    static_shared_bytes=int(shared[1]) if shared else 0,
                ),
            )
            entry = ""
    return tuple(found)


def demangle(names: Iterable[str]) -> dict[str, str]:
    """Readable names without return type and parameters, e.g. `sgemv::read_stream_kernel<8>`, by mangled name."""
    mangled = list(dict.fromkeys(names))
    tool = shutil.which("c++filt") or shutil.which("cu++filt")
    if tool is None or not mangled:
        return {name: _demangle_plainly(name) for name in mangled}
    done = subprocess.run([tool, "-p", *mangled], capture_output=True, text=True, check=False, timeout=60)
    lines = done.stdout.splitlines()
    if done.returncode != 0 or len(lines) != len(mangled):
        return {name: _demangle_plainly(name) for name in mangled}
    return {name: line.removeprefix("void ").strip() for name, line in zip(mangled, lines, strict=True)}


def _demangle_plainly(name: str) -> str:
    """Namespaces, the function and its integer template arguments; whatever is more than that stays mangled."""
    rest = name.removeprefix("_Z")
    parts: list[str] = []
    rest = rest.removeprefix("N")
    while length := re.match(r"\d+", rest):
        end = length.end() + int(length[0])
        parts.append(rest[length.end() : end])
        rest = rest[end:]
    readable = "::".join(parts)
    if arguments := re.match(r"I((?:Li-?\d+E)+)E", rest):
        readable += "<" + ", ".join(re.findall(r"Li(-?\d+)E", arguments[1])) + ">"
    elif rest.startswith("I"):
        return name
    return readable or name
