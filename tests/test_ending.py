"""harness.ending: signals end a program once, and lost output ends it not at all. Its errors: test_command_line.py."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.ending import ENDING, ended, interrupt_no_more, interrupt_once
from harness.errors import Exit

ROOT = Path(__file__).parents[1]


@pytest.fixture(autouse=True)
def _signals() -> Iterator[None]:
    """What they mean to the tests."""
    before = {number: signal.getsignal(number) for number in ENDING}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("first", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_the_first_signal_interrupts_and_no_other(first: str) -> None:
    """What comes after it must not cut short what keeps the measured."""
    interrupt_once()
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(getattr(signal, first))
    for number in ENDING:
        signal.raise_signal(number)


def test_what_nohup_ignores_stays_ignored() -> None:
    """A bench that was started to outlive its terminal does."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    interrupt_once()
    signal.raise_signal(signal.SIGHUP)
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGTERM)


def test_nothing_interrupts_the_end() -> None:
    """While a run is published."""
    interrupt_no_more()
    for number in ENDING:
        signal.raise_signal(number)


def test_a_command_is_interrupted_by_sigterm() -> None:
    """Code 130, no line of Python's; the handlers are then those from before."""
    before = [signal.getsignal(number) for number in ENDING]
    assert ended(lambda: signal.raise_signal(signal.SIGTERM) or 0) == Exit.INTERRUPTED
    assert [signal.getsignal(number) for number in ENDING] == before


WRITES = """
import sys
from harness.ending import outlast
told = []
outlast(sys.stdout, told.append)
outlast(None, told.append)
for _ in range(3):
    sys.stdout.write("x" * 100_000)
    sys.stdout.flush()
sys.stderr.write("|".join(map(str, told)))
sys.exit(5)
"""


@pytest.mark.parametrize(
    ("reader", "told"),
    [
        ("head -c 1 >/dev/null", ""),
        ("full", "the standard output cannot be written to: No space left on device; send it"),
    ],
)
def test_output_that_is_lost_ends_nothing(reader: str, told: str) -> None:
    """The program goes on to its own code; a full disk is told once, a reader that has enough not at all."""
    into = ">/dev/full" if reader == "full" else f"| {reader}"
    line = f'"{sys.executable}" -c "$PROGRAM" {into}; exit ${{PIPESTATUS[0]}}'
    done = subprocess.run(
        ["bash", "-c", line],
        cwd=ROOT,
        env={**os.environ, "PROGRAM": WRITES},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (5, told and f"{told} elsewhere")


CHILD = """
import signal, time
from harness.process import end_with_parent
signal.signal(signal.SIGTERM, signal.default_int_handler)
end_with_parent(signal.SIGTERM)
try:
    print("ready", flush=True)
    time.sleep(60)
except KeyboardInterrupt:
    print("ended", flush=True)
"""
PARENT = "import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1]])"


@pytest.mark.skipif(sys.platform != "linux", reason="PR_SET_PDEATHSIG is Linux's")
def test_a_child_is_told_of_its_parents_end() -> None:
    """By kill -9 too: a bench whose nox was killed does not go on alone."""
    parent = subprocess.Popen([sys.executable, "-c", PARENT, CHILD], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    assert parent.stdout.readline() == "ready\n"
    parent.kill()
    assert parent.stdout.read() == "ended\n"
    parent.wait()
