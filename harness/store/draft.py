"""A run while it is measured: a hidden folder under a lock, with a journal that loses nothing to a kill.

The journal gets one line a measurement, flushed to disk. Publishing builds the run's folder beside the draft from the
journal alone and renames it, so a run that ends well and one that was killed take the same path.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import filelock

from harness.errors import CommandError, Exit, first_line
from harness.json_text import parsed
from harness.model import SCHEMA_VERSION, Measurement, Run
from harness.selfcheck import selfcheck
from harness.store.store_folder import make_store, unwritable, why
from harness.store.sums import write_sums
from harness.store.tables import IN_TABLES, tables, without_tables

PREFIX = ".draft-"
HEADER = "header.json"
JOURNAL = "journal.jsonl"
KEPT = "files"
"""Subfolder whose content becomes part of the run as it is."""


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
        except OSError as error:
            raise unwritable(root, error) from error
        draft = cls(root, header.id, lock)
        if (root / header.id).exists() or draft.folder.exists():  # another's: neither is to be mixed with it
            lock.release()
            raise CommandError(f"store {root}: there is a run {header.id} already; try again", Exit.INFRASTRUCTURE)
        try:
            (draft.folder / KEPT).mkdir(parents=True)
            (draft.folder / HEADER).write_text(_json(header.to_dict()), encoding="utf-8")
        except OSError as error:
            draft.leave()
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

    def keep(self, name: str, text: str) -> None:
        """Let a file become part of the run: whole, or not at all if a kill comes between.

        Raises:
            CommandError: the disk is full or gone (INFRASTRUCTURE).
        """
        try:
            beginning = self.folder / name
            beginning.write_text(text, encoding="utf-8")
            beginning.replace(self.kept / name)
        except OSError as error:
            raise self._failed(error) from error

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
            raise self._failed(error) from error

    def publish(self, *, partial: bool) -> Path | None:
        """Turn the draft into a run; its folder, or None if nothing was measured.

        Raises:
            CommandError: the store cannot be written to (INFRASTRUCTURE); the draft stays.
            CommandError: its header or all of its journal is not to be read (RUN); the draft stays.
        """
        target = self._root / self.folder.name.removeprefix(PREFIX)
        if not target.exists():  # else killed between publishing and leaving
            try:
                self.folder.stat()  # deleted meanwhile, it would without a word be nothing measured
                if not self._journal().strip():
                    self.leave()
                    return None
                run = self._run(partial=partial)
                self._build(target, run)
            except OSError as error:
                self._lock.release()
                raise self._failed(error) from error
            except CommandError:
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
        try:
            shutil.copytree(self.kept, building)
            write_run(building, run)
            building.rename(target)
        except OSError:
            shutil.rmtree(building, ignore_errors=True)  # on a full disk it takes what others need
            raise

    def leave(self) -> None:
        """Delete the draft and give its lock back."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self._lock.release()
        Path(self._lock.lock_file).unlink(missing_ok=True)

    def _failed(self, error: OSError) -> CommandError:
        """The error for a draft that cannot go on: what becomes of what it holds."""
        if not self.folder.is_dir():
            what = f"{self.folder.name} was deleted while a bench measured into it; nothing of it could be kept"
        else:
            kept = f"what was measured is kept in {self.folder.name}"
            what = f"{why(error)}; {kept}: make room or a way to write, and the next command publishes it"
        return CommandError(f"store {self._root}: {what}", Exit.INFRASTRUCTURE)

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

    def _unreadable(self, name: str, what: str) -> CommandError:
        kept = (
            "it holds measurements of a killed bench and is kept; read it with the version that wrote it, or delete it"
        )
        return CommandError(f"draft {self.folder}: {name}: {what}; {kept}", Exit.RUN)

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


def write_run(folder: Path, run: Run) -> None:
    """Write run.json, the Parquet files and SHA256SUMS of a finished run into `folder`."""
    for name, frame in tables(run.measurements).items():
        data = frame.to_parquet(index=False, compression="zstd", compression_level=15)
        (folder / name).write_bytes(data)  # Arrow opens no path that is not UTF-8
    slim = replace(run, measurements=without_tables(run.measurements)).to_dict()
    for trial in (trial for measurement in slim["measurements"] for trial in measurement["trials"]):
        for name in IN_TABLES:
            del trial[name]
    (folder / "run.json").write_text(_json(slim), encoding="utf-8")
    write_sums(folder)


BACK_S = 0.1
"""By which a clock that is being set right may step back unnoticed."""


def _set_back(header: Run, measurements: Sequence[Measurement], ended: datetime) -> bool:
    """Whether what was noted one after the other is ever earlier than what came before it."""
    if ended.isoformat(timespec="seconds") < header.started_utc:
        return True
    trials = [trial for measurement in measurements for trial in measurement.trials]
    noted = [trial.sample_times_unix_s for trial in trials]
    noted += [tuple(state.time_unix_s for state in trial.states) for trial in trials]
    return any(before - after > BACK_S for times in noted for before, after in pairwise(times))


def _finished(header: Run, measurements: Sequence[Measurement], ended: datetime, *, partial: bool, torn: int) -> Run:
    warnings = list(header.warnings)
    if partial:
        warnings.append("The run was cut short: it holds what had been measured until then.")
    if torn:
        lines, were, are = ("line", "was", "is") if torn == 1 else ("lines", "were", "are")
        warnings.append(f"{torn} {lines} of the journal {were} torn by the end of its process and {are} lost.")
    if _set_back(header, measurements, ended):
        warnings.append("The clock was set back while the run was measured: its times of day are of two clocks.")
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
