"""The libraries that several tests share: built once a test session, in a cache that goes away with it."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

from kernels import ops
from kernels.build import Built, build

SHARED_CACHE = "SGEMV_TEST_CACHE"
"""The variable by which pytest's workers, and what they start, find the session's build cache."""


def shared_cache() -> Path:
    """The build cache of this test session, of all its workers; tests/conftest.py makes it."""
    return Path(os.environ[SHARED_CACHE])


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
