"""A store at a URL: a store in a folder of this machine, its mirror, and behind it an object for each run.

A run is measured and published into the mirror as into any store, then sent: one object, made whole or not at all.
Whatever comes between, it stays in the mirror until a later command has sent it. What is read is fetched into the
mirror once, and checked; what is sent and fetched is marked, so that what is not marked is known to be here alone.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import filelock
import platformdirs

from harness.errors import CommandError, Exit
from harness.store import AT_ONCE, Store, is_run, load, read_run, verify
from harness.store.refs import REF_NAME, meaning
from harness.store.remote import Remote
from harness.store.run_archive import damaged, pack, tar_of, unpack, unpack_head
from harness.store.run_id import started_of
from harness.store.store_folder import DEFAULT_ROOT, MIRROR_OF, make_store, why

ENDING = ".tar.gz"
RUN_ID = r"[A-Za-z0-9][A-Za-z0-9._+-]{0,199}"
"""An object of another name is none of ours."""

SENT, HEADS, FETCHING = ".sent", ".heads", ".fetch-"
"""In the mirror: a mark for each run that is at the URL, beginnings of runs, and what is being fetched."""

HEAD_BYTES = 1 << 18
"""Of an object: they hold a run.json of several MB."""

ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")


def mirror_of(url: str) -> Path:
    """The folder that mirrors the store at a URL; of another server, another one.

    It is among the user's state and not in a cache, which may be emptied at any time: it can hold runs that are nowhere
    else yet.
    """
    folder = platformdirs.user_state_path("sgemv-bench") / "stores"
    if not folder.is_absolute():
        what = f"no home folder for what is kept of {url} (found {folder}); set XDG_STATE_HOME to a folder"
        raise CommandError(what, Exit.INFRASTRUCTURE)
    server = next((os.environ[name] for name in ENDPOINTS if os.environ.get(name)), "")
    return folder / hashlib.sha256(f"{server} {url}".encode()).hexdigest()[:16]


class UrlStore(Store):
    """Published runs at a URL."""

    def __init__(self, url: str) -> None:
        super().__init__(mirror_of(url))
        self.name = url
        self.derived = DEFAULT_ROOT
        self._remote = Remote(url)

    def recovered(self) -> list[str]:
        """Also what an earlier command could not send."""
        said = super().recovered()
        try:
            return said + self.send()
        except CommandError as error:
            return [*said, str(error)]

    def check_writable(self) -> None:
        """Find out before much work; a new store gets a marker."""
        with self._into_mirror():
            pass
        super().check_writable()
        self._remote.check_writable()

    def ids(self) -> list[str]:
        """Of the runs at the URL, and of those that are still here alone."""
        return sorted({*self._listed(), *self.unsent()})

    def missing(self) -> str:
        """Nothing: what is below a URL has no folder."""
        return ""

    def unsent(self) -> list[str]:
        """Runs in the mirror without a mark."""
        return [run_id for run_id in super().ids() if not (self.root / SENT / run_id).exists()]

    def send(self) -> list[str]:
        """Send what is here alone, then the refs that were set here."""
        if not self.unsent() and not super().ref_names():
            return []
        said, refused = list[str](), list[str]()
        with self._into_mirror(), self._held("sending"):  # or each of many processes would send the runs of all
            for run_id in self.unsent():
                line = self._send(run_id)
                (said if line is None else refused).append(line or f"sent {self.place(run_id)}")
            said += self._send_refs()
        if refused:
            raise CommandError("; ".join(refused), Exit.INFRASTRUCTURE)
        return said

    def folder(self, run_id: str) -> Path:
        """In the mirror, where it is fetched to at need."""
        kept = self.root / run_id
        if not is_run(kept):
            content = self._content(run_id)
            with self._into_mirror() as fetching:
                self._unpack(run_id, content, fetching / run_id)
                self._mark_sent(run_id)
                _move(fetching / run_id, kept)
        return kept

    def head(self, run_id: str) -> Path:
        """Its beginning alone, where that can be read."""
        if is_run(self.root / run_id):
            return self.root / run_id
        kept = self.root / HEADS / run_id
        if not is_run(kept):
            self.prefetch([run_id])
        return kept if is_run(kept) else self.folder(run_id)  # which says what is wrong with it

    def prefetch(self, run_ids: Sequence[str]) -> None:
        """Fetch the beginnings of runs that are not here."""
        wanted = [each for each in run_ids if not is_run(self.root / each) and not is_run(self.root / HEADS / each)]
        for start in range(0, len(wanted), AT_ONCE):
            self._fetch_heads(wanted[start : start + AT_ONCE])

    def place(self, run_id: str) -> str:
        """The URL of its object; of a run that is here alone, its folder."""
        return str(self.root / run_id) if run_id in self.unsent() else f"{self.name}/{run_id}{ENDING}"

    def verify(self, run_id: str) -> None:
        """Fetch it again, whatever is here, and hold it against that too."""
        if run_id in self.unsent():
            super().verify(run_id)
            if run_id not in self._listed():
                return  # it is here alone
        place, kept, content = f"{self.name}/{run_id}{ENDING}", self.root / run_id, self._content(run_id)
        with self._into_mirror() as fetching:
            tar = self._unpack(run_id, content, fetching / run_id)
            with _called(place, fetching / run_id):
                load(fetching / run_id)
            if tar_of(fetching / run_id) != tar:
                raise damaged(place, "it holds more than its files")
            if is_run(kept) and tar_of(kept) != tar:
                raise damaged(place, f"it is not what was sent or fetched before, which is in {kept}")

    def delete(self, run_id: str) -> None:
        """At the URL and in the mirror."""
        if run_id not in self.unsent():
            self._remote.delete(f"{run_id}{ENDING}")
        self._forget(run_id)

    def tidy(self) -> None:
        """Also what is mirrored of runs that are not at the URL any more."""
        super().tidy()
        there = {*self._listed(), *self.unsent()}
        heads = (path.name for path in (self.root / HEADS).glob("[!.]*"))
        for run_id in {*super().ids(), *heads} - there:
            self._forget(run_id)

    def set_ref(self, name: str, run_id: str) -> str | None:
        """Until it is sent, on this machine."""
        with self._into_mirror(), self._held("refs"):
            return super().set_ref(name, run_id)

    def ref_names(self) -> list[str]:
        """Of those at the URL, and those that were set here."""
        found = {*super().ref_names(), *self._remote.names("refs")}
        return sorted(name for name in found if re.fullmatch(REF_NAME, name))

    def ref_content(self, name: str) -> bytes | None:
        """As it was set here, else as it is at the URL."""
        here = super().ref_content(name)
        return self._remote.read(f"refs/{name}") if here is None else here

    def _fetch_heads(self, run_ids: Sequence[str]) -> None:
        contents = self._remote.beginnings([f"{run_id}{ENDING}" for run_id in run_ids], HEAD_BYTES)
        with self._into_mirror() as fetching:
            (self.root / HEADS).mkdir(exist_ok=True)
            for run_id, content in zip(run_ids, contents, strict=True):
                head = fetching / run_id
                head.mkdir()
                if content and unpack_head(content, head):
                    _move(head, self.root / HEADS / run_id)

    def _listed(self) -> list[str]:
        names = (name.removesuffix(ENDING) for name in self._remote.names() if name.endswith(ENDING))
        return [run_id for run_id in names if re.fullmatch(RUN_ID, run_id)]

    def _send(self, run_id: str) -> str | None:
        """Make the object of a run, which then has its mark; else why it stays here."""
        folder, name = self.root / run_id, f"{run_id}{ENDING}"
        kept = f"this one is kept in {folder}"
        try:
            verify(folder)
            tar = tar_of(folder)
        except (CommandError, OSError) as error:
            return f"run {run_id} cannot be sent: {error}"
        try:
            if not self._remote.create(name, pack(tar)) and not self._is_there(run_id, tar):
                return f"{self.name}/{name} is another run by the same id, and stays as it is; {kept}"
        except CommandError as error:
            raise CommandError(f"{error}; {kept}, and the next command with this store sends it", error.code) from error
        self._mark_sent(run_id)
        return None

    def _send_refs(self) -> list[str]:
        """Those that were set here; that of a run which is here alone waits. A line for each that comes too late."""
        here, late = self.unsent(), list[str]()
        with self._held("refs"):  # or one that is set meanwhile could be deleted for sent
            for name in super().ref_names():
                run_id = meaning(super().ref_content(name) or b"")
                if not run_id or run_id in here:
                    continue
                there = meaning(self._remote.read(f"refs/{name}") or b"")
                theirs, ours = (started_of(each) if re.fullmatch(RUN_ID, each) else None for each in (there, run_id))
                if theirs is not None and ours is not None and theirs > ours:  # another machine was later, and first
                    late.append(f"ref {name} stays at {there}, which is newer than {run_id}")
                else:
                    self._remote.write(f"refs/{name}", f"{run_id}\n".encode())
                (self.root / "refs" / name).unlink(missing_ok=True)
        return late

    def _held(self, what: str) -> filelock.BaseFileLock:
        """A lock between the processes of this machine."""
        return filelock.FileLock(self.root / f".{what}.lock")

    def _is_there(self, run_id: str, tar: bytes) -> bool:
        """Whether the object of a run has this content: it was made, and the answer was lost."""
        with tempfile.TemporaryDirectory() as folder:
            try:
                return unpack(self._content(run_id), Path(folder)) == tar
            except ValueError:
                return False

    def _content(self, run_id: str) -> bytes:
        content = self._remote.read(f"{run_id}{ENDING}")
        if content is None:
            raise CommandError(f"{self.name}/{run_id}{ENDING}: there is no such run any more", Exit.RUN)
        return content

    def _unpack(self, run_id: str, content: bytes, folder: Path) -> bytes:
        """Write a run's files, which must agree with its sums and be of that id; the tar."""
        place = f"{self.name}/{run_id}{ENDING}"
        folder.mkdir()
        try:
            tar = unpack(content, folder)
        except ValueError as error:
            raise damaged(place, error) from error
        with _called(place, folder):
            verify(folder)
            found = read_run(folder).id
        if found != run_id:
            raise damaged(place, f"it holds the run {found}")
        return tar

    def _mark_sent(self, run_id: str) -> None:
        (self.root / SENT).mkdir(exist_ok=True)
        (self.root / SENT / run_id).touch()

    def _forget(self, run_id: str) -> None:
        """Delete what is mirrored of a run; its mark goes last, or it would be sent again."""
        if (self.root / run_id).exists():
            super().delete(run_id)
        shutil.rmtree(self.root / HEADS / run_id, ignore_errors=True)
        (self.root / SENT / run_id).unlink(missing_ok=True)

    @contextmanager
    def _into_mirror(self) -> Iterator[Path]:
        """A new folder in the mirror, which is made if need be, for what is being fetched."""
        try:
            make_store(self.root)
            (self.root / MIRROR_OF).write_text(f"{self.name}\n", encoding="utf-8")
            with tempfile.TemporaryDirectory(prefix=FETCHING, dir=self.root) as folder:
                yield Path(folder)
        except OSError as error:
            what = f"its mirror {self.root}: {why(error)}; make room, or let XDG_STATE_HOME be another folder"
            raise CommandError(f"store {self.name}: {what}", Exit.INFRASTRUCTURE) from error


@contextmanager
def _called(place: str, folder: Path) -> Iterator[None]:
    """An error that is about `folder`, said of the object that it was made of."""
    try:
        yield
    except CommandError as error:
        what = str(error).replace(f"{folder}/", "").replace(f"{folder}: ", "").removeprefix("damaged: ")
        raise CommandError(f"{place}: damaged: {what}", error.code) from error


def _move(made: Path, kept: Path) -> None:
    """In one step; another process may have been first, with the same."""
    try:
        made.rename(kept)
    except OSError:
        if not is_run(kept):
            raise
