"""suites/: a bench as a user starts it, in a process of its own on the CPU: what it measures, keeps, refuses, says."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from harness.ending import ENDING
from harness.errors import CommandError, Exit
from harness.model import Cache, Case, Check, Measurement, Problem, Role, TrialResult, Verdict, Word
from harness.store import Store, load, verify
from harness.store.draft import write_run
from kernels import registry
from suites import conftest
from suites.options import Selection, select
from tests.built import library, shared_cache
from tests.sample_run import empty_run

ROOT = Path(__file__).parents[1]
QUICKLY = ("--device", "cpu", "--shape", "64x64", "--timer", "async", "--trials", "2", "--max-time", "0.01")
MEASURED = {"empty": "1x1", "torch.matmul": "64x64", "torch.mv": "64x64", "sgemv_cpu_f32": "64x64", "read": "64x64"}
"""Kernels that a CPU has, with the problem that each is measured on."""

ON_CUDA = {"sgemv", "sgemv_k16_f32", "sgemv_k32_f32", "sgemv_k128_f32x4"}


def environment(**changes: str) -> dict[str, str]:
    """Of this process, without what would change a bench."""
    dropped = ("SGEMV_STORE", "PYTEST_ADDOPTS", "PYTEST_CURRENT_TEST", "COLUMNS")
    kept = {name: value for name, value in os.environ.items() if name not in dropped}
    return {**kept, "SGEMV_CACHE": str(shared_cache()), "PYTHONDONTWRITEBYTECODE": "1", **changes}


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "pytest", "suites", "-p", "no:cacheprovider", *map(str, arguments)]


def suites(*arguments: object, **variables: str) -> subprocess.CompletedProcess[str]:
    library("cpu")
    return subprocess.run(
        command(*arguments), cwd=ROOT, env=environment(**variables), capture_output=True, text=True, timeout=120,
        check=False,
    )  # fmt: skip


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


def benchmarks(path: Path) -> dict[str, dict]:
    """pytest-benchmark's records by the test's name; refuses what JSON does not know, such as NaN."""

    def refuse(word: str) -> None:
        raise ValueError(word)

    data = json.loads(path.read_text(), parse_constant=refuse)
    return {record["name"]: record for record in data["benchmarks"]}


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


def selection(**options: object) -> Selection:
    """What `select` makes of these options, the others being as if they were left out."""
    names = ("ref", "trials", "max_time", "store", "path_file", "layout", "row_stride", "first_element", "lock_clocks")
    left_out = dict.fromkeys(names)
    flags = dict.fromkeys(("quick", "selfcheck", "peers", "variants", "regimes"), False)
    named = ("suite", "kernel", "kernels", "shape", "shapes", "dtype", "timer", "cache", "file_or_dir")
    lists = {name: [] for name in named}
    option = SimpleNamespace(**{**left_out, **flags, **lists, "device": "cpu", **options})
    return select(SimpleNamespace(option=option), registry.kernels())  # type: ignore[arg-type]


def test_what_is_selected_by_default() -> None:
    """Everything, five workers, 0.15 s; the suite's own problems."""
    found = selection()
    measured = {case.kernel for case in found.cases()["sgemv"]}
    assert [name for name in registry.kernels() if name in measured] == KERNELS.split(", ")
    assert (found.problems, found.timers, found.caches) == (None, ("async", "sync"), (Cache.COLD, Cache.HOT))
    assert (found.options.trials, found.options.max_time_s, found.options.quick) == (5, 0.15, False)
    assert not found.options.selfcheck


def test_a_kernel_is_measured_beside_what_it_is_judged_by() -> None:
    """--kernel keeps the baseline, the limit and the floor, in the order of the tables."""
    names = [kernel.name for kernel in selection(kernel=["sgemv_cpu_f32"]).kernels]
    assert names == ["torch.matmul", "sgemv_cpu_f32", "read", "empty"]


