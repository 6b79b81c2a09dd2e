"""Numbers and names in words fit to be shown, on a terminal as on a page."""

from __future__ import annotations

import math
import re
import unicodedata
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # so that an error can be shown where a package of the records is missing
    from harness.model import Layout, Problem

THIN = "\N{NARROW NO-BREAK SPACE}"
"""Between digits in groups of three."""

LONGEST_NAME = 80
LONGEST_LINE = 400
"""In characters."""

_WITHOUT_GLYPH = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
_MARKS = r"[\u0300-\u036F\u0483-\u0489\u1AB0-\u1AFF\u1DC0-\u1DFF\u20D0-\u20FF\uFE20-\uFE2F]"
"""Unicode's blocks of combining marks that are of no script of their own."""
_PILED = re.compile(f"(?<={_MARKS}{{2}}){_MARKS}+")


def significant(value: float, digits: int = 4, *, thousands: str = THIN) -> str:
    """`value` with `digits` digits, of them at most all but one behind the point: 0.690, 1.723, 17.20, 1 014."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    before = math.floor(math.log10(abs(value))) + 1
    decimals = min(digits - 1, max(0, digits - before))
    return f"{value:,.{decimals}f}".replace(",", thousands)


MOST_DECIMALS = 6
"""Of a figure in %; what differs further on is the same."""


def percent_decimals(value: float) -> int:
    """Of a figure in %: 0 from 10 on, 1 from 0.1 and for 0 itself, else until a digit is not 0."""
    size = abs(value)
    if size >= 9.95:
        return 0
    if size >= 0.095 or size == 0:
        return 1
    return min(MOST_DECIMALS, max(2, math.ceil(-math.log10(2 * size))))


def problem_in_words(problem: Problem) -> str:
    """Its shape with all that differs from a plain float32 GEMV: `1024×128`, `64×64, float16`."""
    layout = problem.layout
    extras = [visible(problem.dtype)] if problem.dtype != "float32" else []
    extras += [f"{visible(layout.order)}-major"] if layout.order != "row" else []
    extras += [f"{line_name(layout)} stride {layout.row_stride}"] if layout.row_stride is not None else []
    extras += [f"first element {layout.first_element}"] if layout.first_element else []
    extras += [f"seed {problem.seed}"] if problem.seed else []
    return ", ".join([problem.label.replace("x", "×"), *extras])


def line_name(layout: Layout) -> str:
    """What neighbours in memory are to A: a row, or where its order is col a column."""
    return "column" if layout.order == "col" else "row"


def visible(text: str, longest: int = LONGEST_NAME) -> str:
    """`text` fit to be shown, as `coded`, its middle left out where it is long."""
    if len(text) > longest:
        text = f"{text[: longest // 2]}…{text[-(longest // 2 - 1) :]}"
    return coded(text)


def coded(text: str) -> str:
    """`text` with the codes of what can hide or reorder what is around it, as `⟨202E⟩`; nothing else is left out.

    These are control, zero-width and direction characters and ends of lines. Of marks on one letter, which can cover
    lines around it, two stay.
    """
    if not text.isprintable():
        text = "".join(f"⟨{ord(c):04X}⟩" if unicodedata.category(c) in _WITHOUT_GLYPH else c for c in text)
    return text if text.isascii() else _PILED.sub("…", text)
