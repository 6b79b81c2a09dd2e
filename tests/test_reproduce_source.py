"""harness.reproduce.source: the run's commit and changes in a worktree that goes away, or why they cannot be had."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from harness.environment import git_diff
from harness.errors import CommandError, Exit
from harness.reproduce import source
from tests.checkouts import COMMIT, ROOT, checkout, git, measured, published, quiet_environment, refused, untouched
from tests.sample_run import cpu_run

__all__ = ["checkout", "untouched"]


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


def test_no_repository_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"^cannot be tried: git rev-parse in .*: fatal: not a git repository"):
        source.check_commit(tmp_path, COMMIT)