def test_kernels_that_another_picks_among_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """By name, or all of them by --variants, whatever else is named; a rule may pick one that is measured anyway."""
    real = {name: replace(k, picks=()) for name, k in registry.kernels().items() if not k.by_name_only}
    variant = replace(real["torch.mv"], by_name_only=True, candidate=True)
    among = {name: replace(variant, name=name) for name in ("variant_0", "variant_1")}
    monkeypatch.setattr(registry, "kernels", lambda: real | among)
    always = ["torch.matmul", "read", "empty"]
    assert [kernel.name for kernel in selection().kernels if kernel.by_name_only] == []
    assert [kernel.name for kernel in selection(kernel=["variant_1"]).kernels] == [*always, "variant_1"]
    assert [kernel.name for kernel in selection(variants=True).kernels][-2:] == list(among)
    named = [kernel.name for kernel in selection(variants=True, kernel=["sgemv"]).kernels]
    assert named == ["torch.matmul", "sgemv", "read", "empty", *among]
    real["sgemv"] = replace(real["sgemv"], picks=("torch.mv", "variant_0"))
    named = [kernel.name for kernel in selection(variants=True, kernel=["sgemv"]).kernels]
    assert named == ["torch.matmul", "torch.mv", "sgemv", "read", "empty", *among]


@pytest.mark.parametrize("other", [{"shape": ["8x8"]}, {"peers": True}])
def test_the_problems_of_every_regime_are_not_mixed_with_others(other: dict[str, object]) -> None:
    """Neither wins silently."""
    with pytest.raises(CommandError, match=r"^--regimes: has problems of its own; leave --shape, --shapes and "):
        selection(regimes=True, **other)


def test_quick_is_a_coarse_look() -> None:
    """Cold only, the first timer, three workers, 0.03 s, each unless said otherwise."""
    quick = selection(quick=True)
    assert (quick.caches, quick.options.trials, quick.options.max_time_s) == ((Cache.COLD,), 3, 0.03)
    assert (quick.timers, selection(quick=True, timer=["sync"]).timers) == (("async",), ("sync",))
    other = selection(quick=True, cache=["hot"], trials="7", max_time="1.5")
    assert (other.caches, other.options.trials, other.options.max_time_s) == ((Cache.HOT,), 7, 1.5)


