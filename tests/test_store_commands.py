"""`python -m harness runs` and `verify`: what they say of whole runs, of damaged ones and of none, and their codes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.three_runs import IDS, ROOT, copied, flip, harness, store

__all__ = ["copied", "store"]


def test_runs_lists_the_newest_first(copied: Path) -> None:
    """A line a run: its whole id, device, driver, torch, cases and refs."""
    done = harness("runs", "--store", str(copied))
    assert (done.returncode, done.stderr) == (0, "")
    header, *rows = [line.split() for line in done.stdout.splitlines() if line.strip()]
    assert header[0] == "run"
    assert [row[0] for row in rows] == list(reversed(IDS))
    assert rows[2][1:5] == ["NVIDIA", "H200", "580.1", "2.11.0+cu130"]
    assert "baseline" in rows[2]
    assert "baseline" not in rows[0]


def test_runs_survives_a_damaged_run(copied: Path) -> None:
    """The others are listed, the damaged one is named, code 4."""
    (copied / IDS[1] / "run.json").write_text("{")
    done = harness("runs", "--store", str(copied))
    assert done.returncode == 4
    assert IDS[0] in done.stdout
    assert IDS[2] in done.stdout
    assert f"{IDS[1]}/run.json: not JSON" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_run_without_run_json_is_still_a_run(copied: Path) -> None:
    """It does not vanish from either list: the file is named, code 4."""
    (copied / IDS[1] / "run.json").unlink()
    for command in ("runs", "verify"):
        done = harness(command, "--store", str(copied))
        assert done.returncode == 4
        assert IDS[0] in done.stdout
        assert f"{copied / IDS[1] / 'run.json'}: " in done.stderr
        assert len(done.stderr.splitlines()) == 1
    assert harness("verify", "--store", str(copied), IDS[1]).stderr.endswith("missing, but listed in SHA256SUMS\n")


def test_an_ascii_terminal_gets_question_marks(copied: Path) -> None:
    """A GPU's name or a path may hold anything; no traceback."""
    odd = copied.rename(copied.with_name("größe"))
    command = [sys.executable, "-m", "harness", "verify", "--store", str(odd)]
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"gr??e" in done.stdout


def test_runs_names_a_draft_that_cannot_be_read(copied: Path) -> None:
    """One line on stderr; the list is as it would be without it."""
    draft = copied / ".draft-20260104T000000Z-x"
    draft.mkdir()
    (draft / "journal.jsonl").write_text('{"of": "another schema"}\n')
    done = harness("runs", "--store", str(copied))
    assert done.returncode == 0
    assert done.stderr.startswith(f"draft {draft}: header.json: No such file or directory; it holds measurements")
    assert len(done.stderr.splitlines()) == 1
    assert (draft / "journal.jsonl").exists()


def test_runs_of_an_empty_store(tmp_path: Path) -> None:
    """Nothing is wrong with it; one that is not there may be mistyped, and is not made."""
    done = harness("runs", "--store", str(tmp_path))
    assert (done.returncode, done.stdout) == (0, f"no runs in {tmp_path}\n")
    done = harness("runs", "--store", str(tmp_path / "none"))
    assert (done.returncode, done.stdout) == (0, f"no runs in {tmp_path / 'none'}: there is no such folder\n")
    assert not (tmp_path / "none").exists()


def test_verify_on_the_command_line(copied: Path) -> None:
    """A line a run, all of them if none is named; a damaged one does not hide the next; code 4."""
    done = harness("verify", "--store", str(copied))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [f"{copied / run_id}: whole" for run_id in IDS]
    flip(copied / IDS[1] / "samples.parquet")
    done = harness("verify", "--store", str(copied))
    assert done.returncode == 4
    assert done.stdout.splitlines() == [f"{copied / IDS[0]}: whole", f"{copied / IDS[2]}: whole"]
    assert done.stderr == f"{copied / IDS[1] / 'samples.parquet'}: changed since it was published (SHA-256 differs)\n"
    assert harness("verify", "--store", str(copied), "baseline", "latest").returncode == 0


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["verify", "nope"], 4, "run 'nope': no such run among 3"),
        (["verify", "2026"], 4, "3 runs start with it"),
        (["veryfy"], 2, "invalid choice: 'veryfy'"),
        ([], 2, "required: COMMAND"),
    ],
)
def test_wrong_commands(copied: Path, arguments: list[str], code: int, words: str) -> None:
    """One line and the right code."""
    done = harness(*arguments, *(["--store", str(copied)] if arguments else []))
    assert done.returncode == code
    assert words in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_verify_of_an_empty_store(tmp_path: Path) -> None:
    """Nothing to verify is not fine: whoever asked expected a run."""
    done = harness("verify", "--store", str(tmp_path))
    assert (done.returncode, done.stderr) == (4, f"no runs in {tmp_path}\n")
    done = harness("verify", "--store", str(tmp_path / "none"))
    assert (done.returncode, done.stderr) == (4, f"no runs in {tmp_path / 'none'}: there is no such folder\n")
