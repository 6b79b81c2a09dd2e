"""Wires kernels to the harness: options, cases, the session, and what pytest-benchmark is given."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from harness.bench import Bench
from harness.ending import interrupt_no_more, interrupt_once, outlast, say_error
from harness.errors import CommandError, Exit
from harness.export.pytest_benchmark import FILE, describe, group_of
from harness.model import Case, Word
from harness.problems import shape_text
from harness.process import end_with_parent
from harness.registry import Registry
from harness.selfcheck import failed
from harness.store import read_run
from harness.timing import Purpose, timers
from harness.words import LONGEST_LINE, visible
from kernels import registry
from suites import every_gpu, under_pytest
from suites import help as suite_help
from suites import options as suite_options
from suites.clock import DeviceClock
from suites.device import EVERY
from suites.files import registry_of
from suites.progress import Progress
from suites.record import benchmark_json
from suites.suite import name_of

CLOCK = DeviceClock()
"""What pytest-benchmark reads: it advances by measured samples alone."""

BENCH = pytest.StashKey[Bench]()
REGISTRY = pytest.StashKey[Registry]()
SELECTION = pytest.StashKey[suite_options.Selection]()
CODES = pytest.StashKey[list[Exit]]()
"""What the exit code is the highest of, beside what pytest's own status means."""
ENDED_BY = pytest.StashKey[str]()
LAST_BEGUN = pytest.StashKey[bool]()
"""The line of the error that ended the session."""
CASES = pytest.StashKey[dict[str, list[Case]]]()
"""By suite."""
RUN_FOLDER = pytest.StashKey[Path]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options of a bench."""
    suite_options.add(parser.getgroup("sgemv", "SGEMV benchmarks"))
    under_pytest.refuse_in_one_line(parser, suite_options.names())


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> int | None:
    """Asked for help, it says what there is. Asked for all GPUs, it waits for a process that measures one at a time."""
    if config.option.help:
        return suite_help.show(registry.kernels())
    return every_gpu.measure(config) if config.option.device == EVERY else None


def pytest_configure(config: pytest.Config) -> None:
    """Refuse what cannot be meant, in one line, before anything is collected or built."""
    config.stash[CODES] = []
    _last_to_the_end(config)
    config.addinivalue_line("filterwarnings", "ignore:Benchmark fixture was not used at all")  # a case that failed
    if config.option.help:
        return
    try:
        under_pytest.refuse_conflicts(config)
        config.stash[REGISTRY] = registry_of(config.option.kernels)
        config.stash[SELECTION] = suite_options.select(config, config.stash[REGISTRY].kernels())
        config.stash[CASES] = config.stash[SELECTION].cases()
    except CommandError as error:
        pytest.exit(visible(str(error), 10 * LONGEST_LINE), returncode=int(error.code))


def _last_to_the_end(config: pytest.Config) -> None:
    """Whatever happens to whoever waits for this bench, it keeps what it has measured."""
    interrupt_once()
    if "SGEMV_COMMAND" in os.environ:  # another command of this project started it, and it is of no use without that
        end_with_parent(signal.SIGTERM)

    def unheard(error: CommandError) -> None:
        config.stash[CODES].append(error.code)
        say_error(error)

    outlast(sys.stdout, unheard)
    outlast(sys.stderr, unheard)


def pytest_sessionstart(session: pytest.Session) -> None:
    """Before anything that takes long enough to be interrupted."""
    session.config.pluginmanager.register(under_pytest.CtrlC(session.config))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out the files of suites that were not chosen: they are not even imported."""
    name = name_of(collection_path)
    return True if name is not None and name not in config.stash.get(CASES, {name: []}) else None


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test a case."""
    if "case" in metafunc.fixturenames:
        cases = metafunc.config.stash[CASES].get(name_of(Path(metafunc.module.__file__)) or "", [])
        metafunc.parametrize("case", cases, ids=[case.id for case in cases])


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Every case reads the device clock, and pytest-benchmark groups it with the cases it may be compared with.

    Those of several suites are measured as if they were of one.
    """
    places = config.stash[SELECTION].order()
    items.sort(key=lambda item: places.get(_case_of(item), -1))
    for item in items:
        case = _case_of(item)
        if case is not None:
            item.add_marker(pytest.mark.benchmark(timer=CLOCK.read, group=group_of(case), disable_gc=False))


@pytest.fixture(scope="session")
def bench(request: pytest.FixtureRequest) -> Iterator[Bench]:
    """The session's workers and draft, started by the first case."""
    selection = request.config.stash[SELECTION]
    cases = [case for item in request.session.items if (case := _case_of(item)) is not None]
    widths = [len(shape_text(case.problem)) for case in cases]
    progress = Progress(request.config, total=len(cases), width=max(12, *widths))
    try:
        for line in selection.store.recovered():
            progress.say(line)
        kernels = request.config.stash[REGISTRY]
        told = {"on_measured": progress.measured, "say": progress.say}
        with Bench(registry=kernels, store=selection.store, options=selection.options, **told) as started:
            request.config.stash[BENCH] = started
            for line in (*started.warnings, *selection.notes):
                progress.say(f"warning: {line}")
            progress.begin()
            yield started
    except CommandError as error:
        _end(request.config, error)
    finally:
        progress.close()


