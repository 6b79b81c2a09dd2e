"""Reads what csrc says about its kernels: one macro line a kernel is the only place where it is declared."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from harness.errors import CommandError, Exit
from harness.model import Role

CSRC = Path(__file__).parent / "csrc"
CHOOSER = "sgemv"
"""The declared kernel that picks among others, by the rule of csrc/rule.h."""

RULE = "rule.h"
GLUE = ("op.cpp", "explain.cpp")
"""The sources without a kernel: part of every library."""

_ROLES = {"KERNEL": Role.GEMV, "VARIANT": Role.GEMV, "LIMIT": Role.LIMIT, "FLOOR": Role.FLOOR}
_ANY_MACRO = re.compile(r"^\s*SGEMV_(?:KERNEL|VARIANT|LIMIT|FLOOR)\b")
_DECLARATION = re.compile(
    r"^SGEMV_(?P<role>KERNEL|VARIANT|LIMIT|FLOOR)\((?P<name>[a-z]\w*), "
    r"(?P<rule>K_ANY|K_MULTIPLE_OF|K_EQUAL_TO|K_AT_MOST), (?P<k_value>[1-9]\d*), "
    r"(?P<layout>PACKED|ROWS|COLUMNS|ROWS_OR_COLUMNS), (?P<alignment>4|8|16|32), \"(?P<summary>[^\"\\]+)\"\) \{",
)
_PICKED = re.compile(r'return \{"(\w+)", ')
_DEFINED = re.compile(
    r"__global__\s+void\s+(?:__launch_bounds__\((?:[^()]|\([^()]*\))*\)\s+)?(\w+)\s*\("
    r"|^(?!static |return |SGEMV_(?:KERNEL|VARIANT|LIMIT|FLOOR)\()(?:\w[\w:<>,*& ]* )(\w+)\((?=[^;]*?\{)",
    re.MULTILINE,
)
"""A function that a source defines: not `static`, so the linker may take another one of its name for it."""
_FORM = (
    "SGEMV_KERNEL(name, K_ANY | K_MULTIPLE_OF | K_EQUAL_TO | K_AT_MOST, value, "
    'PACKED | ROWS | COLUMNS | ROWS_OR_COLUMNS, alignment in bytes, "summary") {'
)
_RULES = (
    "at the start of a line, one space after each comma, lower-case name, value from 1, alignment 4, 8, 16 or 32, "
    "summary in double quotes, K_ANY with value 1"
)


class DeclarationError(CommandError, ValueError):
    """A source in csrc that does not declare its kernels as wanted; the message starts with file:line."""

    def __init__(self, message: str) -> None:
        super().__init__(message, Exit.USAGE)


@dataclass(frozen=True, kw_only=True)
class Declaration:
    """One kernel as its source declares it."""

    name: str
    """Of the op: `torch.ops.sgemv.<name>`."""
    role: Role
    """By the macro: SGEMV_KERNEL, SGEMV_VARIANT, SGEMV_LIMIT or SGEMV_FLOOR."""
    variant: bool
    """SGEMV_VARIANT: one of those that `sgemv` chooses among, measured only when asked for by name."""
    device_type: str
    """`cuda` for a .cu file, `cpu` for a .cpp file."""
    k_rule: str
    """`K_ANY`, `K_MULTIPLE_OF`, `K_EQUAL_TO` or `K_AT_MOST`."""
    k_value: int
    """The rule's number; 1 for `K_ANY`."""
    layout: str
    """Of A, x and y: `PACKED`, `ROWS`, `COLUMNS` or `ROWS_OR_COLUMNS`, as csrc/op.h says."""
    alignment_bytes: int
    """Of the first element of A and of x."""
    summary: str
    """Its design in one line."""
    where: str
    """file:line, for messages."""

    def k_problem(self, k: int) -> str | None:
        """Why `k` columns are outside the kernel's contract, or None."""
        if self.k_rule == "K_MULTIPLE_OF" and k % self.k_value != 0:
            return f"K={k} is not a multiple of {self.k_value}"
        if self.k_rule == "K_EQUAL_TO" and k != self.k_value:
            return f"K={k} is not {self.k_value}"
        if self.k_rule == "K_AT_MOST" and k > self.k_value:
            return f"K={k} is more than {self.k_value}"
        return None


