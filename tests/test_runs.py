"""`python -m harness runs`: how many are listed, how fast, and whether the newest night is too old."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from harness.__main__ import main
from harness.errors import Exit
from harness.store import Store
from harness.store.draft import write_run
from tests.many_runs import write
from tests.s3_server import RUN


def runs(root: Path, *words: str) -> int:
    return main(["runs", *words, "--store", str(root)])


def night(root: Path, ago: timedelta, *, partial: bool = False) -> str:
    """A run of the ref nightly that started so long ago; one that was cut short had the ref when any run took one."""
    run_id = "20260101T000000Z-gpu-1-aaaaaa"
    started = (datetime.now(UTC) - ago).isoformat(timespec="seconds")
    Store(root).set_ref("nightly", run_id)
    (root / run_id).mkdir()
    write_run(root / run_id, replace(RUN, id=run_id, started_utc=started, partial=partial))
    return run_id


@pytest.mark.parametrize(
    ("asked", "ago", "words"),
    [
        ("36h", timedelta(hours=35), "35.0 hours"),
        ("2d", timedelta(hours=47), "47.0 hours"),
        ("90m", timedelta(minutes=20), "20 min"),
        ("1.5h", timedelta(hours=1.4), "1.4 hours"),
        ("100s", timedelta(seconds=20), "0 min"),
        ("1h", timedelta(minutes=-3), "0 min"),
        ("9d", timedelta(days=8), "8.0 days"),
    ],
)
def test_a_night_that_is_new_enough(
    tmp_path: Path, asked: str, ago: timedelta, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line that says how old it is; clocks may be some minutes apart."""
    run_id = night(tmp_path, ago)
    assert runs(tmp_path, "--stale-after", asked) == Exit.FINE
    said = capsys.readouterr()
    assert said.out.startswith(f"nightly: {run_id} started {words} ago, at 20")
    assert (len(said.out.splitlines()), said.err) == (1, "")


@pytest.mark.parametrize(
    ("asked", "ago", "words"),
    [
        ("36h", timedelta(hours=37), "started 37.0 hours ago, at {at}, and none since: wanted one within 36h"),
        ("1d", timedelta(days=10), "started 10.0 days ago, at {at}, and none since: wanted one within 1d"),
        ("36h", timedelta(hours=-2), "starts 2.0 hours in the future, at {at}: a clock, there or here, is wrong"),
    ],
)
def test_silence_is_noticed(
    tmp_path: Path, asked: str, ago: timedelta, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line, code 4; so is a clock that was set back, since no age can be told then."""
    run_id = night(tmp_path, ago)
    at = Store(tmp_path).root / run_id / "run.json"
    assert runs(tmp_path, "--stale-after", asked) == Exit.RUN
    started = at.read_text().split('"started_utc": "')[1].split('"')[0]
    assert capsys.readouterr() == ("", f"nightly: {run_id} {words.format(at=started)}\n")


def test_a_night_that_was_cut_short_is_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It says so: what was not measured was silent."""
    run_id = night(tmp_path, timedelta(hours=2), partial=True)
    assert runs(tmp_path, "--stale-after", "36h") == Exit.RUN
    said = capsys.readouterr().err
    assert said.startswith(f"nightly: {run_id} started 2.0 hours ago, at 20")
    assert said.endswith(", and was cut short: wanted a whole one within 36h\n")


def test_a_night_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Never kept, or deleted by hand, or damaged: one line each, code 4."""
    assert runs(tmp_path, "--stale-after", "36h") == Exit.RUN
    line = f"{tmp_path}: there is no ref 'nightly': no night was ever kept here; nox -s nightly keeps one\n"
    assert capsys.readouterr().err == line
    assert runs(tmp_path / "none", "--stale-after", "36h") == Exit.RUN
    assert capsys.readouterr().err == f"{tmp_path / 'none'}: there is no such folder\n"
    run_id = night(tmp_path, timedelta(hours=1))
    (tmp_path / run_id / "run.json").write_text("{")
    assert runs(tmp_path, "--stale-after", "36h") == Exit.RUN
    assert "run.json: not JSON" in capsys.readouterr().err
    Store(tmp_path).delete(run_id)
    assert runs(tmp_path, "--stale-after", "36h") == Exit.RUN
    assert capsys.readouterr().err == f"ref 'nightly': names {run_id}, which is not in {tmp_path}\n"


@pytest.mark.parametrize("age", ["36", "h", "-1h", "0h", "1.h", "1 h", "36hours", "1w", "nan", "١h", "99999999d", ""])
def test_an_age_that_is_none(tmp_path: Path, age: str, capsys: pytest.CaptureFixture[str]) -> None:
    """One line, code 2."""
    assert runs(tmp_path, f"--stale-after={age}") == Exit.USAGE
    wanted = "wanted a number above 0 and s, m, h or d, such as 36h"
    assert capsys.readouterr().err == f"--stale-after: found {age!r}, {wanted}\n"


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of 5000 runs, which share their files."""
    root = tmp_path_factory.mktemp("many")
    first = write(root, replace(RUN, id="20260101T000000Z-gpu-1-000000"))
    for number in range(1, 5000):
        folder = root / f"20260101T000000Z-gpu-1-{number:06}"
        folder.mkdir()
        for path in first.iterdir():
            (folder / path.name).hardlink_to(path)
    return root


def test_the_newest_are_listed(many: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Fifty of 5000 unless others are asked for, at once; how many are not shown is said."""
    started = time.process_time()
    assert runs(many) == Exit.FINE
    assert time.process_time() - started < 5
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 52
    assert lines[1].startswith(" 20260101T000000Z-gpu-1-004999 ")
    assert lines[-1] == "4950 older ones are not shown: --all, or --last N"
    assert runs(many, "--last", "2") == Exit.FINE
    assert len(capsys.readouterr().out.splitlines()) == 4


def test_all_are_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every one, and nothing is said of others."""
    for number in range(60):
        write(tmp_path, replace(RUN, id=f"20260101T000000Z-gpu-1-{number:06}"))
    assert runs(tmp_path, "--all") == Exit.FINE
    assert len(capsys.readouterr().out.splitlines()) == 61


@pytest.mark.parametrize("number", ["0", "-1", "x", "1.5", ""])
def test_a_number_of_runs_that_is_none(tmp_path: Path, number: str, capsys: pytest.CaptureFixture[str]) -> None:
    """One line, code 2."""
    assert runs(tmp_path, f"--last={number}") == Exit.USAGE
    assert capsys.readouterr().err == f"--last: found {number!r}, wanted a number of runs from 1 on\n"
