"""docs/nightly.md and docs/comparing-drivers.md: their commands are accepted, and the program says what they quote."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pynvml
import pytest

from harness.__main__ import main as harness
from harness.device.turn import take_turn
from harness.errors import CommandError
from harness.nightly.__main__ import _parser
from harness.nightly.machine import checks
from harness.store import Store
from kernels import toolchain
from reports.__main__ import main as reports
from tests.fake_nvml import FakeGpu, FakeNvml
from tests.played_nights import Host, Nights
from tests.ten_nights import Played, prepared
from tests.test_nightly import TOLD
from tests.test_noxfile import nox
from tests.test_readme import commands

ROOT = Path(__file__).resolve().parent.parent
NIGHTLY, DRIVERS = (
    (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8") for name in ("nightly", "comparing-drivers")
)
LINES = [shlex.split(line) for line in commands(NIGHTLY) + commands(DRIVERS)]
SESSIONS = [line[line.index("nox") + 2 :] for line in LINES if "nox" in line]
"""Each with its arguments."""


def rows() -> dict[str, int]:
    """The lines of the table of what goes wrong, and their codes."""
    return {line: int(code) for code, line in re.findall(r"(?m)^\| .+? \| (\d+) \| `(.+)` \|$", NIGHTLY)}


def test_sessions_and_links_exist() -> None:
    """Every `nox -s NAME`, in blocks and in sentences; every link within the project."""
    known = set(re.findall(r"^[*-] (\w+)", nox("-l").stdout, flags=re.MULTILINE))
    assert (
        {"nightly", "bench", "compare", "history", "runs"}
        <= set(re.findall(r"nox -s (\w+)", NIGHTLY + DRIVERS))
        <= known
    )
    links = re.findall(r"\]\((?!https?:)([^)#]+)\)", NIGHTLY + DRIVERS)
    assert {"comparing.md", "comparing-drivers.md", "../.github/workflows/nightly.yml"} <= set(links)
    assert [link for link in links if not (ROOT / "docs" / link).exists()] == []


def for_the_suites(words: list[str]) -> list[str]:
    """Of a command's arguments, but for those that need a GPU or say where things go."""
    parser = _parser()
    parser.add_argument("--lock-clocks")
    return parser.parse_known_args(words[1:])[1]


MEASURING = [
    options for name, *words in SESSIONS if name in ("bench", "nightly") and (options := for_the_suites(words))
]


@pytest.mark.parametrize("words", [words for words in MEASURING if words], ids=" ".join)
def test_what_measures_is_accepted(words: list[str], tmp_path: Path) -> None:
    """Collecting alone runs every check of the options."""
    command = [sys.executable, "-m", "pytest", "suites", "--collect-only", "-q", "--device=cpu", f"--store={tmp_path}"]
    done = subprocess.run([*command, *words], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("words", [words for name, *words in SESSIONS if name == "compare"], ids=" ".join)
def test_what_compares_is_accepted(words: list[str], store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """On a store with runs under both drivers and the refs that the documents name."""
    program = reports if "--html" in words else harness
    assert program(["compare", *words[1:], "--store", str(store)]) == 0, capsys.readouterr().err


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run under each driver."""
    root = tmp_path_factory.mktemp("store")
    for number, names in {2: ["before"], 3: ["after", "torch-2.12"]}.items():
        made = prepared(root, Played(number=number))
        for name in names:
            Store(root).set_ref(name, made.name)
    return root


@pytest.mark.parametrize("words", [line[3:] for line in LINES if line[:3] == ["python", "-m", "harness"]], ids=" ".join)
def test_what_tidies_is_accepted(words: list[str], store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """And deletes nothing unless it is told to."""
    before = Store(store).ids()
    assert harness([*words, "--store", str(store)]) == 0, capsys.readouterr().err
    assert Store(store).ids() == before


def test_a_driver_without_effect_reads_as_shown(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Line by line."""
    (shown,) = re.findall(r"```text\n(.*?)```", DRIVERS, flags=re.DOTALL)
    assert harness(["compare", "before", "after", "--store", str(store)]) == 0
    said = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [line for line in shown.splitlines() if line.split() not in said] == []


def test_every_line_of_the_table_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With its code; `…` stands for whatever differs."""
    said = [(line.partition(": ")[2], code) for code, lines in TOLD.values() for line in lines]
    said = [(line.removeprefix(f"{code}: "), code) for line, code in said]
    said += [(line, 6) for line in faults(tmp_path, monkeypatch)]
    nights = Nights(tmp_path)
    nights.store.set_ref("baseline", "20200101T000000Z-gone-000000")
    for code in (2, 130):
        seen = nights(Played(number=code), leaves_with=code)
        said += [(line.partition(": ")[2], code) for line in seen.lines]
        said += [(line.partition(": ")[2], 4) for line in seen.lines if line.startswith("baseline")]
    told = [
        line
        for line, code in rows().items()
        if not any(code == found and re.match(_pattern(line), each) for each, found in said)
    ]
    assert told == []
    assert len(rows()) > 15


def _pattern(line: str) -> str:
    return ".*".join(map(re.escape, line.split("…")))


def faults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What machines say that are not fit, in one way each."""
    none = FakeNvml(init_error=pynvml.NVML_ERROR_LIBRARY_NOT_FOUND)
    half = FakeNvml(init_error=pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH)
    hosts = [Host(root=tmp_path, nvml=nvml) for nvml in (none, half, FakeNvml(cuda_driver_version=12080))]
    hosts += [
        Host(root=tmp_path, nvml=FakeNvml([FakeGpu(processes={7: "python3"})])),
        Host(root=tmp_path, free_bytes=0),
    ]
    found = [each for host in hosts for each in checks(host.machine(), Store(tmp_path / "s"), "cuda", 0, print)]
    lines = [each.said for each in found if each.fault]
    with take_turn("gpu", print, folder=tmp_path), pytest.raises(CommandError) as held:
        take_turn("gpu", print, folder=tmp_path, patience_s=0)
    lines.append(str(held.value))
    monkeypatch.setattr(toolchain, "nvcc_path", lambda: None)
    with pytest.raises(CommandError) as without:
        toolchain.find_nvcc()
    return [*lines, str(without.value)]
