"""`python -m harness reproduce`: the real thing on the CPU in a repository of its own, and what cannot be tried."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.__main__ import main
from harness.answers import Unknown
from harness.children import Ended, ask, show
from harness.compare import compare
from harness.comparison.request import Compared
from harness.device import GpuStatus, Usability, cpu_name
from harness.ending import interrupted_once
from harness.environment import git_diff
from harness.errors import CommandError, Exit
from harness.model import KernelResources, Run
from harness.reproduce import building, device, session, source
from harness.reproduce.request import request_of
from harness.reproduce.session import AGAINST, reproduce
from harness.reproduce.verdict import verdict
from harness.store import Store, load
from harness.store.draft import write_run, write_sums
from harness.suites_command import HERE
from tests.built import shared_cache
from tests.sample_run import HOSTILE, cpu_run, cuda_build, gpu_run

ROOT = Path(__file__).parents[1]
QUICKLY = ("--shape", "64x64", "--kernel", "torch.matmul", "--trials", "1", "--max-time", "0.01", "--device", "cpu",
           "--timer", "async", "--cache", "cold")  # fmt: skip
TINY = ("--shape", "64x64", "--kernel", "sgemv_cpu_f32", "--trials", "2", "--max-time", "0.01", "--device", "cpu")


def git(folder: Path, *arguments: str) -> str:
    """What git prints, as nobody in particular."""
    who = ["-c", "user.name=nobody", "-c", "user.email=nobody@example.org", "-c", "commit.gpgsign=false"]
    done = subprocess.run(["git", *who, *arguments], cwd=folder, capture_output=True, text=True, check=True, timeout=60)
    return done.stdout.strip()


def quiet_environment(**changes: str) -> dict[str, str]:
    dropped = ("SGEMV_STORE", "PYTEST_ADDOPTS", "PYTEST_CURRENT_TEST")
    kept = {name: value for name, value in os.environ.items() if name not in dropped and not name.startswith("GIT_")}
    return {**kept, "SGEMV_CACHE": str(shared_cache()), **changes}


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with one commit: this project's own files as they are now."""
    folder = tmp_path_factory.mktemp("checkout")
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
    for part in ("harness", "kernels", "suites"):
        shutil.copytree(ROOT / part, folder / part, ignore=ignored)
    for name in ("pyproject.toml", "constraints.txt", ".gitignore"):
        shutil.copy(ROOT / name, folder)
    git(folder, "init", "--quiet", "--initial-branch=main")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "all")
    return folder


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


@pytest.fixture
def untouched(checkout: Path) -> Iterator[None]:
    """The checkout is afterwards what it was, and has no other worktree."""
    yield
    assert git(checkout, "status", "--porcelain") == ""
    assert len(git(checkout, "worktree", "list").splitlines()) == 1
    assert git(checkout, "stash", "list") == ""
    assert not list((checkout / ".git").glob("worktrees/*"))


def measured(run: Run, commit: str, **values: Any) -> Run:
    """The run as if it were of this machine's CPU, that commit, and nothing that has to be built."""
    name = cpu_name()
    known = {"device_name": None if isinstance(name, Unknown) else name, "git_commit": commit, "git_dirty": False}
    environment = replace(run.environment, values={**run.environment.values, **known, **values})
    return replace(run, environment=environment, builds=())


def published(store: Path, run: Run, **files: str) -> Path:
    """The run's folder; `files` by name below build/."""
    folder = store / run.id
    (folder / "build").mkdir(parents=True)
    for name, text in files.items():
        (folder / "build" / name.replace("_", ".")).write_text(text)
    write_run(folder, run)
    return folder


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
    try:
        deadline = time.monotonic() + 90
        while "torch.matmul  " not in log.read_text() and time.monotonic() < deadline and program.poll() is None:
            time.sleep(0.02)
        program.send_signal(signal.SIGINT)
        code = program.wait(timeout=60)
    finally:
        program.kill()
        program.wait()
    assert code == 130, log.read_text()
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


def refused(folder: Path, checkout: Path, tmp_path: Path) -> CommandError:
    with pytest.raises(CommandError) as error:
        reproduce(Store(tmp_path / "store"), folder, 0.01, checkout)
    assert not (tmp_path / "store").exists()
    assert "\n" not in str(error.value)
    return error.value


COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize(
    ("values", "line"),
    [
        ({"git_commit": COMMIT}, f"commit {COMMIT} is not in the repository of .*: git fetch the branch that has it"),
        ({"git_commit": None}, "the run does not know its commit: no reason kept"),
        (
            {"git_commit": "--output=/tmp/x"},
            "the run's commit is '--output=/tmp/x', wanted 40 or 64 hexadecimal digits",
        ),
        (
            {"git_dirty": True},
            r"the run's checkout had uncommitted changes, and the run does not keep them \(build/source",
        ),
        ({"git_dirty": None}, "whether the run's checkout had changes is not known: no reason kept"),
    ],
    ids=["missing commit", "unknown commit", "hostile commit", "dirty", "perhaps dirty"],
)
def test_a_run_whose_code_cannot_be_had(values: dict[str, Any], line: str, checkout: Path, tmp_path: Path) -> None:
    """One line, code 6, nothing made."""
    run = measured(cpu_run(), git(checkout, "rev-parse", "HEAD"), **values)
    error = refused(published(tmp_path / "runs", run), checkout, tmp_path)
    assert re.match(f"cannot be tried: {line}", str(error))
    assert error.code == Exit.INFRASTRUCTURE


PATCH = """diff --git a/harness/cases.py b/harness/cases.py
--- a/harness/cases.py
+++ b/harness/cases.py
@@ -1,1 +1,1 @@
-never was here
+nor will be
"""


@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize(
    ("changes", "line"),
    [
        (PATCH, "build/source.diff does not apply to the run's commit: error: patch failed: harness/cases.py:1"),
        (PATCH.replace("harness/cases.py", "../../outside"), "build/source.diff does not apply to the run's commit: "),
        (f"{source.UNTRACKED}suites/mine.py\n", "suites/mine.py was not known to git, and the run does not keep it"),
        (f"{source.UNTRACKED}conftest.py\n", "conftest.py was not known to git, and the run does not keep it"),
        (
            f'{source.UNTRACKED}"suites/a\\tb.py"\n',
            '"suites/a\\tb.py" was not known to git, and the run does not keep it',
        ),
        (f"{source.UNTRACKED}kernels/csrc/../x.cu\n", "kernels/csrc/../x.cu was not known to git, and the run does"),
    ],
    ids=["other lines", "outside", "untracked suite", "untracked settings", "quoted", "hostile"],
)
def test_changes_that_cannot_be_made(changes: str, line: str, checkout: Path, tmp_path: Path) -> None:
    """One line, code 6; the worktree is gone again."""
    run = measured(cpu_run(), git(checkout, "rev-parse", "HEAD"), git_dirty=True)
    error = refused(published(tmp_path / "runs", run, source_diff=changes), checkout, tmp_path)
    assert str(error).startswith(f"cannot be tried: {line}")
    assert error.code == Exit.INFRASTRUCTURE


@pytest.mark.usefixtures("untouched")
def test_untracked_kernels_are_put_back_from_the_build(checkout: Path, tmp_path: Path) -> None:
    """As `git_diff` names them: their sources are in the run. What takes no part in measuring is said and left."""
    mine = checkout / "kernels" / "csrc" / "mine.cpp"
    notes = checkout / "notes.txt"
    mine.write_text("// é\n")
    notes.write_text("")
    changes = git_diff(checkout)
    mine.unlink()
    notes.unlink()
    assert isinstance(changes, str)
    kept = tmp_path / "run" / "build" / "cpu" / "sources"
    kept.mkdir(parents=True)
    (kept / "mine.cpp").write_text("// é\n")
    with source.worktree(checkout, git(checkout, "rev-parse", "HEAD")) as tree:
        said = source.restore(tree, changes, tmp_path / "run")
        assert (tree / "kernels" / "csrc" / "mine.cpp").read_text() == "// é\n"
        assert git(tree, "status", "--porcelain") == "?? kernels/csrc/mine.cpp"
    assert said == ["notes.txt was not known to git and is not kept; it takes no part in measuring"]
    assert not tree.exists()


def in_a_worktree(checkout: Path, ending: type[BaseException], trees: list[Path]) -> None:
    with source.worktree(checkout, git(checkout, "rev-parse", "HEAD")) as tree:
        trees.append(tree)
        assert (tree / "suites" / "test_sgemv.py").is_file()
        raise ending


@pytest.mark.usefixtures("untouched")
def test_a_worktree_goes_away_whatever_happens(checkout: Path) -> None:
    """Hooks of the user do not run in it."""
    hook = checkout / ".git" / "hooks" / "post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    trees: list[Path] = []
    try:
        for kind in (ValueError, KeyboardInterrupt):
            with pytest.raises(kind):
                in_a_worktree(checkout, kind, trees)
    finally:
        hook.unlink()
    assert len(trees) == 2
    assert not any(tree.parent.exists() for tree in trees)


