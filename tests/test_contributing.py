"""CONTRIBUTING.md: its commands are accepted, what it names exists, and what is added as it says is found."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

from tests.test_noxfile import nox
from tests.test_readme import commands

ROOT = Path(__file__).resolve().parent.parent
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def python(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)


def test_its_sessions_exist() -> None:
    """Every `nox -s NAME`, in blocks and in sentences."""
    known = set(re.findall(r"^[*-] (\w+)", nox("-l").stdout, flags=re.MULTILINE))
    assert {"tests", "lint", "build", "bench", "compare"} <= set(re.findall(r"nox -s (\w+)", TEXT)) <= known


def test_its_bench_is_accepted(tmp_path: Path) -> None:
    """Collecting alone runs every check of the options."""
    (line,) = [line for line in commands(TEXT) if line.startswith("nox -s bench --")]
    options = [*shlex.split(line)[4:], "--device=cpu", f"--store={tmp_path}"]
    done = python("-m", "pytest", "suites", "--collect-only", "-q", *options)
    assert done.returncode == 0, done.stdout + done.stderr


def test_its_tests_are_there() -> None:
    """Files that it names, and those that what it selects by is in the names of."""
    selected = re.findall(r'-k "(\w+) or (\w+)"', TEXT)
    named = [name for names in selected for name in names] + re.findall(r"pytest tests/test_(\w+)\.py", TEXT)
    assert len(named) == 3
    assert [name for name in named if not (ROOT / "tests" / f"test_{name}.py").is_file()] == []


def test_its_scripts_are_there() -> None:
    """Each takes what it is given."""
    lines = [shlex.split(line) for line in commands(TEXT)]
    scripts = {words[1]: words[2:] for words in lines if words[1].startswith("examples/")}
    assert set(scripts) == {f"examples/{name}.py" for name in ("keep", "tables", "run_format")}
    assert [name for name, arguments in scripts.items() if arguments] == ["examples/keep.py"]
    usage = python("examples/keep.py", "--help").stdout
    assert len(re.findall(r"^  (?!-)\w+ ", usage, flags=re.MULTILINE)) == len(scripts["examples/keep.py"])
    for name in scripts:
        assert f"`python {name}" in (ROOT / name).read_text(encoding="utf-8")


def test_what_it_names_exists() -> None:
    """Folders and files, links, and the names that a module is found by."""
    named = {name for name in re.findall(r"`([\w.]+/[\w./]*)`", TEXT) if "NAME" not in name}
    assert {"kernels/csrc/", "harness/timing/", "reports/charts/", "reports/claims/", "harness/export/"} <= named
    assert [name for name in named if not (ROOT / name).exists() and name != ".nox/"] == []
    assert [link for link in re.findall(r"\]\((?!http)([^)#]+)", TEXT) if not (ROOT / link).exists()] == []
    for folder, name in (("harness/timing", "TIMERS"), ("reports/charts", "CHARTS"), ("reports/claims", "CLAIMS")):
        begins = re.compile(rf"^{name}\b", re.MULTILINE)
        modules = [path for path in (ROOT / folder).glob("*.py") if begins.search(path.read_text(encoding="utf-8"))]
        assert len(modules) > 1
        assert f"`{folder}/`" in TEXT
        assert f"`{name}`" in TEXT or name == "CLAIMS"
    for name in ("visible", "CommandError"):
        assert name in (ROOT / f"harness/{'words' if name == 'visible' else 'errors'}.py").read_text(encoding="utf-8")


def test_its_import_table_is_what_is_checked() -> None:
    """A row a package that tests/test_architecture.py knows."""
    rules = (ROOT / "tests" / "test_architecture.py").read_text(encoding="utf-8")
    for package in ("kernels", "harness", "reports", "suites"):
        assert re.search(rf"^\| `{package}/` \|", TEXT, re.MULTILINE)
        assert f'"{package}"' in rules
