"""The store: a folder of published runs, found by path, id, prefix, `latest`, ref or environment; how one is read."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from harness.errors import CommandError, Exit
from harness.store.draft import Draft
from harness.store.published import is_run, load, load_whole, no_run, read_run, verify
from harness.store.refs import REF_NAME, check_ref_name, damage, meaning
from harness.store.store_folder import make_store, try_to_write, unwritable

__all__ = ["AT_ONCE", "GONE", "SELECTORS", "Store", "is_run", "load", "load_whole", "read_run", "verify"]

GONE = ".pruned-"
"""How the folder of a run begins while it is deleted."""
NAMED = 5
"""Ids that a message lists at most."""
AT_ONCE = 50
"""Runs whose heads are fetched together."""
SELECTORS = "a path, an id or its start, latest, latest~N, a ref, or key=value[,key=value] of the environment"


class Store:
    """Published runs under one folder."""

    def __init__(self, root: Path) -> None:
        self.root = root
        """Where drafts are made, and runs published."""
        self.name = str(root)
        """What the store is called."""
        self.derived = root
        """Folder for what is made of its runs, such as pages."""
        self.kept_aside: list[str] = []
        """After `recover`: a line for each draft that could not be published and was left where it is."""

    def recover(self) -> list[Path]:
        """Publish what killed processes left, as partial runs; the new runs' folders."""
        self.kept_aside.clear()
        published = []
        for draft in Draft.abandoned(self.root):
            try:
                published.append(draft.publish(partial=True))
            except CommandError as kept:  # it cannot be read, or there is no room to publish it
                self.kept_aside.append(str(kept))
        return [path for path in published if path is not None]

    def recovered(self) -> list[str]:
        """`recover`, and what to say of it: a line a run, and one a draft that was left where it is."""
        what = "published what a bench had measured before it was killed"
        return [*(f"{what}: {path}; no ref means it" for path in self.recover()), *self.kept_aside]

    def check_writable(self) -> None:
        """Find out before much work; nothing is left behind.

        Raises:
            CommandError: it cannot be written to, or not be made (INFRASTRUCTURE).
        """
        try_to_write(self.root)

    def ids(self) -> list[str]:
        """Ids of all published runs, oldest first; also of one that lost its run.json or its sums."""
        return sorted(path.name for path in self.root.glob("[!.]*") if is_run(path))

    def missing(self) -> str:
        """What is said after the name of a store whose folder is not there, which has no runs; else nothing."""
        return "" if self.root.is_dir() else ": there is no such folder"

    def unsent(self) -> list[str]:
        """Of them, those that are not where the store keeps its runs, but on this machine alone."""
        return []

    def send(self) -> list[str]:
        """Bring them there; a line for each that was.

        Raises:
            CommandError: one cannot be brought there (INFRASTRUCTURE); it stays here.
        """
        return []

    def folder(self, run_id: str) -> Path:
        """Where all files of the run `run_id` can be read.

        Raises:
            CommandError: it is damaged or gone (RUN), or cannot be fetched (INFRASTRUCTURE).
        """
        return self.root / run_id

    def head(self, run_id: str) -> Path:
        """Where at least run.json and SHA256SUMS of a run can be read; raises as `folder`."""
        return self.folder(run_id)

    def prefetch(self, run_ids: Sequence[str]) -> None:
        """Prepare for the heads of many runs."""

    def place(self, run_id: str) -> str:
        """What a run's place is called."""
        return str(self.folder(run_id))

    def verify(self, run_id: str) -> None:
        """Check every file of a run against its sum, and that it can be read.

        Raises:
            CommandError: as `load_whole` (RUN), or it cannot be fetched (INFRASTRUCTURE).
        """
        load_whole(self.folder(run_id))

    def delete(self, run_id: str) -> None:
        """Delete a run. Cut short, it leaves nothing that looks like a damaged one.

        Raises:
            CommandError: it cannot be deleted (INFRASTRUCTURE).
        """
        gone = self.root / f"{GONE}{run_id}"
        try:
            (self.root / run_id).rename(gone)
            shutil.rmtree(gone)
        except OSError as error:
            raise unwritable(self.root, error) from error

    def tidy(self) -> None:
        """Delete what is left of runs whose deletion was cut short."""
        for path in self.root.glob(f"{GONE}*"):
            shutil.rmtree(path, ignore_errors=True)

    def resolve(self, selector: str) -> Path:
        """Folder of the run that `selector` names.

        Raises:
            CommandError: nothing or more than one run fits (RUN), with what was looked for; or as `folder`.
        """
        path = Path(selector)
        return path if is_run(path) else self.folder(self.find(selector))

    def find(self, selector: str) -> str:
        """Id of the run that `selector` names, which is no path here; raises as `resolve`."""
        ids = self.ids()
        if selector in ids:
            return selector
        found = self._latest(selector, ids) or self._ref(selector, ids) or self._by_environment(selector, ids)
        if found is not None:
            return found
        starting = [each for each in ids if each.startswith(selector)]
        if len(starting) == 1:
            return starting[0]
        what = f"no such run among {len(ids)} in {self.name}{self.missing()}"
        if starting:
            more = f" and {len(starting) - NAMED} more" if len(starting) > NAMED else ""
            what = f"{len(starting)} runs start with it: {', '.join(starting[:NAMED])}{more}"
        elif os.path.exists(selector):  # noqa: PTH110 - false for what no path can be called
            raise CommandError(f"run {selector!r}: {no_run(Path(selector))}", Exit.RUN)
        raise CommandError(f"run {selector!r}: {what}; wanted {SELECTORS}", Exit.RUN)

    def set_ref(self, name: str, run_id: str) -> str | None:
        """Make `name` mean `run_id`, which is one of this machine's; None: it does.

        Returns:
            Of a run that was cut short a line: it takes no ref, since whoever names one means a whole run.

        Raises:
            CommandError: not a name (USAGE), or the store cannot be written to (INFRASTRUCTURE).
        """
        check_ref_name(name)
        if is_run(self.root / run_id) and read_run(self.root / run_id).partial:
            return f"ref {name!r} {self._still(name)}: run {run_id} was cut short; measure it again"
        target = self.root / "refs" / name
        try:
            make_store(self.root)
            target.parent.mkdir(exist_ok=True)
            temporary = target.with_name(f".{name}-{os.urandom(4).hex()}")
            temporary.write_text(run_id + "\n", encoding="utf-8")
            temporary.replace(target)
        except OSError as error:
            raise unwritable(self.root, error) from error
        return None

    def refs(self) -> dict[str, list[str]]:
        """The refs' names by the id that they mean, each sorted."""
        found: dict[str, list[str]] = {}
        for name in self.ref_names():
            if (run_id := self.ref(name)) is not None:
                found.setdefault(run_id, []).append(name)
        return found

    def ref_names(self) -> list[str]:
        """Every ref, sorted."""
        return sorted(path.name for path in (self.root / "refs").glob("[!.]*"))

    def ref(self, name: str) -> str | None:
        """The id that a ref means, empty where its file is damaged; None: there is no such ref."""
        content = self.ref_content(name)
        return None if content is None else meaning(content)

    def ref_content(self, name: str) -> bytes | None:
        """What the file of a ref holds; None: there is no such ref."""
        try:
            return (self.root / "refs" / name).read_bytes()
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
            return None

    def _still(self, name: str) -> str:
        """What becomes of a ref that is not set, in words."""
        try:
            means = self.ref(name)
        except CommandError:  # a server that is silent now: to send the run, which comes next, says so
            means = ""
        return "is not set" if means is None else f"stays at {means}" if means else "stays as it is"

    def _latest(self, selector: str, ids: list[str]) -> str | None:
        match = re.fullmatch(r"latest(?:~(\d{1,9}))?", selector)
        if match is None:
            return None
        back = int(match[1] or 0)
        if back >= len(ids):
            raise CommandError(
                f"run {selector!r}: the store {self.name} holds {len(ids)} run{'' if len(ids) == 1 else 's'}"
                f"{self.missing()}",
                Exit.RUN,
            )
        return ids[-1 - back]

    def _ref(self, selector: str, ids: list[str]) -> str | None:
        content = self.ref_content(selector) if re.fullmatch(REF_NAME, selector) else None
        if content is None:
            return None
        run_id = meaning(content)
        if run_id not in ids:
            what = f"names {run_id}, which is not in {self.name}"
            if why := damage(content):
                what = f"{why}; nox -s bench -- --ref {selector} sets it again"
            raise CommandError(f"ref {selector!r}: {what}", Exit.RUN)
        return run_id

    def _by_environment(self, selector: str, ids: list[str]) -> str | None:
        pairs = [part.partition("=") for part in selector.split(",")]
        if not all(equals for _, equals, _ in pairs):
            return None
        newest_first = ids[::-1]
        for place, run_id in enumerate(newest_first):
            if place % AT_ONCE == 0:
                self.prefetch(newest_first[place : place + AT_ONCE])
            try:
                run = read_run(self.head(run_id))
            except CommandError as error:
                if error.code is not Exit.RUN:
                    raise
                continue  # damaged, as `verify` says; it must not hide the others
            if all(str(run.environment.get(key)) == wanted for key, _, wanted in pairs):
                return run_id
        raise CommandError(f"run {selector!r}: none of {len(ids)} runs in {self.name} has it", Exit.RUN)
