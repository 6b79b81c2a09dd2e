"""harness.store.draft: what a killed bench left becomes a run, once and whole, or is kept and named."""

from __future__ import annotations

import multiprocessing
import os
from dataclasses import replace
from pathlib import Path

import filelock
import pytest

from harness.store import Store, load, verify
from harness.store.draft import JOURNAL, Draft
from tests.abandoned import SOME, abandon
from tests.sample_run import empty_run


@pytest.mark.parametrize("tail", ['{"case": {"kern', '{"case": {}, "trials": []}\n', "\x00\x00\x00\x00"])
def test_a_torn_line_costs_itself_only(tmp_path: Path, tail: str) -> None:
    """As a crash in the middle of a write leaves it; the run says that something is lost."""
    folder = abandon(tmp_path, SOME)
    with (folder / JOURNAL).open("a") as journal:
        journal.write(tail)
    (published,) = Store(tmp_path).recover()
    run = load(published)
    assert run.measurements == SOME
    assert "1 line of the journal was torn" in run.warnings[-1]


def test_a_partial_run_ended_with_its_last_measurement(tmp_path: Path) -> None:
    """Not when it was found, which may be days later."""
    folder = abandon(tmp_path, SOME)
    os.utime(folder / JOURNAL, (1767225600, 1767225600))
    (published,) = Store(tmp_path).recover()
    assert load(published).finished_utc == "2026-01-01T00:00:00+00:00"