KERNELS = "torch.matmul, torch.mv, sgemv, sgemv_k128_f32x4, sgemv_k16_f32, sgemv_k32_f32, sgemv_cpu_f32, read, empty"


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("shape", ["64x64", "0x1"], "--shape: found '0x1', wanted MxK"),
        ("timer", ["graph"], "--timer: graph does not work on cpu, wanted one of: async, sync"),
        (
            "timer",
            ["graph-double"],
            "--timer: found 'graph-double', wanted one of: graph, event, async, sync, profiler",
        ),
        ("timer", ["do_bench"], "--timer: found 'do_bench', wanted one of: graph, event, async, sync, profiler"),
        ("trials", "2.5", "--trials: found '2.5', wanted a whole number from 1 to 1000"),
        ("trials", "1001", "--trials: found '1001', wanted a whole number from 1 to 1000"),
        ("max_time", "nan", "--max-time: found 'nan', wanted a number from 0.001 to 3600"),
        ("max_time", "-1", "--max-time: found '-1', wanted a number from 0.001 to 3600"),
        ("device", "cuda:x", "--device: found 'cuda:x', wanted cuda, cuda:N, a UUID (GPU-… or MIG-…), all or cpu"),
        ("device", "cuda:", "--device: found 'cuda:', wanted cuda, cuda:N, a UUID (GPU-… or MIG-…), all or cpu"),
        ("device", "cpu:0", "--device: found 'cpu:0', wanted cuda, cuda:N, a UUID (GPU-… or MIG-…), all or cpu"),
        ("ref", "latest", "--ref: found 'latest', wanted 1 to 64 letters"),
    ],
)
def test_more_wrong_values(option: str, value: object, words: str) -> None:
    """The same line, without a process of its own."""
    with pytest.raises(CommandError) as caught:
        selection(**{option: value})
    assert str(caught.value).startswith(words)
    assert caught.value.code is Exit.USAGE


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--kernel", "sgemm"], "--kernel: found 'sgemm', wanted one of "),
        (["--shape", "64"], "--shape: found '64', wanted MxK or MxKxN with whole numbers from 1 on, such as 1024x128"),
        (["--timer", "cupti"], "--timer: found 'cupti', wanted one of: graph, event, async, sync, profiler"),
        (["--selfcheck"], "--selfcheck: needs a GPU, and this would run on the CPU: --device cpu"),
        (["--peers"], "--peers: needs a GPU, and this would run on the CPU: --device cpu"),
        (
            ["--selfcheck", "--timer", "graph"],
            "--selfcheck: holds all timers against each other; leave --timer and --cache out",
        ),
        (["--cache", "warm"], "--cache: found 'warm', wanted one of: cold, hot"),
        (["--trials", "0"], "--trials: found '0', wanted a whole number from 1 to 1000"),
        (["--max-time", "soon"], "--max-time: found 'soon', wanted a number from 0.001 to 3600"),
        (["--device", "gpu"], "--device: found 'gpu', wanted cuda, cuda:N, a UUID (GPU-… or MIG-…), all or cpu"),
        (["--ref", "a/b"], "--ref: found 'a/b', wanted 1 to 64 letters, digits, '.', '_' or '-'"),
        (["--benchmark-skip"], "--benchmark-skip: nothing would be measured; leave it out"),
        (["--benchmark-disable"], "--benchmark-disable: nothing would be measured; leave it out"),
        (["--setup-plan"], "--setup-plan: nothing would be measured; leave it out"),
        (["--benchmark-cprofile", "tottime"], "--benchmark-cprofile: the timed work is not in this process"),
        (["-p", "no:benchmark"], "-p no:benchmark: the suites need pytest-benchmark; leave it out"),
        (["--benchmark-min-rounds=9"], "--benchmark-min-rounds: has no effect here; use --max-time"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_wrong_value_is_one_line(tmp_path: Path, arguments: list[str], words: str) -> None:
    """It lists what is right; code 2; nothing is built, measured or made."""
    device = [] if "--device" in arguments else ["--device", "cpu"]
    done = suites("-q", *device, *arguments, "--store", tmp_path / "store")
    assert done.returncode == 2, done.stdout + done.stderr
    lines = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
    assert len(lines) == 1
    assert lines[0].startswith(f"Exit: {words}")
    assert not (tmp_path / "store").exists()


def test_addopts_of_another_plugin_are_refused(tmp_path: Path) -> None:
    """A user whose PYTEST_ADDOPTS has -n for xdist: pytest-benchmark would measure nothing, without a word."""
    refused = suites("-q", "--device", "cpu", PYTEST_ADDOPTS="-n 2")
    assert refused.returncode == 2, refused.stdout + refused.stderr
    assert refused.stderr.startswith("Exit: -n (xdist): pytest-benchmark measures nothing under it")
    inside = suites("-q", "--device", "cpu", PYTEST_XDIST_WORKER="gw0")
    assert inside.returncode == 2, inside.stdout + inside.stderr
    assert inside.stderr.startswith("Exit: PYTEST_XDIST_WORKER is set: pytest-benchmark takes this for")
    asked = ("-q", "--device", "cpu", "--collect-only")
    allowed = suites(*asked, PYTEST_ADDOPTS="-n 0", SGEMV_STORE=str(tmp_path))
    assert allowed.returncode == 0, allowed.stdout + allowed.stderr


def test_the_problems_of_every_regime(tmp_path: Path) -> None:
    """--regimes measures them instead, views of A among them: 25, each with three kernels, and the floor."""
    asked = ("--regimes", "--timer", "sync", "--cache", "cold", "--kernel", "sgemv", "--device", "cpu")
    done = suites("--collect-only", "-q", *asked, "--store", tmp_path / "store")
    assert done.returncode == 0, done.stdout + done.stderr
    assert len([line for line in done.stdout.splitlines() if "::" in line]) == 1 + 25 * 3


def test_collecting_measures_nothing(tmp_path: Path) -> None:
    """--collect-only lists the cases, also those of the suite's own eight problems; no folder is made."""
    done = suites("--collect-only", "-q", "--device", "cpu", "--cache", "cold", "--store", tmp_path / "store")
    assert done.returncode == 0, done.stdout + done.stderr
    names = [line for line in done.stdout.splitlines() if "::" in line]
    assert len(names) == 2 * (1 + 8 * 8)
    assert names[0].endswith("test_sgemv[empty-1x1-async-cold]")
    assert names[1].endswith("test_sgemv[empty-1x1-sync-cold]")
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["-k", "nothing"], 2, "deselected"),
        (["--no-such-option"], 4, "unrecognized arguments: --no-such-option"),
    ],
)
def test_nothing_selected_and_unknown_options(tmp_path: Path, arguments: list[str], code: int, words: str) -> None:
    """Nothing selected is wrong usage; an unknown option is pytest's own 4, which nox turns into 2."""
    done = suites("-q", *QUICKLY, *arguments, "--store", tmp_path / "store")
    assert done.returncode == code
    assert words in done.stdout + done.stderr
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize("name", ["--help", "--version"])
def test_help_and_version_need_nothing(name: str) -> None:
    """No device is looked for; the suites' options alone are listed, with their defaults, and the kernels."""
    done = suites(name)
    assert done.returncode == 0
    if name == "--help":
        assert "--max-time MAX_TIME" in done.stdout
        assert "--capture" not in done.stdout
        assert set(registry.kernels()) <= set(done.stdout.split())
        assert len(done.stdout.splitlines()) < 80
        assert "(default 5, or the suite's)" in " ".join(done.stdout.split())


