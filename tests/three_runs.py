"""A store of three runs, a run that any rounding would change, and `python -m harness` on them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from harness.model import DeviceState, Run, Verdict, Word
from harness.store import Store
from harness.store.draft import write_run
from tests.sample_run import gpu_run

ROOT = Path(__file__).parents[1]
IDS = ("20260101T000000Z-a-1-aaaaaa", "20260102T000000Z-b-2-bbbbbb", "20260103T000000Z-b-3-cccccc")
ODD_NS = (0.1 + 0.2, 1 / 3, 5e-324, 1.7976931348623157e308, 1723.0000000000002, 7.0)
"""Samples that any rounding would change."""


def odd_run() -> Run:
    """Two trials with device states of every kind: all known, nothing known, mixed; and one case without samples."""
    run = gpu_run(shapes=((64, 64),), trials=2, samples=3)
    known = DeviceState(
        time_unix_s=1747213920.123456,
        sm_clock_mhz=1980,
        memory_clock_mhz=3201,
        temperature_c=42,
        power_mw=695123,
        power_is_instant=True,
        clock_event_reasons=("sw_power_cap", "hw_slowdown"),
    )
    blind = DeviceState(time_unix_s=1.5, unknown={"power_mw": "not supported", "temperature_c": 'a "quoted" µ'})
    mixed = replace(known, sm_clock_mhz=None, power_is_instant=None, clock_event_reasons=())
    first, second, third = run.measurements[:3]
    trials = (
        replace(first.trials[0], samples_ns=ODD_NS, states=(known, blind, mixed)),
        replace(first.trials[1], samples_ns=ODD_NS[::-1], states=()),
    )
    wrong = Verdict(word=Word.WRONG, reason="integers: 1 of 64 wrong", max_error=None)
    nothing = tuple(replace(trial, verdict=wrong, samples_ns=(), states=()) for trial in second.trials)
    return replace(run, measurements=(replace(first, trials=trials), replace(second, trials=nothing), third))


def write(root: Path, run_id: str, run: Run | None = None) -> Path:
    folder = root / run_id
    folder.mkdir(parents=True)
    (folder / "build").mkdir()
    (folder / "build" / "log.txt").write_text("nvcc said nothing\n")
    write_run(folder, replace(run or gpu_run(shapes=((64, 64),), trials=1, samples=2), id=run_id))
    return folder


@pytest.fixture
def run_folder(tmp_path: Path) -> Path:
    """One published run."""
    return write(tmp_path, IDS[0], odd_run())


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Three runs, of which the last two are on another driver; refs `baseline` and `lost`."""
    root = tmp_path_factory.mktemp("store")
    for run_id, driver in zip(IDS, ("580.1", "590.2", "590.2"), strict=True):
        run = gpu_run(shapes=((64, 64),), trials=1, samples=2)
        values = {**run.environment.values, "driver_version": driver}
        write(root, run_id, replace(run, environment=replace(run.environment, values=values)))
    made = Store(root)
    made.set_ref("baseline", IDS[0])
    made.set_ref("lost", "20250101T000000Z-gone")
    (root / "reports").mkdir()
    (root / ".draft-x").mkdir()
    return made


def flip(path: Path) -> None:
    """Change one bit in the middle of a file."""
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0x80
    path.write_bytes(data)


def harness(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name not in {"SGEMV_STORE", "COLUMNS"}}
    command = [sys.executable, "-m", "harness", *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60, check=False)


@pytest.fixture
def copied(store: Store, tmp_path: Path) -> Path:
    """The three runs, to be damaged."""
    return Path(shutil.copytree(store.root, tmp_path / "store", ignore=shutil.ignore_patterns(".draft-*")))
