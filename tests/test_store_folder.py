"""harness.store.store_folder: a store that cannot be written to says so first; one in a checkout is no change to it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from harness.errors import CommandError, Exit
from harness.store import Store
from harness.store.store_folder import make_store
from tests.three_runs import IDS


@pytest.mark.parametrize("place", ["the store itself", "its folder of refs"])
def test_a_store_that_cannot_be_written(tmp_path: Path, place: str) -> None:
    """A file stands where a folder should be: one line that says what to do, code 6."""
    root = tmp_path / "store"
    if place == "the store itself":
        root.write_text("")
    else:
        root.mkdir()
        (root / "refs").write_text("")
    with pytest.raises(CommandError, match="name a writable folder with --store or SGEMV_STORE") as caught:
        Store(root).set_ref("baseline", IDS[0])
    assert str(caught.value).startswith(f"store {root}: ")
    assert caught.value.code is Exit.INFRASTRUCTURE
    assert Store(root).recover() == []


def test_whether_a_store_can_be_written_is_found_out_first(tmp_path: Path) -> None:
    """Nothing is made; a file in its place, or in that of a folder above it, is one line."""
    Store(tmp_path / "a" / "b").check_writable()
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").write_text("")
    for root in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(CommandError, match=f"^store {root}: Not a directory; name a writable folder") as caught:
            Store(root).check_writable()
        assert caught.value.code is Exit.INFRASTRUCTURE


def test_a_store_within_a_checkout_is_no_change_to_it(tmp_path: Path) -> None:
    """Else every run after the first would say that the code it measured had been changed."""
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    make_store(tmp_path / "deep" / "store")
    (tmp_path / "deep" / "store" / "run").mkdir()
    (tmp_path / "deep" / "store" / "run" / "run.json").write_text("{}")
    status = subprocess.run(
        ["git", "-C", tmp_path, "status", "--porcelain"], capture_output=True, text=True, check=True
    )
    assert status.stdout == ""


def test_a_folder_that_was_there_is_left_as_it_is(tmp_path: Path) -> None:
    """Whoever keeps runs under version control goes on doing so."""
    make_store(tmp_path)
    assert list(tmp_path.iterdir()) == []
