"""The store: a folder of published runs, found by path, id, prefix, `latest`, ref or environment."""

from __future__ import annotations

import os
import re
import tempfile
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from harness.draft import Draft, sha256_of
from harness.errors import CommandError, Exit, first_line
from harness.json_text import parsed
from harness.model import SCHEMA_VERSION, Environment, RecordError, Run
from harness.store_folder import make_store, unwritable
from harness.tables import TABLES, with_tables

DEFAULT_ROOT = Path("artifacts")
NAMED = 5
"""Ids that a message lists at most."""
SELECTORS = "a path, an id or its start, latest, latest~N, a ref, or key=value[,key=value] of the environment"


def store_root(option: str | None) -> Path:
    """Where the store is: the option, else SGEMV_STORE, else `artifacts/`."""
    return Path(option or os.environ.get("SGEMV_STORE") or DEFAULT_ROOT)


def new_run_id(started: datetime, environment: Environment) -> str:
    """`<UTC time>-<gpu>-<driver>-<short hash>`; a CPU run names the CPU and torch."""
    device = environment.get("gpu_name") or environment.get("cpu_name") or "unknown"
    driver = environment.get("driver_version") or f"torch{environment.get('torch_version')}"
    name = re.sub(r"[^a-z0-9.]+", "-", f"{device}-{driver}".lower()).strip("-")[:60]
    return f"{started:%Y%m%dT%H%M%SZ}-{name}-{os.urandom(3).hex()}"


class Store:
    """Published runs under one folder."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.kept_aside: list[str] = []
        """After `recover`: a line for each draft that could not be published and was left where it is."""

    def recover(self) -> list[Path]:
        """Publish what killed processes left, as partial runs; the new runs' folders."""
        self.kept_aside.clear()
        published = []
        for draft in Draft.abandoned(self.root):
            try:
                published.append(draft.publish(partial=True))
            except CommandError as kept:  # it cannot be read, or there is no room to publish it
                self.kept_aside.append(str(kept))
        return [path for path in published if path is not None]

    def recovered(self) -> list[str]:
        """`recover`, and what to say of it: a line a run, and one a draft that was left where it is."""
        said = [f"published what a bench had measured before it was killed: {path}" for path in self.recover()]
        return said + self.kept_aside

    def check_writable(self) -> None:
        """Find out before much work; nothing is left behind.

        Raises:
            CommandError: it cannot be written to, or not be made (INFRASTRUCTURE).
        """
        root = self.root.absolute()
        there = next(folder for folder in (root, *root.parents) if folder.exists())
        try:
            with tempfile.TemporaryFile(dir=there):
                pass
        except OSError as error:
            raise unwritable(self.root, error) from error

    def ids(self) -> list[str]:
        """Ids of all published runs, oldest first; also of one that lost its run.json or its sums."""
        return sorted(path.name for path in self.root.glob("[!.]*") if is_run(path))

    def resolve(self, selector: str) -> Path:
        """Folder of the run that `selector` names.

        Raises:
            CommandError: nothing or more than one run fits (RUN), with what was looked for.
        """
        path = Path(selector)
        if is_run(path):
            return path
        ids = self.ids()
        if selector in ids:
            return self.root / selector
        found = self._latest(selector, ids) or self._ref(selector) or self._by_environment(selector, ids)
        if found is not None:
            return found
        starting = [each for each in ids if each.startswith(selector)]
        if len(starting) == 1:
            return self.root / starting[0]
        what = f"no such run among {len(ids)} in {self.root}"
        if starting:
            more = f" and {len(starting) - NAMED} more" if len(starting) > NAMED else ""
            what = f"{len(starting)} runs start with it: {', '.join(starting[:NAMED])}{more}"
        raise CommandError(f"run {selector!r}: {what}; wanted {SELECTORS}", Exit.RUN)

    def set_ref(self, name: str, run_id: str) -> None:
        """Make `name` mean `run_id`.

        Raises:
            CommandError: not a name (USAGE), or the store cannot be written to (INFRASTRUCTURE).
        """
        check_ref_name(name)
        target = self.root / "refs" / name
        try:
            make_store(self.root)
            target.parent.mkdir(exist_ok=True)
            temporary = target.with_name(f".{name}-{os.getpid()}")
            temporary.write_text(run_id + "\n", encoding="utf-8")
            temporary.replace(target)
        except OSError as error:
            raise unwritable(self.root, error) from error

    def refs(self) -> dict[str, list[str]]:
        """The refs' names by the id that they mean, each sorted."""
        found: dict[str, list[str]] = {}
        for ref in sorted((self.root / "refs").glob("[!.]*")):
            if ref.is_file():
                found.setdefault(_meaning(ref), []).append(ref.name)
        return found

    def _latest(self, selector: str, ids: list[str]) -> Path | None:
        match = re.fullmatch(r"latest(?:~(\d{1,9}))?", selector)
        if match is None:
            return None
        back = int(match[1] or 0)
        if back >= len(ids):
            raise CommandError(
                f"run {selector!r}: the store {self.root} holds {len(ids)} run{'' if len(ids) == 1 else 's'}", Exit.RUN
            )
        return self.root / ids[-1 - back]

    def _ref(self, selector: str) -> Path | None:
        ref = self.root / "refs" / selector
        if not re.fullmatch(REF_NAME, selector) or not ref.is_file():
            return None
        run_id = _meaning(ref)
        if not is_run(self.root / run_id):
            raise CommandError(f"ref {selector!r}: names {run_id}, which is not in {self.root}", Exit.RUN)
        return self.root / run_id

    def _by_environment(self, selector: str, ids: list[str]) -> Path | None:
        pairs = [part.partition("=") for part in selector.split(",")]
        if not all(equals for _, equals, _ in pairs):
            return None
        for run_id in reversed(ids):
            try:
                run = read_run(self.root / run_id)
            except CommandError:
                continue  # damaged, as `verify` says; it must not hide the others
            if all(str(run.environment.get(key)) == wanted for key, _, wanted in pairs):
                return self.root / run_id
        raise CommandError(f"run {selector!r}: none of {len(ids)} runs in {self.root} has it", Exit.RUN)


