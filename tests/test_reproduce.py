"""`python -m harness reproduce`: the real thing on the CPU in a repository of its own, and how it ends."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from harness.__main__ import main
from harness.children import Ended
from harness.compare import compare
from harness.comparison.request import Compared
from harness.environment import git_diff
from harness.errors import CommandError, Exit
from harness.reproduce import session
from harness.reproduce.request import request_of
from harness.reproduce.session import AGAINST, reproduce
from harness.reproduce.verdict import verdict
from harness.store import Store, load
from harness.store.draft import write_sums
from harness.suites_command import HERE
from tests.checkouts import COMMIT, ROOT, checkout, git, measured, published, quiet_environment, untouched
from tests.running_suites import code_after
from tests.sample_run import cpu_run

__all__ = ["checkout", "untouched"]

QUICKLY = ("--shape", "64x64", "--kernel", "torch.matmul", "--trials", "1", "--max-time", "0.01", "--device", "cpu",
           "--timer", "async", "--cache", "cold")  # fmt: skip
TINY = ("--shape", "64x64", "--kernel", "sgemv_cpu_f32", "--trials", "2", "--max-time", "0.01", "--device", "cpu")


@pytest.fixture(scope="module")
def recorded(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of that checkout, of one tiny shape on the CPU, in a store of its own."""
    store = tmp_path_factory.mktemp("store")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "suites",
        *TINY,
        "-q",
        "-k",
        "not read",
        "--timer",
        "async",
        "--cache",
        "cold",
    ]
    subprocess.run(
        [*command, "--store", str(store), "--ref", "first", "--benchmark-quiet"],
        cwd=checkout, env=quiet_environment(), stdout=subprocess.DEVNULL, check=True, timeout=240,
    )  # fmt: skip
    return Store(store).resolve("first")


def command(store: Path, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "harness", "reproduce", *arguments, "--store", str(store)]


@pytest.mark.usefixtures("untouched")
def test_a_run_is_measured_again_from_its_commit(checkout: Path, recorded: Path, tmp_path: Path) -> None:
    """Its commit, build and cases. Whether a CPU is as fast as before is its affair: line, code, comparison agree."""
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    store = recorded.parent
    before = set(Store(store).ids())
    done = subprocess.run(
        command(store, "first", "--threshold", "0.5"), cwd=checkout, capture_output=True, text=True, check=False,
        timeout=300, env=quiet_environment(TMPDIR=str(temporary), GIT_DIR="/nowhere", PYTEST_ADDOPTS="-k nothing"),
    )  # fmt: skip
    lines = done.stdout.splitlines()
    assert done.returncode in (0, 1, 3), done.stdout + done.stderr
    (new_id,) = set(Store(store).ids()) - before
    old, new = load(recorded), load(store / new_id)
    assert new.environment.get("git_commit") == old.environment.get("git_commit") == git(checkout, "rev-parse", "HEAD")
    assert new.environment.get("git_dirty") is False
    assert [each.case for each in new.measurements] == [each.case for each in old.measurements]
    assert new.options == replace(old.options, command=new.options.command)
    assert "build    machine code of the C++ kernels: identical, bit for bit (3 sources)" in lines
    assert any(line.startswith("measure  left out of the recorded command line: -q ") for line in lines)
    found = compare(old, new, threshold=0.5)
    given = verdict(Compared(base=old, news=(new,), found=(found,), fails=AGAINST))
    assert (lines[-1], done.returncode) == (given.line, int(given.code))
    assert lines[-1].startswith({0: "reproduced: ", 1: "not reproduced: ", 3: "cannot be told: "}[done.returncode])
    assert "exit code" not in done.stdout
    (follow,) = [line.partition("each case: ")[2] for line in lines if "each case: " in line]
    shown = ["python", "-m", "harness", "compare", str(recorded), str(store / new_id), "--all"]
    assert shlex.split(follow) == shown
    assert list(temporary.glob("sgemv-*")) == []
    assert (
        request_of(new, tmp_path).arguments == request_of(old, tmp_path).arguments
    )  # it can be reproduced in its turn


