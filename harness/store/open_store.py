"""The store by its name: a folder, or a URL of whatever fsspec reaches, such as s3://bucket/prefix."""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

from harness.errors import CommandError, Exit
from harness.store import Store
from harness.store.store_folder import DEFAULT_ROOT, check_folder

NAME_BEFORE_AT = ("abfs", "abfss", "ssh", "sftp")
"""Schemes in which what stands before an @ is a container or a user, and no secret."""


def open_store(option: str | None) -> Store:
    """The store that the option names, else SGEMV_STORE, else `artifacts/`. Nothing is made yet.

    Raises:
        CommandError: it is a URL that no store can have (USAGE), or no folder (INFRASTRUCTURE).
    """
    where = option or os.environ.get("SGEMV_STORE") or str(DEFAULT_ROOT)
    if "://" not in where:
        return _folder(Path(where))
    scheme = _checked(where, "--store" if option else "SGEMV_STORE")
    if scheme in ("file", "local"):
        return _folder(Path(unquote(urlsplit(where).path)))
    from harness.store.url_store import UrlStore

    return UrlStore(where.rstrip("/"))


def _folder(root: Path) -> Store:
    """A mistyped path would else be a store without runs."""
    check_folder(root)
    return Store(root)


def _checked(url: str, source: str) -> str:
    """The scheme of a URL that may be shown and recorded. One that holds a secret is not even repeated."""
    scheme, _, rest = url.partition("://")
    login = rest.partition("/")[0].rpartition("@")[0]
    if ":" in login or (login and scheme not in NAME_BEFORE_AT):
        raise CommandError(f"{source}: its URL holds a login; credentials come from the environment alone", Exit.USAGE)
    if "?" in rest or "#" in rest:
        raise CommandError(f"{source}: its URL holds a query; leave out what follows ? or #", Exit.USAGE)
    if not re.fullmatch(r"[a-z][a-z0-9+.-]*", scheme) or not rest.strip("/"):
        wanted = "a folder or a URL such as s3://bucket/prefix"
        raise CommandError(f"{source}: found {url!r}, wanted {wanted}", Exit.USAGE)
    return scheme
