"""The code that a run was measured with: its commit in a worktree, with the changes that the run keeps."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

import filelock

from harness.children import uninterrupted
from harness.model import Run
from harness.reproduce import cannot

PREFIX = "sgemv-reproduce-"
"""Of temporary folders, each with a lock beside it that dies with its process."""

DIFF = Path("build", "source.diff")
"""In a run's folder: what its checkout had changed."""

UNTRACKED = "# untracked, not in this patch: "
"""Starts the lines of DIFF that name files which git did not know."""

KERNELS = PurePosixPath("kernels", "csrc")
"""Whose files every run keeps, in build/*/sources."""

MEASURING = frozenset({"harness", "kernels", "suites"})
"""Folders whose files take part in measuring; a file beside them does, too, if it can be code or settings."""

SETTINGS = frozenset({".py", ".toml", ".ini", ".cfg", ".pth"})


def git_free(environment: dict[str, str]) -> dict[str, str]:
    """The environment without what would send git elsewhere, as a hook's does."""
    return {name: value for name, value in environment.items() if not name.startswith("GIT_")}


def recorded_commit(run: Run) -> str:
    """The commit that a run was measured from.

    Raises:
        CommandError: the run does not know it (INFRASTRUCTURE).
    """
    commit = run.environment.get("git_commit")
    if commit is None:
        raise cannot(f"the run does not know its commit: {run.environment.unknown.get('git_commit', 'no reason kept')}")
    if not re.fullmatch(r"[0-9a-f]{40}|[0-9a-f]{64}", str(commit)):
        raise cannot(f"the run's commit is {commit!r}, wanted 40 or 64 hexadecimal digits")
    return str(commit)


def kept_changes(run: Run, folder: Path) -> str:
    """What the checkout had changed since its commit, as `environment.git_diff` wrote it; "" if nothing.

    Raises:
        CommandError: it had changes that the run does not keep, or whether it had is not known (INFRASTRUCTURE).
    """
    dirty, kept = run.environment.get("git_dirty"), folder / DIFF
    if kept.is_file():
        return kept.read_bytes().decode("utf-8", "surrogateescape")
    if dirty is None:
        unknown = run.environment.unknown.get("git_dirty", "no reason kept")
        raise cannot(f"whether the run's checkout had changes is not known: {unknown}")
    if dirty:
        raise cannot(f"the run's checkout had uncommitted changes, and the run does not keep them ({DIFF})")
    return ""


def check_commit(root: Path, commit: str) -> None:
    """Raise CommandError (INFRASTRUCTURE) unless the repository of the checkout `root` has the commit."""
    _git(root, "rev-parse", "--git-dir")
    if _run(root, "cat-file", "-e", f"{commit}^{{commit}}").returncode:
        raise cannot(f"commit {commit} is not in the repository of {root}: git fetch the branch that has it")


@contextmanager
def worktree(root: Path, commit: str) -> Iterator[Path]:
    """The commit's files in a worktree in a temporary folder, which goes away with all that is in it, come what may.

    Raises:
        CommandError: git makes none (INFRASTRUCTURE), with its words.
    """
    _clear_killed()
    folder, lock = _locked_folder()
    try:
        _git(root, "worktree", "add", "--quiet", "--detach", str(folder / "tree"), commit)
        yield folder / "tree"
    finally:
        with uninterrupted():
            _clear(folder, lock)
            _run(root, "worktree", "prune")


def _locked_folder() -> tuple[Path, filelock.BaseFileLock]:
    """A new temporary folder, locked before it is there to be found."""
    try:
        folder = Path(tempfile.gettempdir(), f"{PREFIX}{os.getpid()}-{os.urandom(3).hex()}")
        lock = filelock.FileLock(f"{folder}.lock")
        lock.acquire(timeout=0)
        folder.mkdir(mode=0o700)
    except OSError as error:
        raise cannot(f"no temporary folder: {error}; name a writable one with TMPDIR") from error
    return folder, lock


def _clear_killed() -> None:
    """Delete what killed processes left; git forgets their worktrees at the next prune."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*/"):
        lock = filelock.FileLock(f"{folder}.lock")
        try:
            lock.acquire(timeout=0)
        except OSError:  # filelock.Timeout is one
            continue  # its process is alive, or another user's
        _clear(folder, lock)


def _clear(folder: Path, lock: filelock.BaseFileLock) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    lock.release()
    Path(lock.lock_file).unlink(missing_ok=True)


def restore(tree: Path, changes: str, folder: Path) -> list[str]:
    """Make the kept changes in the worktree; a line for each that does not matter and cannot be made.

    Args:
        tree: the worktree.
        changes: of `kept_changes`.
        folder: the run's, which keeps the sources of kernels.

    Raises:
        CommandError: the patch does not apply, or a file that takes part in measuring is not kept (INFRASTRUCTURE).
    """
    if "diff --git " in changes:
        done = _run(tree, "apply", "--whitespace=nowarn", "-", said=changes.encode("utf-8", "surrogateescape"))
        if done.returncode:
            raise cannot(f"{DIFF} does not apply to the run's commit: {_complaint(done)}")
    lines = [line.removeprefix(UNTRACKED) for line in changes.split("\n") if line.startswith(UNTRACKED)]
    left = [name for name in lines if not _put_back(tree, name, folder)]
    for name in left:
        path = PurePosixPath(name.strip('"'))  # git puts names that it has to escape in quotes
        if MEASURING & set(path.parts[:1]) or (len(path.parts) == 1 and path.suffix in SETTINGS):
            raise cannot(f"{name} was not known to git, and the run does not keep it")
    return [f"{name} was not known to git and is not kept; it takes no part in measuring" for name in left]


def _put_back(tree: Path, name: str, folder: Path) -> bool:
    """Copy an untracked source of a kernel to where it was; False: the run does not keep such a file."""
    path = PurePosixPath(name)
    if not path.is_relative_to(KERNELS) or ".." in path.parts:
        return False
    target = tree / path
    for build in sorted((folder / "build").glob("*/sources")):
        kept = build / path.relative_to(KERNELS)
        if kept.is_file() and target.parent.resolve().is_relative_to(tree.resolve()) and not target.is_symlink():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(kept, target)
            return True
    return False


def _git(root: Path, *arguments: str) -> None:
    done = _run(root, *arguments)
    if done.returncode:
        raise cannot(f"git {arguments[0]} in {root}: {_complaint(done)}")


def _run(root: Path, *arguments: str, said: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """Git, without the user's hooks, in English."""
    command = ["git", "-c", "core.hooksPath=/dev/null", "-C", str(root), *arguments]
    environment = {**git_free(dict(os.environ)), "LC_ALL": "C"}
    try:
        return subprocess.run(command, input=said, capture_output=True, check=False, env=environment)
    except FileNotFoundError:
        raise cannot("git is not installed") from None


def _complaint(done: subprocess.CompletedProcess[bytes]) -> str:
    lines: Sequence[str] = done.stderr.decode(errors="replace").strip().splitlines()
    return lines[0] if lines else f"exit code {done.returncode}"
