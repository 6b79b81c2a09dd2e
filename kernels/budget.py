"""The static gate: compiled code, without a GPU, against csrc/budget.toml and the rules that hold for every kernel.

No function may spill or use local memory, whatever the architecture. A line of the budget says how many registers a
thread of a function may have at most, and how many bytes its widest load from global memory has; where several lines
match a function, the longest holds.
"""

from __future__ import annotations

import fnmatch
import math
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from harness.errors import CommandError, Exit
from harness.model import KernelResources
from kernels import sass
from kernels.build import Built

FILE = "budget.toml"
"""In csrc."""

REGISTERS_STEP = 8
"""Registers a thread that hardware allocates at once: fewer more cost no resident warp."""


class Limits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a line of the budget says of a function, in every instantiation and on every architecture."""

    registers: int
    """A thread, at most."""
    load_bytes: int
    """Of the widest load from global memory that one thread does; 0: none."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One device function for one architecture, by what the compiler and the disassembler say."""

    resources: KernelResources
    code: sass.Code

    @property
    def name(self) -> str:
        """Of the function with its template arguments, without namespaces."""
        return re.sub(r"^(?:\w+::|\(anonymous namespace\)::)+", "", self.resources.function)

    @property
    def template(self) -> str:
        """Its name without template arguments."""
        return self.name.partition("<")[0]

    @property
    def spilled_bytes(self) -> int:
        """Of registers, written to and read from local memory, a thread."""
        return self.resources.spill_store_bytes + self.resources.spill_load_bytes

    @property
    def uses_local_memory(self) -> bool:
        """By the compiler's word, or by an instruction of the machine code that touches it."""
        return self.resources.stack_bytes > 0 or self.code.local_accesses > 0

    def matches(self, line: str) -> bool:
        """Whether a line of the budget is about it: named as its template, or by a pattern such as `f<*, true>`."""
        return line == self.template or fnmatch.fnmatchcase(self.name, line)

    def __str__(self) -> str:
        """For people."""
        return f"{self.name} for {self.resources.arch}"


def limits(csrc: Path) -> dict[str, Limits]:
    """The lines of csrc's budget by function; none without the file, so that every function is told its line.

    Raises:
        CommandError: it cannot be read or is not as wanted (USAGE).
    """
    path = csrc / FILE
    try:
        return msgspec.convert(tomllib.loads(path.read_text(encoding="utf-8")), dict[str, Limits])
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:  # msgspec's and tomllib's are ValueErrors
        wanted = "lines such as my_kernel = { registers = 40, load_bytes = 16 }"
        raise CommandError(f"{path}: {error}; wanted {wanted}", Exit.USAGE) from error


def entries(built: Built) -> list[Entry]:
    """Every device function of a CUDA library, by what its record and a disassembler say.

    Raises:
        BuildError: there is no disassembler, or it does not read the library.
    """
    return paired(built.record.resources, sass.read(built.library, built.record.architectures))


def paired(resources: Iterable[KernelResources], codes: Iterable[sass.Code]) -> list[Entry]:
    """What the compiler and the disassembler say, function by function.

    Raises:
        CommandError: they name different ones (INFRASTRUCTURE).
    """
    compiled = {(each.function, each.arch): each for each in resources}
    read = {(each.function, each.arch): each for each in codes}
    if odd := set(read) ^ set(compiled):
        function, arch = min(odd)
        one = "the disassembler" if (function, arch) in read else "the compiler"
        raise CommandError(f"only {one} tells of {function} for {arch}; report this", Exit.INFRASTRUCTURE)
    return [Entry(resources=compiled[key], code=read[key]) for key in compiled]


