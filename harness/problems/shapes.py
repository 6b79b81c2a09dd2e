"""Problems as they are typed: `4096x4096`, `4096x4096x16:float16`, `4096x4096:col:row_stride=4100:first=1`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from harness.dtypes import DTYPES
from harness.errors import CommandError, Exit
from harness.model import Layout, Problem
from harness.problems.memory import Lines
from harness.words import line_name

SHAPE = "MxK[xN][:DTYPE][:col][:row_stride=N][:first=N]"
"""The form, for help."""

_NUMBER = r"[1-9]\d{0,12}"
_SIZES = re.compile(rf"({_NUMBER})[xX×]({_NUMBER})(?:[xX×]({_NUMBER}))?")
_WORDS = {
    "dtype": re.compile(f"({'|'.join(DTYPES)})"),
    "order": re.compile("(col)"),
    "row_stride": re.compile(rf"row_stride=({_NUMBER})"),
    "first_element": re.compile(rf"first=(0|{_NUMBER})"),
}
"""How a word of a shape sets the dtype, or a field of `Layout`."""


def parse_shape(text: str, where: str = "--shape") -> Problem:
    """The problem that a text of the form `SHAPE` names: float32 where it says no dtype, one column where no N.

    Args:
        text: what was typed.
        where: it was, for errors.

    Raises:
        ValueError: `text` is not of that form, or the stride is shorter than what it spans.
    """
    sizes, *words = text.strip().split(":")
    match = _SIZES.fullmatch(sizes)
    if match is None:
        raise ValueError(f"{where}: found {text!r}, wanted MxK or MxKxN with whole numbers from 1 on, such as 1024x128")
    said = _said(words)
    if said is None:
        raise ValueError(
            f"{where}: found {text!r}, wanted behind MxK or MxKxN only a dtype ({', '.join(DTYPES)}), :col, "
            ":row_stride=N and :first=N, each at most once, N a whole number, such as 4096x4096:float16:col:first=1"
        )
    m, k, n = (int(size or 1) for size in match.groups())
    return laid_out(
        Problem(m=m, k=k, n=n, dtype=said.get("dtype", Problem.dtype)),
        order=said.get("order"),
        row_stride=int(said["row_stride"]) if "row_stride" in said else None,
        first_element=int(said["first_element"]) if "first_element" in said else None,
    )


def _said(words: Sequence[str]) -> dict[str, str] | None:
    """What the words behind a shape's sizes say, by field; None: one says nothing, or what another has said."""
    said: dict[str, str] = {}
    for word in words:
        found = {field: match[1] for field, form in _WORDS.items() if (match := form.fullmatch(word))}
        if not found or found.keys() & said.keys():
            return None
        said |= found
    return said


def parse_shapes(texts: Sequence[str], where: str = "--shape") -> list[Problem]:
    """The problems that some texts name, each once, in order; `where` they were typed, for errors.

    Raises:
        CommandError: one of them is no shape (USAGE).
    """
    try:
        return list(dict.fromkeys(parse_shape(text, where) for text in texts))
    except ValueError as error:
        raise CommandError(str(error), Exit.USAGE) from error


def shape_text(problem: Problem) -> str:
    """What `parse_shape` reads as this problem; of its seed it says nothing."""
    layout = problem.layout
    words = [problem.dtype] if problem.dtype != Problem.dtype else []
    words += [layout.order] if layout.order != "row" else []
    words += [f"row_stride={layout.row_stride}"] if layout.row_stride is not None else []
    words += [f"first={layout.first_element}"] if layout.first_element else []
    return ":".join([problem.label, *words])


def laid_out(
    problem: Problem, *, order: str | None = None, row_stride: int | None = None, first_element: int | None = None
) -> Problem:
    """`problem` with A laid out so; None: as it is.

    A stride that leaves no gap becomes None, so that one layout has one name.

    Args:
        problem: what is computed.
        order: "row" or "col".
        row_stride: elements from one row of A to the next, where the order is col from one column to the next.
        first_element: elements from a 256-byte boundary to A[0, 0].

    Raises:
        ValueError: the problem says otherwise of its own, or the stride is shorter than what it spans.
    """
    asked = {"order": order, "row_stride": row_stride, "first_element": first_element}
    said: dict[str, Any] = {field: value for field, value in asked.items() if value is not None}
    _refuse_conflict(problem, said)
    layout = replace(problem.layout, **said)
    stride, packed = layout.row_stride, replace(layout, row_stride=None)
    length = Lines.of(problem.m, problem.k, packed).length
    if stride is not None and stride < length:
        shape = shape_text(replace(problem, layout=layout))
        raise ValueError(
            f"{shape}: found {stride} elements from one {line_name(layout)} of A to the next, wanted {length} or more"
        )
    return replace(problem, layout=packed if stride == length else layout)


def _refuse_conflict(problem: Problem, said: Mapping[str, str | int]) -> None:
    """Raise ValueError for a field of the layout that the problem itself says otherwise."""
    for field, value in said.items():
        if getattr(problem.layout, field) not in (getattr(Layout(), field), value):
            raise ValueError(
                f"{shape_text(problem)}: says its own {field.replace('_', ' ')}, and {value} was asked for all; "
                "leave one of them out"
            )
