"""suites/: a bench as a user starts it, in a process of its own on the CPU: what it measures, keeps and says."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from harness.model import Cache, Case, Measurement, Problem, Role, TrialResult, Verdict, Word
from harness.store import Store, load, verify
from suites import conftest
from tests.running_suites import QUICKLY, ROOT, benchmarks, environment, suites

MEASURED = {"empty": "1x1", "torch.matmul": "64x64", "torch.mv": "64x64", "sgemv_cpu_f32": "64x64", "read": "64x64"}
"""Kernels that a CPU has, with the problem that each is measured on."""

ON_CUDA = {"sgemv", "sgemv_k16_f32", "sgemv_k32_f32", "sgemv_k128_f32x4"}


class Session:
    """One bench of everything on the CPU, with every output that there is; shared by many tests."""

    def __init__(self, root: Path) -> None:
        self.store = root / "store"
        self.json = root / "own.json"
        self.path_file = root / "path"
        self.done = suites(
            *QUICKLY, "--store", self.store, "--ref", "baseline",
            "--benchmark-json", self.json, "--path-file", self.path_file,
        )  # fmt: skip
        self.folder = Path(self.path_file.read_text().strip()) if self.path_file.exists() else root


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    """The bench of most tests here."""
    return Session(tmp_path_factory.mktemp("suites"))


def test_a_bench_on_the_cpu_passes(session: Session) -> None:
    """10 cases measured, 8 that need CUDA skipped, and one line a case while it runs."""
    assert session.done.returncode == 0, session.done.stdout + session.done.stderr
    assert re.search(r"10 passed, 8 skipped", session.done.stdout)
    lines = [line for line in session.done.stdout.splitlines() if re.search(r"\d+/18 [✓–]", line)]
    assert len(lines) == 18
    assert "needs a CUDA device" in session.done.stdout


def test_warnings_stand_before_the_first_case(session: Session) -> None:
    """Nobody waits for a whole bench to learn that it ran on a CPU."""
    lines = session.done.stdout.splitlines()
    first = next(i for i, line in enumerate(lines) if re.search(r" 1/\d+ [✓–]", line))
    said = [line.partition("warning: ")[2] for line in lines[:first] if "warning: " in line]
    assert said[0].startswith("These are CPU numbers: no CUDA device was used")
    assert tuple(said) == load(session.folder).warnings


def test_the_run_is_published(session: Session) -> None:
    """Whole, verified, named by the ref and by --path-file, with every case of every kernel."""
    verify(session.folder)
    run = load(session.folder)
    assert not run.partial
    assert Store(session.store).resolve("baseline") == session.folder
    assert [path.name for path in session.store.iterdir() if path.name not in (".gitignore", "refs")] == [
        session.folder.name
    ]
    words = {(m.case.kernel, str(m.case.cache)): str(m.verdict.word) for m in run.measurements}
    assert words == {
        (kernel, cache): "passed" if kernel in MEASURED else "unsupported"
        for kernel in (*MEASURED, *ON_CUDA)
        for cache in ("cold", "hot")
    }
    assert (run.options.trials, run.options.max_time_s, run.options.device, run.options.quick) == (
        2,
        0.01,
        "cpu",
        False,
    )
    assert "--max-time" in run.options.command


def test_kernels_on_one_problem_are_neighbours(session: Session) -> None:
    """Paired by trial, close in time: the floor first, then by cache."""
    cases = [m.case for m in load(session.folder).measurements]
    assert [case.kernel for case in cases[:2]] == ["empty", "empty"]
    assert [str(case.cache) for case in cases[2:]] == ["cold"] * 8 + ["hot"] * 8


def test_pytest_benchmark_has_the_samples(session: Session) -> None:
    """Its JSON holds every sample of samples.parquet, digit for digit in s, trials pooled in order; and no more."""
    records = benchmarks(session.folder / "pytest-benchmark.json")
    assert set(records) == {f"test_sgemv[{k}-{p}-async-{c}]" for k, p in MEASURED.items() for c in ("cold", "hot")}
    for measurement in load(session.folder).measurements:
        if measurement.samples_ns:
            record = records[f"test_sgemv[{measurement.case.id}]"]
            assert record["stats"]["data"] == [float(f"{ns}e-9") for ns in measurement.samples_ns]
            assert record["stats"]["rounds"] == len(measurement.samples_ns)
            assert record["stats"]["iterations"] == 1


def test_pytest_benchmark_describes_the_cases(session: Session) -> None:
    """By hand: 2·64·64 FLOP and (64·64 + 64 + 64)·4 bytes; the group holds what may be compared."""
    record = benchmarks(session.folder / "pytest-benchmark.json")["test_sgemv[torch.mv-64x64-async-hot]"]
    info = record["extra_info"]
    assert record["group"] == "64x64 async hot"
    assert (info["kernel"], info["timer"], info["cache"], info["role"]) == ("torch.mv", "async", "hot", "gemv")
    assert (info["flops"], info["least_bytes"], info["trials"]) == (8192, 16896, [0, 1])
    assert sum(info["samples_by_trial"]) == record["stats"]["rounds"]
    assert len(info["trial_medians_ns"]) == 2
    assert 16896 / max(info["trial_medians_ns"]) <= info["gb_per_s"] <= 16896 / min(info["trial_medians_ns"])


def test_the_users_own_benchmark_json_has_the_same(session: Session) -> None:
    """--benchmark-json works beside the run's."""
    own, kept = benchmarks(session.json), benchmarks(session.folder / "pytest-benchmark.json")
    assert set(own) == set(kept)
    assert all(own[name]["stats"]["median"] == kept[name]["stats"]["median"] for name in own)


