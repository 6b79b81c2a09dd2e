"""One reproduction, from the run's folder to the verdict."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console, Group

from harness.children import show
from harness.compare import compare
from harness.comparison.records import Change
from harness.comparison.request import Compared
from harness.comparison.text import comparison_text
from harness.errors import CommandError, Exit
from harness.model import BuildRecord, Run
from harness.reproduce import cannot
from harness.reproduce.building import VARIABLES, compilers_words, flag_variables, rebuild, said_of
from harness.reproduce.device import check_device
from harness.reproduce.request import Request, is_own, request_of
from harness.reproduce.source import check_commit, git_free, kept_changes, recorded_commit, restore, worktree
from harness.reproduce.verdict import Verdict, verdict
from harness.store import Store, load_whole
from harness.suites_command import suites_command
from harness.words import LONGEST_LINE, visible

NOT_INHERITED = frozenset({"PYTEST_ADDOPTS", "PYTEST_PLUGINS", *VARIABLES})
"""Environment variables that would change what is measured and are not in the recorded command line."""

AGAINST = (Change.SLOWER, Change.FASTER, Change.GONE)
"""Changes that speak against a reproduction."""


def reproduce(store: Store, folder: Path, threshold: float, root: Path) -> Exit:
    """Measure a run again, say how it went, and keep the new run.

    Args:
        store: where the new run goes.
        folder: of the run.
        threshold: beyond which a case is slower or faster, as a fraction.
        root: the checkout whose repository has the run's commit; its files are left alone.

    Raises:
        CommandError: it is damaged (RUN), it cannot be tried or the new run not be kept (INFRASTRUCTURE), or it is of
            another device (NOT_COMPARABLE).
        KeyboardInterrupt: Ctrl-C; nothing is left but what was measured.
    """
    run = load_whole(folder)
    if not run.measurements:
        raise cannot("the run has no cases", Exit.NOT_COMPARABLE)
    commit, changes, request = recorded_commit(run), kept_changes(run, folder), request_of(run, folder)
    check_commit(root, commit)
    device = check_device(run)
    store.check_writable()
    _say(f"run      {run.id}, {len(run.measurements)} cases on {run.environment.get('device_name')}")
    if run.options.uuid not in (None, device):
        _say(f"device   {device}: {run.options.uuid}, which the run was measured on, is not here")
    with _interruption_said(), worktree(root, commit) as tree:
        _say(f"source   {commit}{', with the changes that the run keeps' if changes else ''}")
        for line in restore(tree, changes, folder):
            _say(f"         {line}")
        environment = _environment(tree.parent, run.builds)
        with _compilers_heard(environment):
            for build in run.builds:
                if is_own(build):
                    _say(f"build    {build.library}: as the run keeps it, by the suites")
                    continue
                for line in said_of(build, rebuild(tree, build, environment)):
                    _say(f"build    {line}")
            new_folder = _measure(request.on(device), tree, environment, store)
    new = load_whole(new_folder)
    given = _judge(run, new, threshold)
    shown = ["python", "-m", "harness", "compare", str(folder.resolve()), str(new_folder.resolve()), "--all"]
    _say(f"new run  {new.id} in {store.name}")
    _say(f"         each case: {shlex.join(shown)}", longest=10 * LONGEST_LINE)
    _say(given.line, longest=10 * LONGEST_LINE)
    for line in store.send():
        _say(line)
    return given.code


@contextmanager
def _interruption_said() -> Iterator[None]:
    """Ctrl-C is passed on when it was said what is kept."""
    try:
        yield
    except KeyboardInterrupt as told:
        _say(f"interrupted; {str(told) or 'nothing was measured'}")
        raise


@contextmanager
def _compilers_heard(environment: Mapping[str, str]) -> Iterator[None]:
    """What compilers complained of is shown before their logs go away with the worktree."""
    try:
        yield
    except CommandError:
        for line in compilers_words(environment):
            _say(f"         {line}")
        raise


def _environment(work: Path, builds: tuple[BuildRecord, ...]) -> dict[str, str]:
    """Of every program of the worktree: builds in a cache of their own, so that all is built anew."""
    inherited = {name: value for name, value in git_free(dict(os.environ)).items() if name not in NOT_INHERITED}
    own = {"SGEMV_CACHE": str(work / "cache"), "PYTHONPYCACHEPREFIX": str(work / "pycache")}
    return {**inherited, **flag_variables(builds), **own}


def _measure(request: Request, tree: Path, environment: Mapping[str, str], store: Store) -> Path:
    """The folder of the new run, measured by the suites of the worktree."""
    if request.left_out:
        _say(f"measure  left out of the recorded command line: {shlex.join(request.left_out)}")
    typed = ["python", "-m", "pytest", *request.arguments]
    _say(f"measure  {shlex.join(typed)}")
    path_file = tree.parent / "run"
    where = [f"--store={store.root.resolve()}", "-p", "no:cacheprovider"]
    command = suites_command([*request.arguments, *where], path_file)
    try:
        ended = show(command, tree, {**environment, "SGEMV_COMMAND": shlex.join(typed)})
    except KeyboardInterrupt:
        raise _interrupted(path_file) from None
    if ended.code == Exit.INTERRUPTED:
        raise _interrupted(path_file)
    if ended.code not in (Exit.FINE, Exit.KERNEL) or not path_file.is_file():
        for line in store.recovered():
            _say(line)
        raise cannot(f"the suites of the run's commit ended with {ended.how}; the lines above say why")
    return Path(path_file.read_text(encoding="utf-8").strip())


def _interrupted(path_file: Path) -> KeyboardInterrupt:
    if not path_file.is_file():
        return KeyboardInterrupt()
    return KeyboardInterrupt(f"what was measured is kept: {path_file.read_text(encoding='utf-8').strip()}")


def _judge(run: Run, new: Run, threshold: float) -> Verdict:
    found = compare(run, new, threshold=threshold)
    compared = Compared(base=run, news=(new,), found=(found,), fails=AGAINST)
    _say("")
    shown = comparison_text(compared)
    if isinstance(shown, Group):
        shown = Group(*shown.renderables[:-1])  # the last line is the exit code of comparing
    Console(highlight=False, markup=False, emoji=False).print(shown)
    return verdict(compared)


def _say(line: str, longest: int = LONGEST_LINE) -> None:
    sys.stdout.write(f"{visible(line, longest)}\n")
    sys.stdout.flush()
