"""What a run was asked to measure, as options for the suites."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from harness.command_line import Parser
from harness.errors import CommandError
from harness.model import Run
from harness.reproduce import cannot

SESSIONS = {
    "bench": (),
    "selfcheck": ("--selfcheck",),
    "peers": ("--peers",),
    "tune": ("--variants", "--timer=graph", "--cache=cold"),
    "roofline": ("--suite=roofline",),
}
"""What nox's sessions that measure add to the options."""

LAYOUT = ("--layout", "--row-stride", "--first-element")
VALUES = ("--suite", "--kernel", "--shape", "--dtype", *LAYOUT, "--timer", "--cache", "--trials", "--max-time", "-k")
FLAGS = ("--quick", "--selfcheck", "--peers", "--variants", "--regimes")
"""Options that say what is measured and for how long."""

ELSEWHERE = ("--store", "--ref", "--path-file")
"""Options that say where the run goes: this one goes elsewhere."""

DEVICE = "--device"
"""Replaced by the device that the run's command line came down to."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """The suites' arguments."""

    arguments: tuple[str, ...]
    """Files first, then options."""
    left_out: tuple[str, ...]
    """Words of the recorded command line that do not say what is measured, or that this program does not know."""


def request_of(run: Run) -> Request:
    """What the recorded command line asks for. Of a record only known options are taken: others could do anything.

    Raises:
        CommandError: the command line is none that measures (INFRASTRUCTURE).
    """
    words = _words(run.options.command)
    parser = Parser(prog="pytest", add_help=False, allow_abbrev=False)
    for name in (*VALUES, *ELSEWHERE, DEVICE):
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
    options = [word for name in VALUES for value in known[name] for word in _option(name, value)]
    flags = [name for name in FLAGS if known[name]]
    arguments = (*(files or ["suites"]), *options, *flags, f"{DEVICE}={run.options.device}")
    return Request(arguments=arguments, left_out=tuple(word for word in others if not _is_suite(word)))


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
