"""The tables of docs/run-format.md, written from the records' docstrings: `python examples/run_format.py`.

A table stands between `<!-- NAME -->` and `<!-- end -->`; a test holds the document against the records.
"""

from __future__ import annotations

import ast
import dataclasses
import enum
import inspect
import json
import re
import sys
import textwrap
import types
import typing
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from harness.environment import ENVIRONMENT_KEYS  # noqa: E402 - the project is found only now
from harness.model import DeviceState, Record, Run  # noqa: E402
from harness.store import read_run  # noqa: E402
from harness.store.tables import AS_JSON, IN_TABLES, SAMPLES, STATES  # noqa: E402

DOCUMENT = ROOT / "docs" / "run-format.md"
EXAMPLE = ROOT / "examples" / "h200"

UNITS = {
    "_unix_s": "s since 1970", "_ns": "ns", "_s": "s", "seconds": "s", "_mhz": "MHz", "_c": "°C", "_mw": "mW",
    "millijoules": "mJ", "bytes": "bytes",
}  # fmt: skip
"""By how a field's name ends; the first that fits."""

JSON_NAMES = {str: "string", int: "integer", float: "number", bool: "boolean", types.NoneType: "null"}

KEYS = {
    "case_id": "The case: kernel, shape, dtype unless float32, six hex digits where layout or seed are unusual, timer "
    "and cache, joined by `-`.",
    "trial": "0-based number of the worker process, as in run.json.",
}
"""What the columns of both tables mean that say whose a row is."""

SAMPLE_COLUMNS = KEYS | {
    "index": "0-based place of the sample within its case and trial.",
    "ns": "The measured duration, per launch.",
    "time_unix_s": "When the sample began; null: not known.",
    "sm_clock_mhz": "Mean SM clock during the sample, from the device's own counters; null: not read.",
    "throttled": "What held the clocks back meanwhile, as far as readings tell: limits as `limited_ns` names them, and "
    "`sm_clock` where the clock was over 3 % below the highest of the trials' medians; null: nothing.",
}

Row = tuple[str, ...]


def records(kind: type = Run) -> list[type]:
    """The record and those within it, each once, in order of appearance; enums too."""
    found: dict[type, None] = {kind: None}
    for name, hint in typing.get_type_hints(kind).items() if issubclass(kind, Record) else ():
        for inner in _classes(hint) if name not in IN_TABLES else ():
            found |= dict.fromkeys(records(inner))
    return list(found)


def fields_of(kind: type) -> Iterator[Row]:
    """A row a field of a record: name, type, unit, what its absence means, meaning."""
    yield "field", "type", "unit", "absent", "meaning"
    said, hints = docstrings(kind), typing.get_type_hints(kind)
    for field in dataclasses.fields(kind):
        if field.name not in IN_TABLES:
            yield f"`{field.name}`", json_type(hints[field.name]), unit(field.name), _default(field), said[field.name]


def words_of(kind: type[enum.Enum]) -> Iterator[Row]:
    """A row a value of an enum."""
    yield "value", "meaning"
    said = docstrings(kind)
    for member in kind:
        yield f"`{member.value}`", said[member.name]


def docstrings(kind: type) -> dict[str, str]:
    """What stands below each field of a record, or member of an enum, in one line.

    Raises:
        LookupError: nothing stands below one.
    """
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    body = typing.cast("ast.ClassDef", tree).body
    found: dict[str, str] = {}
    for statement, below in zip(body, [*body[1:], None], strict=True):
        if not isinstance(statement, ast.AnnAssign | ast.Assign):
            continue
        target = statement.target if isinstance(statement, ast.AnnAssign) else statement.targets[0]
        name = typing.cast("ast.Name", target).id
        said = below.value.value if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant) else ""
        if not said:
            raise LookupError(f"{kind.__name__}.{name}: no docstring")
        found[name] = _in_json(" ".join(str(said).split()))
    return found


