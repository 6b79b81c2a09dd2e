"""The libraries that several tests share: built once a test session, in a cache that goes away with it."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path

from kernels import ops
from kernels.build import Built, build


@cache
def shared_cache() -> Path:
    """A build cache of this process."""
    folder = Path(tempfile.mkdtemp(prefix="sgemv-test-cache-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@cache
def library(target: str) -> Built:
    """The library of `target`, really compiled, for the same architectures as a user's."""
    return build(target, cache_dir=shared_cache())


@cache
def loaded(target: str) -> Built:
    """The same, loaded into torch."""
    built = library(target)
    ops.load(built.library)
    return built
