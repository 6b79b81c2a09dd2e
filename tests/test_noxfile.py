"""noxfile.py: sessions, pins and exit codes, run as a user runs them."""

from __future__ import annotations

import ast
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from harness.reproduce.request import FILES, SESSIONS
from harness.suites_command import HERE, QUIET

ROOT = Path(__file__).resolve().parent.parent


def nox(*arguments: str, cwd: Path = ROOT, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run nox, in the project's root, with this Python as the one on PATH."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return subprocess.run(
        [sys.executable, "-m", "nox", *arguments],
        cwd=cwd,
        env=os.environ | {"PATH": path} | environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_every_session_is_listed_with_what_it_does() -> None:
    """`nox -l` is the manual: each session has a docstring."""
    lines = re.findall(r"^[*-] (\w+) -> (.+)$", nox("-l").stdout, flags=re.MULTILINE)
    assert [name for name, _ in lines] == [
        "bench", "selfcheck", "peers", "tune", "roofline", "nightly", "tests", "sanitize", "lint", "build", "explain",
        "report", "runs", "verify", "prune", "compare", "history", "export", "reproduce", "power", "regret", "profile",
    ]  # fmt: skip


def test_sessions_that_measure_are_repeated_with_their_own_options() -> None:
    """What such a session adds stands in noxfile.py, which runs in nox's Python, and where runs are reproduced."""
    calls = {
        function.name: tuple(word.value for word in call.args[1:])
        for function in ast.parse((ROOT / "noxfile.py").read_text(encoding="utf-8")).body
        if isinstance(function, ast.FunctionDef)
        for call in ast.walk(function)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "measure"
    }
    assert calls | {"nightly": ()} == SESSIONS  # harness.nightly calls the suites itself, and adds none either


def test_the_suites_are_called_in_one_way() -> None:
    """The words for pytest stand in noxfile.py, which runs in nox's Python, and where a program waits for a bench."""
    lists = {
        node.targets[0].id: tuple(ast.literal_eval(node.value))
        for node in ast.walk(ast.parse((ROOT / "noxfile.py").read_text(encoding="utf-8")))
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and node.targets[0].id in ("quiet", "here")
    }
    assert lists == {"quiet": QUIET, "here": HERE}


def test_a_childs_exit_code_is_noxs() -> None:
    """Nox alone knows 0 and 1; a run that is not there is 4."""
    result = nox("-s", "verify", "--no-venv", "--", "no-such-run")
    assert result.returncode == 4, result.stdout + result.stderr
    assert "run 'no-such-run': no such run among" in result.stdout + result.stderr


def test_an_option_that_pytest_does_not_know_is_wrong_usage() -> None:
    """Pytest's own 4 would mean a damaged run."""
    assert nox("-s", "bench", "--no-venv", "--", "--no-such-option").returncode == 2


def test_files_are_named_from_where_the_user_stands(tmp_path: Path) -> None:
    """Not from the noxfile's folder; and a conftest.py beside them is nothing of pytest's."""
    (tmp_path / "conftest.py").write_text("raise AssertionError('a user's own tests')\n")
    (tmp_path / "mine.py").write_text('from kernels.own import kernel\nkernel("mine")(print)\n')
    (tmp_path / "shapes.toml").write_text('shapes = ["8x24"]\n')
    options = ["--kernels", "mine.py", "--shapes", "shapes.toml", "--device", "cpu", "--collect-only", "--cache", "hot"]
    result = nox("-f", str(ROOT / "noxfile.py"), "-s", "bench", "--no-venv", "--", *options, cwd=tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "test_sgemv[mine-8x24-async-hot]" in result.stdout


def test_an_option_and_its_file_are_one_word() -> None:
    """Of those that name a file alone; what is one word already stays."""
    import noxfile

    words = ["--kernels", "a b.py", "--kernels=c.py", "--shape", "8x8", "--shapes", "s.csv", "--kernels"]
    joined = ["--kernels=a b.py", "--kernels=c.py", "--shape", "8x8", "--shapes=s.csv", "--kernels"]
    assert noxfile.one_word(words) == joined
    assert noxfile.NAMING_FILES == FILES


@pytest.mark.parametrize(
    ("runs", "codes", "compared", "code"),
    [
        (["a"], {}, False, 0),
        (["a", "b", "c"], {}, True, 0),
        (["a", "b"], {"compare": 3}, True, 0),  # GPUs of two models
        (["a", "b"], {"suites": 5, "compare": 3}, True, 5),
        (["a", "b"], {"compare": 6}, True, 6),
        (["a", "b"], {"suites": 130}, False, 130),
        ([], {"suites": 6}, False, 6),
    ],
)
def test_runs_of_several_gpus_have_a_page_over_all(
    monkeypatch: pytest.MonkeyPatch, runs: list[str], codes: dict[str, int], compared: bool, code: int
) -> None:
    """What differs between boards fails no bench, and after Ctrl-C nothing more is begun than the pages of runs."""
    import noxfile

    shown: list[list[str]] = []

    def run(_session: object, words: list[str], **_: str) -> int:
        shown.append(words[1:])
        for word in words:
            if word.startswith("--path-file=") and runs:
                Path(word.removeprefix("--path-file=")).write_text("".join(f"{each}\n" for each in runs))
        return codes.get(next(each for each in ("suites", "compare", "run") if each in words), 0)

    monkeypatch.setattr(noxfile, "prepare", lambda *_, **__: "python")
    monkeypatch.setattr(noxfile, "run", run)
    session = SimpleNamespace(name="bench", posargs=["--device", "all"], invoked_from="/")
    try:
        noxfile.measure(session)  # type: ignore[arg-type]
        ended = 0
    except SystemExit as left:
        ended = left.code  # type: ignore[assignment]
    over_all = [["-m", "reports", "compare", "--fail-on=nothing", *runs]] if compared else []
    assert shown[1:] == [["-m", "reports", "run", each, "--table"] for each in runs] + over_all
    assert ended == code


def test_arguments_are_passed_on(tmp_path: Path) -> None:
    """An empty store is no error."""
    result = nox("-s", "runs", "--no-venv", "--", "--store", str(tmp_path))
    assert result.returncode == 0, result.stdout + result.stderr
    assert f"no runs in {tmp_path}" in result.stdout


@pytest.mark.parametrize("where", ["SGEMV_STORE", "--store"])
def test_a_store_in_s3_brings_what_it_needs(where: str, tmp_path: Path) -> None:
    """A Python without it is told of s3fs, too; one that keeps its runs in a folder is not."""
    environment = {"SGEMV_STORE": "s3a://bucket/prefix"} if where == "SGEMV_STORE" else {}
    options = ["--", "--store", "s3://bucket/prefix"] if where == "--store" else []
    assert " s3fs, or leave --no-venv out" in without_packages(tmp_path, "runs", *options, **environment).stderr
    assert "s3fs" not in without_packages(tmp_path, "runs").stderr


@pytest.mark.parametrize(
    ("words", "variable"),
    [
        (["--store", "s3://key:planted-secret@bucket/runs"], ""),
        ([], "https://host/runs?sig=planted-secret"),
    ],
)
def test_a_login_in_a_url_is_never_shown(words: list[str], variable: str) -> None:
    """Nox shows what it runs, into logs that others read: such a store is refused before that, with code 2."""
    result = nox("-s", "prune", "--no-venv", "--", "--keep-days", "90", *words, SGEMV_STORE=variable)
    assert result.returncode == 2
    assert "a URL holds a login or a query" in result.stderr
    assert "planted-secret" not in result.stdout + result.stderr


def test_a_torch_version_that_is_none_is_refused(tmp_path: Path) -> None:
    """SGEMV_TORCH goes into the pins, so it must be a version."""
    result = nox("-s", "runs", SGEMV_TORCH="latest; rm -rf /", NOX_ENVDIR=str(tmp_path))
    assert result.returncode == 2
    assert "SGEMV_TORCH: found 'latest; rm -rf /', wanted a version such as 2.12.0" in result.stdout + result.stderr


def without_packages(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A session in a Python without packages."""
    bare = folder / "python3"
    bare.write_text(f'#!/bin/sh\nexec "{sys._base_executable}" -S "$@"\n', encoding="utf-8")
    bare.chmod(0o755)
    kept = {name: value for name, value in os.environ.items() if name != "SGEMV_STORE"}
    session, *options = arguments
    return subprocess.run(
        [sys.executable, "-m", "nox", "-s", session, "--no-venv", *options],
        cwd=ROOT,
        env=kept | {"PATH": os.pathsep.join([str(folder), os.environ["PATH"]])} | environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_missing_package_is_named_at_once(tmp_path: Path) -> None:
    """A Python without the packages, as in a container that lacks some: exit 6, each named, and what installs them."""
    result = without_packages(tmp_path, "bench")
    assert result.returncode == 6, result.stdout + result.stderr
    assert "python3 lacks torch, numpy, pytest, pytest-benchmark, " in result.stderr
    assert "pip install -c constraints.txt torch numpy" in result.stderr


def test_interrupting_the_set_up_is_130() -> None:
    """Not 6, which means that something is missing; any other failure is 6."""
    import noxfile

    class Session:
        log = staticmethod(lambda _: None)

        def run(self, *_: object, **__: object) -> None:
            signal.raise_signal(signal.SIGINT)

    handler = signal.getsignal(signal.SIGINT)
    with pytest.raises(SystemExit, match="130"):
        noxfile.must(Session(), ["pip"])  # type: ignore[arg-type]
    assert signal.getsignal(signal.SIGINT) is handler

    class Failing(Session):
        def run(self, *_: object, **__: object) -> None:
            raise noxfile.CommandFailed("Returned code 1")

    with pytest.raises(SystemExit, match="6"):
        noxfile.must(Failing(), ["pip"])  # type: ignore[arg-type]


@pytest.mark.parametrize("first", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_only_the_first_interrupt_counts(first: str) -> None:
    """The child is then closing and publishing; a second Ctrl-C must not leave it alone, nor a closed terminal."""
    import noxfile

    ended = []

    class Session:
        def run(self, *_: object, **__: object) -> None:
            try:
                signal.raise_signal(getattr(signal, first))
            finally:
                for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                    signal.raise_signal(each)
                ended.append(True)

    before = [signal.getsignal(each) for each in noxfile.ENDING]
    assert noxfile.run(Session(), ["bench"]) == 130  # type: ignore[arg-type]
    assert ended == [True]
    assert [signal.getsignal(each) for each in noxfile.ENDING] == before


@pytest.mark.parametrize("name", ["torch", "pytest-benchmark", "pandas", "Jinja2", "nvidia-ml-py", "altair", "msgspec"])
def test_what_decides_a_figure_or_the_page_is_pinned(name: str) -> None:
    """One constraints file, exact versions."""
    pins = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    assert re.search(rf"(?mi)^{name}==\d[\w.]*$", pins)