def test_pytest_benchmark_compare_reads_a_run(session: Session) -> None:
    """Its own tool, on the run's file and on the user's."""
    tool = [sys.executable, "-c", "from pytest_benchmark.cli import main; main()", "compare"]
    files = [str(session.folder / "pytest-benchmark.json"), str(session.json)]
    done = subprocess.run([*tool, *files], cwd=ROOT, env=environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("test_sgemv[torch.matmul-64x64-async-hot]") == 2


def test_keywords_select_and_addopts_are_heard(tmp_path: Path) -> None:
    """-k, the store by its variable, options by PYTEST_ADDOPTS, repeated and lower-case shapes, -x; every timer."""
    done = suites(
        "-k", "torch.matmul", "--shape", "8x8", "--shape", "16x4", "--shape", "8x8", "-x",
        SGEMV_STORE=str(tmp_path), PYTEST_ADDOPTS="--device cpu --trials 1 --max-time 0.005 --cache hot -q",
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    run = load(Store(tmp_path).resolve("latest"))
    names = [f"torch.matmul-{shape}-{timer}-hot" for shape in ("8x8", "16x4") for timer in ("async", "sync")]
    assert [m.case.id for m in run.measurements] == names
    assert all(m.samples_ns for m in run.measurements)
    assert not run.partial
    assert f"run:    {tmp_path}" in done.stdout


@pytest.mark.parametrize(("timer", "rounds"), [("graph", 2), ("profiler", 2), ("do_bench", 2), ("graph-double", None)])
def test_a_timer_that_only_checks_is_no_benchmark(timer: str, rounds: int | None) -> None:
    """Its case passes and is in the run; pytest-benchmark, which compares kernels, hears nothing of it."""
    case = Case(kernel="mine", role=Role.GEMV, problem=Problem(m=8, k=8), timer=timer, cache=Cache.COLD)
    trial = TrialResult(trial=0, verdict=Verdict(word=Word.PASSED), samples_ns=(1000.0, 2000.0))
    measured: list[Case] = []
    heard: list[tuple[int, float]] = []

    def pedantic(run: Callable[[], None], *, rounds: int, iterations: int) -> None:
        for _ in range(rounds * iterations):
            conftest.CLOCK.read()
            run()
            heard.append((rounds, conftest.CLOCK.read()))

    def measure(asked: Case) -> Measurement:
        measured.append(asked)
        return Measurement(case=case, trials=(trial,))

    benchmark = SimpleNamespace(pedantic=pedantic, extra_info={})
    config = SimpleNamespace(stash=pytest.Stash())
    fixture = conftest.measure.__wrapped__
    fixture(SimpleNamespace(measure=measure), benchmark, SimpleNamespace(config=config))(case)
    assert measured == [case]
    assert heard == ([] if rounds is None else [(rounds, 1e-6), (rounds, 2e-6)])
    assert bool(benchmark.extra_info) is bool(rounds)
