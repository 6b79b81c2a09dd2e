"""Fixtures of several test files: a browser, and a store with a module's own runs in front of the compare command."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.built import SHARED_CACHE
from tests.planted_runs import Command, publish

if TYPE_CHECKING:
    from playwright.sync_api import Browser


def pytest_configure(config: pytest.Config) -> None:
    """A bench that a test starts is no part of this session's workers, and pytest-benchmark would measure nothing.

    What is built is built once: the first process makes the cache, its workers have it from the environment.
    """
    os.environ.pop("PYTEST_XDIST_WORKER", None)
    if SHARED_CACHE not in os.environ:
        os.environ[SHARED_CACHE] = tempfile.mkdtemp(prefix="sgemv-test-cache-")
        config.add_cleanup(lambda: shutil.rmtree(os.environ.pop(SHARED_CACHE), ignore_errors=True))


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium without a window."""
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("no chromium on this machine")
    sync_api: Any = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium, args=["--headless", "--no-sandbox"])
        yield started
        started.close()


@pytest.fixture(scope="module")
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run by each name of the module's `RUNS`."""
    root = tmp_path_factory.mktemp("store")
    for name, made in request.module.RUNS.items():
        publish(root, name, made)
    return root


@pytest.fixture
def command(store: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """Compares runs of that store."""
    return Command(store, capsys, monkeypatch)
