"""Objects below a URL, through fsspec: what a store elsewhere is made of.

Nothing of fsspec is imported before it is needed. No text of a server or of a library is ever shown, since it may hold
an address with a key in it: errors are said in words of our own, with the code or the type of the error.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any

from harness.errors import CommandError, Exit, first_line

S3 = ("s3", "s3a")
BUCKETS = (*S3, "gs", "gcs", "az", "abfs", "abfss")
"""Schemes of object stores: an object appears there whole or not at all, and no folder has to be made for it."""

CONNECT_S, READ_S = 5.0, 20.0
"""After which a silent S3 server counts as gone."""
SLOWEST_BYTES_S = 50_000
"""Slowest way to an S3 server that is waited for: the time to send an object counts as the server's silence."""
ATTEMPTS = 2
"""Of every request by botocore, and again by s3fs where what had been answered breaks off."""
CONNECTIONS = 50

MARKER, MARKED = ".store", b"Runs of sgemv-bench: <id>.tar.gz each, never changed; refs/<name> holds a run's id.\n"
"""An object that every store has: before a bench it is tried to be made, which needs the right that runs need."""

CODE = re.compile(r"(?:[A-Z][a-z]+){1,6}")
"""Of a server's codes only one like this is shown: it could be anything."""

TAKEN = ("PreconditionFailed", "412")
"""S3's codes where an object is there that was to be new."""


class Remote:
    """The objects below `url`. Every method raises CommandError (INFRASTRUCTURE) in one line for what does not work."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._scheme = url.partition("://")[0]

    def check_writable(self) -> None:
        """Find out whether objects can be made; a new store gets its marker."""
        with self._told("nothing can be written there"):
            if self._scheme not in BUCKETS:
                self._files.makedirs(self._path("refs"), exist_ok=True)
            self._create(MARKER, MARKED)

    def names(self, below: str = "") -> list[str]:
        """Names of the objects, as they are now."""
        with self._told("it cannot be listed"):
            self._files.invalidate_cache()
            try:  # `ls` of what is not there would list all that is beside it
                found = self._files.find(self._path(below)) if below else self._files.ls(self._root, detail=False)
            except FileNotFoundError as error:
                if _code(error) == "NoSuchBucket":
                    raise
                return []
        return [str(each).rstrip("/").rpartition("/")[2] for each in found]

    def read(self, name: str) -> bytes | None:
        """An object's content; None: there is none of that name."""
        with self._told(f"{name} cannot be read"):
            try:
                return bytes(self._files.cat_file(self._path(name)))
            except FileNotFoundError as error:
                if _code(error) == "NoSuchBucket":
                    raise
                return None

    def beginnings(self, names: Sequence[str], length: int) -> list[bytes | None]:
        """The first bytes of objects, together; None for what cannot be read, whatever the reason."""
        with self._told("runs cannot be read"):
            found = self._files.cat_ranges([self._path(name) for name in names], 0, length, on_error="return")
        return [each if isinstance(each, bytes) else None for each in found]

    def create(self, name: str, content: bytes) -> bool:
        """Make an object, whole or not at all; False: there is one of that name, which stays as it is."""
        with self._told(f"{name} cannot be written"):
            return self._create(name, content)

    def write(self, name: str, content: bytes) -> None:
        """Make or replace a small object."""
        with self._told(f"{name} cannot be written"):
            self._put(self._files, name, content)

    def delete(self, name: str) -> None:
        """Delete an object; one that is gone already is no error."""
        with self._told(f"{name} cannot be deleted"):
            try:
                self._files.rm_file(self._path(name))
            except FileNotFoundError as error:
                if _code(error) == "NoSuchBucket":
                    raise

    def _create(self, name: str, content: bytes) -> bool:
        files, _ = self._open(len(content))
        try:
            self._put(files, name, content, mode="create")
        except OSError as error:
            if isinstance(error, FileExistsError) or _code(error) in TAKEN:
                return False
            raise
        return True

    def _put(self, files: Any, name: str, content: bytes, **how: str) -> None:
        """In bounded time: a server that never says «100 Continue» would else be waited for without an end."""
        bound = {"timeout": ATTEMPTS**2 * (CONNECT_S + _patience_s(len(content)))} if files.async_impl else {}
        files.pipe_file(self._path(name), content, **how, **bound)

    @cached_property
    def _files(self) -> Any:
        return self._open()[0]

    @cached_property
    def _root(self) -> str:
        return self._open()[1].rstrip("/")

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}"

    def _open(self, sending: int = 0) -> tuple[Any, str]:
        """The file system of fsspec for sending so many bytes at once, and where in it the URL leads."""
        try:
            import fsspec

            if self._scheme not in S3:
                files, path = fsspec.url_to_fs(self.url)
                return files, str(path)
            files, path = fsspec.url_to_fs(self.url, config_kwargs=_s3_config(sending))
        except ImportError as error:
            package = "s3fs is not installed: pip install -c constraints.txt s3fs"
            what = package if self._scheme in S3 else first_line(error)
            raise CommandError(f"store {self.url}: {what}", Exit.INFRASTRUCTURE) from error
        except ValueError as error:
            what = "fsspec knows no such URL; wanted one such as s3://bucket/prefix"
            raise CommandError(f"store {self.url}: {what}", Exit.USAGE) from error
        files.retries = ATTEMPTS
        return files, str(path)

    @contextmanager
    def _told(self, what: str) -> Iterator[None]:
        try:
            yield
        except CommandError:
            raise
        except Exception as error:  # each file system of fsspec raises what its own library does
            raise CommandError(f"store {self.url}: {what}: {_why(error)}", Exit.INFRASTRUCTURE) from error


def _patience_s(sending: int) -> float:
    """How long a server may be silent that is sent so many bytes."""
    return READ_S + sending // SLOWEST_BYTES_S


def _s3_config(sending: int) -> dict[str, Any]:
    """Bounds for botocore, which alone would try for minutes."""
    return {
        "connect_timeout": CONNECT_S,
        "read_timeout": _patience_s(sending),
        "retries": {"mode": "standard", "total_max_attempts": ATTEMPTS},
        "max_pool_connections": CONNECTIONS,
    }


def _code(error: BaseException) -> str | None:
    """An S3 server's code, such as `AccessDenied`."""
    response = getattr(error, "response", None) or getattr(error.__cause__, "response", None)
    code = response.get("Error", {}).get("Code") if isinstance(response, dict) else None
    return code if isinstance(code, str) else None


def _why(error: BaseException) -> str:
    kind, code = type(error).__name__, _code(error)
    reasons = (
        (code == "NoSuchBucket", "there is no such bucket"),
        (isinstance(error, PermissionError), "the credentials of the environment give no right to it"),
        ("Credentials" in kind, "the environment has no credentials for it"),
        (isinstance(error, TimeoutError) or "Timeout" in kind, "no answer in time"),
        (isinstance(error, ConnectionError) or "Connect" in kind, "no connection"),
        (isinstance(error, NotImplementedError), "its file system cannot do that"),
        (isinstance(error, OSError) and error.errno, os.strerror(getattr(error, "errno", None) or 0)),
    )
    words = next((words for holds, words in reasons if holds), "it failed")
    return f"{words} ({code if code and CODE.fullmatch(code) else kind})"
