"""Reads what csrc says about its kernels: one macro line a kernel is the only place where it is declared."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from harness.errors import CommandError, Exit
from harness.model import Role
from kernels.rules import RULES, named_by_rule

CSRC = Path(__file__).parent / "csrc"
ITEM_BYTES = {"float32": 4, "tf32": 4, "float16": 2, "bfloat16": 2, "int8": 1}
"""Of an element of A, by a problem's dtype."""

GLUE = ("op.cpp", "op_tokens.cpp", "explain.cpp")
"""The sources without a kernel: part of every library."""

_ROLES = {"KERNEL": Role.GEMV, "VARIANT": Role.GEMV, "LIMIT": Role.LIMIT, "FLOOR": Role.FLOOR}
_ANY_MACRO = re.compile(r"^\s*S?GEMV_(?:KERNEL|VARIANT|LIMIT|FLOOR)\b")
_SUMMARY = r"\"(?P<summary>[^\"\\]+)\"\) \{"
_FLOAT32 = re.compile(
    r"^SGEMV_(?P<role>KERNEL|VARIANT|LIMIT|FLOOR)\((?P<name>[a-z]\w*), "
    r"(?:(?P<any>K_ANY), 1|(?P<rule>K_MULTIPLE_OF|K_EQUAL_TO|K_AT_MOST), (?P<k_value>[1-9]\d*)), "
    rf"(?P<layout>PACKED|ROWS|COLUMNS|ROWS_OR_COLUMNS), (?P<alignment>4|8|16|32), {_SUMMARY}"
)
_TOKENS = re.compile(
    r"^GEMV_(?P<role>KERNEL|VARIANT|LIMIT)\((?P<name>[a-z]\w*), "
    r"(?:(?P<int8>INT8)|(?P<half>FLOAT16|BFLOAT16)), (?P<most_n>[1-9]\d*), "
    rf"(?P<alignment>2|4|8|16|32|(?(int8)1|2)), {_SUMMARY}"
)
_DEFINED = re.compile(
    r"__global__\s+void\s+(?:__launch_bounds__\((?:[^()]|\([^()]*\))*\)\s+)?(\w+)\s*\("
    r"|^(?!static |return |S?GEMV_(?:KERNEL|VARIANT|LIMIT|FLOOR)\()(?:\w[\w:<>,*& ]* )(\w+)\((?=[^;]*?\{)",
    re.MULTILINE,
)
"""A function that a source defines: not `static`, so the linker may take another one of its name for it."""
_FORM = (
    "SGEMV_KERNEL(name, K_ANY | K_MULTIPLE_OF | K_EQUAL_TO | K_AT_MOST, value, "
    'PACKED | ROWS | COLUMNS | ROWS_OR_COLUMNS, alignment in bytes, "summary") {'
)
_TOKENS_FORM = 'GEMV_KERNEL(name, FLOAT16 | BFLOAT16 | INT8, most columns of x, alignment in bytes, "summary") {'
_PLACE = "at the start of a line, one space after each comma, lower-case name, "
_RULES = f"{_PLACE}value from 1, alignment 4, 8, 16 or 32, summary in double quotes, K_ANY with value 1"
_TOKENS_RULES = (
    f"{_PLACE}KERNEL, VARIANT or LIMIT, most columns from 1, alignment 2, 4, 8, 16 or 32, of INT8 also 1, "
    "summary in double quotes"
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
    """By the end of the macro: KERNEL, VARIANT, LIMIT or FLOOR."""
    variant: bool
    """VARIANT: one of those that another kernel chooses among, measured only when asked for by name."""
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
    dtype: str = "float32"
    """Of A, as torch names it: by SGEMV_… `float32`, by GEMV_… what it says."""
    most_n: int = 1
    """Columns of x that it takes at most."""
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

    def n_problem(self, n: int) -> str | None:
        """Why `n` columns of x are outside the kernel's contract, or None."""
        if 1 <= n <= self.most_n:
            return None
        return f"n={n} columns of x, wanted {'1' if self.most_n == 1 else f'1 to {self.most_n}'}"


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
        if _ANY_MACRO.match(line):
            found.append(_declared(line, path, number))
    if not found:
        words = f"wanted a line: {_FORM} ({_RULES}), or {_TOKENS_FORM} ({_TOKENS_RULES})"
        raise DeclarationError(f"{path}:1: declares no kernel, {words}")
    return found


def _declared(line: str, path: Path, number: int) -> Declaration:
    float32 = line.lstrip().startswith("S")
    match = (_FLOAT32 if float32 else _TOKENS).match(line)
    if match is None:
        wanted = f"{_FORM} ({_RULES})" if float32 else f"{_TOKENS_FORM} ({_TOKENS_RULES})"
        raise DeclarationError(f"{path}:{number}: found {line.strip()!r}, wanted on one line: {wanted}")
    found = match.groupdict()
    return Declaration(
        name=match["name"],
        role=_ROLES[match["role"]],
        variant=match["role"] == "VARIANT",
        device_type="cuda" if path.suffix == ".cu" else "cpu",
        k_rule=found.get("rule") or "K_ANY",
        k_value=int(found.get("k_value") or 1),
        layout=found.get("layout") or ("PACKED" if match["role"] == "LIMIT" else "ROWS"),
        alignment_bytes=int(match["alignment"]),
        dtype="float32" if float32 else (match["int8"] or match["half"]).lower(),
        most_n=int(found.get("most_n") or 1),
        summary=match["summary"],
        where=f"{path}:{number}",
    )


def sources_by_kernel(csrc: Path, target: str) -> dict[str, tuple[str, ...]]:
    """The sources of `target` ("cuda" or "cpu") whose code a launch of each kernel runs, by name relative to csrc.

    A kernel runs its own; one that picks by a rule also those of all that the rule names.

    Raises:
        DeclarationError: a source has no or a malformed declaration.
    """
    own = {each.name: path.name for path in kernel_sources(csrc, target) for each in parse(path)}
    run = {name: {name, *named_by_rule(csrc, name)} for name in own}
    return {name: tuple(sorted({own[each] for each in run[name] if each in own})) for name in own}


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
    for chooser in RULES.keys() & by_name.keys():
        for name, line in named_by_rule(csrc, chooser).items():
            if name not in by_name:
                where = f"{csrc / RULES[chooser].file}:{line}"
                raise DeclarationError(f"{where}: picks {name!r}, which no source declares; correct the name")
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
