"""JSON that may hold anything."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any


def parsed(text: str, *, constant: Callable[[str], Any] | None = None) -> Any:
    """What `text` says.

    Args:
        text: from anywhere.
        constant: called with NaN, Infinity and -Infinity; default: they are floats.

    Raises:
        ValueError: it is no JSON, or nested deeper than Python follows.
    """
    try:
        return json.loads(text, parse_constant=constant)
    except RecursionError:
        raise ValueError("nested too deep") from None


def encodable(value: Any) -> Any:
    r"""JSON-ready `value` in which every text can be written as UTF-8: `\udcff` in words for a lone surrogate.

    Python reads a byte that is no UTF-8, of a path or a host's name, as one; no other program takes it for text.
    """
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, list | tuple):
        return type(value)(map(encodable, value))
    if isinstance(value, dict):
        return {encodable(key): encodable(each) for key, each in value.items()}
    return value