def test_a_suite_that_cannot_be_imported_is_wrong_usage(tmp_path: Path) -> None:
    """Not «interrupted», which pytest's status says as well; the traceback is shown."""
    (tmp_path / "test_broken.py").write_text("import no_such_module\n")
    done = suites(tmp_path / "test_broken.py", "-q", *QUICKLY, "--store", tmp_path / "store")
    assert done.returncode == 2, done.stdout + done.stderr
    assert "No module named 'no_such_module'" in done.stdout
    assert not (tmp_path / "store").exists()


def test_a_store_that_cannot_be_used_is_one_line(tmp_path: Path) -> None:
    """A file in its place: code 6, what to do, no traceback."""
    (tmp_path / "store").write_text("")
    done = suites("-q", *QUICKLY, "--store", tmp_path / "store")
    assert done.returncode == 6, done.stdout + done.stderr
    said = [line for line in (done.stdout + done.stderr).splitlines() if "name a writable folder" in line]
    assert len(said) == 1
    assert f"store {tmp_path / 'store'}: Not a directory" in said[0]
    assert "Traceback" not in done.stdout + done.stderr


PLANTED = """
from kernels import registry
from tests import planted_kernels

real = registry.kernels

def kernels():
    planted = planted_kernels.kernels()
    return real() | {name: planted[name] for name in ("drops_the_last_element", "segfaults", "hangs")}

registry.kernels, registry.__name__ = kernels, __name__
load = registry.load
"""
"""The project's registry with three bad kernels: a plugin for pytest, and the module that workers import."""


def planted(folder: Path, *arguments: object) -> tuple[tuple[object, ...], dict[str, str]]:
    """Arguments and variables of a bench with the planted kernels, into `folder`/store."""
    (folder / "planted_registry.py").write_text(PLANTED)
    path = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])
    plugin = ("-p", "planted_registry", "--cache", "hot", "--store", folder / "store")
    return (*plugin, *QUICKLY, *arguments), {"PYTHONPATH": path}


def test_a_wrong_kernel_fails_its_own_cases(tmp_path: Path) -> None:
    """Code 5, the reason in its line; the others are measured, and the run is whole."""
    arguments, variables = planted(tmp_path, "-k", "matmul or drops or segfaults")
    done = suites(*arguments, **variables)
    assert done.returncode == 5, done.stdout + done.stderr
    assert re.search(r"✗ .*drops_the_last_element.*wrong: integers: \d+ of 64 wrong", done.stdout)
    assert re.search(r"✗ .*segfaults.*crashed: killed by SIGSEGV \(segmentation fault\) while its", done.stdout)
    run = load(Store(tmp_path / "store").resolve("latest"))
    assert [str(m.verdict.word) for m in run.measurements] == ["passed", "wrong", "crashed"]
    assert not run.partial
    kept = benchmarks(tmp_path / "store" / run.id / "pytest-benchmark.json")
    assert set(kept) == {"test_sgemv[torch.matmul-64x64-async-hot]"}


def test_a_bench_that_stops_at_a_failure_is_partial(tmp_path: Path) -> None:
    """-x leaves cases out: the run must not look complete."""
    arguments, variables = planted(tmp_path, "-x", "-k", "matmul or drops or segfaults")
    done = suites(*arguments, **variables)
    assert done.returncode == 5, done.stdout + done.stderr
    run = load(Store(tmp_path / "store").resolve("latest"))
    assert [str(m.verdict.word) for m in run.measurements] == ["passed", "wrong"]
    assert run.partial


def started(tmp_path: Path, arguments: list[str], variables: dict[str, str]) -> tuple[subprocess.Popen[bytes], Path]:
    """A bench in a process group of its own that has measured torch.matmul, and the file that it writes to."""
    log = tmp_path / "out.txt"
    with log.open("w") as out:
        program = subprocess.Popen(
            command(*arguments), cwd=ROOT, env=environment(**variables), stdout=out, stderr=out, start_new_session=True
        )
    deadline = time.monotonic() + 60
    while "torch.matmul" not in log.read_text() and time.monotonic() < deadline and program.poll() is None:
        time.sleep(0.02)
    return program, log


