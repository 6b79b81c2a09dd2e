"""suites/ and the person in front of it: an impatient Ctrl-C, a terminal of ASCII only, a draft in the store."""

from __future__ import annotations

import signal
import time
from pathlib import Path

from harness.store import Store, load
from tests.built import library
from tests.running_suites import QUICKLY, planted, started, suites


def test_further_interrupts_do_not_cost_the_run(tmp_path: Path) -> None:
    """Ctrl-C again and again while the first one closes and publishes: code 130, no traceback, the run and its path."""
    library("cpu")
    arguments, variables = planted(tmp_path, "-k", "empty or matmul or hangs")
    program, log = started(tmp_path, arguments, variables)
    try:
        deadline = time.monotonic() + 60
        while program.poll() is None and time.monotonic() < deadline:
            program.send_signal(signal.SIGINT)
            time.sleep(0.05)
        code = program.wait(timeout=60)
    finally:
        program.kill()
        program.wait()
    said = log.read_text()
    assert code == 130, said
    assert "Traceback" not in said
    folder = Store(tmp_path / "store").resolve("latest")
    assert load(folder).partial
    assert f"run:    {folder}" in said


def test_an_ascii_terminal_sees_the_progress(tmp_path: Path) -> None:
    """Marks and µ become question marks; what was measured is not lost to them. A kept draft is named on the way."""
    draft = tmp_path / ".draft-20260104T000000Z-x"
    draft.mkdir()
    (draft / "journal.jsonl").write_text('{"of": "another schema"}\n')
    arguments = (*QUICKLY, "--store", tmp_path, "-k", "empty")
    done = suites(*arguments, PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    assert f"draft {draft}: header.json: " in done.stdout
    assert " ?s  spread" in done.stdout
    assert draft.is_dir()
