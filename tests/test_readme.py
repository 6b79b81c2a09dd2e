"""README.md and docs: their commands work, and the kernel that docs/kernels.md shows compiles."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kernels.build import build
from kernels.declarations import CSRC
from tests.test_noxfile import nox

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
ROOFLINE = (ROOT / "docs" / "roofline.md").read_text(encoding="utf-8")
KERNELS = (ROOT / "docs" / "kernels.md").read_text(encoding="utf-8")
EXAMPLE = ROOT / "examples" / "h200"


def commands(text: str = README) -> list[str]:
    """Every line of every `sh` block, comments off."""
    blocks = re.findall(r"```sh\n(.*?)```", text, flags=re.DOTALL)
    return [line.partition(" #")[0].strip() for block in blocks for line in block.splitlines() if line.strip()]


def test_it_is_short() -> None:
    """Under 150 lines."""
    assert len(README.splitlines()) < 150


def test_its_sessions_exist() -> None:
    """Every `nox -s NAME` is in `nox -l`."""
    known = set(re.findall(r"^[*-] (\w+)", nox("-l").stdout, flags=re.MULTILINE))
    named = {name for line in re.findall(r"nox -s (\w+)", README) for name in [line]}
    assert named <= known
    assert {"bench", "tests", "runs", "report", "verify", "compare"} <= named


@pytest.mark.parametrize(
    "line", [line for line in commands() + commands(ROOFLINE) if re.match(r"nox -s (bench|peers) --", line)]
)
def test_its_bench_options_are_accepted(line: str, tmp_path: Path) -> None:
    """Collecting alone runs every check of the options."""
    arguments = shlex.split(line)[4:]  # those of the peers too: its own --peers is refused on a CPU
    command = [sys.executable, "-m", "pytest", "suites", "--collect-only", "-q", "--device", "cpu", *arguments]
    result = subprocess.run(
        [*command, "--store", str(tmp_path)], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize("line", [line for line in commands() if line.startswith("nox -s explain --")])
def test_its_explain_answers(line: str) -> None:
    """Without a GPU too: a kernel and a reason a shape."""
    shapes = shlex.split(line)[4:]
    result = nox("-s", "explain", "--no-venv", "--", *shapes)
    assert result.returncode == 0, result.stdout + result.stderr
    assert len(re.findall(r"\bsgemv_\w+ +\S", result.stdout)) == len(shapes)


@pytest.mark.parametrize("line", [line for line in commands() if line.startswith("nox -s profile --")])
def test_its_profile_is_accepted(line: str) -> None:
    """What it names exists: a machine without a GPU then says so, and nothing before that."""
    result = nox("-s", "profile", "--no-venv", "--", *shlex.split(line)[4:], CUDA_VISIBLE_DEVICES="")
    assert result.returncode == 6, result.stdout + result.stderr


@pytest.mark.parametrize(
    "line", [line for line in commands() if re.match(r"nox -s (runs|report|verify|compare|history|export)", line)]
)
def test_its_commands_on_a_store_work(line: str, tmp_path: Path) -> None:
    """On a store that holds the example under the ref that README names."""
    shutil.copytree(EXAMPLE, tmp_path / "20260101T000000Z-example-000000")
    (tmp_path / "refs").mkdir()
    (tmp_path / "refs" / "baseline").write_text("20260101T000000Z-example-000000\n", encoding="utf-8")
    session, _, rest = line.removeprefix("nox -s ").partition(" -- ")
    result = nox("-s", session, "--no-venv", "--", *shlex.split(rest), "--store", str(tmp_path))
    assert result.returncode == 0, result.stdout + result.stderr


def test_a_kernel_in_the_tree_compiles_and_is_registered(tmp_path: Path) -> None:
    """The file that docs/kernels.md shows is one that a reader can paste."""
    csrc = tmp_path / "csrc"
    shutil.copytree(CSRC, csrc)
    for source in csrc.glob("*.cu"):
        source.unlink()  # they take a minute
    code = re.search(r"```cpp\n(.*?)```", KERNELS, flags=re.DOTALL)[1]
    (csrc / "sgemv_mine.cu").write_text(code, encoding="utf-8")
    built = build("cuda", architectures=("sm_90",), cache_dir=tmp_path / "cache", csrc=csrc)
    assert "sgemv_mine.cu" in built.record.sources_sha256
    assert any("sgemv_mine_kernel" in row.function for row in built.record.resources)
