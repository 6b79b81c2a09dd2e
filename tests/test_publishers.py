"""50 publishers at once, in two processes, lose and corrupt nothing: in a folder, and on an S3 server."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.store import Store, load_whole
from harness.store.url_store import UrlStore
from tests.publish_many import run_of
from tests.s3_server import S3, s3, s3_server

__all__ = ["s3", "s3_server"]

ROOT = Path(__file__).parents[1]
NAMES = ("a", "b")
EACH = 25


def publish(option: str, environment: Callable[[str], dict[str, str]]) -> None:
    """By two processes, all of which end well."""
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.publish_many", option, name, str(EACH)],
            cwd=ROOT,
            env=os.environ | environment(name),
            stderr=subprocess.PIPE,
            text=True,
        )
        for name in NAMES
    ]
    for process in processes:
        _, said = process.communicate(timeout=100)
        assert process.returncode == 0, said


def is_all_there(store: Store) -> None:
    """Every run, whole, with the samples of its own publisher; each one's ref, and one of those that all set."""
    wanted = {run.id: run for run in (run_of(name, number) for name in NAMES for number in range(EACH))}
    assert store.ids() == sorted(wanted)
    for run_id, run in wanted.items():
        found = load_whole(store.folder(run_id))
        assert found.id == run_id
        assert [trial.samples_ns for measurement in found.measurements for trial in measurement.trials] == [
            trial.samples_ns for measurement in run.measurements for trial in measurement.trials
        ]
        assert not found.partial
    refs = store.refs()
    assert {run_id for run_id, names in refs.items() if f"own-{run_id}" in names} == set(wanted)
    assert sum("shared" in names for names in refs.values()) == 1


def test_into_a_folder(tmp_path: Path) -> None:
    """No draft and no lock is left behind."""
    publish(str(tmp_path / "store"), lambda _: {})
    store = Store(tmp_path / "store")
    is_all_there(store)
    assert [path.name for path in store.root.glob(".*")] == [".gitignore"]


def test_onto_an_s3_server(s3: S3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From two machines, 25 at once on each; a third finds all of it, and what is there is what was sent."""
    publish(s3.url, lambda name: {"XDG_STATE_HOME": str(tmp_path / name)})
    for name in NAMES:
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / name))
        assert UrlStore(s3.url).unsent() == []
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "third"))
    is_all_there(UrlStore(s3.url))
