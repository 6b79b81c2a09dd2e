"""The kernels with those of users' files among them: what a bench is given, in its own process and in its workers.

No code of a user runs before `load`, which workers alone call; and in them a file is run by the first of its kernels
that is measured, so that whatever it does costs no other case.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import msgspec

from harness.model import Kernel, Launch, Operands, Problem, Role
from kernels import registry
from kernels.build import Built
from kernels.own import build, launcher
from kernels.own.declare import Declared, contract, described
from kernels.own.load import FileError, Listed, Listing, listing, load

BEFORE = "read"
"""The kernel that own ones stand before, in every table."""


class OwnFile(msgspec.Struct, frozen=True, kw_only=True):
    """A user's file."""

    path: str
    """Absolute."""
    target: str
    """Of its build's record, and below build/ of a run where it is kept."""
    listing: Listing
    """What is in it."""
    libraries: dict[str, str] = {}
    """By kernel, where its launcher is; empty before it was built."""


class Own:
    """A registry: the project's kernels and those of some files."""

    def __init__(self, files: Sequence[OwnFile]) -> None:
        self._files = tuple(files)
        self._runs_code = False
        self._code: dict[str, dict[str, Declared]] = {}

    @property
    def __name__(self) -> str:
        """How a worker finds it: this module, and what `opened` is given."""
        return f"{__name__}:{msgspec.json.encode(self._files).decode()}"

    def kernels(self) -> dict[str, Kernel]:
        """Every kernel by name, own ones behind the project's that compute a problem."""
        found: dict[str, Kernel] = {}
        for name, kernel in registry.kernels().items():
            if name == BEFORE:
                found |= {each.name: self._kernel(file, each) for file in self._files for each in file.listing.kernels}
            found[name] = kernel
        return found

    def build(self, device_type: str, architectures: tuple[str, ...] | None = None) -> dict[str, Built]:
        """Build each file's part of `prepare`, for the GPUs present or for these architectures; by its path."""
        return {
            file.path: build.build(Path(file.path), file.listing, file.target, device_type, architectures=architectures)
            for file in self._files
        }

    def prepare(self, device_type: str) -> tuple[Built, ...]:
        """Build all that `device_type` needs, without running users' code.

        Raises:
            FileError: a `.cu` file does not compile.
            BuildError: something cannot be built.
        """
        built = self.build(device_type).values()
        if device_type == "cuda":
            self._files = tuple(map(_with_libraries, self._files, built))
        return (*registry.prepare(device_type), *built)

    def load(self, device_type: str) -> None:
        """Load the project's kernels; from now on users' code may run here."""
        registry.load(device_type)
        self._runs_code = True

    def _kernel(self, file: OwnFile, listed: Listed) -> Kernel:
        return Kernel(
            name=listed.name,
            role=Role.GEMV,
            summary=listed.summary or f"of {Path(file.path).name}",
            bind=self._binder(file, listed),
            devices=listed.devices,
            dtypes=listed.dtypes,
            unsupported=self._contract(file, listed),
            file=file.path,
            line=listed.line,
        )

    def _binder(self, file: OwnFile, listed: Listed) -> Callable[[Operands], Launch]:
        def bind(operands: Operands) -> Launch:
            if listed.launcher is not None:
                return launcher.bind(listed.name, listed.launcher, Path(file.libraries[listed.name]), operands)
            prepare = self._declared(file, listed.name).bind
            launch = None if prepare is None else prepare(operands)
            if not callable(launch):
                raise TypeError(f"bind of {listed.name!r} returned {described(launch)}, wanted a function: launch()")
            return launch

        return bind

    def _contract(self, file: OwnFile, listed: Listed) -> Callable[[Problem], str | None]:
        def unsupported(problem: Problem) -> str | None:
            reason: object = None
            if problem.dtype not in listed.dtypes:
                reason = f"dtype is {problem.dtype}, wanted {' or '.join(listed.dtypes)}"
            elif listed.launcher is not None:
                reason = contract(listed.launcher.parameters, problem)
            if reason is None and self._runs_code and (asked := self._declared(file, listed.name).unsupported):
                reason = asked(problem)
            if reason is not None and not isinstance(reason, str):
                found = described(reason)
                raise TypeError(f"unsupported of {listed.name!r} returned {found}, wanted a reason in words or None")
            return reason

        return unsupported

    def _declared(self, file: OwnFile, name: str) -> Declared:
        """What the file declares, run in this process if it was not yet.

        Raises:
            FileError: it is not what it was when the bench began.
        """
        if file.path not in self._code:
            changed = [source for source, digest in file.listing.sources.items() if _changed(Path(source), digest)]
            if changed:
                raise FileError(f"{Path(changed[0]).name}: was changed since the bench began; start it again")
            self._code[file.path] = load(Path(file.path))
        if name not in self._code[file.path]:
            raise FileError(f"{Path(file.path).name}: declares no {name!r} now, and did when the bench began")
        return self._code[file.path][name]


def opened(argument: str) -> Own:
    """The registry that says `argument` behind the colon of its name."""
    return Own(msgspec.json.decode(argument, type=tuple[OwnFile, ...]))


def of_files(paths: Iterable[Path]) -> Own:
    """The registry with the kernels of some files, each of which a process of its own runs for what is in it.

    Raises:
        FileError: a file cannot be loaded, or a name is taken.
    """
    files: list[OwnFile] = []
    taken = dict.fromkeys(_built_in(), "one of this project's")
    for path in dict.fromkeys(each.resolve() for each in paths):
        found = listing(path)
        for each in found.kernels:
            if each.name in taken:
                raise FileError(f"{path}:{each.line}: kernel {each.name!r} is {taken[each.name]}; rename it")
            taken[each.name] = f"in {path}:{each.line} too"
        used = [file.target for file in files]
        names = [f"{build.TARGET}/{path.stem}", *(f"{build.TARGET}/{path.stem}-{n}" for n in range(2, len(used) + 3))]
        files.append(OwnFile(path=str(path), target=next(n for n in names if n not in used), listing=found))
    return Own(files)


def _built_in() -> list[str]:
    kernels = registry.kernels()
    return [*kernels, *(variant.name for kernel in kernels.values() for variant in kernel.variants)]


def _with_libraries(file: OwnFile, built: Built) -> OwnFile:
    path = Path(file.path)
    declared = [each.name for each in file.listing.kernels if each.launcher is not None]
    libraries = {name: str(build.library(built, path, file.listing, name)) for name in declared}
    return msgspec.structs.replace(file, libraries=libraries)


def _changed(path: Path, digest: str) -> bool:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest() != digest
    except OSError:
        return True
