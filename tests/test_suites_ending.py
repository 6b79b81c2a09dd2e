"""suites/: how a bench ends where a kernel is wrong, a check failed or a user interrupts, and what is then kept."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from harness.ending import ENDING
from harness.errors import Exit
from harness.model import Check, Problem
from harness.store import Store, load
from harness.store.draft import write_run
from suites import conftest
from tests.built import library
from tests.running_suites import benchmarks, code_after, planted, selection, started, suites
from tests.sample_run import empty_run


def test_a_wrong_kernel_fails_its_own_cases(tmp_path: Path) -> None:
    """Code 5, the reason in its line; the others are measured, and the run is whole."""
    arguments, variables = planted(tmp_path, "-k", "matmul or drops or segfaults")
    done = suites(*arguments, **variables)
    assert done.returncode == 5, done.stdout + done.stderr
    assert re.search(r"✗ .*drops_the_last_element.*wrong: integers: \d+ of 64 wrong", done.stdout)
    assert re.search(r"✗ .*segfaults.*crashed: killed by SIGSEGV \(segmentation fault\) while its", done.stdout)
    run = load(Store(tmp_path / "store").resolve("latest"))
    assert [str(m.verdict.word) for m in run.measurements] == ["passed", "wrong", "crashed"]
    assert not run.partial
    kept = benchmarks(tmp_path / "store" / run.id / "pytest-benchmark.json")
    assert set(kept) == {"test_sgemv[torch.matmul-64x64-async-hot]"}


def test_a_bench_that_stops_at_a_failure_is_partial(tmp_path: Path) -> None:
    """-x leaves cases out: the run must not look complete."""
    arguments, variables = planted(tmp_path, "-x", "-k", "matmul or drops or segfaults")
    done = suites(*arguments, **variables)
    assert done.returncode == 5, done.stdout + done.stderr
    run = load(Store(tmp_path / "store").resolve("latest"))
    assert [str(m.verdict.word) for m in run.measurements] == ["passed", "wrong"]
    assert run.partial


def test_a_bench_whose_last_case_fails_is_whole(tmp_path: Path) -> None:
    """-x has nothing to leave out then: the ref is its own."""
    arguments, variables = planted(tmp_path, "-x", "-k", "matmul or drops", "--ref", "whole")
    done = suites(*arguments, **variables)
    assert done.returncode == 5, done.stdout + done.stderr
    store = Store(tmp_path / "store")
    run = load(store.resolve("whole"))
    assert ([str(m.verdict.word) for m in run.measurements], run.partial) == (["passed", "wrong"], False)


LICENCE = """
import pytest

def pytest_runtest_teardown(item):
    pytest.exit("no licence")
"""

FULL = """
import harness.bench
from harness.errors import CommandError, Exit

append = harness.bench.Draft.append

def appended(self, measurement):
    append(self, measurement)
    raise CommandError("the disk is full", Exit.INFRASTRUCTURE)

harness.bench.Draft.append = appended
"""


@pytest.mark.parametrize(
    ("plugin", "line", "code"),
    [(LICENCE, "no licence", 130), (FULL, "Exit: the disk is full", 6)],
    ids=["plugin", "us"],
)
def test_whatever_ends_a_session_says_why(tmp_path: Path, plugin: str, line: str, code: int) -> None:
    """A plugin's exit by pytest, an error of ours by its line alone, once; what writes after it still can."""
    (tmp_path / "ends.py").write_text(plugin)
    arguments, variables = planted(tmp_path, "-p", "ends", "--setup-show", "-k", "matmul")
    done = suites(*arguments, **variables)
    said = done.stdout + done.stderr
    assert (done.returncode, said.count(line)) == (code, 1), said
    assert "Traceback" not in said
    assert load(Store(tmp_path / "store").resolve("latest")).partial


