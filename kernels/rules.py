"""Which declared kernels pick among others, and whom: in the rules of csrc each pick is a line `return {"name", `."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

CHOOSER = "sgemv"
"""The one of float32."""


@dataclass(frozen=True, kw_only=True)
class Rule:
    """Where a kernel's picks stand."""

    file: str
    """In csrc."""
    dtype: str
    """Of the problems that the kernel is made for."""
    prefix: str = ""
    """Stands before each name of the rule: one rule serves several dtypes."""


RULES = {
    CHOOSER: Rule(file="rule.h", dtype="float32"),
    "hgemv": Rule(file="halves_rule.h", dtype="float16", prefix="hgemv_"),
    "bgemv": Rule(file="halves_rule.h", dtype="bfloat16", prefix="bgemv_"),
    "gemv_w8": Rule(file="int8_rule.h", dtype="int8", prefix="gemv_w8_"),
}
"""By the name of the kernel that picks."""

_PICKED = re.compile(r'return \{"(\w+)", ')


def named_by_rule(csrc: Path, chooser: str = CHOOSER) -> dict[str, int]:
    """The kernels that `chooser` can pick, in the order of its rule, each with the line that first names it.

    Of a kernel without a rule, or whose rule is not there: none.
    """
    rule = RULES.get(chooser)
    if rule is None or not (csrc / rule.file).is_file():
        return {}
    found: dict[str, int] = {}
    for number, line in enumerate((csrc / rule.file).read_text(encoding="utf-8").splitlines(), start=1):
        for name in _PICKED.findall(line):
            found.setdefault(f"{rule.prefix}{name}", number)
    return found


def chooser_for(dtype: str) -> str | None:
    """The kernel that picks for problems of that dtype, or None."""
    return next((name for name, rule in RULES.items() if rule.dtype == dtype), None)