def is_run(folder: Path) -> bool:
    """Whether `folder` is a published run, whole or damaged: it has a run.json or SHA256SUMS."""
    try:
        return (folder / "run.json").is_file() or (folder / "SHA256SUMS").is_file()
    except OSError:  # longer than a path may be, or not to be looked into
        return False


def _meaning(ref: Path) -> str:
    """The first word of a ref; whatever else was written into it is no id."""
    return (ref.read_text(encoding="utf-8", errors="replace").split() or [""])[0]


REF_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"


def check_ref_name(name: str) -> None:
    """Raise CommandError (USAGE) unless `name` can be a ref."""
    if not re.fullmatch(REF_NAME, name) or name == "latest":
        reserved = "; the word is reserved: it means the newest run" if name == "latest" else ""
        wanted = "1 to 64 letters, digits, '.', '_' or '-' starting with a letter or digit"
        raise CommandError(
            f"--ref: found {name!r}, wanted {wanted}{reserved}",
            Exit.USAGE,
        )


def load(folder: Path) -> Run:
    """The run in `folder`, with every sample and device state.

    Raises:
        CommandError: a file is missing or damaged, the files are not of one run, or the schema is newer than this
            program's (RUN).
    """
    run = read_run(folder)
    frames = {name: _read_table(folder / name) for name in TABLES}
    try:
        measurements = with_tables(run.measurements, frames)
    except ValueError as error:
        raise CommandError(f"{folder}: damaged: {first_line(error)}", Exit.RUN) from error
    return replace(run, measurements=measurements)


def load_whole(folder: Path) -> Run:
    """`load`, after every file was checked against its sum.

    Raises:
        CommandError: as `verify` and `load` say (RUN).
    """
    verify(folder)
    return load(folder)


def read_run(folder: Path) -> Run:
    """run.json alone: the run without its samples and device states.

    Raises:
        CommandError: it is missing or damaged, or its schema is newer than this program's (RUN).
    """
    path = folder / "run.json"
    data = _read_json(path)
    version = data.get("schema_version")
    if isinstance(version, int) and version > SCHEMA_VERSION:
        raise CommandError(
            f"{path}: schema version {version}, wanted at most {SCHEMA_VERSION}: update this project", Exit.RUN
        )
    try:
        return Run.from_dict(data)
    except RecordError as error:
        raise CommandError(f"{folder}: damaged: {error}", Exit.RUN) from error


def verify(folder: Path) -> None:
    """Check every file of a run against SHA256SUMS, and that nothing was added.

    Raises:
        CommandError: names the first file that differs, is missing or was added (RUN).
    """
    sums = folder / "SHA256SUMS"
    if not sums.is_file():
        raise CommandError(f"{folder}: no SHA256SUMS: not a published run", Exit.RUN)
    listed = _listed(sums)
    present = {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()} - {sums.name}
    for name, wanted in listed.items():
        if name not in present:
            raise CommandError(f"{folder / name}: missing, but listed in SHA256SUMS", Exit.RUN)
        if _sum_of(folder / name) != wanted:
            raise CommandError(f"{folder / name}: changed since it was published (SHA-256 differs)", Exit.RUN)
    if added := sorted(present - listed.keys()):
        raise CommandError(f"{folder / added[0]}: added since the run was published", Exit.RUN)


def _listed(sums: Path) -> dict[str, str]:
    """The sum of each file by its name."""
    try:
        with sums.open(encoding="utf-8", errors="surrogateescape") as file:  # names are bytes
            lines = [line.removesuffix("\n") for line in file]
    except OSError as error:
        raise CommandError(f"{sums}: {error.strerror}", Exit.RUN) from error
    found = {}
    for number, line in enumerate(lines, start=1):
        match = re.fullmatch(r"([0-9a-f]{64})  (.+)", line)
        if match is None:
            raise CommandError(f"{sums}: line {number} is no sum: wanted 64 hex digits, two spaces, a name", Exit.RUN)
        found[match[2]] = match[1]
    return found


def _sum_of(path: Path) -> str:
    try:
        return sha256_of(path)
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}", Exit.RUN) from error


def _read_json(path: Path) -> dict[str, Any]:
    try:
        data = parsed(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}", Exit.RUN) from error
    except ValueError as error:
        raise CommandError(f"{path}: not JSON: {first_line(error)}", Exit.RUN) from error
    if not isinstance(data, dict):
        raise CommandError(f"{path}: found {type(data).__name__}, wanted an object", Exit.RUN)
    return data


def _read_table(path: Path) -> pd.DataFrame:
    if not path.is_file():
        raise CommandError(f"{path}: No such file or directory", Exit.RUN)
    try:
        with path.open("rb") as file:  # Arrow opens no path that is not UTF-8
            return pd.read_parquet(file)
    except (OSError, ValueError, pa.ArrowException) as error:
        raise CommandError(f"{path.parent}: damaged: {path.name}: {first_line(error)}", Exit.RUN) from error