def faults(found: Iterable[Entry], budget: dict[str, Limits]) -> list[str]:
    """What is wrong, a line each: how functions break a rule or their budget, or how the budget is out of date."""
    by_line: dict[str, list[Entry]] = {name: [] for name in budget}
    missing: dict[str, list[Entry]] = {}
    for entry in found:
        line = max(filter(entry.matches, budget), key=len, default=None)
        (missing.setdefault(entry.template, []) if line is None else by_line[line]).append(entry)
    lines = [fault for of in (*missing.values(), *by_line.values()) for fault in _local_memory(of)]
    wanted = [line for of in missing.values() for line in table(of)]
    lines += [f"{FILE}: no line for {line.partition(' = ')[0]}; add what it needs now: {line}" for line in wanted]
    for name, of in by_line.items():
        lines += _over_budget(name, budget[name], of) if of else [f"{FILE}: {name} is no function; remove its line"]
    return lines


def table(found: Sequence[Entry]) -> list[str]:
    """The lines of a budget that `found` just keeps, registers rounded up to what is allocated.

    A line a template, and one for each instantiation that loads less at once than the template's widest.
    """
    by_line: dict[str, list[Entry]] = {}
    for of in _grouped(found, lambda entry: entry.template).values():
        instantiations = _grouped(of, lambda entry: entry.name)
        widest = max(map(_narrowest, instantiations.values()))
        for name, each in instantiations.items():
            line = of[0].template if _narrowest(each) == widest else f'"{name}"'
            by_line.setdefault(line, []).extend(each)
    return [f"{line} = {{ registers = {_rounded(of)}, load_bytes = {_narrowest(of)} }}" for line, of in by_line.items()]


def _grouped(found: Iterable[Entry], key: Callable[[Entry], str]) -> dict[str, list[Entry]]:
    groups: dict[str, list[Entry]] = {}
    for entry in found:
        groups.setdefault(key(entry), []).append(entry)
    return groups


def _local_memory(of: Sequence[Entry]) -> Iterator[str]:
    """Spills and other local memory."""
    if spilling := [entry for entry in of if entry.spilled_bytes]:
        worst, others = _worst(spilling, lambda entry: entry.spilled_bytes)
        yield (
            f"{worst}: spills {worst.spilled_bytes} bytes of registers a thread{others}, wanted none: let it hold less "
            "in registers at once, or fewer threads be resident"
        )
    if using := [entry for entry in of if not entry.spilled_bytes and entry.uses_local_memory]:
        worst, others = _worst(using, lambda entry: entry.resources.stack_bytes)
        used = f"{worst.resources.stack_bytes} bytes of local memory a thread, {worst.code.local_accesses} accesses"
        yield f"{worst}: uses {used}{others}, wanted none: index arrays by constants only, so that they fit registers"


def _over_budget(name: str, limits: Limits, of: Sequence[Entry]) -> Iterator[str]:
    if over := [entry for entry in of if entry.resources.registers > limits.registers]:
        worst, others = _worst(over, lambda entry: entry.resources.registers)
        yield (
            f"{worst}: {worst.resources.registers} registers a thread{others}, wanted at most {limits.registers}; let "
            f"it need fewer, or write registers = {_rounded(over)} for {name} in {FILE}"
        )
    if narrow := [entry for entry in of if entry.code.stores and entry.code.load_bytes < limits.load_bytes]:
        worst, others = _worst(narrow, lambda entry: -entry.code.load_bytes)
        yield (
            f"{worst}: its widest load from global memory is of {worst.code.load_bytes} bytes{others}, wanted "
            f"{limits.load_bytes} ({name} in {FILE}): does the compiler know the alignment?"
        )
    if (narrowest := _narrowest(of)) > limits.load_bytes:
        yield f"{FILE}: {name} has load_bytes = {limits.load_bytes}, but loads {narrowest} at once: write that"


def _worst(of: Sequence[Entry], badness: Callable[[Entry], int]) -> tuple[Entry, str]:
    """The worst, and words on how many others there are."""
    others = f" (worst of {len(of)})" if len(of) > 1 else ""
    return max(of, key=badness), others


def _narrowest(of: Sequence[Entry]) -> int:
    """Of what does anything: a kernel may be empty where an architecture lacks what it needs."""
    return min((entry.code.load_bytes for entry in of if entry.code.stores), default=0)


def _rounded(of: Sequence[Entry]) -> int:
    return REGISTERS_STEP * math.ceil(max(entry.resources.registers for entry in of) / REGISTERS_STEP)
