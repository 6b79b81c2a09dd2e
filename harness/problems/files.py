"""Problems from a file: TOML with a list of shapes, or CSV with a column for each thing that a problem says."""

from __future__ import annotations

import csv
import io
import tomllib
from collections.abc import Iterator
from pathlib import Path

from harness.dtypes import DTYPES
from harness.errors import CommandError, Exit, first_line
from harness.model import Problem
from harness.problems.shapes import parse_shape

FILE = 'TOML, shapes = ["4096x4096"], or CSV, columns m,k[,n][,dtype][,order][,row_stride][,first_element]'
"""What such a file holds, for help."""

NEEDED = ("m", "k")
COLUMNS = (*NEEDED, "n", "dtype", "order", "row_stride", "first_element")
KNOWN = {"dtype": DTYPES, "order": ("row", "col")}
"""Of columns that hold a word, what it may be; the others hold whole numbers."""


def read_shapes(path: Path, where: str = "--shapes") -> list[Problem]:
    """The problems that a file names, each once, in order.

    Args:
        path: of the file; one that ends in .csv is CSV, any other TOML.
        where: it was named, for errors.

    Raises:
        CommandError: it cannot be read, or holds something else; the message names the line (USAGE).
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:  # ValueError: not UTF-8
        why = (isinstance(error, OSError) and error.strerror) or first_line(error)
        raise CommandError(f"{where}: {path}: {why}; wanted {FILE}", Exit.USAGE) from error
    shapes = _of_csv if path.suffix.lower() == ".csv" else _of_toml
    try:
        found = list(dict.fromkeys(_parsed(shape, f"{path}:{line}") for line, shape in shapes(text, path)))
    except ValueError as error:
        raise CommandError(f"{where}: {first_line(error)}", Exit.USAGE) from error
    if not found:
        raise CommandError(f"{where}: {path}: names no shape, wanted {FILE}", Exit.USAGE)
    return found


def _parsed(shape: str, where: str) -> Problem:
    """The problem; ValueError begins with where it stands."""
    try:
        return parse_shape(shape, where)
    except ValueError as error:
        said = str(error)
        raise ValueError(said if said.startswith(where) else f"{where}: {said}") from error


def _of_toml(text: str, path: Path) -> Iterator[tuple[int, str]]:
    """Each shape with its line; ValueError says the file and what is wrong."""
    try:
        said = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{path}: {error}") from error
    shapes = said.get("shapes")
    if not isinstance(shapes, list) or said.keys() != {"shapes"}:
        raise ValueError(f'{path}: found {", ".join(said) or "nothing"}, wanted shapes = ["4096x4096", …] alone')
    lines, line = text.splitlines(), 1
    for shape in shapes:
        if not isinstance(shape, str):
            what = f'{path}: found {shape!r} among the shapes, wanted text such as "4096x4096:float16"'
            raise ValueError(what)  # noqa: TRY004 - of a file's content
        line = next((n for n in range(line, len(lines) + 1) if f'"{shape}"' in lines[n - 1]), line)
        yield line, shape


def _of_csv(text: str, path: Path) -> Iterator[tuple[int, str]]:
    """Each line as a shape; ValueError says the file and the line."""
    rows = csv.reader(io.StringIO(text), skipinitialspace=True, strict=True)
    columns: list[str] | None = None
    try:
        for row in rows:
            cells = [cell.strip() for cell in row]
            if not any(cells) or cells[0].startswith("#"):
                continue
            if columns is None:
                columns = _columns(cells, f"{path}:{rows.line_num}")
            else:
                yield rows.line_num, _shape(columns, cells, f"{path}:{rows.line_num}")
    except csv.Error as error:
        raise ValueError(f"{path}:{rows.line_num}: {error}") from error


def _columns(cells: list[str], where: str) -> list[str]:
    if set(cells) - set(COLUMNS) or set(NEEDED) - set(cells) or len(set(cells)) != len(cells):
        optional = "".join(f"[,{name}]" for name in COLUMNS[len(NEEDED) :])
        raise ValueError(f"{where}: found columns {','.join(cells)}, wanted {','.join(NEEDED)}{optional} in any order")
    return cells


def _shape(columns: list[str], cells: list[str], where: str) -> str:
    """The shape that a line says, as it would be typed; empty cells say nothing."""
    if len(cells) != len(columns):
        raise ValueError(f"{where}: found {len(cells)} cells, wanted {len(columns)}: {','.join(columns)}")
    said = dict.fromkeys(COLUMNS, "") | dict(zip(columns, cells, strict=True))
    for name, cell in said.items():
        if name in KNOWN and cell not in ("", *KNOWN[name]):
            raise ValueError(f"{where}: found {name} {cell!r}, wanted one of: {', '.join(KNOWN[name])}")
        if name not in KNOWN and cell and not (cell.isascii() and cell.isdecimal()):
            raise ValueError(f"{where}: found {name} {cell!r}, wanted a whole number")
    sizes = "x".join([said["m"], said["k"], *([said["n"]] if said["n"] else [])])
    words = [f":{said['dtype']}" if said["dtype"] else "", ":col" if said["order"] == "col" else ""]
    words += [f":row_stride={said['row_stride']}" if said["row_stride"] else ""]
    words += [f":first={said['first_element']}" if said["first_element"] else ""]
    return sizes + "".join(words)
