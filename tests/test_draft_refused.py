"""harness.store.draft: a draft that cannot be made, or whose id is taken, is refused in one line, and harms no run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from harness.errors import CommandError, Exit
from harness.store import load_whole
from harness.store.draft import Draft
from tests.sample_run import empty_run, gpu_run
from tests.three_runs import IDS


def test_a_draft_that_cannot_be_made(tmp_path: Path) -> None:
    """The same line, before anything is measured."""
    (tmp_path / "file").write_text("")
    with pytest.raises(CommandError, match=r"file: (File exists|Not a directory); name a writable folder") as caught:
        Draft.create(tmp_path / "file", empty_run())
    assert caught.value.code is Exit.INFRASTRUCTURE


def test_of_two_drafts_of_one_id_one_is_refused(tmp_path: Path) -> None:
    """While the first is measured, after it was killed, and once it is a run: its measurements stay as they are."""
    from harness.store.draft import JOURNAL

    run = gpu_run(shapes=((64, 64),), trials=1, samples=2)
    header = replace(run, id=IDS[0], measurements=())
    draft = Draft.create(tmp_path, header)
    draft.append(run.measurements[0])
    journal = (draft.folder / JOURNAL).read_bytes()
    with pytest.raises(CommandError) as caught:
        Draft.create(tmp_path, header)
    assert caught.value.code is Exit.INFRASTRUCTURE
    draft._lock.release()
    for published in (False, True):
        if published:
            draft.publish(partial=False)
        with pytest.raises(
            CommandError, match=f"^store {tmp_path}: there is a run {IDS[0]} already; try again"
        ) as caught:
            Draft.create(tmp_path, header)
        assert caught.value.code is Exit.INFRASTRUCTURE
        if not published:
            assert (draft.folder / JOURNAL).read_bytes() == journal
    assert load_whole(tmp_path / IDS[0]).measurements == run.measurements[:1]
