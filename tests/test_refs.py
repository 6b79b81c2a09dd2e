"""harness.store.refs: what can be a ref's name, and what one means, whatever its file holds."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.errors import CommandError, Exit
from harness.store import Store
from harness.store.refs import check_ref_name
from tests.three_runs import IDS, copied, harness, store, write

__all__ = ["copied", "store"]


@pytest.mark.parametrize("name", ["baseline", "v1.2-rc_3", "A", "0" * 64])
def test_names_of_refs(name: str) -> None:
    """What can be a file's name everywhere."""
    check_ref_name(name)


@pytest.mark.parametrize("name", ["", "-x", ".x", "a/b", "a b", "latest", "ü", "0" * 65, "a\n"])
def test_what_is_no_name_of_a_ref(name: str) -> None:
    """Never a path out of the store, never a word that means something else; code 2."""
    with pytest.raises(CommandError, match="wanted 1 to 64 letters") as caught:
        check_ref_name(name)
    assert str(caught.value).startswith(f"--ref: found {name!r}")
    assert caught.value.code is Exit.USAGE


def test_latest_is_no_ref() -> None:
    """The line says why, not only what a name looks like."""
    with pytest.raises(CommandError, match=r"found 'latest', wanted .*; the word is reserved: it means the newest"):
        check_ref_name("latest")


def test_a_ref_can_be_moved(tmp_path: Path) -> None:
    """The newest meaning holds, and no temporary file stays."""
    made = Store(tmp_path)
    for run_id in IDS[:2]:
        write(tmp_path, run_id)
        made.set_ref("nightly", run_id)
    assert made.resolve("nightly").name == IDS[1]
    assert [path.name for path in (tmp_path / "refs").iterdir()] == ["nightly"]


def test_a_ref_of_other_bytes_means_no_run(copied: Path) -> None:
    """Not UTF-8, longer than a path, empty, or a folder: `runs` lists the runs, a look-up says what it names."""
    refs = copied / "refs"
    (refs / "bytes").write_bytes(b"\xff\xfe\n")
    (refs / "long").write_text("x" * 5000)
    (refs / "empty").write_text("")
    (refs / "folder").mkdir()
    done = harness("runs", "--store", str(copied))
    assert (done.returncode, done.stderr) == (0, "")
    assert all(run_id in done.stdout for run_id in IDS)
    for name in ("bytes", "long", "empty"):
        with pytest.raises(CommandError, match=f"ref '{name}': names .*which is not in"):
            Store(copied).resolve(name)