def test_torn_lines_are_counted(tmp_path: Path) -> None:
    """In words that fit the number."""
    folder = abandon(tmp_path, SOME)
    with (folder / JOURNAL).open("a") as journal:
        journal.write('{\n{"case"')
    (published,) = Store(tmp_path).recover()
    assert "2 lines of the journal were torn by the end of its process and are lost." in load(published).warnings


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        ("no header", "header.json: No such file or directory"),
        ("half a header", "header.json: "),
        ("a renamed field", "header.json: "),
        ("a newer schema", "header.json: schema version 2, wanted at most 1"),
        ("a journal of another schema", "journal.jsonl: none of its lines can be read (3 torn)"),
    ],
)
def test_a_draft_that_cannot_be_read_is_kept(tmp_path: Path, damage: str, words: str) -> None:
    """Its measurements are not deleted: it stays, unlocked, and is named; other drafts are published all the same."""
    folder = abandon(tmp_path, SOME)
    header, journal = folder / "header.json", folder / JOURNAL
    text = header.read_text()
    if damage == "no header":
        header.unlink()
    elif damage == "half a header":
        header.write_text(text[: len(text) // 2])
    elif damage == "a renamed field":
        header.write_text(text.replace('"started_utc"', '"begun_utc"'))
    elif damage == "a newer schema":
        header.write_text(text.replace('"schema_version": 1', '"schema_version": 2'))
    else:
        journal.write_text(journal.read_text().replace('"trials"', '"tries"'))
    before = journal.read_bytes()
    abandon(tmp_path, SOME, "20260102T000000Z-x-y-abcdef")
    store = Store(tmp_path)
    assert [path.name for path in store.recover()] == ["20260102T000000Z-x-y-abcdef"]
    (line,) = store.kept_aside
    assert line.startswith(f"draft {folder}: {words}")
    assert "\n" not in line
    assert journal.read_bytes() == before
    header.write_text(text)
    if damage != "a journal of another schema":
        (published,) = store.recover()
        assert load(published).measurements == SOME
        assert store.kept_aside == []


def test_a_lock_without_a_draft_is_cleared_away(tmp_path: Path) -> None:
    """Of a process killed between deleting its draft and its lock; one that is held stays."""
    (tmp_path / ".draft-20260101T000000Z-gone.lock").touch()
    held = filelock.FileLock(tmp_path / ".draft-20260102T000000Z-begins.lock")
    with held:
        assert Store(tmp_path).recover() == []
        assert [path.name for path in tmp_path.iterdir()] == [Path(held.lock_file).name]


def test_a_kill_while_a_published_draft_is_deleted(tmp_path: Path) -> None:
    """Its header is gone already, its journal not: there is nothing to keep, since the run is there."""
    folder = abandon(tmp_path, SOME)
    (published,) = Store(tmp_path).recover()
    abandon(tmp_path.with_name(f"{tmp_path.name}-again"), SOME).rename(folder)
    (folder / "header.json").unlink()
    store = Store(tmp_path)
    store.recover()
    assert store.kept_aside == []
    assert [path.name for path in tmp_path.iterdir()] == [published.name]


@pytest.mark.parametrize("left", ["no header", "half a header", "no journal", "an empty journal"])
def test_a_draft_without_measurements_is_cleared_away(tmp_path: Path, left: str) -> None:
    """Killed before the first case was through."""
    folder = abandon(tmp_path, ())
    if left == "no header":
        (folder / "header.json").unlink()
    if left == "half a header":
        (folder / "header.json").write_text('{"schema_version": 1, ')
    if left == "an empty journal":
        (folder / JOURNAL).write_text("")
    assert Store(tmp_path).recover() == []
    assert list(tmp_path.iterdir()) == []


def test_a_kill_while_publishing_does_no_harm(tmp_path: Path) -> None:
    """Half a run beside the draft is made anew; a whole run beside it is kept as it is."""
    folder = abandon(tmp_path, SOME)
    half = tmp_path / f".publish-{folder.name[7:]}"
    half.mkdir()
    (half / "run.json").write_text("{")
    (published,) = Store(tmp_path).recover()
    verify(published)
    assert not half.exists()
    before = (published / "SHA256SUMS").read_bytes()
    abandon(tmp_path.with_name(f"{tmp_path.name}-again"), SOME[:1]).rename(folder)
    Store(tmp_path).recover()
    assert (published / "SHA256SUMS").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == [published.name]


def test_a_live_draft_is_not_stolen(tmp_path: Path) -> None:
    """Not even by the process that holds it; other drafts are recovered all the same."""
    live = Draft.create(tmp_path, replace(empty_run(), id="20260102T000000Z-live"))
    live.append(SOME[0])
    abandon(tmp_path, SOME)
    (published,) = Store(tmp_path).recover()
    assert published.name == "20260101T000000Z-x-y-abcdef"
    live.append(SOME[1])
    folder = live.publish(partial=False)
    assert folder is not None
    assert load(folder).measurements == SOME[:2]


def _recover(root: Path, start, found) -> None:
    start.wait()
    found.put([path.name for path in Store(root).recover()])


def test_two_recoveries_at_once(tmp_path: Path) -> None:
    """Eight drafts, three processes: each draft becomes one whole run, published by one of them."""
    ids = [f"20260101T00000{i}Z-x-y-abcdef" for i in range(8)]
    for run_id in ids:
        abandon(tmp_path, SOME, run_id)
    context = multiprocessing.get_context("spawn")
    start, found = context.Barrier(3), context.Queue()
    processes = [context.Process(target=_recover, args=(tmp_path, start, found)) for _ in range(3)]
    for process in processes:
        process.start()
    names = [name for _ in processes for name in found.get(timeout=60)]
    for process in processes:
        process.join(timeout=60)
        assert process.exitcode == 0
    assert sorted(names) == ids
    assert sorted(path.name for path in tmp_path.iterdir()) == ids
    for run_id in ids:
        verify(tmp_path / run_id)
        assert load(tmp_path / run_id).measurements == SOME


def test_a_full_disk_while_publishing_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The draft stays, no half run beside it, and the next command publishes it; this one goes on with its own work."""
    folder = abandon(tmp_path, SOME)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("harness.store.draft.write_run", full)
        assert (store := Store(tmp_path)).recover() == []
    kept = f"what was measured is kept in {folder.name}: make room or a way to write, and the next command publishes it"
    assert store.kept_aside == [f"store {tmp_path}: No space left on device; {kept}"]
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == [folder.name]
    (published,) = Store(tmp_path).recover()
    assert load(published).measurements == SOME
