"""harness.store.sums and verify: a changed bit, a file too few or too many, and a line that is no sum are noticed."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from harness.errors import CommandError, Exit
from harness.store import verify
from tests.three_runs import flip, run_folder

__all__ = ["run_folder"]


def test_sums_agree_with_coreutils(run_folder: Path) -> None:
    """Whoever has no Python can check a run."""
    checked = subprocess.run(
        ["sha256sum", "-c", "SHA256SUMS"], cwd=run_folder, capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert sorted(checked.stdout.splitlines()) == [
        "build/log.txt: OK",
        "device_states.parquet: OK",
        "run.json: OK",
        "samples.parquet: OK",
    ]


def test_a_whole_run_verifies(run_folder: Path) -> None:
    """No complaint."""
    verify(run_folder)


@pytest.mark.parametrize("name", ["run.json", "samples.parquet", "device_states.parquet", "build/log.txt"])
def test_one_changed_bit_is_noticed(run_folder: Path, name: str) -> None:
    """Which file, and what is wrong with it; code 4."""
    flip(run_folder / name)
    with pytest.raises(CommandError) as caught:
        verify(run_folder)
    assert str(caught.value) == f"{run_folder / name}: changed since it was published (SHA-256 differs)"
    assert caught.value.code is Exit.RUN


def test_a_damaged_list_of_sums_is_noticed(run_folder: Path) -> None:
    """A bit of it, all of it, or the file itself."""
    sums = run_folder / "SHA256SUMS"
    flip(sums)
    with pytest.raises(CommandError):
        verify(run_folder)
    sums.write_text("")
    with pytest.raises(CommandError, match="added since the run was published"):
        verify(run_folder)
    sums.unlink()
    with pytest.raises(CommandError, match="no SHA256SUMS: not a published run"):
        verify(run_folder)


def test_missing_and_added_files_are_noticed(run_folder: Path) -> None:
    """Also in subfolders."""
    (run_folder / "build" / "more.txt").write_text("")
    with pytest.raises(CommandError, match=r"build/more\.txt: added since the run was published"):
        verify(run_folder)
    (run_folder / "build" / "more.txt").unlink()
    (run_folder / "samples.parquet").unlink()
    with pytest.raises(CommandError, match=r"samples\.parquet: missing, but listed in SHA256SUMS"):
        verify(run_folder)


@pytest.mark.parametrize("line", ["nonsense", "0" * 64 + " one-space", "", "0" * 63 + "  run.json", "0" * 64 + "  "])
def test_a_line_that_is_no_sum_is_one_line(run_folder: Path, line: str) -> None:
    """Which, and what was wanted; no file of an empty name is missed."""
    sums = run_folder / "SHA256SUMS"
    sums.write_text(f"{sums.read_text()}{line}\n")
    with pytest.raises(CommandError) as caught:
        verify(run_folder)
    assert str(caught.value) == f"{sums}: line 5 is no sum: wanted 64 hex digits, two spaces, a name"
    assert caught.value.code is Exit.RUN
