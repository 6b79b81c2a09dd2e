"""suites/ from the command line where nothing is measured: what is refused, in one line each, collecting and --help."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernels import registry
from tests.running_suites import QUICKLY, suites


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


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["-k", "nothing"], 2, "deselected"),
        (["--time", "0"], 4, "ERROR: option: found '--time', wanted one of "),
        (["--refs=x"], 4, "; did you mean --ref or "),
        (["--trials"], 4, "ERROR: --trials: expected one argument; nox -s bench -- --help says what there is"),
    ],
)
def test_nothing_selected_and_unknown_options(tmp_path: Path, arguments: list[str], code: int, words: str) -> None:
    """Nothing selected is wrong usage; what cannot be parsed is a line and pytest's own 4, which nox turns into 2."""
    done = suites("-q", *QUICKLY, *arguments, "--store", tmp_path / "store")
    assert done.returncode == code
    assert words in done.stdout + done.stderr
    assert len([line for line in (done.stdout + done.stderr).splitlines() if line.strip()]) == 1
    assert not (tmp_path / "store").exists()


def test_a_suite_that_cannot_be_imported_is_wrong_usage(tmp_path: Path) -> None:
    """Not «interrupted», which pytest's status says as well; the traceback is shown."""
    (tmp_path / "test_broken.py").write_text("import no_such_module\n")
    done = suites(tmp_path / "test_broken.py", "-q", *QUICKLY, "--store", tmp_path / "store")
    assert done.returncode == 2, done.stdout + done.stderr
    assert "No module named 'no_such_module'" in done.stdout
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize(
    ("store", "variables", "code", "said"),
    [
        ("{}/file", {}, 6, "Exit: store {}/file: Not a directory; name a writable folder with --store or SGEMV_STORE"),
        ("/proc/x", {}, 6, "Exit: store /proc/x: No such file or directory; name a writable folder with --store or"),
        ("foo://bar", {}, 2, "Exit: store foo://bar: fsspec knows no such URL; wanted one such as s3://bucket/prefix"),
        ("{}/new", {"SGEMV_CACHE": "/proc/x"}, 6, "Exit: the build cache /proc/x cannot be written"),
    ],
)
def test_what_a_bench_needs_and_lacks_is_one_line(
    tmp_path: Path, store: str, variables: dict[str, str], code: int, said: str
) -> None:
    """Found out when the session has begun or before: nothing else is printed, not even that no tests ran."""
    (tmp_path / "file").write_text("")
    state = {"XDG_STATE_HOME": str(tmp_path / "state")}
    done = suites("-q", *QUICKLY, "--store", store.format(tmp_path), **variables, **state)
    assert (done.returncode, done.stdout) == (code, "")
    assert done.stderr.startswith(said.format(tmp_path))
    assert len(done.stderr.splitlines()) == 1


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
