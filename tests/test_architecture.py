"""What holds the project together: imports go one way, importing does nothing, files stay readable."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PARTS = ("harness", "kernels", "reports", "suites")
ALLOWED = {
    "harness": {"harness"},
    "kernels": {"kernels", "harness.model", "harness.errors"},
    "reports": {"reports", "harness"},
    "suites": {"suites", "kernels", "harness"},
}
PROGRAMS = {f"kernels/{name}.py": {"kernels", "harness"} for name in ("__main__", "cli")}
"""Command lines that read and speak as the harness's do."""
MOST_LINES = 320


def files(part: str) -> list[Path]:
    return sorted((ROOT / part).rglob("*.py"))


def modules(part: str) -> list[str]:
    """Dotted names; no `__main__`, which acts, and nothing that pytest alone imports."""
    names = [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in files(part)]
    return [name.removesuffix(".__init__") for name in names if not name.endswith("__main__")]


def imported(path: Path) -> set[str]:
    """Every module that a file imports, wherever in it the import stands."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import hides where it goes"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


@pytest.mark.parametrize("part", PARTS)
def test_imports_go_one_way(part: str) -> None:
    """From suites to kernels and harness, from reports to harness, from kernels to its records and errors."""
    for path in files(part):
        names = PROGRAMS.get(path.relative_to(ROOT).as_posix(), ALLOWED[part])
        for module in imported(path):
            if module.split(".")[0] in {*PARTS, "tests"}:
                allowed = any(module == name or module.startswith(f"{name}.") for name in names)
                assert allowed, f"{path.relative_to(ROOT)} imports {module}"


def test_the_walk_sees_imports_inside_functions(tmp_path: Path) -> None:
    """Otherwise the test above would hold nothing."""
    path = tmp_path / "x.py"
    path.write_text("def f():\n    from kernels import registry\n    import suites.clock as c\n")
    assert imported(path) == {"kernels.registry", "suites.clock"}


@pytest.mark.parametrize("part", PARTS)
def test_files_stay_readable(part: str) -> None:
    """No file over 320 lines."""
    for path in files(part):
        name = path.relative_to(ROOT).as_posix()
        lines = len(path.read_text(encoding="utf-8").splitlines())
        assert lines <= MOST_LINES, f"{name} has {lines} lines"


PROGRAM = """
import importlib, sys
modules = sys.argv[1:]
for name in modules:
    importlib.import_module(name)
if "torch" in sys.modules:
    assert not sys.modules["torch"].cuda.is_initialized(), "a CUDA context was made"
if "pynvml" in sys.modules:
    import pynvml
    try:
        pynvml.nvmlDeviceGetCount()
    except pynvml.NVMLError_Uninitialized:
        pass
    else:
        raise AssertionError("NVML was initialized")
with open("/proc/self/maps") as maps:
    loaded = maps.read()
assert "libcuda.so" not in loaded or "torch" in sys.modules, "the CUDA driver was loaded"
print("torch" in sys.modules)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("part", PARTS)
def test_importing_does_nothing(part: str, tmp_path: Path) -> None:
    """No file, no CUDA context, no NVML; and torch, which takes seconds, is imported by those who need it alone."""
    names = [name for name in modules(part) if name not in {"suites.conftest", "suites.test_sgemv"}]
    assert names
    home = tmp_path / "home"
    home.mkdir()
    environment = {
        **os.environ,
        "HOME": str(home),
        "XDG_CACHE_HOME": str(home / "cache"),
        "SGEMV_CACHE": str(home / "sgemv"),
        "PYTHONPATH": str(ROOT),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    for name in ("SGEMV_STORE", "PYTEST_ADDOPTS"):
        environment.pop(name, None)
    before = {path for part in PARTS for path in (ROOT / part).rglob("*") if "__pycache__" not in path.parts}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *names],
        cwd=home, env=environment, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout == "False\n", f"{part}: importing it imports torch"
    assert list(home.iterdir()) == []
    after = {path for part in PARTS for path in (ROOT / part).rglob("*") if "__pycache__" not in path.parts}
    assert after == before