def test_interrupting_keeps_what_was_measured(tmp_path: Path) -> None:
    """Ctrl-C while a kernel hangs: code 130, what came before is published as partial, no draft or log is left.

    The ref stays at the whole run that it meant; that is a line, and so is the interrupt.
    """
    library("cpu")
    arguments, variables = planted(tmp_path, "-k", "empty or matmul or hangs", "-q", "--ref", "cut")
    (tmp_path / "store" / "refs").mkdir(parents=True)
    (tmp_path / "store" / "refs" / "cut").write_text("20260101T000000Z-whole\n")
    program, log = started(tmp_path, arguments, variables)
    assert code_after(program, signal.SIGINT) == 130, log.read_text()
    run = load(Store(tmp_path / "store").resolve("latest"))
    assert run.partial
    assert Store(tmp_path / "store").refs() == {"20260101T000000Z-whole": ["cut"]}
    said = log.read_text()
    stays = f"ref 'cut' stays at 20260101T000000Z-whole: run {run.id} was cut short; measure it again"
    assert [said.count(f"\n{line}\n") for line in (stays, "interrupted")] == [1, 1]
    assert "KeyboardInterrupt" not in said
    assert "--full-trace" not in said
    assert [m.case.kernel for m in run.measurements] == ["empty", "torch.matmul"]
    assert all(m.samples_ns for m in run.measurements)
    assert sorted(path.name for path in (tmp_path / "store").iterdir()) == [run.id, "refs"]


CHECKED = Check(name="length", kernel="mine", problem=Problem(m=8, k=8), passed=True)
FAILED = replace(CHECKED, name="NVML", passed=False)
UNJUDGED = replace(CHECKED, name="cold", passed=None, reason="graph was not measured (hot)")


@pytest.fixture
def _interrupts() -> Iterator[None]:
    """Ctrl-C means after the test what it meant before."""
    before = {number: signal.getsignal(number) for number in ENDING}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def finished(root: Path, checks: tuple[Check, ...] | None, status: int = 0) -> SimpleNamespace:
    """A session at its end, whose bench publishes a run with this selfcheck."""
    folder = root / "20260101T000000Z-x-y-abcdef"

    def publish(*, partial: bool) -> Path:
        folder.mkdir()
        write_run(folder, replace(empty_run(), id=folder.name, selfcheck=checks, partial=partial))
        return folder

    config = SimpleNamespace(stash=pytest.Stash(), _benchmarksession=SimpleNamespace(benchmarks=[]))
    config.stash[conftest.CODES] = []
    config.stash[conftest.SELECTION] = replace(selection(), ref="checked", path_file=root / "path")
    bench = SimpleNamespace(publish=publish, store=Store(root))
    config.stash[conftest.BENCH] = bench  # type: ignore[index]
    session = SimpleNamespace(config=config, testsfailed=0, shouldfail=False, shouldstop=False)
    conftest.pytest_sessionfinish(session, status)  # type: ignore[arg-type]
    return session


@pytest.mark.usefixtures("_interrupts")
@pytest.mark.parametrize(
    ("checks", "code"),
    [
        (None, Exit.FINE),
        ((), Exit.KERNEL),
        ((UNJUDGED, UNJUDGED), Exit.KERNEL),
        ((CHECKED, UNJUDGED), Exit.FINE),
        ((CHECKED, FAILED), Exit.KERNEL),
        ((UNJUDGED, FAILED, FAILED), Exit.KERNEL),
    ],
    ids=["not asked for", "nothing measured", "nothing judged", "passed", "one failed", "two failed"],
)
def test_a_failed_check_is_told_by_the_exit_code(tmp_path: Path, checks: tuple[Check, ...] | None, code: Exit) -> None:
    """5, though every kernel was right; the run is published, named and found all the same."""
    session = finished(tmp_path, checks)
    assert session.exitstatus == code
    folder = Store(tmp_path).resolve("checked")
    assert load(folder).selfcheck == checks
    assert (tmp_path / "path").read_text() == f"{folder}\n"


@pytest.mark.usefixtures("_interrupts")
def test_an_interrupt_outweighs_a_failed_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The highest code that applies, as everywhere; the run takes no ref, and is named to whoever waits for it."""
    session = finished(tmp_path, (FAILED,), pytest.ExitCode.INTERRUPTED)
    assert session.exitstatus == Exit.INTERRUPTED
    folder = Store(tmp_path).resolve("latest")
    assert load(folder).partial
    assert capsys.readouterr().err == f"ref 'checked' is not set: run {folder.name} was cut short; measure it again\n"
    assert Store(tmp_path).refs() == {}
    assert (tmp_path / "path").read_text() == f"{folder}\n"
