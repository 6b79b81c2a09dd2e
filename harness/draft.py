"""A run while it is measured: a hidden folder under a lock, with a journal that loses nothing to a kill.

The journal gets one line a measurement, flushed to disk. Publishing builds the run's folder beside the draft from the
journal alone and renames it, so a run that ends well and one that was killed take the same path.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import filelock

from harness.errors import CommandError, Exit, first_line
from harness.json_text import parsed
from harness.model import SCHEMA_VERSION, Measurement, Run
from harness.selfcheck import selfcheck
from harness.tables import IN_TABLES, tables, without_tables

PREFIX = ".draft-"
HEADER = "header.json"
JOURNAL = "journal.jsonl"
KEPT = "files"
"""Subfolder whose content becomes part of the run as it is."""


class UnreadableDraftError(CommandError):
    """A draft with measurements that this program cannot read: it stays where it is, for a person to look at."""


class Draft:
    """An open draft; holds its lock until published or left."""

    def __init__(self, root: Path, run_id: str, lock: filelock.BaseFileLock) -> None:
        self.folder = root / f"{PREFIX}{run_id}"
        self._root = root
        self._lock = lock

    @classmethod
    def create(cls, root: Path, header: Run) -> Draft:
        """A new draft for `header`, a run without measurements.

        Raises:
            CommandError: the store cannot be written to (INFRASTRUCTURE).
        """
        try:
            make_store(root)
            lock = filelock.FileLock(root / f"{PREFIX}{header.id}.lock")
            lock.acquire(timeout=1)  # for a moment `_clear_locks` of another process may hold it
            draft = cls(root, header.id, lock)
            (draft.folder / KEPT).mkdir(parents=True)
            (draft.folder / HEADER).write_text(_json(header.to_dict()), encoding="utf-8")
        except OSError as error:
            raise unwritable(root, error) from error
        return draft

    @classmethod
    def abandoned(cls, root: Path) -> Iterable[Draft]:
        """Drafts whose process is gone, each locked for the caller."""
        for folder in sorted(root.glob(f"{PREFIX}*")):
            if not folder.is_dir():
                continue
            lock = filelock.FileLock(root / f"{folder.name}.lock")
            try:
                lock.acquire(timeout=0)
            except OSError:  # filelock.Timeout is one
                continue  # its process is alive, or the store is only to be read from here
            draft = cls(root, folder.name.removeprefix(PREFIX), lock)
            if folder.is_dir():
                yield draft
            else:
                draft.leave()  # another process published it meanwhile
        _clear_locks(root)

    @property
    def kept(self) -> Path:
        """Folder for files that become part of the run."""
        return self.folder / KEPT

    def append(self, measurement: Measurement) -> None:
        """Put a measurement on disk, for good.

        Raises:
            CommandError: the disk is full or gone (INFRASTRUCTURE).
        """
        try:
            with (self.folder / JOURNAL).open("a", encoding="utf-8") as journal:
                journal.write(json.dumps(measurement.to_dict(), allow_nan=False) + "\n")
                journal.flush()
                os.fsync(journal.fileno())
        except OSError as error:
            raise unwritable(self._root, error) from error

    def publish(self, *, partial: bool) -> Path | None:
        """Turn the draft into a run; its folder, or None if nothing was measured.

        Raises:
            CommandError: the store cannot be written to (INFRASTRUCTURE); the draft stays.
            UnreadableDraftError: its header or all of its journal is not to be read (RUN); the draft stays.
        """
        target = self._root / self.folder.name.removeprefix(PREFIX)
        if not target.exists():  # else killed between publishing and leaving
            try:
                if not self._journal().strip():
                    self.leave()
                    return None
                run = self._run(partial=partial)
                self._build(target, run)
            except OSError as error:
                self._lock.release()
                raise unwritable(self._root, error) from error
            except UnreadableDraftError:
                self._lock.release()
                raise
        self.leave()
        return target

    def _run(self, *, partial: bool) -> Run:
        """Header and journal as one run."""
        header = self._header()
        measurements, torn = self._measurements()
        if not measurements:
            raise self._unreadable(JOURNAL, f"none of its lines can be read ({torn} torn)")
        ended = datetime.fromtimestamp((self.folder / JOURNAL).stat().st_mtime, UTC)
        return _finished(header, measurements, ended, partial=partial, torn=torn)

    def _build(self, target: Path, run: Run) -> None:
        building = self._root / f".publish-{target.name}"
        shutil.rmtree(building, ignore_errors=True)
        shutil.copytree(self.kept, building)
        write_run(building, run)
        building.rename(target)

    def leave(self) -> None:
        """Delete the draft and give its lock back."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self._lock.release()
        Path(self._lock.lock_file).unlink(missing_ok=True)

    def _header(self) -> Run:
        try:
            data = parsed((self.folder / HEADER).read_text(encoding="utf-8"))
            version = data.get("schema_version") if isinstance(data, dict) else None
            if isinstance(version, int) and version > SCHEMA_VERSION:
                raise self._unreadable(HEADER, f"schema version {version}, wanted at most {SCHEMA_VERSION}")
            return Run.from_dict(data)
        except OSError as error:
            raise self._unreadable(HEADER, error.strerror or str(error)) from error
        except ValueError as error:  # RecordError is one
            raise self._unreadable(HEADER, first_line(error)) from error

    def _unreadable(self, name: str, what: str) -> UnreadableDraftError:
        kept = (
            "it holds measurements of a killed bench and is kept; read it with the version that wrote it, or delete it"
        )
        return UnreadableDraftError(f"draft {self.folder}: {name}: {what}; {kept}", Exit.RUN)

    def _journal(self) -> str:
        path = self.folder / JOURNAL
        return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""

    def _measurements(self) -> tuple[list[Measurement], int]:
        """What the journal holds, and how many of its lines are torn."""
        found, torn = [], 0
        for line in self._journal().splitlines():
            try:
                found.append(Measurement.from_dict(parsed(line)))
            except ValueError:  # RecordError is one
                torn += 1
        return found, torn


