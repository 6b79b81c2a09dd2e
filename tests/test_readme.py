"""README.md: every command in it works, its kernel compiles, and its figures are those of the run in examples/."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from harness.model import Cache
from harness.store import load, verify
from kernels.build import build
from kernels.declarations import CSRC
from reports import format as fmt
from reports.figures import BASELINE, Figures, Way, figures
from tests.test_noxfile import nox

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
EXAMPLE = ROOT / "examples" / "h200"
HEADLINE = Way(timer="graph", cache=Cache.COLD)


def commands() -> list[str]:
    """Every line of every `sh` block, comments off."""
    blocks = re.findall(r"```sh\n(.*?)```", README, flags=re.DOTALL)
    return [line.partition(" #")[0].strip() for block in blocks for line in block.splitlines() if line.strip()]


def figure_lines(f: Figures) -> list[str]:
    """README's table: by problem, torch.matmul and the fastest kernel of this project."""
    lines = [
        "| problem | `torch.matmul` | fastest kernel here | its time | speed | bandwidth | of `read` |",
        "|---|---|---|---|---|---|---|",
    ]
    for problem in f.problems:
        base = f.find(BASELINE, problem, HEADLINE)
        best = min(
            (row for row in f.passed(HEADLINE) if row.problem == problem and row.written_here),
            key=lambda row: row.summary.median_ns.estimate,
        )
        cells = [
            fmt.problem(problem),
            fmt.microseconds_pm(base.summary.median_ns),
            f"`{best.kernel}`",
            fmt.microseconds_pm(best.summary.median_ns),
            fmt.times_range(best.speedup),
            fmt.gb_per_s(best.gb_per_s),
            fmt.share(best.of_limit.estimate),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def test_it_is_short() -> None:
    """Under 150 lines."""
    assert len(README.splitlines()) < 150


def test_its_sessions_exist() -> None:
    """Every `nox -s NAME` is in `nox -l`."""
    known = set(re.findall(r"^[*-] (\w+)", nox("-l").stdout, flags=re.MULTILINE))
    named = {name for line in re.findall(r"nox -s (\w+)", README) for name in [line]}
    assert named <= known
    assert {"bench", "tests", "runs", "report", "verify"} <= named


@pytest.mark.parametrize("line", [line for line in commands() if line.startswith("nox -s bench --")])
def test_its_bench_options_are_accepted(line: str, tmp_path: Path) -> None:
    """Collecting alone runs every check of the options."""
    arguments = shlex.split(line)[4:]
    command = [sys.executable, "-m", "pytest", "suites", "--collect-only", "-q", "--device", "cpu", *arguments]
    result = subprocess.run(
        [*command, "--store", str(tmp_path)], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize("line", [line for line in commands() if re.match(r"nox -s (runs|report|verify)", line)])
def test_its_commands_on_a_store_work(line: str, tmp_path: Path) -> None:
    """On a store that holds the example under the ref that README names."""
    shutil.copytree(EXAMPLE, tmp_path / "20260101T000000Z-example-000000")
    (tmp_path / "refs").mkdir()
    (tmp_path / "refs" / "baseline").write_text("20260101T000000Z-example-000000\n", encoding="utf-8")
    session, _, rest = line.removeprefix("nox -s ").partition(" -- ")
    result = nox("-s", session, "--no-venv", "--", *shlex.split(rest), "--store", str(tmp_path))
    assert result.returncode == 0, result.stdout + result.stderr


def test_its_kernel_compiles_and_is_registered(tmp_path: Path) -> None:
    """The file that it shows is one that a reader can paste."""
    csrc = tmp_path / "csrc"
    shutil.copytree(CSRC, csrc)
    code = re.search(r"```cpp\n(.*?)```", README, flags=re.DOTALL)[1]
    (csrc / "sgemv_mine.cu").write_text(code, encoding="utf-8")
    built = build("cuda", architectures=("sm_90",), cache_dir=tmp_path / "cache", csrc=csrc)
    assert "sgemv_mine.cu" in built.record.sources_sha256
    assert any("sgemv_mine_kernel" in row.function for row in built.record.resources)


def test_the_example_is_whole_and_small() -> None:
    """The run in examples/ verifies; run and page are each under 2 MB."""
    verify(EXAMPLE)
    assert sum(path.stat().st_size for path in EXAMPLE.rglob("*") if path.is_file()) < 2_000_000
    assert EXAMPLE.with_suffix(".html").stat().st_size < 2_000_000


def test_the_example_names_no_machine() -> None:
    """Hostname, UUID and paths are placeholders."""
    for path in [*EXAMPLE.rglob("*.json"), *EXAMPLE.rglob("*.log"), EXAMPLE.with_suffix(".html")]:
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"GPU-(?!0{8})[0-9a-f]{8}-", text), path
        assert not re.search(r"(?<![\w.>])/(root|home|tmp|opt|work)/", text), path


def test_its_figures_are_the_examples() -> None:
    """No figure without a run: the table, line by line."""
    for line in figure_lines(figures(load(EXAMPLE))):
        assert line in README