KILLED = """
import os, signal, sys
from pathlib import Path
from harness.reproduce.source import worktree
with worktree(Path(sys.argv[1]), sys.argv[2]) as tree:
    print(tree, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.usefixtures("untouched")
def test_what_a_killed_reproduction_left_goes_away(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the next start, with git's entry of it; one that is at work is left alone."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    commit = git(checkout, "rev-parse", "HEAD")
    program = [sys.executable, "-c", KILLED, str(checkout), commit]
    done = subprocess.run(
        program, cwd=ROOT, env=quiet_environment(TMPDIR=str(tmp_path)), stdout=subprocess.PIPE, text=True, check=False,
        timeout=60,
    )  # fmt: skip
    left = Path(done.stdout.strip())
    assert done.returncode == -signal.SIGKILL
    assert left.parent.parent == tmp_path
    assert (left / "suites").is_dir()
    assert str(left) in git(checkout, "worktree", "list")
    with source.worktree(checkout, commit) as tree:
        assert not left.parent.exists()
        with source.worktree(checkout, commit) as other:
            assert tree.is_dir()
            assert other.is_dir()
        assert str(left) not in git(checkout, "worktree", "list")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("untouched")
def test_a_build_that_fails_shows_what_the_compiler_said(
    checkout: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its log is in a cache that goes away: the line names no file of it."""
    kernel = checkout / "kernels" / "csrc" / "sgemv_cpu_f32.cpp"
    text = kernel.read_text()
    kernel.write_text(f"nonsense\n{text}")
    patch = git_diff(checkout)
    kernel.write_text(text)
    assert isinstance(patch, str)
    run = measured(cpu_run(), git(checkout, "rev-parse", "HEAD"), git_dirty=True)
    run = replace(run, builds=(replace(cuda_build(), target="cpu", architectures=()),))
    error = refused(published(tmp_path / "runs", run, source_diff=patch), checkout, tmp_path)
    assert str(error).startswith("cannot be tried: the kernels do not build (cpu): ")
    assert source.PREFIX not in str(error)
    assert "the compiler's words are in the lines above" in str(error)
    out = capsys.readouterr().out
    assert re.search(r"\n         .*sgemv_cpu_f32\.cpp:1:1: error: .*nonsense", out)


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


def test_no_repository_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"^cannot be tried: git rev-parse in .*: fatal: not a git repository"):
        source.check_commit(tmp_path, COMMIT)