def _clear_locks(root: Path) -> None:
    """Unlink the locks of drafts that are gone: of a process killed between deleting its draft and its lock."""
    for path in root.glob(f"{PREFIX}*.lock"):
        folder = path.with_suffix("")
        if folder.exists():
            continue
        lock = filelock.FileLock(path)
        try:
            lock.acquire(timeout=0)
        except OSError:
            continue  # a draft that is being made, or the store is only to be read from here
        try:
            if not folder.exists():
                path.unlink(missing_ok=True)
        finally:
            lock.release()


def make_store(root: Path) -> None:
    """Make the folder `root` of a store, if need be.

    A new one tells git to leave it alone, as tools' caches do: within a checkout its files would else be changes to it,
    and every run after the first would call the code that it measured changed.

    Raises:
        OSError: it cannot be made.
    """
    if root.is_dir():
        return
    root.mkdir(parents=True, exist_ok=True)
    (root / ".gitignore").write_text("*\n", encoding="utf-8")


def unwritable(root: Path, error: OSError) -> CommandError:
    """The error for a store that cannot be written to."""
    return CommandError(
        f"store {root}: {error.strerror or error}; name a writable folder with --store or SGEMV_STORE",
        Exit.INFRASTRUCTURE,
    )


def write_run(folder: Path, run: Run) -> None:
    """Write run.json, the Parquet files and SHA256SUMS of a finished run into `folder`."""
    for name, frame in tables(run.measurements).items():
        frame.to_parquet(folder / name, index=False, compression="zstd", compression_level=15)
    slim = replace(run, measurements=without_tables(run.measurements)).to_dict()
    for trial in (trial for measurement in slim["measurements"] for trial in measurement["trials"]):
        for name in IN_TABLES:
            del trial[name]
    (folder / "run.json").write_text(_json(slim), encoding="utf-8")
    write_sums(folder)


def write_sums(folder: Path) -> None:
    """Write SHA256SUMS over every other file in `folder`; `sha256sum -c` agrees."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path != folder / "SHA256SUMS")
    sums = "".join(f"{sha256_of(path)}  {path.relative_to(folder).as_posix()}\n" for path in files)
    (folder / "SHA256SUMS").write_text(sums, encoding="utf-8")


def sha256_of(path: Path) -> str:
    """Hex digest of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _finished(header: Run, measurements: Sequence[Measurement], ended: datetime, *, partial: bool, torn: int) -> Run:
    warnings = list(header.warnings)
    if partial:
        warnings.append("The run was cut short: it holds what had been measured until then.")
    if torn:
        lines, were, are = ("line", "was", "is") if torn == 1 else ("lines", "were", "are")
        warnings.append(f"{torn} {lines} of the journal {were} torn by the end of its process and {are} lost.")
    return replace(
        header,
        finished_utc=ended.isoformat(timespec="seconds"),
        partial=partial,
        warnings=tuple(warnings),
        measurements=tuple(measurements),
        selfcheck=selfcheck(measurements) if header.options.selfcheck else None,
    )


def _json(data: dict[str, Any]) -> str:
    return json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
