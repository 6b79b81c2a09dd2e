"""`python -m harness prune`: old runs are shown, and deleted only when that was said; some never are."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from harness.__main__ import main
from harness.errors import Exit
from harness.store import GONE, Store
from harness.store.draft import Draft
from tests.s3_server import RUN, published

TODAY = datetime.now(UTC)


def aged(days: float) -> str:
    return f"{TODAY - timedelta(days=days):%Y%m%dT%H%M%SZ}-gpu-1-{int(10 * days):06}"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Runs of 0.1 to 400 days, the two oldest with refs, and one whose id says no time."""
    found = Store(tmp_path)
    for days in (0.1, 89.9, 90.1, 200, 300, 400):
        published(found, aged(days))
    published(found, "by-hand")
    found.set_ref("baseline", aged(400))
    found.set_ref("2025", aged(300))
    return found


def prune(store: Store, *words: str) -> int:
    return main(["prune", *words, "--store", str(store.root)])


def test_it_is_shown_first(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is touched without --yes."""
    before = store.ids()
    assert prune(store, "--keep-days", "90") == Exit.FINE
    assert capsys.readouterr().out.splitlines() == [
        f"keeps    {aged(400)}: ref baseline",
        f"keeps    {aged(300)}: ref 2025",
        f"deletes  {aged(200)}",
        f"deletes  {aged(90.1)}",
        f"would delete 2 of 7 runs in {store.root}, older than 90 days: --yes does",
    ]
    assert store.ids() == before


def test_it_is_deleted_when_said(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    """And what an earlier prune left half-done; the rest is whole."""
    (store.root / f"{GONE}20250101T000000Z-x").mkdir()
    assert prune(store, "--keep-days", "90", "--yes") == Exit.FINE
    said = capsys.readouterr().out.splitlines()
    assert said[2:] == [
        f"deleted  {aged(200)}",
        f"deleted  {aged(90.1)}",
        f"deleted 2 of 7 runs in {store.root}, older than 90 days",
    ]
    assert store.ids() == sorted([aged(400), aged(300), aged(89.9), aged(0.1), "by-hand"])
    assert not list(store.root.glob(f"{GONE}*"))
    assert main(["verify", "--store", str(store.root)]) == Exit.FINE


def test_a_run_that_is_being_measured_is_no_run_yet(store: Store) -> None:
    """Its draft stays, however old its id, and can be published."""
    run_id = aged(500)
    header = Draft.create(store.root, RUN.__class__(**{**vars(RUN), "id": run_id, "measurements": ()}))
    header.append(RUN.measurements[0])
    assert prune(store, "--keep-days", "1", "--yes") == Exit.FINE
    assert header.publish(partial=False) == store.root / run_id


def test_deletion_that_is_cut_short_leaves_no_damaged_run(
    store: Store, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The folder is out of the way before its first file goes; what cannot be deleted is one line, code 6."""

    def killed(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patched:
        patched.setattr("harness.store.shutil.rmtree", killed)
        assert prune(store, "--keep-days", "90", "--yes") == Exit.INFRASTRUCTURE
    said = capsys.readouterr()
    assert said.err.startswith(f"store {store.root}: Permission denied")
    assert len(said.err.splitlines()) == 1
    assert aged(200) not in store.ids()
    assert main(["verify", "--store", str(store.root)]) == Exit.FINE
    assert prune(store, "--keep-days", "90", "--yes") == Exit.FINE
    assert not list(store.root.glob(f"{GONE}*"))


@pytest.mark.parametrize("days", ["-1", "0", "", "ninety", "1.5", "1e3", "99999", "²"])
def test_nonsense_is_refused(store: Store, days: str, capsys: pytest.CaptureFixture[str]) -> None:
    """One line, code 2."""
    assert prune(store, f"--keep-days={days}", "--yes") == Exit.USAGE
    line = f"--keep-days: found {days!r}, wanted a whole number of days from 1 to 36500\n"
    assert capsys.readouterr().err == line
    assert len(store.ids()) == 7


def test_the_days_must_be_said(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    """There is no default that deletes."""
    assert prune(store, "--yes") == Exit.USAGE
    assert "--keep-days" in capsys.readouterr().err


def test_an_empty_store(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Is fine; one that is not there is said to be that, and not made."""
    assert prune(Store(tmp_path), "--keep-days", "1", "--yes") == Exit.FINE
    assert capsys.readouterr().out == f"deleted 0 of 0 runs in {tmp_path}, older than 1 day\n"
    assert prune(Store(tmp_path / "none"), "--keep-days", "1", "--yes") == Exit.FINE
    assert capsys.readouterr().out == f"no runs in {tmp_path / 'none'}: there is no such folder\n"
    assert not (tmp_path / "none").exists()
