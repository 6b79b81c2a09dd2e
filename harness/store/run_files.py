"""The files of a run, read: what is wrong with one is a line that names it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from harness.errors import CommandError, Exit, first_line
from harness.json_text import parsed


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object.

    Raises:
        CommandError: there is no such file, or it holds something else (RUN).
    """
    try:
        data = parsed(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}", Exit.RUN) from error
    except ValueError as error:
        raise CommandError(f"{path}: not JSON: {first_line(error)}", Exit.RUN) from error
    if not isinstance(data, dict):
        raise CommandError(f"{path}: found {type(data).__name__}, wanted an object", Exit.RUN)
    return data


def read_table(path: Path) -> pd.DataFrame:
    """A Parquet file.

    Raises:
        CommandError: there is no such file, or it is none (RUN).
    """
    if not path.is_file():
        raise CommandError(f"{path}: No such file or directory", Exit.RUN)
    try:
        with path.open("rb") as file:  # Arrow opens no path that is not UTF-8
            return pd.read_parquet(file)
    except (OSError, ValueError, pa.ArrowException) as error:
        raise CommandError(f"{path.parent}: damaged: {path.name}: {first_line(error)}", Exit.RUN) from error
