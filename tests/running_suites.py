"""The suites as a user runs them: options as they are selected, and benches in a process of their own on the CPU."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

from kernels import registry
from suites.options import Selection, select
from tests.built import library, shared_cache

ROOT = Path(__file__).parents[1]
QUICKLY = ("--device", "cpu", "--shape", "64x64", "--timer", "async", "--trials", "2", "--max-time", "0.01")


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


def benchmarks(path: Path) -> dict[str, dict]:
    """pytest-benchmark's records by the test's name; refuses what JSON does not know, such as NaN."""

    def refuse(word: str) -> None:
        raise ValueError(word)

    data = json.loads(path.read_text(), parse_constant=refuse)
    return {record["name"]: record for record in data["benchmarks"]}


def selection(**options: object) -> Selection:
    """What `select` makes of these options, the others being as if they were left out."""
    names = ("ref", "trials", "max_time", "store", "path_file", "layout", "row_stride", "first_element", "lock_clocks")
    left_out = dict.fromkeys(names)
    flags = dict.fromkeys(("quick", "selfcheck", "peers", "variants", "regimes"), False)
    named = ("suite", "kernel", "kernels", "shape", "shapes", "dtype", "timer", "cache", "file_or_dir")
    lists = {name: [] for name in named}
    option = SimpleNamespace(**{**left_out, **flags, **lists, "device": "cpu", **options})
    return select(SimpleNamespace(option=option), registry.kernels())  # type: ignore[arg-type]


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


def code_after(program: subprocess.Popen[bytes], number: signal.Signals) -> int:
    """The exit code of a program that gets this signal; nothing of it is left, whatever comes."""
    try:
        program.send_signal(number)
        return program.wait(timeout=60)
    finally:
        program.kill()
        program.wait()


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