def json_type(hint: Any) -> str:
    """A type as JSON has it: `list of number`, `object of string`, `string or null`; a record by its name."""
    if hint in JSON_NAMES:
        return JSON_NAMES[hint]
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in (tuple, dict):
        held = json_type(inner[origin is dict])
        many = "object" if origin is dict else "list" if inner[-1] is ... else f"list of {len(inner)}:"
        return f"{many} {'' if many[-1] == ':' else 'of '}{f'({held})' if ' or ' in held else held}"
    if origin in (types.UnionType, typing.Union):
        return " or ".join(map(json_type, inner))
    return f"[{hint.__name__}](#{hint.__name__.lower()})"


def _in_json(said: str) -> str:
    """Words for Python's constants as JSON has them."""
    return re.sub(r"\b(?:None|True|False)\b", lambda word: {"None": "null"}.get(word[0], word[0].lower()), said)


def unit(name: str) -> str:
    """Of a field, by its name."""
    return next((unit for ending, unit in UNITS.items() if f"_{name}".endswith(ending)), "")


def _default(field: dataclasses.Field[Any]) -> str:
    """What a reader takes for a field that is absent; nothing: it never is."""
    if field.default_factory is not dataclasses.MISSING:
        made = field.default_factory()
        return "all of it by default" if isinstance(made, Record) else f"`{json.dumps(made)}`"
    return "" if field.default is dataclasses.MISSING else f"`{json.dumps(field.default)}`"


def _classes(hint: Any) -> Iterator[type]:
    if isinstance(hint, type) and issubclass(hint, Record | enum.Enum):
        yield hint
    for inner in typing.get_args(hint):
        yield from _classes(inner)


def environment() -> Iterator[Row]:
    """A row a key of the environment, with its value in the example."""
    yield "key", "group", "unit", "must match", "meaning", "in the example"
    values = read_run(EXAMPLE).environment.values
    for key in ENVIRONMENT_KEYS.values():
        shown = f"`{json.dumps(values[key.name], ensure_ascii=False)}`" if key.name in values else "absent: added later"
        must = "yes" if key.must_match_to_compare else ""
        yield f"`{key.name}`", key.group, key.unit or "", must, key.description, shown


def samples() -> Iterator[Row]:
    """A row a column."""
    return _columns(SAMPLES, SAMPLE_COLUMNS)


def states() -> Iterator[Row]:
    """A row a column."""
    said = docstrings(DeviceState)
    return _columns(STATES, KEYS | {name: said[name] + " As JSON." * (name in AS_JSON) for name in said})


def _columns(name: str, said: dict[str, str]) -> Iterator[Row]:
    yield "column", "type", "unit", "meaning"
    for column in pq.read_schema(EXAMPLE / name):
        stored = str(column.type).partition("<values=")[2].partition(",")[0] or str(column.type)
        yield f"`{column.name}`", stored, unit(column.name), said[column.name]


def all_records() -> str:
    """A section a record, each with its table."""
    return "\n".join(
        f"### {kind.__name__}\n\n{inspect.cleandoc(kind.__doc__ or '')}\n\n{table(_rows(kind))}" for kind in records()
    )


def _rows(kind: type) -> Iterator[Row]:
    return words_of(kind) if issubclass(kind, enum.Enum) else fields_of(kind)


def table(rows: Iterator[Row]) -> str:
    """A table of Markdown; columns without anything are left out."""
    head, *body = rows
    kept = [place for place in range(len(head)) if any(row[place] for row in body)]
    lines = [head, ("---",) * len(head), *body]
    cells = [[line[place].replace("|", "\\|") for place in kept] for line in lines]
    return "".join(f"| {' | '.join(line)} |\n" for line in cells)


BLOCKS: dict[str, Callable[[], str]] = {
    "records": all_records,
    "environment": lambda: table(environment()),
    "samples": lambda: table(samples()),
    "device states": lambda: table(states()),
}


def written(text: str) -> str:
    """`text` with every block in it written anew."""

    def fill(block: re.Match[str]) -> str:
        return f"<!-- {block[1]} -->\n{BLOCKS[block[1]]()}<!-- end -->"

    return re.sub(rf"<!-- ({'|'.join(BLOCKS)}) -->\n.*?<!-- end -->", fill, text, flags=re.DOTALL)


def main() -> None:
    """Rewrite the document."""
    DOCUMENT.write_text(written(DOCUMENT.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
