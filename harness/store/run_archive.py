"""A run as one piece of bytes: a tar of its files, compressed by gzip, whose beginning is SHA256SUMS and run.json.

The same files give the same tar. What is unpacked may come from anybody: only plain files with a place below the folder
are taken.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
import zlib
from collections.abc import Iterator
from itertools import islice
from pathlib import Path, PurePosixPath

from harness.errors import CommandError, Exit
from harness.store.sums import SUMS

FIRST = (SUMS, "run.json")
"""Files that stand first: they alone can be read without the others."""

MOST_BYTES = 1 << 30
"""A run that unpacks to more is refused: it would fill memory."""

_GZIP = zlib.MAX_WBITS | 16
_NOT_OURS = (tarfile.TarError, zlib.error, EOFError, ValueError, OverflowError)
"""What reading raises on bytes that `pack` has not written."""


def tar_of(folder: Path) -> bytes:
    """All files of a run, uncompressed.

    Raises:
        OSError: one cannot be read.
    """
    names = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    names.sort(key=lambda name: FIRST.index(name) if name in FIRST else len(FIRST))
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name in names:
            content = (folder / name).read_bytes()
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return out.getvalue()


def pack(tar: bytes) -> bytes:
    """Compressed."""
    return gzip.compress(tar, 6, mtime=0)


def unpack(data: bytes, folder: Path) -> bytes:
    """Write the files of a packed run into `folder`, which is empty; the tar.

    Raises:
        ValueError: the bytes are no packed run, or a file of it has no place below the folder.
        OSError: there is no room, or names collide.
    """
    tar = _inflated(data)
    try:
        for name, content in _files(tar):
            _write(folder, name, content)
    except _NOT_OURS as error:
        raise ValueError(f"no packed run: {error}") from error
    return tar


def unpack_head(data: bytes, folder: Path) -> bool:
    """Write the files of `FIRST` into `folder` from the beginning of a packed run, if all are there and agree.

    Raises:
        OSError: there is no room.
    """
    try:
        found = dict(islice(_files(zlib.decompressobj(_GZIP).decompress(data, MOST_BYTES)), len(FIRST)))
    except _NOT_OURS:
        return False
    if set(found) != set(FIRST):
        return False
    digest = hashlib.sha256(found["run.json"]).hexdigest()
    if f"{digest}  run.json".encode() not in found[SUMS].splitlines():
        return False
    for name, content in found.items():
        _write(folder, name, content)
    return True


def damaged(where: str, what: object) -> CommandError:
    """The error for a packed run that is not as it was published."""
    return CommandError(f"{where}: damaged: {what}", Exit.RUN)


def _inflated(data: bytes) -> bytes:
    stream = zlib.decompressobj(_GZIP)
    try:
        tar = stream.decompress(data, MOST_BYTES)
    except zlib.error as error:
        raise ValueError(f"no packed run: {error}") from error
    if stream.unconsumed_tail:
        raise ValueError(f"it unpacks to more than {MOST_BYTES >> 30} GiB")
    if not stream.eof or stream.unused_data:
        raise ValueError("no packed run: it is cut short" if not stream.eof else "no packed run: more follows its end")
    return tar


def _files(tar: bytes) -> Iterator[tuple[str, bytes]]:
    """Name and content of each file, of a tar that may be cut short; raises one of `_NOT_OURS` for what is none."""
    with tarfile.open(fileobj=io.BytesIO(tar), mode="r|") as stream:
        for member in stream:
            content = stream.extractfile(member) if _is_plain(member) else None
            if content is None:
                raise ValueError(f"{member.name!r} is no plain file with a place below the run's folder")
            yield member.name, content.read()


def _is_plain(member: tarfile.TarInfo) -> bool:
    path = PurePosixPath(member.name)
    below = not path.is_absolute() and ".." not in path.parts and bool(path.parts) and str(path) == member.name
    return below and "\0" not in member.name and member.type == tarfile.REGTYPE and member.sparse is None


def _write(folder: Path, name: str, content: bytes) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("xb") as file:  # a name that comes twice is an error
        file.write(content)
