"""harness.store.refs: what can be a ref's name, and what one means, whatever its file holds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from harness.errors import CommandError, Exit
from harness.store import Store
from harness.store.refs import check_ref_name
from tests.s3_server import on_machine
from tests.sample_run import gpu_run
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
    with pytest.raises(CommandError, match=r"ref 'long': names xxx.*which is not in"):
        Store(copied).resolve("long")


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"", "its file is empty"),
        (b" \n\t\n", "its file is empty"),
        (b"\xff\xfe\n", "its file is not text"),
        (b"\x00\x01", "its file is not text"),
        (b"one\ntwo\nthree\n", "its file holds 3 words, wanted one, the id of a run"),
    ],
)
def test_a_damaged_ref_is_said_to_be_one(copied: Path, content: bytes, what: str) -> None:
    """And what sets it again; not that the store lacks a run of no name."""
    (copied / "refs" / "mine").write_bytes(content)
    done = harness("verify", "mine", "--store", str(copied))
    assert done.returncode == Exit.RUN
    assert done.stderr == f"ref 'mine': {what}; nox -s bench -- --ref mine sets it again\n"
    (copied / "refs" / "mine").write_bytes(f"{IDS[1]}\nor another\n".encode())
    assert Store(copied).find("mine") == IDS[1]  # the first word means it, as the format of runs says


@pytest.mark.parametrize("where", ["folder", "memory://shared/partial"])
def test_a_run_that_was_cut_short_takes_no_ref(where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever names one means a whole run: it stays at that, and a line says so; of a URL also when it is sent."""
    url = "://" in where
    made = on_machine(where, tmp_path, monkeypatch) if url else Store(tmp_path / where)
    made.check_writable()
    for run_id in IDS[:2]:
        write(made.root, run_id, replace(gpu_run(shapes=((64, 64),), trials=1, samples=2), partial=run_id == IDS[1]))
    assert made.set_ref("mine", IDS[1]) == f"ref 'mine' is not set: run {IDS[1]} was cut short; measure it again"
    assert made.set_ref("mine", IDS[0]) is None
    assert made.set_ref("mine", IDS[1]) == f"ref 'mine' stays at {IDS[0]}: run {IDS[1]} was cut short; measure it again"
    assert len(made.send()) == (2 if url else 0)
    assert made.refs() == {IDS[0]: ["mine"]}


def test_a_ref_that_cannot_be_looked_at_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server went away while a run was measured that was cut short: to send it says so, and where it is kept."""
    store = on_machine("s3://bucket/runs", tmp_path, monkeypatch)
    monkeypatch.setattr(store, "_remote", SimpleNamespace(read=silent))
    write(store.root, IDS[0], replace(gpu_run(shapes=((64, 64),), trials=1, samples=2), partial=True))
    assert store.set_ref("mine", IDS[0]) == f"ref 'mine' stays as it is: run {IDS[0]} was cut short; measure it again"


def silent(_: str) -> bytes:
    raise CommandError("no connection", Exit.INFRASTRUCTURE)
