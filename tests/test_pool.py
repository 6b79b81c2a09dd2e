"""harness.pool and harness.trial: a worker that dies or hangs costs its case, and the next case finds a worker."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from harness.model import DeviceState, TrialResult, Word
from harness.pool import ROOT, Pool, WorkerLost
from tests.small_pool import REGISTRY, case, spec


def measure(pool: Pool, name: str, trial: int = 0) -> TrialResult:
    return pool.measure(case(name), trial, 0.002, lambda: None)


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pool]:
    """One worker for all tests: no test may depend on those before it."""
    made = Pool(spec(tmp_path_factory.mktemp("logs")))
    yield made
    made.close()


def test_facts(pool: Pool) -> None:
    """The worker answers for the device, in the form of an environment."""
    import torch

    facts = pool.facts()
    assert facts["values"]["torch_version"] == torch.__version__
    assert facts["values"]["gpu_name"] is None
    assert facts["unknown"]["gpu_name"] == "measured on the CPU"


def test_a_right_kernel_is_measured(pool: Pool) -> None:
    """Samples come through the pipe."""
    result = measure(pool, "right")
    assert result.verdict.word is Word.PASSED
    assert len(result.samples_ns) >= 10


def test_the_worker_stays_the_same(pool: Pool) -> None:
    """The process is the unit of repetition: a trial is one process for all its cases, wrong ones included."""
    measure(pool, "right")
    before = list(pool.pids)
    assert measure(pool, "writes_into_x").verdict.word is Word.WRONG
    assert measure(pool, "raises").verdict.reason == "ValueError: planted: no such luck"
    assert measure(pool, "right").verdict.word is Word.PASSED
    assert list(pool.pids) == before


def test_what_a_kernel_prints_does_not_reach_the_protocol(pool: Pool) -> None:
    """Not even through the file descriptor, and in the protocol's own words."""
    result = measure(pool, "prints_a_lot")
    assert result.verdict.word is Word.PASSED
    assert len(result.samples_ns) >= 10


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("segfaults", "killed by SIGSEGV (segmentation fault) while its results were checked"),
        ("exits", "exited with code 3 while its results were checked: planted: leaving with three"),
        ("exits_silently", "exited with code 4 while its results were checked"),
    ],
)
def test_a_death_costs_its_case_only(pool: Pool, name: str, reason: str) -> None:
    """How, when, and its last words (none that belong to a case before); a fresh process takes the next case."""
    measure(pool, "prints_a_lot")
    before = list(pool.pids)
    result = measure(pool, name)
    assert (result.verdict.word, result.verdict.reason, result.samples_ns) == (Word.CRASHED, reason, ())
    assert not psutil.pid_exists(before[0])
    assert measure(pool, "right").verdict.word is Word.PASSED
    assert list(pool.pids) != before


def test_a_hang_is_killed(tmp_path: Path) -> None:
    """Silence is measured from the last word; the other trial's worker lives on, and the next case passes."""
    pool = Pool(spec(tmp_path, trials=2, silence_s=30.0))
    try:
        pool.facts()
        assert measure(pool, "right", trial=1).verdict.word is Word.PASSED
        first, second = pool.pids
        for worker in pool._workers:
            assert worker is not None
            worker._spec = spec(tmp_path, trials=2, silence_s=2.0)
        started = time.monotonic()
        result = measure(pool, "hangs")
        assert result.verdict.word is Word.CRASHED
        assert result.verdict.reason == "silent for 2 s while its results were checked: hung, killed"
        assert 2.0 <= time.monotonic() - started < 20
        assert not psutil.pid_exists(first)
        assert measure(pool, "right", trial=1).verdict.word is Word.PASSED
        assert measure(pool, "right", trial=0).verdict.word is Word.PASSED
        assert second in pool.pids
        survivors = list(pool.pids)
    finally:
        pool.close()
    assert not any(psutil.pid_exists(pid) for pid in survivors)
    pool.close()


