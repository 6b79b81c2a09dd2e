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
