"""What a run was asked to measure, as options for the suites."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from harness.command_line import Parser
from harness.errors import CommandError
from harness.model import BuildRecord, Role, Run
from harness.problems import shape_text
from harness.reproduce import cannot

SESSIONS = {
    "bench": (),
    "selfcheck": ("--selfcheck",),
    "peers": ("--peers",),
    "tune": ("--variants", "--timer=graph", "--cache=cold"),
    "roofline": ("--suite=roofline",),
    "nightly": (),
}
"""What nox's sessions that measure add to the options."""

LAYOUT = ("--layout", "--row-stride", "--first-element")
TIMING = ("--timer", "--cache", "--trials", "--max-time", "--lock-clocks")
VALUES = ("--suite", "--kernel", "--shape", "--dtype", *LAYOUT, *TIMING, "-k")
FLAGS = ("--quick", "--selfcheck", "--peers", "--variants", "--regimes")
"""Options that say what is measured and for how long."""

PROBLEMS = ("--shape", "--dtype", *LAYOUT)
"""Of them, those that say which problems."""

FILES = ("--kernels", "--shapes")
"""Options that name a file, which may be another one by now: the run has what came of it."""

OWN = PurePosixPath("own")
"""In a run's build/, the files of its users' kernels; the target of their builds begins so."""

ELSEWHERE = ("--store", "--ref", "--path-file", "--summary", "--pages", "--idle-wait")
"""Options that say where the run and what is made of it go, and when: this one goes elsewhere, and now."""

DEVICE = "--device"
"""Replaced by the device that the run's command line came down to."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """The suites' arguments."""

    arguments: tuple[str, ...]
    """Files first, then options, the device last."""
    left_out: tuple[str, ...]
    """Words of the recorded command line that do not say what is measured, or that this program does not know."""

    def on(self, device: str) -> Request:
        """The same on another device."""
        return replace(self, arguments=(*self.arguments[:-1], f"{DEVICE}={device}"))


def is_own(build: BuildRecord) -> bool:
    """Whether a build is of a user's file."""
    return PurePosixPath(build.target).parts[:1] == OWN.parts


def request_of(run: Run, folder: Path) -> Request:
    """What the recorded command line asks for. Of a record only known options are taken: others could do anything.

    Users' kernels are those that the run's folder keeps. Where a file named problems, those that were measured count.

    Raises:
        CommandError: the command line is none that measures (INFRASTRUCTURE).
    """
    words = _words(run.options.command)
    parser = Parser(prog="pytest", add_help=False, allow_abbrev=False)
    for name in (*VALUES, *FILES, *ELSEWHERE, DEVICE):
        parser.add_argument(name, dest=name, action="append", default=[])
    for name in FLAGS:
        parser.add_argument(name, dest=name, action="store_true")
    try:
        found, others = parser.parse_known_args(words)
    except CommandError as error:
        raise cannot(f"the run's command line: {error}") from error
    if not re.fullmatch(r"cpu|cuda(:\d+)?", run.options.device):
        raise cannot(f"the run's device is {run.options.device!r}, wanted cpu, cuda or cuda:N")
    known = vars(found)
    files = [word for word in others if _is_suite(word)]
    if known["--shapes"]:
        problems = dict.fromkeys(each.case.problem for each in run.measurements if each.case.role is not Role.FLOOR)
        known |= {name: [] for name in PROBLEMS} | {"--shape": list(map(shape_text, problems))}
    options = [word for name in VALUES for value in known[name] for word in _option(name, value)]
    options += [f"--kernels={path}" for path in _own_files(run, folder, asked=bool(known["--kernels"]))]
    flags = [name for name in FLAGS if known[name]]
    arguments = (*(files or ["suites"]), *options, *flags, f"{DEVICE}={run.options.device}")
    return Request(arguments=arguments, left_out=tuple(word for word in others if not _is_suite(word)))


def _own_files(run: Run, folder: Path, *, asked: bool) -> list[Path]:
    """The users' files that the run keeps."""
    kept = (folder / "build" / OWN).resolve()
    found = [
        (folder / "build" / each.target / "sources" / each.library).resolve() for each in run.builds if is_own(each)
    ]
    if asked and not found:
        raise cannot("the run keeps no file of --kernels")
    for path in found:
        if not path.is_relative_to(kept) or not path.is_file():
            raise cannot(f"the run's own kernels: {path} is no file of {kept}")
    return found


def _words(command: Sequence[str]) -> list[str]:
    """The words of a command line that may be options of the suites, those that its session adds among them."""
    match list(command):
        case ["nox", "-s", session, *rest] if session in SESSIONS and (not rest or rest[0] == "--"):
            return [*SESSIONS[session], *rest[1:]]
        case ["python", "-m", "pytest", *rest]:
            return rest
    raise cannot(f"the run's command line is {' '.join(command)!r}, wanted nox -s bench or python -m pytest suites")


def _option(name: str, value: str) -> list[str]:
    """One word for a long option, so that a value cannot be taken for an option."""
    return [f"{name}={value}"] if name.startswith("--") else [name, value]


def _is_suite(word: str) -> bool:
    """Whether a word names tests of the suites."""
    parts = PurePosixPath(word.partition("::")[0]).parts
    return bool(parts) and parts[0] == "suites" and ".." not in parts
