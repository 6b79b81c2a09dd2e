"""The store: a folder of published runs, found by path, id, prefix, `latest`, ref or environment; how one is read."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from harness.errors import CommandError, Exit, first_line
from harness.model import SCHEMA_VERSION, RecordError, Run
from harness.store.draft import Draft
from harness.store.refs import REF_NAME, check_ref_name, meaning
from harness.store.run_files import read_json, read_table
from harness.store.store_folder import make_store, try_to_write, unwritable
from harness.store.sums import SUMS, listed_sums, sum_of
from harness.store.tables import TABLES, with_tables

GONE = ".pruned-"
"""How the folder of a run begins while it is deleted."""
NAMED = 5
"""Ids that a message lists at most."""
AT_ONCE = 50
"""Runs whose heads are fetched together."""
SELECTORS = "a path, an id or its start, latest, latest~N, a ref, or key=value[,key=value] of the environment"


class Store:
    """Published runs under one folder."""

    def __init__(self, root: Path) -> None:
        self.root = root
        """Where drafts are made, and runs published."""
        self.name = str(root)
        """What the store is called."""
        self.derived = root
        """Folder for what is made of its runs, such as pages."""
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
        try_to_write(self.root)

    def ids(self) -> list[str]:
        """Ids of all published runs, oldest first; also of one that lost its run.json or its sums."""
        return sorted(path.name for path in self.root.glob("[!.]*") if is_run(path))

    def unsent(self) -> list[str]:
        """Of them, those that are not where the store keeps its runs, but on this machine alone."""
        return []

    def send(self) -> list[str]:
        """Bring them there; a line for each that was.

        Raises:
            CommandError: one cannot be brought there (INFRASTRUCTURE); it stays here.
        """
        return []

    def folder(self, run_id: str) -> Path:
        """Where all files of the run `run_id` can be read.

        Raises:
            CommandError: it is damaged or gone (RUN), or cannot be fetched (INFRASTRUCTURE).
        """
        return self.root / run_id

    def head(self, run_id: str) -> Path:
        """Where at least run.json and SHA256SUMS of a run can be read; raises as `folder`."""
        return self.folder(run_id)

    def prefetch(self, run_ids: Sequence[str]) -> None:
        """Prepare for the heads of many runs."""

    def place(self, run_id: str) -> str:
        """What a run's place is called."""
        return str(self.folder(run_id))

    def verify(self, run_id: str) -> None:
        """Check every file of a run against its sum, and that it can be read.

        Raises:
            CommandError: as `load_whole` (RUN), or it cannot be fetched (INFRASTRUCTURE).
        """
        load_whole(self.folder(run_id))

    def delete(self, run_id: str) -> None:
        """Delete a run. Cut short, it leaves nothing that looks like a damaged one.

        Raises:
            CommandError: it cannot be deleted (INFRASTRUCTURE).
        """
        gone = self.root / f"{GONE}{run_id}"
        try:
            (self.root / run_id).rename(gone)
            shutil.rmtree(gone)
        except OSError as error:
            raise unwritable(self.root, error) from error

    def tidy(self) -> None:
        """Delete what is left of runs whose deletion was cut short."""
        for path in self.root.glob(f"{GONE}*"):
            shutil.rmtree(path, ignore_errors=True)

    def resolve(self, selector: str) -> Path:
        """Folder of the run that `selector` names.

        Raises:
            CommandError: nothing or more than one run fits (RUN), with what was looked for; or as `folder`.
        """
        path = Path(selector)
        return path if is_run(path) else self.folder(self.find(selector))

    def find(self, selector: str) -> str:
        """Id of the run that `selector` names, which is no path here; raises as `resolve`."""
        ids = self.ids()
        if selector in ids:
            return selector
        found = self._latest(selector, ids) or self._ref(selector, ids) or self._by_environment(selector, ids)
        if found is not None:
            return found
        starting = [each for each in ids if each.startswith(selector)]
        if len(starting) == 1:
            return starting[0]
        what = f"no such run among {len(ids)} in {self.name}"
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
            temporary = target.with_name(f".{name}-{os.urandom(4).hex()}")
            temporary.write_text(run_id + "\n", encoding="utf-8")
            temporary.replace(target)
        except OSError as error:
            raise unwritable(self.root, error) from error

    def refs(self) -> dict[str, list[str]]:
        """The refs' names by the id that they mean, each sorted."""
        found: dict[str, list[str]] = {}
        for name in self.ref_names():
            if (run_id := self.ref(name)) is not None:
                found.setdefault(run_id, []).append(name)
        return found

    def ref_names(self) -> list[str]:
        """Every ref, sorted."""
        return sorted(path.name for path in (self.root / "refs").glob("[!.]*"))

    def ref(self, name: str) -> str | None:
        """The id that a ref means; None: there is no such ref."""
        try:
            return meaning((self.root / "refs" / name).read_bytes())
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
            return None

    def _latest(self, selector: str, ids: list[str]) -> str | None:
        match = re.fullmatch(r"latest(?:~(\d{1,9}))?", selector)
        if match is None:
            return None
        back = int(match[1] or 0)
        if back >= len(ids):
            raise CommandError(
                f"run {selector!r}: the store {self.name} holds {len(ids)} run{'' if len(ids) == 1 else 's'}", Exit.RUN
            )
        return ids[-1 - back]

    def _ref(self, selector: str, ids: list[str]) -> str | None:
        run_id = self.ref(selector) if re.fullmatch(REF_NAME, selector) else None
        if run_id is not None and run_id not in ids:
            raise CommandError(f"ref {selector!r}: names {run_id}, which is not in {self.name}", Exit.RUN)
        return run_id

    def _by_environment(self, selector: str, ids: list[str]) -> str | None:
        pairs = [part.partition("=") for part in selector.split(",")]
        if not all(equals for _, equals, _ in pairs):
            return None
        newest_first = ids[::-1]
        for place, run_id in enumerate(newest_first):
            if place % AT_ONCE == 0:
                self.prefetch(newest_first[place : place + AT_ONCE])
            try:
                run = read_run(self.head(run_id))
            except CommandError as error:
                if error.code is not Exit.RUN:
                    raise
                continue  # damaged, as `verify` says; it must not hide the others
            if all(str(run.environment.get(key)) == wanted for key, _, wanted in pairs):
                return run_id
        raise CommandError(f"run {selector!r}: none of {len(ids)} runs in {self.name} has it", Exit.RUN)


