"""What of pytest and its plugins does not go with a bench, and what pytest's exit status means for one."""

from __future__ import annotations

import os

import pytest

from harness.errors import CommandError, Exit

REFUSED = {
    "numprocesses": "-n (xdist): pytest-benchmark measures nothing under it, and two processes would share the device",
    "benchmark_skip": "--benchmark-skip: nothing would be measured",
    "benchmark_disable": "--benchmark-disable: nothing would be measured",
    "setupplan": "--setup-plan: nothing would be measured",
    "setuponly": "--setup-only: nothing would be measured",
    "benchmark_cprofile": "--benchmark-cprofile: the timed work is not in this process",
}
"""Options of other plugins that would silently measure nothing, by the name that pytest gives them."""

ENDED = 100
"""Status of a session that a CommandError ended; none of pytest's own."""


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