def test_interrupting_keeps_what_was_measured(tmp_path: Path) -> None:
    """Ctrl-C while a kernel hangs: code 130, what came before is published as partial, no draft or log is left."""
    library("cpu")
    arguments, variables = planted(tmp_path, "-k", "empty or matmul or hangs", "-q", "--ref", "cut")
    program, log = started(tmp_path, arguments, variables)
    try:
        program.send_signal(signal.SIGINT)
        code = program.wait(timeout=60)
    finally:
        program.kill()
        program.wait()
    assert code == 130, log.read_text()
    run = load(Store(tmp_path / "store").resolve("cut"))
    assert run.partial
    assert [m.case.kernel for m in run.measurements] == ["empty", "torch.matmul"]
    assert all(m.samples_ns for m in run.measurements)
    assert sorted(path.name for path in (tmp_path / "store").iterdir()) == [".gitignore", run.id, "refs"]


@pytest.mark.parametrize("option", ["--selfcheck", "--peers", "--variants"])
def test_without_a_gpu_timers_cannot_be_checked(tmp_path: Path, option: str) -> None:
    """No device was named: what lacks is the machine's, code 6 and one line. With --device cpu it is wrong usage."""
    done = suites("-q", option, "--store", tmp_path / "store", CUDA_VISIBLE_DEVICES="")
    assert done.returncode == 6, done.stdout + done.stderr
    lines = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
    assert lines == [
        f"Exit: {option}: needs a GPU, and this would run on the CPU: CUDA_VISIBLE_DEVICES hides every GPU"
    ]
    assert not (tmp_path / "store").exists()


CHECKED = Check(name="length", kernel="mine", problem=Problem(m=8, k=8), passed=True)
FAILED = replace(CHECKED, name="NVML", passed=False)
UNJUDGED = replace(CHECKED, name="cold", passed=None, reason="graph was not measured (hot)")


@pytest.fixture
def _interrupts() -> Iterator[None]:
    """Ctrl-C means after the test what it meant before."""
    before = {number: signal.getsignal(number) for number in ENDING}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def finished(root: Path, checks: tuple[Check, ...] | None, status: int = 0) -> SimpleNamespace:
    """A session at its end, whose bench publishes a run with this selfcheck."""
    folder = root / "20260101T000000Z-x-y-abcdef"

    def publish(*, partial: bool) -> Path:
        folder.mkdir()
        write_run(folder, replace(empty_run(), id=folder.name, selfcheck=checks, partial=partial))
        return folder

    config = SimpleNamespace(stash=pytest.Stash(), _benchmarksession=SimpleNamespace(benchmarks=[]))
    config.stash[conftest.CODES] = []
    config.stash[conftest.SELECTION] = replace(selection(), ref="checked", path_file=root / "path")
    bench = SimpleNamespace(publish=publish, store=Store(root))
    config.stash[conftest.BENCH] = bench  # type: ignore[index]
    session = SimpleNamespace(config=config, testsfailed=0, shouldfail=False, shouldstop=False)
    conftest.pytest_sessionfinish(session, status)  # type: ignore[arg-type]
    return session


@pytest.mark.usefixtures("_interrupts")
@pytest.mark.parametrize(
    ("checks", "code"),
    [
        (None, Exit.FINE),
        ((), Exit.KERNEL),
        ((UNJUDGED, UNJUDGED), Exit.KERNEL),
        ((CHECKED, UNJUDGED), Exit.FINE),
        ((CHECKED, FAILED), Exit.KERNEL),
        ((UNJUDGED, FAILED, FAILED), Exit.KERNEL),
    ],
    ids=["not asked for", "nothing measured", "nothing judged", "passed", "one failed", "two failed"],
)
def test_a_failed_check_is_told_by_the_exit_code(tmp_path: Path, checks: tuple[Check, ...] | None, code: Exit) -> None:
    """5, though every kernel was right; the run is published, named and found all the same."""
    session = finished(tmp_path, checks)
    assert session.exitstatus == code
    folder = Store(tmp_path).resolve("checked")
    assert load(folder).selfcheck == checks
    assert (tmp_path / "path").read_text() == f"{folder}\n"


@pytest.mark.usefixtures("_interrupts")
def test_an_interrupt_outweighs_a_failed_check(tmp_path: Path) -> None:
    """The highest code that applies, as everywhere."""
    session = finished(tmp_path, (FAILED,), pytest.ExitCode.INTERRUPTED)
    assert session.exitstatus == Exit.INTERRUPTED
    assert load(Store(tmp_path).resolve("checked")).partial


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
