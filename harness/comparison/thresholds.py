"""The thresholds that a command line asks for: a fraction for all kernels, and others by kernel from a file."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from pathlib import Path

from harness.compare import THRESHOLD
from harness.errors import CommandError, Exit, first_line
from harness.words import LONGEST_LINE, visible


def thresholds(option: str | None, file: str | None) -> tuple[float, dict[str, float]]:
    """The default threshold and those by kernel, as fractions.

    Args:
        option: the default as text; None: the file's, else `THRESHOLD`.
        file: path of a TOML file; None: no kernel has its own.

    Raises:
        CommandError: either is not what was wanted (USAGE).
    """
    default, by_kernel = (THRESHOLD, {}) if file is None else read_thresholds(Path(file))
    return default if option is None else _fraction(option, "--threshold"), by_kernel


def read_thresholds(path: Path) -> tuple[float, dict[str, float]]:
    """The default threshold and those by kernel, as fractions, of a TOML file.

    Raises:
        CommandError: it cannot be read, is not TOML, or holds something else (USAGE).
    """
    where = f"--thresholds {visible(str(path), LONGEST_LINE)}"
    data = _read_toml(path, where)
    for key in data:
        if key not in {"default", "kernels"}:
            raise CommandError(f"{where}: found {_shown(key)}, wanted `default` and [kernels]", Exit.USAGE)
    kernels = data.get("kernels", {})
    if not isinstance(kernels, Mapping):
        raise CommandError(f"{where}: kernels: found {_shown(kernels)}, wanted a table [kernels]", Exit.USAGE)
    default = _fraction(data.get("default", THRESHOLD), f"{where}: default")
    return default, {name: _of_kernel(name, value, where) for name, value in kernels.items()}


def _read_toml(path: Path, where: str) -> dict[str, object]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise CommandError(f"{where}: {error.strerror}", Exit.USAGE) from error
    except (ValueError, RecursionError) as error:  # of UTF-8 and of TOML
        raise CommandError(f"{where}: not TOML: {visible(first_line(error), LONGEST_LINE)}", Exit.USAGE) from error


def _of_kernel(name: str, value: object, where: str) -> float:
    at = f"{where}: kernels.{visible(name)}"
    if isinstance(value, Mapping):  # what TOML makes of `torch.mv = 0.02`
        inner = visible(str(next(iter(value), "…")))
        wanted = f'a fraction; a name with a dot stands in quotes, as in "{visible(name)}.{inner}" = 0.02'
        raise CommandError(f"{at}: found a table, wanted {wanted}", Exit.USAGE)
    return _fraction(value, at)


def _fraction(found: object, where: str) -> float:
    """A threshold given as a number, or as text on a command line."""
    try:
        value = math.nan if isinstance(found, bool) else float(found)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        value = math.nan
    if not 0 <= value < 1:  # NaN is in no range
        percent = value if 1 <= value < 100 else 2
        wanted = f"a fraction from 0 to below 1, such as {percent / 100:g} for {percent:g} %"
        raise CommandError(f"{where}: found {_shown(found)}, wanted {wanted}", Exit.USAGE)
    return value


def _shown(found: object) -> str:
    return visible(repr(found))
