"""A repository of this project's own files, with one commit, and runs of it that are to be reproduced."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.answers import Unknown
from harness.device import cpu_name
from harness.errors import CommandError
from harness.model import Run
from harness.reproduce.session import reproduce
from harness.store import Store
from harness.store.draft import write_run
from tests.built import shared_cache

ROOT = Path(__file__).parents[1]
COMMIT = "0123456789abcdef0123456789abcdef01234567"


def git(folder: Path, *arguments: str) -> str:
    """What git prints, as nobody in particular."""
    who = ["-c", "user.name=nobody", "-c", "user.email=nobody@example.org", "-c", "commit.gpgsign=false"]
    done = subprocess.run(["git", *who, *arguments], cwd=folder, capture_output=True, text=True, check=True, timeout=60)
    return done.stdout.strip()


def quiet_environment(**changes: str) -> dict[str, str]:
    dropped = ("SGEMV_STORE", "PYTEST_ADDOPTS", "PYTEST_CURRENT_TEST")
    kept = {name: value for name, value in os.environ.items() if name not in dropped and not name.startswith("GIT_")}
    return {**kept, "SGEMV_CACHE": str(shared_cache()), **changes}


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with one commit: this project's own files as they are now."""
    folder = tmp_path_factory.mktemp("checkout")
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
    for part in ("harness", "kernels", "suites"):
        shutil.copytree(ROOT / part, folder / part, ignore=ignored)
    for name in ("pyproject.toml", "constraints.txt", ".gitignore"):
        shutil.copy(ROOT / name, folder)
    git(folder, "init", "--quiet", "--initial-branch=main")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "all")
    return folder


@pytest.fixture
def untouched(checkout: Path) -> Iterator[None]:
    """The checkout is afterwards what it was, and has no other worktree."""
    yield
    assert git(checkout, "status", "--porcelain") == ""
    assert len(git(checkout, "worktree", "list").splitlines()) == 1
    assert git(checkout, "stash", "list") == ""
    assert not list((checkout / ".git").glob("worktrees/*"))


def measured(run: Run, commit: str, **values: Any) -> Run:
    """The run as if it were of this machine's CPU, that commit, and nothing that has to be built."""
    name = cpu_name()
    known = {"device_name": None if isinstance(name, Unknown) else name, "git_commit": commit, "git_dirty": False}
    environment = replace(run.environment, values={**run.environment.values, **known, **values})
    return replace(run, environment=environment, builds=())


def published(store: Path, run: Run, **files: str) -> Path:
    """The run's folder; `files` by name below build/."""
    folder = store / run.id
    (folder / "build").mkdir(parents=True)
    for name, text in files.items():
        (folder / "build" / name.replace("_", ".")).write_text(text)
    write_run(folder, run)
    return folder


def refused(folder: Path, checkout: Path, tmp_path: Path) -> CommandError:
    with pytest.raises(CommandError) as error:
        reproduce(Store(tmp_path / "store"), folder, 0.01, checkout)
    assert not (tmp_path / "store").exists()
    assert "\n" not in str(error.value)
    return error.value
