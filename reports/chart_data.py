"""Rows that pictures draw: each list once in the page, by column, however many pictures draw it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

FEW_ROWS = 4
"""Shorter lists, such as a line's two ends, stay in the picture."""


class ChartData:
    """Takes the rows out of specifications."""

    def __init__(self) -> None:
        self.by_name: dict[str, dict[str, Any]] = {}
        """Vega-Lite's name of a list → its columns, as `columns` gives them."""
        self._names: dict[str, str] = {}

    def without_rows(self, spec: Mapping[str, Any]) -> dict[str, Any]:
        """`spec` with the name of its rows in their place; they are then in `by_name`."""
        return {key: self._part(key, value) for key, value in spec.items()}

    def _part(self, key: str, value: Any) -> Any:
        if key == "data" and len(value.get("values", ())) >= FEW_ROWS:
            return {"name": self._name(value["values"])}
        if isinstance(value, Mapping):
            return self.without_rows(value)
        if isinstance(value, list):
            return [self._part("", each) for each in value]
        return value

    def _name(self, rows: Sequence[Mapping[str, Any]]) -> str:
        found = columns(rows)
        content = json.dumps(found)
        name = self._names.setdefault(content, f"rows-{len(self._names) + 1}")
        self.by_name[name] = found
        return name


def columns(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """By name a column's values, None where a row has none.

    Values that repeat are `{"of": the distinct ones, "at": for each row the place of its own}`.
    """
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: _column([row.get(name) for row in rows]) for name in names}


def _column(values: list[Any]) -> Any:
    distinct = list(dict.fromkeys(values))
    if not any(isinstance(value, str) for value in distinct) or 2 * len(distinct) > len(values):
        return values
    places = {value: place for place, value in enumerate(distinct)}
    return {"of": distinct, "at": [places[value] for value in values]}
