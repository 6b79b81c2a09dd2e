"""How every command ends: its own code and at most one line, whatever happens to its output, packages or input."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from harness.__main__ import main
from harness.ending import TRACEBACK, ended, say_error
from harness.errors import CommandError, Exit
from harness.store.draft import write_run, write_sums
from reports.__main__ import main as reports
from tests.sample_run import gpu_run

ROOT = Path(__file__).parents[1]
FULL = Path("/dev/full")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of one run, `run`, of 12 trials."""
    root = tmp_path_factory.mktemp("store")
    (root / "run").mkdir()
    write_run(root / "run", replace(gpu_run(shapes=((4096, 4096),), trials=12, samples=2), id="run"))
    return root


def started(store: Path, words: str, **streams: object) -> subprocess.CompletedProcess[str]:
    """`words` begin with the program; the run is `run`."""
    program, *arguments = words.split()
    environment = {name: value for name, value in os.environ.items() if name != TRACEBACK} | {"SGEMV_STORE": str(store)}
    command = [sys.executable, "-m", program, *arguments]
    wanted = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams}
    return subprocess.run(command, cwd=ROOT, env=environment, text=True, timeout=60, check=False, **wanted)  # type: ignore[call-overload,no-any-return]


PRINTING = {
    "harness runs": 0,
    "harness verify": 0,
    "harness compare run run --all": 5,
    "harness compare run run --json": 5,
    "harness power run": 0,
    "harness export run --to csv": 0,
    "harness runs --help": 0,
    "reports compare run run --markdown": 5,
}
"""Verbs by what they print with, and their codes: the run has a wrong kernel."""

KINDS = ("harness compare run run --all", "harness compare run run --json", "harness export run --to csv",
         "harness runs --help")  # fmt: skip
"""Of them, one each that prints by rich, as text, as bytes, by argparse."""


@pytest.fixture
def closed_pipe() -> Iterator[int]:
    """One that nobody reads any more, as of `| true`."""
    reading, writing = os.pipe()
    os.close(reading)
    yield writing
    os.close(writing)


@pytest.mark.parametrize(("words", "code"), PRINTING.items())
def test_a_reader_that_has_enough_is_no_error(words: str, code: int, store: Path, closed_pipe: int) -> None:
    """The code is the command's own, and nothing is said."""
    done = started(store, words, stdout=closed_pipe)
    assert (done.returncode, done.stderr) == (code, "")


def test_errors_that_nobody_reads_keep_their_code(store: Path, closed_pipe: int) -> None:
    """As of `2>&1 | true`: of a run that is not there."""
    assert started(store, "harness verify none", stdout=closed_pipe, stderr=closed_pipe).returncode == 4


@pytest.mark.skipif(not FULL.exists(), reason="needs /dev/full")
@pytest.mark.parametrize("words", KINDS)
def test_a_full_disk_is_one_line(words: str, store: Path) -> None:
    """Code 6; not that of a slower case, and not Python's for a stream that it could not flush."""
    with FULL.open("w") as full:
        done = started(store, words, stdout=full)
    said = "the standard output cannot be written to: No space left on device; send it elsewhere\n"
    assert (done.returncode, done.stderr) == (6, said)


@pytest.mark.skipif(not FULL.exists(), reason="needs /dev/full")
def test_errors_that_cannot_be_said_keep_their_code(store: Path) -> None:
    """Wrong usage with stderr on a full disk; stdout that was closed before the start."""
    with FULL.open("w") as full:
        assert started(store, "harness nonsense", stderr=full).returncode == 2
    command = f"{sys.executable} -m harness runs --store {store} >&-"
    done = subprocess.run(command, shell=True, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)  # noqa: S602
    assert (done.returncode, done.stderr) == (0, "")


WITHOUT = """
import runpy, sys
program, package, *sys.argv[1:] = sys.argv[1:]
sys.modules[package] = None
runpy.run_module(program, run_name="__main__", alter_sys=True)
"""