def test_settings_of_folders_around_are_not_taken(checkout: Path, tmp_path: Path) -> None:
    """A folder named by an option of two words is no reason to look into it, nor into the folder above both."""
    outer = tmp_path / "outer"
    shutil.copytree(checkout, outer / "repo", ignore=shutil.ignore_patterns(".git"))
    (outer / "harness").mkdir()
    (outer / "harness" / "__init__.py").write_text("")
    shutil.copy(ROOT / "pyproject.toml", outer)
    shutil.copy(ROOT / "noxfile.py", outer / "repo")
    (outer / "store").mkdir()
    options = ["--store", "../store", *TINY, "--collect-only", "-q"]
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    for program in (["pytest", *HERE, "suites"], ["nox", "-s", "bench", "--no-venv", "--"]):
        done = subprocess.run(
            [sys.executable, "-m", *program, *options], cwd=outer / "repo", env=quiet_environment(PATH=path),
            capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        assert "\nsuites/test_sgemv.py:" in f"\n{done.stdout}"


@pytest.mark.usefixtures("untouched")
def test_ctrl_c_keeps_what_was_measured_and_nothing_else(checkout: Path, recorded: Path, tmp_path: Path) -> None:
    """Sent to the program alone, as by nox: code 130, a partial run, no worktree, no temporary folder."""
    temporary, store = tmp_path / "tmp", tmp_path / "store"
    temporary.mkdir()
    log = tmp_path / "out.txt"
    run = load(recorded)
    words = [*run.options.command[:3], "suites", *QUICKLY]
    folder = published(tmp_path / "runs", replace(run, builds=(), options=replace(run.options, command=tuple(words))))
    with log.open("w") as out:
        program = subprocess.Popen(
            command(store, str(folder)), cwd=checkout, stdout=out, stderr=out, start_new_session=True,
            env=quiet_environment(TMPDIR=str(temporary)),
        )  # fmt: skip
    deadline = time.monotonic() + 90
    while "torch.matmul  " not in log.read_text() and time.monotonic() < deadline and program.poll() is None:
        time.sleep(0.02)
    assert code_after(program, signal.SIGINT) == 130, log.read_text()
    (run_id,) = Store(store).ids()
    assert load(store / run_id).partial
    assert f"interrupted; what was measured is kept: {store / run_id}" in log.read_text()
    assert "Traceback" not in log.read_text()
    assert list(temporary.glob("sgemv-*")) == []


@pytest.mark.usefixtures("untouched")
def test_a_killed_bench_is_one_line(
    checkout: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kept patch is applied: it has the suites end after the first case. Code 6, and the case is kept."""
    suite = checkout / "suites" / "test_sgemv.py"
    text = suite.read_text()
    suite.write_text(text.replace("    measure(case)\n", "    measure(case)\n    __import__('os').abort()\n"))
    patch = git_diff(checkout)
    suite.write_text(text)
    assert isinstance(patch, str)
    run = measured(cpu_run(), git(checkout, "rev-parse", "HEAD"), git_dirty=True)
    options = replace(run.options, command=("nox", "-s", "bench", "--", *QUICKLY))
    monkeypatch.setattr(session, "_environment", lambda *_: quiet_environment())  # whose kernels are built already
    folder = published(tmp_path / "runs", replace(run, options=options), source_diff=patch)
    store = Store(tmp_path / "store")
    with pytest.raises(CommandError, match=r"cannot be tried: the suites .* ended with killed by SIGABRT") as error:
        reproduce(store, folder, 0.01, checkout)
    assert error.value.code == Exit.INFRASTRUCTURE
    (run_id,) = store.ids()
    partial = load(store.root / run_id)
    assert [each.case.kernel for each in partial.measurements] == ["empty"]
    assert partial.environment.get("git_dirty") is True
    assert (store.root / run_id / "build" / "source.diff").read_text() == patch
    out, _ = capfd.readouterr()
    assert f"published what a bench had measured before it was killed: {store.root / run_id}" in out


@pytest.mark.usefixtures("untouched")
def test_a_store_that_cannot_be_written_is_found_out_first(
    checkout: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before anything is checked out or built: nothing is said but the line, code 6."""
    run = measured(cpu_run(), git(checkout, "rev-parse", "HEAD"))
    (tmp_path / "store").write_text("")
    with pytest.raises(CommandError, match=r"^store .*: Not a directory; name a writable folder") as error:
        reproduce(Store(tmp_path / "store"), published(tmp_path / "runs", run), 0.01, checkout)
    assert error.value.code == Exit.INFRASTRUCTURE
    assert capsys.readouterr().out == ""


@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize("by_code", [True, False])
def test_interrupted_before_the_first_case(
    by_code: bool, checkout: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By Ctrl-C here or there: it is said that nothing was measured, and passed on."""

    def interrupted(command: list[str], *_: object) -> Ended:
        assert command[3:7] == [*HERE, "suites"]
        if by_code:
            return Ended(code=130)
        raise KeyboardInterrupt

    monkeypatch.setattr(session, "show", interrupted)
    run = measured(cpu_run(), git(checkout, "rev-parse", "HEAD"))
    run = replace(run, options=replace(run.options, command=("nox", "-s", "bench")))
    with pytest.raises(KeyboardInterrupt):
        reproduce(Store(tmp_path / "store"), published(tmp_path / "runs", run), 0.01, checkout)
    assert capsys.readouterr().out.splitlines()[-1] == "interrupted; nothing was measured"


def test_the_help_has_every_code(capsys: pytest.CaptureFixture[str]) -> None:
    """Each with what it means."""
    assert main(["reproduce", "--help"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    codes = [int(code) for code in re.findall(r"(?:with|;) (\d+): ", text)]
    assert codes == [int(code) for code in Exit]


def test_wrong_usage_and_damage_have_their_codes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """2 and 4, one line each; 3 for a run without cases."""
    folder = published(tmp_path, cpu_run())
    assert main(["reproduce", str(folder), "--threshold", "2"]) == 2
    assert main(["reproduce"]) == 2
    assert main(["reproduce", "no-such-run", "--store", str(tmp_path)]) == 4
    (folder / "build" / "x").write_text("")
    assert main(["reproduce", str(folder), "--store", str(tmp_path)]) == 4
    write_sums(folder)
    assert len(capsys.readouterr().err.splitlines()) == 4
    empty = replace(measured(cpu_run(), COMMIT), measurements=(), id="empty")
    assert main(["reproduce", str(published(tmp_path, empty)), "--store", str(tmp_path)]) == 3
    assert capsys.readouterr().err == "cannot be tried: the run has no cases\n"
