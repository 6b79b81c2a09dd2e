"""Runs a user's file, once a process; and says what is in it without running it here: a process of its own does."""

from __future__ import annotations

import ast
import dataclasses
import hashlib
import importlib.machinery
import importlib.metadata
import importlib.util
import json
import os
import signal
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec

from harness.errors import INSTALLED, OWN, ROOT, TRACEBACK, CommandError, Exit, said, show_traceback
from kernels.own.declare import Declared, Launcher, declarations

PATIENCE_S = 120.0
"""A file that takes longer to load is taken for hung: torch and a compiler's package take ten at most."""

_loaded: dict[Path, dict[str, Declared]] = {}


class FileError(CommandError):
    """A user's file that cannot be loaded, in one line that begins with the file and the line in it."""

    def __init__(self, message: str) -> None:
        super().__init__(message, Exit.USAGE)


class Listed(msgspec.Struct, frozen=True, kw_only=True):
    """What a file declares of a kernel, without its code."""

    name: str
    line: int
    summary: str
    dtypes: tuple[str, ...]
    devices: tuple[str, ...]
    launcher: Launcher | None = None


class Listing(msgspec.Struct, frozen=True, kw_only=True):
    """What is in a file."""

    kernels: tuple[Listed, ...]
    sources: dict[str, str]
    """SHA-256 by absolute path: of it, and of what it imports from its folder and below."""
    packages: tuple[str, ...]
    """Name and version of what these files import that is installed."""


def load(path: Path) -> dict[str, Declared]:
    """Run the file, if this process has not yet; what it declares, by name.

    Raises:
        FileError: it is no Python, or it raises something.
    """
    if path not in _loaded:
        found = _run(path)
        if not found:
            raise FileError(f'{path}: declares no kernel, wanted @kernel("my_name") of kernels.own above a function')
        _loaded[path] = {each.name: each for each in found}
    return _loaded[path]


def _run(path: Path) -> list[Declared]:
    if path.suffix != ".py":
        raise FileError(f'{path}: is no .py; wanted the Python file that declares it, as cuda("my_gemv", "my_gemv.cu")')
    name = f"own_{path.stem}"
    loader = importlib.machinery.SourceFileLoader(name, str(path))
    module = ModuleType(name)
    module.__spec__ = importlib.util.spec_from_loader(name, loader)
    module.__file__, module.__loader__ = str(path), loader
    sys.modules[name] = module  # where pickle, dataclasses and Triton look
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))  # last: a neighbour takes over no installed package's name
    writes, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        with declarations() as found:
            exec(compile(path.read_bytes(), str(path), "exec", dont_inherit=True), module.__dict__)  # noqa: S102
    except (Exception, SystemExit) as error:
        raise FileError(_said(path, error)) from error
    finally:
        sys.dont_write_bytecode = writes
    return found


def _said(path: Path, error: BaseException) -> str:
    """The error in one line, with the last line of the user's that took part in it."""
    if isinstance(error, SyntaxError) and error.filename is not None:
        return f"{error.filename}:{error.lineno or 1}: {type(error).__name__}: {error.msg}"
    return said(error, str(path))


def listing(path: Path, patience_s: float = PATIENCE_S) -> Listing:
    """What is in the file, by a process of its own: whatever it does is done there, and no CUDA is touched here.

    Raises:
        FileError: it cannot be loaded, or its process ended or hung meanwhile.
    """
    with tempfile.TemporaryDirectory(prefix="sgemv-own-") as folder:
        reply, log = Path(folder, "reply"), Path(folder, "log")
        how = _listed_apart(path, reply, log, patience_s)
        words = log.read_bytes().decode(errors="replace")
        said = words.strip().splitlines()
        if os.environ.get(TRACEBACK):
            sys.stderr.write(words)
        if not reply.is_file():
            last = f": {said[-1]}" if said else ""
            raise FileError(f"{path}: {how} while it was loaded{last}")
        found = json.loads(reply.read_bytes())
    if "error" in found:
        raise FileError(found["error"])
    return msgspec.convert(found, Listing)


def _listed_apart(path: Path, reply: Path, log: Path, patience_s: float) -> str:
    """Have a process write what is in the file into `reply`; how it ended."""
    command = [sys.executable, "-m", "kernels.own", str(path), str(reply)]
    with log.open("wb") as words:
        process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=words, stderr=words, start_new_session=True
        )
    try:
        code = process.wait(patience_s)
    except subprocess.TimeoutExpired:
        return f"took more than {patience_s:g} s"
    finally:
        with suppress(ProcessLookupError):  # what it has started goes too
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended its process with code {code}"


def write_listing(path: Path, reply: Path) -> None:
    """The other side of `listing`: into `reply`, as a whole."""
    try:
        kernels = load(path).values()
        sources = [path, *_neighbours(path.parent)]
        found: dict[str, Any] = {
            "kernels": [_plain(each) for each in kernels],
            "sources": {str(each): hashlib.sha256(each.read_bytes()).hexdigest() for each in sources},
            "packages": _packages(sources),
        }
    except FileError as error:
        found = {"error": str(error)}
        show_traceback(error.__cause__ or error)
    written = reply.with_suffix(".tmp")
    written.write_text(json.dumps(found), encoding="utf-8")
    written.replace(reply)


def _plain(declared: Declared) -> dict[str, Any]:
    values = {field: getattr(declared, field) for field in Listed.__struct_fields__ if field != "launcher"}
    return {**values, "launcher": declared.launcher and dataclasses.asdict(declared.launcher)}


def _neighbours(folder: Path) -> list[Path]:
    """Python files below the folder that are loaded now, without this project's and installed ones."""
    installed = [Path(sysconfig.get_path(name)).resolve() for name in INSTALLED]
    found: set[Path] = set()
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if not isinstance(file, str) or name.partition(".")[0] in OWN or name == "__main__":
            continue
        path = Path(file).resolve()
        if path.suffix == ".py" and path.is_relative_to(folder) and not any(map(path.is_relative_to, installed)):
            found.add(path)
    return sorted(found)


def _packages(sources: Iterable[Path]) -> list[str]:
    """What the files import, wherever the import stands, with its version; nothing of Python's own or of files here."""
    names: set[str] = set()
    for source in sources:
        for node in ast.walk(ast.parse(source.read_bytes())):
            if isinstance(node, ast.Import):
                names |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names.add(node.module.partition(".")[0])
    packages = importlib.metadata.packages_distributions()
    known = {package for name in names for package in packages.get(name, ())}
    return [f"{package} {importlib.metadata.version(package)}" for package in sorted(known)]