def test_the_device_is_read_while_a_kernel_is_timed(pool: Pool) -> None:
    """Not while it is checked; a case without samples keeps no readings."""
    readings = 0

    def read() -> DeviceState:
        nonlocal readings
        readings += 1
        return DeviceState(time_unix_s=float(readings))

    result = pool.measure(case("right"), 0, 0.3, read)
    assert result.states == tuple(DeviceState(time_unix_s=float(i + 1)) for i in range(readings))
    before = readings
    assert pool.measure(case("drops_the_last_element"), 0, 0.3, read).states == ()
    assert readings == before


@pytest.mark.parametrize(
    ("registry", "reason"),
    [
        (
            "no_such_module",
            "exited with code 1 while it started: ModuleNotFoundError: No module named 'no_such_module'",
        ),
        ("json", "exited with code 1 while it started: AttributeError: module 'json' has no attribute 'load"),
    ],
)
def test_a_worker_that_cannot_start_says_why(tmp_path: Path, registry: str, reason: str) -> None:
    """The last line of its traceback."""
    pool = Pool(spec(tmp_path, registry=registry))
    try:
        if registry == "json":  # it has a load() of its own, which does not take a device
            reason = "exited with code 1 while it started: "
        with pytest.raises(WorkerLost) as caught:
            pool.facts()
        assert str(caught.value).startswith(reason)
    finally:
        pool.close()


def test_a_worker_that_died_between_cases_is_replaced(pool: Pool) -> None:
    """What it did before is to blame: the case that comes next is measured by a fresh worker and loses nothing."""
    pool.facts()
    (pid,) = pool.pids
    os.kill(pid, 9)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    assert measure(pool, "right").verdict.word is Word.PASSED
    assert pool.pids != [pid]


def test_the_protocol_in_plain_lines() -> None:
    """One JSON object a line, whatever the kernel prints: phases, then a result; the worker ends with its input."""
    asked = {"max_time_s": 0.002, "variant": None}
    requests = [
        {"facts": {}},
        {"measure": {"case": case("prints_a_lot").to_dict(), "trial": 7, **asked}},
        {"measure": {"case": case("drops_the_last_element").to_dict(), "trial": 7, **asked}},
    ]
    done = subprocess.run(
        [sys.executable, "-m", "harness.trial", "--registry", REGISTRY, "--device", "cpu"],
        cwd=ROOT, input="".join(json.dumps(request) + "\n" for request in requests),
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0
    replies = [json.loads(line) for line in done.stdout.splitlines()]
    words = [reply.get("phase") or next(iter(reply)) for reply in replies]
    assert words == [
        "starting", "facts",
        "operands", "gate", "variants", "timing", "recheck", "result",
        "gate", "result",
    ]  # fmt: skip
    first, second = (reply for reply in replies if "result" in reply)
    assert (first["result"]["verdict"]["word"], first["lost"], first["result"]["trial"]) == ("passed", None, 7)
    assert (second["result"]["verdict"]["word"], second["lost"]) == ("wrong", None)
    assert '{"result": "not mine"}' in done.stderr


def test_a_worker_gives_back_what_it_holds(pool: Pool) -> None:
    """And goes on as before."""
    measure(pool, "right")
    pool._make_room_beside(1)
    assert measure(pool, "right").verdict.word is Word.PASSED


def test_the_first_worker_can_be_kept_alone(tmp_path: Path) -> None:
    """The same process goes on; what is asked of another trial finds a new one."""
    pool = Pool(spec(tmp_path, trials=2))
    try:
        pool.wait()
        first, second = pool.pids
        pool.keep_first()
        assert pool.pids == [first]
        assert not psutil.pid_exists(second)
        assert measure(pool, "right").verdict.word is Word.PASSED
        assert pool.pids == [first]
    finally:
        pool.close()
    assert pool.pids == []


def test_waiting_for_a_worker_that_cannot_start_raises_nothing(tmp_path: Path) -> None:
    """The case that comes next says why."""
    pool = Pool(spec(tmp_path, registry="no_such_module"))
    try:
        pool.wait()
        result = measure(pool, "right")
    finally:
        pool.close()
    assert result.verdict.word is Word.CRASHED
    assert (result.verdict.reason or "").endswith("No module named 'no_such_module'")