def kernel_sources(csrc: Path, target: str) -> list[Path]:
    """The sources of `target` ("cuda" or "cpu") that declare kernels, sorted by name."""
    pattern = "*.cu" if target == "cuda" else "*.cpp"
    return sorted(path for path in csrc.glob(pattern) if path.name not in GLUE)


def parse(path: Path) -> list[Declaration]:
    """The declarations in one source, in order.

    Raises:
        DeclarationError: it has none, or a line that begins as a declaration is malformed.
    """
    found: list[Declaration] = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if not _ANY_MACRO.match(line):
            continue
        match = _DECLARATION.match(line)
        if match is None or (match["rule"] == "K_ANY" and match["k_value"] != "1"):
            raise DeclarationError(f"{path}:{number}: found {line.strip()!r}, wanted on one line: {_FORM} ({_RULES})")
        found.append(
            Declaration(
                name=match["name"],
                role=_ROLES[match["role"]],
                variant=match["role"] == "VARIANT",
                device_type="cuda" if path.suffix == ".cu" else "cpu",
                k_rule=match["rule"],
                k_value=int(match["k_value"]),
                layout=match["layout"],
                alignment_bytes=int(match["alignment"]),
                summary=match["summary"],
                where=f"{path}:{number}",
            ),
        )
    if not found:
        raise DeclarationError(f"{path}:1: declares no kernel, wanted a line: {_FORM} ({_RULES})")
    return found


def sources_by_kernel(csrc: Path, target: str) -> dict[str, tuple[str, ...]]:
    """The sources of `target` ("cuda" or "cpu") whose code a launch of each kernel runs, by name relative to csrc.

    A kernel runs its own; `CHOOSER` also those of all that its rule names.

    Raises:
        DeclarationError: a source has no or a malformed declaration.
    """
    own = {each.name: path.name for path in kernel_sources(csrc, target) for each in parse(path)}
    found: dict[str, tuple[str, ...]] = {name: (source,) for name, source in own.items()}
    if CHOOSER in own:
        named = {CHOOSER, *named_by_rule(csrc)}
        found[CHOOSER] = tuple(sorted({source for name, source in own.items() if name in named}))
    return found


def named_by_rule(csrc: Path = CSRC) -> dict[str, int]:
    """The kernels that `CHOOSER` can pick, in the order of its rule, each with the line that first names it."""
    lines = (csrc / RULE).read_text(encoding="utf-8").splitlines() if (csrc / RULE).is_file() else []
    found: dict[str, int] = {}
    for number, line in enumerate(lines, start=1):
        for name in _PICKED.findall(line):
            found.setdefault(name, number)
    return found


def declarations(csrc: Path = CSRC) -> dict[str, Declaration]:
    """Every kernel that csrc declares, by name; CUDA sources first, each by file name.

    Raises:
        DeclarationError: a source has no or a malformed declaration, two declare the same name or define a function of
            one name, or the rule names a kernel that none declares.
    """
    return dict(_declarations(csrc))


@cache
def _declarations(csrc: Path) -> dict[str, Declaration]:
    by_name: dict[str, Declaration] = {}
    for path in kernel_sources(csrc, "cuda") + kernel_sources(csrc, "cpu"):
        for declaration in parse(path):
            if declaration.name in by_name:
                first = by_name[declaration.name].where
                raise DeclarationError(
                    f"{declaration.where}: kernel {declaration.name!r} is already declared in {first}; rename one",
                )
            by_name[declaration.name] = declaration
    for target in ("cuda", "cpu"):
        _refuse_same_functions(kernel_sources(csrc, target))
    for name, line in named_by_rule(csrc).items() if CHOOSER in by_name else ():
        if name not in by_name:
            raise DeclarationError(f"{csrc / RULE}:{line}: picks {name!r}, which no source declares; correct the name")
    return by_name


def _refuse_same_functions(sources: list[Path]) -> None:
    """Refuse two sources that define functions of one name: the linker takes one template or inline function for all.

    A copy of a kernel's file with another declaration would run the code of the first.
    """
    where: dict[str, str] = {}
    for path in sources:
        text = path.read_text(encoding="utf-8")
        for match in _DEFINED.finditer(text):
            name, place = match[1] or match[2], f"{path}:{text.count(chr(10), 0, match.end()) + 1}"
            first = where.setdefault(name, place)
            if first.rpartition(":")[0] != str(path):
                raise DeclarationError(
                    f"{place}: function {name!r} is already defined in {first}; rename it, or make it static"
                )
