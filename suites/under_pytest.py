"""What of pytest and its plugins does not go with a bench, and what pytest's exit status means for one."""

from __future__ import annotations

import argparse
import io
import os
import re
from collections.abc import Sequence

import pytest

from harness.errors import CommandError, Exit, unknown
from harness.words import LONGEST_LINE, visible

REFUSED = {
    "numprocesses": "-n (xdist): pytest-benchmark measures nothing under it, and two processes would share the device",
    "benchmark_skip": "--benchmark-skip: nothing would be measured",
    "benchmark_disable": "--benchmark-disable: nothing would be measured",
    "setupplan": "--setup-plan: nothing would be measured",
    "setuponly": "--setup-only: nothing would be measured",
    "benchmark_cprofile": "--benchmark-cprofile: the timed work is not in this process",
}
"""Options of other plugins that would silently measure nothing, by the name that pytest gives them."""

HELP = "nox -s bench -- --help says what there is"
OPTIONS_HINT = " (nox -s bench -- --help lists them) or pytest's own"

TERMINAL = "terminalreporter"
"""What pytest calls its plugin that writes to the terminal."""

ENDED = 100
"""Status of a session that a CommandError ended; none of pytest's own."""


def refuse_in_one_line(parser: pytest.Parser, options: Sequence[str]) -> None:
    """Let a command line that cannot be parsed be one line: pytest shows its own usage, and none of `options`."""
    parse = parser.parse

    def parsed(args: Sequence[str], namespace: argparse.Namespace | None = None) -> argparse.Namespace:
        try:
            return parse(args, namespace)
        except pytest.UsageError as error:
            what = re.search(r"error: (?:argument )?(.*)", str(error))
            if what is None:
                raise
            strange = re.match("unrecognized arguments: (-[^ =]+)", what[1])
            line = unknown("option", strange[1], options, OPTIONS_HINT) if strange else f"{what[1]}; {HELP}"
            raise pytest.UsageError(visible(str(line), 10 * LONGEST_LINE)) from error

    parser.parse = parsed


def end_in_one_line(config: pytest.Config) -> None:
    """Let pytest say nothing more of the session: its summary would stand around the line that says why it ended.

    It goes on writing, into nothing: others ask for its writer, too.
    """
    if config.pluginmanager.hasplugin(TERMINAL):
        config.get_terminal_writer()._file = io.StringIO()  # noqa: SLF001


class CtrlC:
    """Lets Ctrl-C be a word: where in pytest's own code it came between is of no use to anybody.

    What else ends a session, a plugin's exit or a limit of failures, says why, and pytest tells it.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Before pytest reports it."""
        reporter = self._config.pluginmanager.getplugin(TERMINAL)
        if reporter is not None and excinfo.type is KeyboardInterrupt and not self._config.option.fulltrace:
            reporter._report_keyboardinterrupt = lambda: reporter.write_line("interrupted")  # noqa: SLF001


def refuse_conflicts(config: pytest.Config) -> None:
    """Raise CommandError (USAGE) for what would silently measure nothing."""
    for name, reason in REFUSED.items():
        if getattr(config.option, name, None):
            raise CommandError(f"{reason}; leave it out", Exit.USAGE)
    if not config.pluginmanager.hasplugin("benchmark"):
        raise CommandError("-p no:benchmark: the suites need pytest-benchmark; leave it out", Exit.USAGE)
    if os.environ.get("PYTEST_XDIST_WORKER"):
        raise CommandError(
            "PYTEST_XDIST_WORKER is set: pytest-benchmark takes this for one of xdist and measures nothing; unset it",
            Exit.USAGE,
        )
    if config.option.benchmark_min_rounds != 5:
        raise CommandError("--benchmark-min-rounds: has no effect here; use --max-time", Exit.USAGE)


def exit_of(pytest_status: int) -> Exit:
    """What pytest's exit status means here. A failed test, or an error that ended the session, has its own code."""
    by_status: dict[int, Exit] = {
        pytest.ExitCode.OK: Exit.FINE,
        pytest.ExitCode.TESTS_FAILED: Exit.KERNEL,
        pytest.ExitCode.INTERRUPTED: Exit.INTERRUPTED,
        pytest.ExitCode.INTERNAL_ERROR: Exit.INFRASTRUCTURE,
        pytest.ExitCode.USAGE_ERROR: Exit.USAGE,
        pytest.ExitCode.NO_TESTS_COLLECTED: Exit.USAGE,
    }
    return Exit.FINE if pytest_status == ENDED else by_status.get(pytest_status, Exit.INFRASTRUCTURE)