def test_a_gpu_run_needs_a_usable_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """The line of the machine, code 6."""
    monkeypatch.setattr(device, "gpu_status", lambda *_: GpuStatus(word=Usability.NONE, reason="no NVIDIA GPU found"))
    with pytest.raises(CommandError) as error:
        device.check_device(gpu_run())
    wanted = "the run is of NVIDIA H200, this machine has no usable GPU: no NVIDIA GPU found"
    assert (str(error.value), error.value.code) == (f"cannot be tried: {wanted}", 6)


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        ({}, None),
        ({"gpu_name": "NVIDIA A100"}, "other GPU model: NVIDIA A100 against NVIDIA H200"),
        ({"sm_count": 16}, "other sm_count: 16 against 132"),  # a MIG instance of it
        ({"torch_version": "9.9", "allow_tf32": True}, None),
    ],
)
def test_another_gpu_is_not_comparable(
    facts: dict[str, Any], reason: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Code 3, before anything is built; what this process's torch is set to says nothing of a bench's."""
    run = gpu_run()
    here = {**run.environment.values, **facts}
    monkeypatch.setattr(device, "gpu_status", lambda *_: GpuStatus(word=Usability.USABLE))
    answer = Ended(code=0, stdout=json.dumps({"values": here, "unknown": {}}))
    monkeypatch.setattr(device, "ask", lambda *_: answer)
    if reason is None:
        device.check_device(run)
        return
    with pytest.raises(CommandError) as error:
        device.check_device(run)
    assert (str(error.value), error.value.code) == (f"cannot be tried: {reason}", 3)


def test_another_cpu_is_not_comparable() -> None:
    """Code 3; this one is."""
    device.check_device(measured(cpu_run(), COMMIT))
    with pytest.raises(CommandError, match=r"^cannot be tried: other device: .* against Other CPU$") as error:
        device.check_device(measured(cpu_run(), COMMIT, device_name="Other CPU"))
    assert error.value.code == 3


def asked(*words: str, on: str = "cuda:0") -> Run:
    run = gpu_run(shapes=((64, 64),), kernels={}, trials=1)
    return replace(run, options=replace(run.options, command=words, device=on))


BENCH = ("nox", "-s", "bench", "--")


@pytest.mark.parametrize(
    ("words", "arguments", "left_out"),
    [
        (("nox", "-s", "bench"), "suites --device=cuda:0", ""),
        (("nox", "-s", "selfcheck", "--", "--store", "/x"), "suites --selfcheck --device=cuda:0", ""),
        ((*BENCH, "--timer", "graph", "--trials=9", "--ref=b"), "suites --timer=graph --trials=9 --device=cuda:0", ""),
        (
            ("nox", "-s", "peers", "--", "--kernel", "a", "--kernel=b", "-k", "not read", "--max-time", "0.1"),
            "suites --kernel=a --kernel=b --max-time=0.1 -k|not read --peers --device=cuda:0", "",
        ),
        (
            ("python", "-m", "pytest", "suites/test_sgemv.py", "-x", "--device", "cuda:3", "--path-file=x"),
            "suites/test_sgemv.py --device=cuda:0", "-x",
        ),
        ((*BENCH, "-p", "evil", "--rootdir=/x", "/etc/x.py", "suites/../x.py"), "suites --device=cuda:0",
         "-p evil --rootdir=/x /etc/x.py suites/../x.py"),
        ((*BENCH, "--first-element=1", "--layout", "col", "--row-stride", "70", "--shape", "8x8:col"),
         "suites --shape=8x8:col --layout=col --row-stride=70 --first-element=1 --device=cuda:0", ""),
        ((*BENCH, "--shape", "8x8", "-q", "--benchmark-json=/etc/passwd"), "suites --shape=8x8 --device=cuda:0",
         "-q --benchmark-json=/etc/passwd"),
        ((*BENCH, "--regimes"), "suites --regimes --device=cuda:0", ""),
        (("nox", "-s", "tune", "--", "--trials=9", "--shape=8x8"),
         "suites --shape=8x8 --timer=graph --cache=cold --trials=9 --variants --device=cuda:0", ""),
        (("nox", "-s", "roofline", "--", "--dtype", "float16", "--dtype=int8"),
         "suites --suite=roofline --dtype=float16 --dtype=int8 --device=cuda:0", ""),
    ],
    ids=["all", "selfcheck", "one timer", "peers", "pytest", "hostile", "a view", "files", "regimes", "tune",
         "roofline"],
)  # fmt: skip
def test_only_options_that_say_what_is_measured_are_taken(
    words: tuple[str, ...], arguments: str, left_out: str
) -> None:
    """In the words of the suites, on the device that the run had; what is left out is told."""
    found = request_of(asked(*words), Path())
    wanted = [part.replace("|", " ") for part in arguments.split(" ")] if "|" not in arguments else None
    assert " ".join(found.arguments) == arguments.replace("|", " ")
    assert wanted is None or list(found.arguments) == wanted
    assert " ".join(found.left_out) == left_out


@pytest.mark.parametrize(
    ("run", "line"),
    [
        (
            asked("rm", "-rf", "/"),
            "the run's command line is 'rm -rf /', wanted nox -s bench or python -m pytest suites",
        ),
        (
            asked("nox", "-s", "lint"),
            "the run's command line is 'nox -s lint', wanted nox -s bench or python -m pytest",
        ),
        (asked(*BENCH, "--trials"), "the run's command line: pytest: argument --trials: expected one argument"),
        (asked("nox", "-s", "bench", on="cuda;x"), "the run's device is 'cuda;x', wanted cpu, cuda or cuda:N"),
        (asked(HOSTILE), "the run's command line is "),
    ],
)
def test_a_command_line_that_measures_nothing(run: Run, line: str) -> None:
    with pytest.raises(CommandError) as error:
        request_of(run, Path())
    assert str(error.value).startswith(f"cannot be tried: {line}")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("target", ["own/x", "own/../../elsewhere", "own/../own2/x", "own"])
def test_own_kernels_are_those_that_the_run_keeps(target: str, tmp_path: Path) -> None:
    """Whatever the file of the command line has become; nothing outside of the run is taken for one."""
    build = replace(cuda_build(), target=target, library="x.py")
    for name in ("run/build/own/x", "elsewhere", "run/build/own2/x"):
        (tmp_path / name / "sources").mkdir(parents=True)
        (tmp_path / name / "sources" / "x.py").write_text("")
    run = replace(asked(*BENCH, "--kernels", "/etc/evil.py"), builds=(cuda_build(), build))
    folder = tmp_path / "run"
    if target == "own/x":
        kept = folder.resolve() / "build/own/x/sources/x.py"
        assert request_of(run, folder).arguments == ("suites", f"--kernels={kept}", "--device=cuda:0")
    else:
        with pytest.raises(CommandError, match=r"^cannot be tried: the run's own kernels: .*x\.py is no file of "):
            request_of(run, folder)


def test_own_kernels_that_are_not_kept() -> None:
    """As of a run whose record was cut down."""
    with pytest.raises(CommandError, match=r"^cannot be tried: the run keeps no file of --kernels$"):
        request_of(asked(*BENCH, "--kernels", "x.py"), Path())


def test_problems_of_a_file_are_those_that_were_measured() -> None:
    """In every word that says one; the file may be another by now."""
    options = (*BENCH, "--shapes", "s.csv", "--dtype", "float32", "--shape", "9x9", "--layout=col")
    run = gpu_run(shapes=((64, 64), (8, 16)), trials=1)
    run = replace(run, options=replace(run.options, command=options, device="cuda:0"))
    assert request_of(run, Path()).arguments == ("suites", "--shape=64x64", "--shape=8x16", "--device=cuda:0")


def test_a_build_that_came_out_alike_says_so() -> None:
    """Bit for bit; of the C++ kernels, whose objects are hashed, in other words."""
    build = cuda_build()
    assert building.said_of(build, build) == ["device code: identical, bit for bit (1 source)"]
    cpu = replace(build, target="cpu")
    assert building.said_of(cpu, cpu) == ["machine code of the C++ kernels: identical, bit for bit (1 source)"]
    bare = replace(build, device_code_sha256={})
    assert building.said_of(bare, build) == ["device code: the run keeps no hash of it"]


def test_a_build_that_came_out_otherwise_says_what_differs() -> None:
    """Which code, which tools, which kernels' needs."""
    old = replace(cuda_build(), device_code_sha256={f"{name}.cu:sm_90": name for name in "abcdef"})
    hashes = {**old.device_code_sha256, "a.cu:sm_90": "x", "c.cu:sm_90": "x"}
    needs = KernelResources(
        function="f", arch="sm_90", registers=1,
        spill_store_bytes=0, spill_load_bytes=0, stack_bytes=0, static_shared_bytes=0,
    )  # fmt: skip
    new = replace(old, device_code_sha256=hashes, resources=(*old.resources, needs))
    assert building.said_of(old, new) == [
        "device code: 2 of 6 differ: a.cu:sm_90, c.cu:sm_90, though compiler, flags and sources are the same",
        "registers, spills or shared memory differ for: f",
    ]
    newer = replace(new, compiler_version="nvcc 13.1", resources=old.resources)
    assert building.said_of(old, newer) == [
        "compiler: nvcc 13.0.88 for the run, nvcc 13.1 here",
        "device code: 2 of 6 differ: a.cu:sm_90, c.cu:sm_90; so do: compiler",
    ]


def test_nvcc_gets_the_flags_that_it_had() -> None:
    """From its own variables, and no other variable from a record."""
    flags = ("-O3", "NVCC_APPEND_FLAGS=-O1 -G", "LD_PRELOAD=x", "PATH=/x")
    assert building.flag_variables((replace(cuda_build(), flags=flags),)) == {"NVCC_APPEND_FLAGS": "-O1 -G"}


@pytest.mark.usefixtures("untouched")
def test_kernels_that_do_not_build_or_are_others(checkout: Path) -> None:
    """One line, with the compiler's complaint; and sources that are not the run's are not measured."""
    build = replace(cuda_build(), target="cpu", architectures=())
    with source.worktree(checkout, git(checkout, "rev-parse", "HEAD")) as tree:
        with pytest.raises(
            CommandError, match=r"^cannot be tried: .* in kernels/csrc is not what the run was built from$"
        ):
            building.rebuild(tree, build, quiet_environment())
        (tree / "kernels" / "csrc" / "sgemv_cpu_f32.cpp").write_text('#include "op.h"\nnonsense\n')
        with pytest.raises(CommandError, match=r"^cannot be tried: the kernels do not build \(cpu\): .*") as error:
            building.rebuild(tree, build, quiet_environment())
    assert error.value.code == 6


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
time.sleep(0.3)
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