@pytest.fixture
def measure(bench: Bench, benchmark: BenchmarkFixture, request: pytest.FixtureRequest) -> Callable[[Case], None]:
    """Measures a case, hands its samples to pytest-benchmark, and passes, skips or fails by the verdict."""

    def run(case: Case) -> None:
        try:
            measurement = bench.measure(case)
        except CommandError as error:
            _end(request.config, error)
        verdict = measurement.verdict
        if verdict.word is Word.UNSUPPORTED:
            pytest.skip(verdict.reason or "")
        if verdict.word is not Word.PASSED:
            request.config.stash[CODES].append(Exit.KERNEL)
            pytest.fail(f"{verdict.word}: {verdict.reason}", pytrace=False)
        if timers()[case.timer].purpose is Purpose.CHECK:
            return  # evidence about a timer, and no benchmark
        samples = iter(measurement.samples_ns)
        benchmark.extra_info.update(describe(measurement))
        benchmark.pedantic(lambda: CLOCK.advance(next(samples)), rounds=len(measurement.samples_ns), iterations=1)

    return run


def _end(config: pytest.Config, error: CommandError) -> NoReturn:
    """End the session with one line. The code goes round pytest, whose own statuses are the same small numbers."""
    config.stash[CODES].append(error.code)
    config.stash[ENDED_BY] = str(error)
    under_pytest.end_in_one_line(config)
    pytest.exit(str(error), returncode=under_pytest.ENDED)


def pytest_benchmark_update_machine_info(config: pytest.Config, machine_info: dict[str, Any]) -> None:
    """Put the device, its driver and the software into pytest-benchmark's record; its comparison then sees changes."""
    bench = config.stash.get(BENCH, None)
    if bench is not None:
        machine_info["environment"] = bench.environment.values
        machine_info["node"] = bench.environment.get("hostname")


def _case_of(item: pytest.Item) -> Case | None:
    callspec = getattr(item, "callspec", None)
    return None if callspec is None else callspec.params.get("case")


def pytest_runtest_setup(item: pytest.Item) -> None:
    """After the last case nothing is left that a failure could keep from being measured."""
    if item is item.session.items[-1]:
        item.config.stash[LAST_BEGUN] = True


def pytest_report_teststatus(report: pytest.TestReport) -> tuple[str, str, str] | None:
    """No dots: the progress lines say more."""
    if report.when == "call" and report.passed:
        return "passed", "", "PASSED"
    if report.skipped:
        return "skipped", "", "SKIPPED"
    if report.when == "call" and report.failed:
        return "failed", "", "FAILED"
    return None


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Publish the run; leave with the highest code that applies."""
    interrupt_no_more()
    config = session.config
    code = under_pytest.exit_of(exitstatus)
    if ENDED_BY in config.stash:
        say_error(f"Exit: {config.stash[ENDED_BY]}")  # as pytest calls what ends a session before it begins
    bench = config.stash.get(BENCH, None)
    if bench is None and session.testsfailed and exitstatus == pytest.ExitCode.INTERRUPTED:
        code = Exit.USAGE  # not Ctrl-C: pytest says the same of a suite that cannot be imported
    if bench is not None:
        complete = exitstatus in {pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED}
        try:
            stopped = bool(session.shouldfail or session.shouldstop) and not config.stash.get(LAST_BEGUN, False)
            _publish(config, bench, partial=not complete or stopped)
        except CommandError as error:
            config.stash[CODES].append(error.code)
            if str(error) != config.stash.get(ENDED_BY, None):
                say_error(error)
    session.exitstatus = max([code, *config.stash[CODES]])  # publishing may have added to them


def _publish(config: pytest.Config, bench: Bench, *, partial: bool) -> None:
    selection = config.stash[SELECTION]
    text = benchmark_json(config)
    if text is not None:
        bench.keep(FILE, text)
    folder = bench.publish(partial=partial)
    if folder is None:
        return
    config.stash[RUN_FOLDER] = folder
    checks = read_run(folder).selfcheck
    if checks is not None and (failed(checks) or all(check.passed is None for check in checks)):
        config.stash[CODES].append(Exit.KERNEL)
    if selection.path_file is not None:
        selection.path_file.write_text(f"{folder}\n", encoding="utf-8")
    if selection.ref is not None and (stays := bench.store.set_ref(selection.ref, folder.name)):
        say_error(stays)
    for line in bench.store.send():
        say_error(line)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Where the run is."""
    folder = config.stash.get(RUN_FOLDER, None)
    if folder is not None and config.stash[SELECTION].path_file is None:
        terminalreporter.write_line(f"run:    {folder}")
        terminalreporter.write_line(f"report: {Path(sys.executable).name} -m reports run {os.fspath(folder)}")