@pytest.mark.parametrize(
    ("program", "module", "package"),
    [
        *(("harness", name, name) for name in ("scipy", "pandas", "pyarrow", "rich", "msgspec", "psutil", "filelock")),
        ("reports", "scipy", "scipy"),
    ],
)
def test_a_package_that_is_missing_is_named(program: str, module: str, package: str, store: Path) -> None:
    """One line with what to do, code 6, wherever the package is imported."""
    verb = ["compare", "run", "run", *(["--markdown"] if program == "reports" else [])]
    command = [sys.executable, "-c", WITHOUT, program, module, *verb, "--store", str(store)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (6, "")
    wanted = f"{package} is not installed for {sys.executable}: pip install -c constraints.txt {package}\n"
    assert done.stderr == wanted


def test_packages_that_are_called_otherwise(capsys: pytest.CaptureFixture[str]) -> None:
    """The package's name, not the module's; a module of this project or of Python's own is a defect."""
    for name, words in (
        ("pynvml", "nvidia-ml-py is not installed"),
        ("pytest_benchmark.stats", "pytest-benchmark is not installed"),
        ("harness.gone", "unexpected ModuleNotFoundError at "),
        ("_sqlite3", "unexpected ModuleNotFoundError at "),
    ):

        def work(missing: str = name) -> int:
            raise ModuleNotFoundError(f"No module named {missing!r}", name=missing)

        assert ended(work) == 6
        assert capsys.readouterr().err.startswith(words)


def planted() -> int:
    raise CommandError(42)  # type: ignore[call-arg,arg-type]


def test_a_defect_is_one_line_and_no_slower_case(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its type, the last line of the project's that ran, and how to see more."""
    monkeypatch.delenv(TRACEBACK, raising=False)
    assert ended(lambda: int(say_error.__wrapped__)) == 6  # type: ignore[attr-defined]
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("unexpected AttributeError at harness/ending.py:")
    assert line.endswith(f"; {TRACEBACK}=1 shows how it came about, for a report of this defect")
    monkeypatch.setenv(TRACEBACK, "1")
    assert ended(planted) == 6
    *traceback, line = capsys.readouterr().err.splitlines()
    assert traceback[0] == "Traceback (most recent call last):"
    assert line.startswith("unexpected TypeError at harness/ending.py:")


@pytest.mark.parametrize(
    ("raised", "code"),
    [
        (CommandError("x", Exit.NOT_COMPARABLE), 3),
        (KeyboardInterrupt(), 130),
        (RecursionError(), 6),
        (MemoryError(), 6),
        (OSError(28, "No space left on device"), 6),
        (SystemExit(0), 0),
    ],
)
def test_codes(raised: BaseException, code: int) -> None:
    """Whatever ends the work."""

    def work() -> int:
        raise raised

    assert ended(work) == code


HOSTILE = "evil\n\x1b[31mname\u202e"
SHOWN = "evil⟨000A⟩⟨001B⟩[31mname⟨202E⟩"


def test_an_error_line_hides_nothing(store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file, a run, an option, a store of a hostile name: one line each, without what a terminal would obey."""
    folder = tmp_path / "run"
    folder.mkdir()
    write_run(folder, gpu_run(shapes=((64, 64),), trials=1, samples=2))
    (folder / HOSTILE).write_text("")
    (tmp_path / f"[red]{HOSTILE}").mkdir()
    (tmp_path / f"[red]{HOSTILE}" / "run.json").write_text("{")
    for program, words in (
        (main, ["verify", str(folder)]),
        (main, ["verify", "--store", str(tmp_path)]),
        (main, ["runs", "--store", str(tmp_path)]),
        (main, ["runs", "--store", str(tmp_path / HOSTILE), HOSTILE]),
        (main, ["export", "run", "--to", HOSTILE, "--store", str(store)]),
        (reports, ["compare", HOSTILE, "run", "--markdown", "--store", str(store)]),
    ):
        assert program(words) in (2, 4)
        out, err = capsys.readouterr()
        assert not {"\x1b", "\u202e"} & {*out, *err}
        assert all("name" in line for line in err.splitlines())
        assert err.count("\n") == (2 if words == ["verify", "--store", str(tmp_path)] else 1)
    assert main(["verify", str(folder)]) == 4
    assert capsys.readouterr().err == f"{folder}/{SHOWN}: added since the run was published\n"


def test_a_list_of_runs_hides_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A run's folder and its record may be called anything; brackets are no markup."""
    name = f"[red]{HOSTILE}"
    (tmp_path / name).mkdir()
    run = gpu_run(shapes=((64, 64),), trials=1, samples=2)
    values = {**run.environment.values, "gpu_name": f"[bold]:boom: {HOSTILE}"}
    write_run(tmp_path / name, replace(run, environment=replace(run.environment, values=values)))
    assert main(["runs", "--store", str(tmp_path)]) == 0
    out, err = capsys.readouterr()
    assert f"[red]{SHOWN}" in out
    assert f"[bold]:boom: {SHOWN}" in out
    assert err == ""
    assert main(["verify", "--store", str(tmp_path)]) == 0
    assert capsys.readouterr().out == f"{tmp_path}/[red]{SHOWN}: whole\n"


def test_json_that_is_nested_too_deep_is_damage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In the record, in a file that is exported as it is, in a draft: code 4, or a line."""
    deep = "[" * 200_000 + "]" * 200_000
    run = gpu_run(shapes=((64, 64),), trials=1, samples=2)
    for name in ("pytest-benchmark.json", "run.json"):
        folder = tmp_path / name / "run"
        folder.mkdir(parents=True)
        write_run(folder, run)
        (folder / name).write_text(deep)
        write_sums(folder)
        assert main(["export", str(folder), "--to", "pytest-benchmark"]) == 4
        assert capsys.readouterr().err == f"{folder}/{name}: not JSON: nested too deep\n"
    assert main(["verify", str(folder)]) == 4
    assert main(["runs", "--store", str(folder.parent)]) == 4
    assert len(capsys.readouterr().err.splitlines()) == 2
    draft = tmp_path / "drafts" / ".draft-x"
    draft.mkdir(parents=True)
    (draft / "header.json").write_text(deep)
    (draft / "journal.jsonl").write_text(deep)
    assert main(["runs", "--store", str(draft.parent)]) == 0
    assert "header.json: nested too deep; it holds measurements" in capsys.readouterr().err