def is_run(folder: Path) -> bool:
    """Whether `folder` is a published run, whole or damaged: it has a run.json or SHA256SUMS."""
    try:
        return (folder / "run.json").is_file() or (folder / SUMS).is_file()
    except OSError:  # longer than a path may be, or not to be looked into
        return False


def load(folder: Path) -> Run:
    """The run in `folder`, with every sample and device state.

    Raises:
        CommandError: a file is missing or damaged, the files are not of one run, or the schema is newer than this
            program's (RUN).
    """
    run = read_run(folder)
    frames = {name: read_table(folder / name) for name in TABLES}
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
    data = read_json(path)
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
    sums = folder / SUMS
    if not sums.is_file():
        raise CommandError(f"{folder}: no SHA256SUMS: not a published run", Exit.RUN)
    listed = listed_sums(sums)
    present = {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()} - {sums.name}
    for name, wanted in listed.items():
        if name not in present:
            raise CommandError(f"{folder / name}: missing, but listed in SHA256SUMS", Exit.RUN)
        if sum_of(folder / name) != wanted:
            raise CommandError(f"{folder / name}: changed since it was published (SHA-256 differs)", Exit.RUN)
    if added := sorted(present - listed.keys()):
        raise CommandError(f"{folder / added[0]}: added since the run was published", Exit.RUN)
