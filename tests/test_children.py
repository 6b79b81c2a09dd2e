"""harness.children: how a child ended and what it complained of; it is told once and may finish."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from pathlib import Path

import pytest

from harness.children import Ended, ask, show
from harness.ending import interrupted_once

ROOT = Path(__file__).parents[1]


def test_what_a_child_complained_of() -> None:
    """Its last line, or how it ended."""
    code = "import sys; sys.stderr.write('first\\nerror: last\\n\\n'); print('x'); sys.exit(3)"
    done = ask([sys.executable, "-c", code], ROOT, os.environ)
    assert (done.code, done.stdout, done.complaint) == (3, "x\n", "last")
    assert Ended(code=-9).complaint == "killed by SIGKILL"
    assert Ended(code=4).how == "exit code 4"


COUNTS = """
import signal, sys, time
told = 0
def count(*_):
    global told
    told += 1
signal.signal(signal.SIGINT, count)
open(sys.argv[1] + "-ready", "w").close()
while not told:
    time.sleep(0.01)
time.sleep(1.0)
open(sys.argv[1], "w").write(str(told))
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_child_is_told_once_and_may_finish(number: signal.Signals, tmp_path: Path) -> None:
    """Ctrl-C twice, or being asked to end: the child has one SIGINT and the time that it needs."""
    told = tmp_path / "told"

    def interrupt_twice() -> None:
        while not Path(f"{told}-ready").exists():
            time.sleep(0.01)
        for _ in range(2):
            os.kill(os.getpid(), number)
            time.sleep(0.05)

    user = threading.Thread(target=interrupt_twice, daemon=True)
    user.start()
    with pytest.raises(KeyboardInterrupt), interrupted_once():
        show([sys.executable, "-c", COUNTS, str(told)], tmp_path, os.environ)
    user.join()
    assert told.read_text() == "1"
