"""A published run's folder: whether it is one, what it holds, and whether that is as it was published."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from harness.errors import CommandError, Exit, first_line
from harness.model import SCHEMA_VERSION, RecordError, Run
from harness.store.run_files import read_json, read_table
from harness.store.sums import SUMS, listed_sums, sum_of
from harness.store.tables import TABLES, with_tables


def is_run(folder: Path) -> bool:
    """Whether `folder` is a published run, whole or damaged: it has a run.json or SHA256SUMS."""
    try:
        return (folder / "run.json").is_file() or (folder / SUMS).is_file()
    except OSError:  # longer than a path may be, or not to be looked into
        return False


def no_run(path: Path) -> str:
    """Why a path at which there is something names no run, in words."""
    kind = "folder" if path.is_dir() else "file"
    around = next((folder for folder in path.parents if is_run(folder)), None)
    if around is not None:
        return f"is a {kind} within a run's folder: name that, {around}"
    return f"is a {kind} and no run's folder, which holds run.json"


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
