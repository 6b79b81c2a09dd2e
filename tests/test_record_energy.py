"""Energy, and device kernels known by name alone, on disk and back; and records from before there were any."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from harness.compare import compare
from harness.export import pytest_benchmark
from harness.model import DeviceKernel, Energy, Run, TrialResult
from harness.stats import summarize
from harness.store import load
from harness.store.draft import write_run
from tests.planted_runs import case, measured, run

TAKEN = Energy(seconds=1.6, launches=160_000, millijoules=960_000.0, source="counter", idle_mw=None)
NAMED = DeviceKernel(
    name="gemv<8>(float const*)", grid=(8, 2, 1), block=(32, 4, 1), registers=40, shared_bytes=1536, duration_ns=None
)


def with_energy() -> Run:
    """Two trials of one sample, which is a window's; the second knows its idle power."""
    plain = measured(case("mine", timer="energy"), (10_000.0, 10_020.0), launches_per_sample=160_000, stopped="count")
    first, second = plain.trials
    trials = (
        replace(first, energy=TAKEN, unknown={"energy": "idle power: not supported"}),
        replace(second, energy=replace(TAKEN, idle_mw=71_250.5, source="power")),
    )
    named = measured(case("mine"), (10_000.0, 10_020.0), device_kernels=(NAMED,))
    return run(replace(plain, trials=trials), named)


def test_mean_power_and_energy_of_a_launch_by_hand() -> None:
    """960 J in 1.6 s are 600 W; over 160,000 launches 6 mJ each."""
    assert (TAKEN.watts, TAKEN.mj_per_launch) == (pytest.approx(600.0), pytest.approx(6.0))


def test_a_run_with_energy_comes_back(tmp_path: Path) -> None:
    """Every field, None and its reason too; in run.json under the names of the fields."""
    written = with_energy()
    folder = tmp_path / written.id
    folder.mkdir()
    write_run(folder, written)
    assert load(folder) == written
    energy_case, named_case = json.loads((folder / "run.json").read_text())["measurements"]
    assert energy_case["trials"][0]["energy"] == {
        "seconds": 1.6,
        "launches": 160_000,
        "millijoules": 960_000.0,
        "source": "counter",
        "idle_mw": None,
    }
    assert named_case["trials"][0]["device_kernels"][0]["duration_ns"] is None


def test_records_from_before_have_neither() -> None:
    """A trial without energy, and a kernel of the profiler with its duration."""
    trial = TrialResult.from_dict({"trial": 0, "verdict": {"word": "passed"}})
    assert (trial.energy, trial.device_kernels) == (None, ())
    kernel = {"name": "k", "grid": [1, 1, 1], "block": [32, 1, 1], "registers": None, "shared_bytes": None}
    assert DeviceKernel.from_dict({**kernel, "duration_ns": 1500.0}).duration_ns == 1500.0


def test_one_sample_a_trial_has_its_statistics() -> None:
    """The median of one is itself; the spread is that of the trials."""
    found = summarize(with_energy().measurements[0])
    assert found is not None
    assert (found.trial_medians_ns, found.samples) == ((10_000.0, 10_020.0), 2)
    assert found.spread == pytest.approx(20 / 10_010)


def test_energy_is_compared_by_no_one() -> None:
    """Two windows are no sample to find a change by; the case that `graph` timed is compared all the same."""
    compared = compare(with_energy(), with_energy())
    assert [change.case.timer for change in compared.cases] == ["graph"]


def test_a_window_is_exported_for_pytest_benchmark() -> None:
    """One sample is enough for its statistics, without NaN; the other formats have their own cases."""
    first = with_energy().measurements[0]
    alone = replace(first, trials=first.trials[:1])
    data = json.loads(pytest_benchmark.export(run(alone), Path("nowhere")))
    (found,) = data["benchmarks"]
    assert (found["stats"]["rounds"], found["stats"]["median"]) == (1, pytest.approx(1e-5))
