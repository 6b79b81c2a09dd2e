"""harness.output: a file is replaced in one step, a device is written to, and what cannot be written is one line."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harness.__main__ import main
from harness.output import write_file
from reports.__main__ import main as reports
from tests.runs_to_export import kept
from tests.sample_run import one_trial_run


@pytest.mark.parametrize(
    ("name", "why"),
    [("file/x.csv", "File exists"), ("folder", "Is a directory"), ("x" * 300, "File name too long"), ("", "Is a")],
)
def test_an_output_that_cannot_be_written_is_one_line(
    name: str, why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same line, and code 6, whatever is written there; nothing else is left."""
    monkeypatch.chdir(tmp_path)
    folder = kept(tmp_path / "store", one_trial_run())
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    before = sorted(tmp_path.rglob("*"))
    for program, verb in ((main, ["export", str(folder), "--to", "csv"]), (reports, ["compare", "--markdown"])):
        runs = [str(folder)] * 2 if verb[0] == "compare" else []
        if program is reports and not name:
            continue  # there an empty name is none
        assert program([*verb, *runs, "--output", name]) == 6
        out, err = capsys.readouterr()
        assert out == ""
        assert err.startswith(f"{Path(name)}: {why}") or name.startswith("x")
        assert err.endswith("; name a writable file with --output\n")
        assert len(err.splitlines()) == 1
    assert sorted(tmp_path.rglob("*")) == before


def test_a_device_stays_one(tmp_path: Path) -> None:
    """What is no file, as /dev/stdout, is written to; a file is replaced in one step."""
    target, link, fifo = tmp_path / "target", tmp_path / "link", tmp_path / "fifo"
    link.symlink_to(target)
    write_file(b"x", link)
    assert (link.is_symlink(), target.read_bytes()) == (True, b"x")
    os.mkfifo(fifo)
    reading = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    write_file(b"y", fifo)
    assert os.read(reading, 10) == b"y"
    os.close(reading)
    assert fifo.is_fifo()
    target.chmod(0o600)
    before = target.stat().st_ino
    write_file(b"z", target)
    assert (target.read_bytes(), target.stat().st_ino == before) == (b"z", False)
    assert len(list(tmp_path.iterdir())) == 3
