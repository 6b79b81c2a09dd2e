"""`python -m harness compare` on few trials or odd ones, and on runs that are too different to compare."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.model import Cache, DeviceState, Run, TrialResult
from tests.planted_runs import PASSED, Command, Done, around, case, measured, run, timed
from tests.sample_run import cpu_run, cuda_build, gpu_run

ONE = run(timed(case(), 1000.0))
CUT_SHORT = "{} was cut short: what had not been measured until then is missing"


@pytest.fixture
def command(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """On an empty store."""
    return Command(tmp_path, capsys, monkeypatch)


# Few trials, little variance


def compared(command: Command, base: Run, new: Run) -> tuple[Done, dict[str, Any]]:
    """What is printed of two runs of one case, and what JSON has of it."""
    done = command.on(base=base, new=new)
    (found,) = json.loads(command("base", "new", "--json").out, parse_constant=pytest.fail)["comparisons"]
    (only,) = found["cases"]
    return done, only


def test_one_sample(command: Command) -> None:
    """In one trial a side: a ratio and no interval, so no word that could be wrong."""
    done, found = compared(command, run(measured(case(), [1000.0])), run(measured(case(), [2000.0])))
    assert (done.code, found["change"]) == (0, "ambiguous")
    assert found["ratio"] == {"estimate": pytest.approx(2.0), "low": None, "high": None}
    assert "64×64 mine graph cold 1.000 1 trial 2.000 1 trial 2.000 no interval ambiguous" in done.lines
    assert found["notes"] == ["one trial in base", "one trial in new"]


def test_one_trial_of_many_samples(command: Command) -> None:
    """Samples of one process do not stand for others, however many and however alike."""
    many = run(replace(timed(case(), 0), trials=(TrialResult(trial=0, verdict=PASSED, samples_ns=(1000.0,) * 300),)))
    twice = run(replace(timed(case(), 0), trials=(TrialResult(trial=0, verdict=PASSED, samples_ns=(2000.0,) * 300),)))
    done, found = compared(command, many, twice)
    assert (done.code, found["change"]) == (0, "ambiguous")
    assert found["reason"] == "one trial on a side gives no interval"


@pytest.mark.parametrize(("ns", "change", "p"), [(1000.0, "same", 1.0), (1100.0, "ambiguous", None)])
def test_no_variance(command: Command, ns: float, change: str, p: float | None) -> None:
    """Nothing is divided by, and what does not scatter at all is not certain: a coarse clock may do that."""
    done, found = compared(command, run(measured(case(), [1000.0] * 5)), run(measured(case(), [ns] * 5)))
    assert (done.code, found["change"], found["p"]) == (0, change, p)
    assert found["ratio"]["low"] == (1.0 if p else None)


def test_no_variance_of_a_clock_that_ticks(command: Command) -> None:
    """Samples that repeat show the clock's step: 2 % in steps of 0.1 % is a change."""

    def ticking(ns: float) -> Run:
        samples = (ns, ns, ns + 1.0, ns, ns, ns + 1.0, ns)
        trials = tuple(TrialResult(trial=i, verdict=PASSED, samples_ns=samples) for i in range(5))
        return run(replace(timed(case(), 0), trials=trials))

    done, found = compared(command, ticking(1000.0), ticking(1020.0))
    assert (done.code, found["change"]) == (1, "slower")
    assert found["ratio"]["low"] < found["ratio"]["estimate"] < found["ratio"]["high"]


def test_identical_data(command: Command) -> None:
    """Another run with the very same figures: same, as its trials agree well."""
    loud = run(measured(case(), around(1000.0, (0.0, 0.001, -0.001, 0.002, -0.002))))
    done, found = compared(command, loud, loud)
    assert (done.code, found["change"], found["p"]) == (0, "same", 1.0)
    assert found["ratio"]["estimate"] == 1


def test_very_different_sample_counts(command: Command) -> None:
    """Samples within a trial count for its median alone: 1 against 2 000, 2 trials against 24."""

    def trials(count: int, samples: int, ns: float) -> Run:
        made = (
            TrialResult(trial=i, verdict=PASSED, samples_ns=(ns * (1 + 0.0005 * (-1) ** i),) * samples)
            for i in range(count)
        )
        return run(replace(timed(case(), 0), trials=tuple(made)))

    done, found = compared(command, trials(6, 1, 1000.0), trials(24, 2000, 1050.0))
    assert (done.code, found["change"]) == (1, "slower")
    assert (found["base_trials"], found["new_trials"]) == (6, 24)
    assert found["ratio"]["estimate"] == pytest.approx(1.05)


def test_drift_within_a_run(command: Command) -> None:
    """By hand: in every trial the second half lies 3.0 % above the first, 985 and 1015 ns."""

    def ramp(step_ns: float) -> Run:
        samples = tuple(1000 + step_ns * (i - 4.5) for i in range(10))
        return run(
            replace(
                timed(case(), 0),
                trials=tuple(TrialResult(trial=i, verdict=PASSED, samples_ns=samples) for i in range(5)),
            )
        )

    done, _ = compared(command, ramp(0.1), ramp(6.0))
    assert "note: drift within trials in new: +3.0 % (mine 64×64 graph cold)" in done.lines


def test_two_states_between_trials(command: Command) -> None:
    """Named, in the run that took both; and no word that luck could have made."""
    states = run(measured(case(), (1000.0, 1065.0, 1001.0, 1066.0, 1000.5)))
    done, found = compared(command, ONE, states)
    assert (done.code, found["change"]) == (0, "ambiguous")
    assert "note: two states between trials in new: 6.5 % apart (mine 64×64 graph cold)" in done.lines


# Runs too different


def test_no_case_in_common(command: Command) -> None:
    """New and gone, each with its figure, and code 3."""
    done = command.on(base=run(timed(case("a"), 1000.0)), new=run(timed(case("b"), 2000.0)))
    assert done.code == 3
    assert "64×64 b graph cold – 2.000 ±0.1% – new" in done.lines
    assert "64×64 a graph cold 1.000 ±0.1% – – gone" in done.lines
    assert done.lines[-2] == "1 new, 1 gone of 2 cases, threshold 1 %"


def test_a_subset_against_all(command: Command) -> None:
    """Either way round; what is missing is counted and fails nothing unless asked for."""
    cases = [timed(case(m=i + 1), 1000.0) for i in range(4)]
    done = command.on(base=run(*cases), new=run(*cases[:1], partial=True))
    assert done.code == 0
    assert "gone: not in new, which was cut short (3 cases of mine)" in done.lines
    assert done.lines[2] == CUT_SHORT.format("new")
    assert done.lines[-2] == "3 gone, 1 same of 4 cases, threshold 1 %"
    assert command("base", "new", "--fail-on", "gone").code == 1
    lines = command("new", "base").lines
    assert "new: not in base, which was cut short (3 cases of mine)" in lines
    assert CUT_SHORT.format("base") in lines


def test_a_run_cut_short_that_lost_no_case(command: Command) -> None:
    """It is said all the same, of each run that was: samples and checks may be missing."""
    done = command.on(base=ONE, new=replace(ONE, partial=True))
    assert done.lines[:4] == ["base base", "new new", CUT_SHORT.format("new"), ""]
    (found,) = json.loads(command("base", "new", "--json").out)["comparisons"]
    assert (found["base_partial"], found["new_partial"]) == (False, True)
    several = command("new", "base", "new").lines
    assert several[3:6] == [CUT_SHORT.format("base"), CUT_SHORT.format("new 2"), ""]
    assert "cut short" not in command("base", "base").out


def test_how_the_runs_were_measured_is_compared(command: Command) -> None:
    """A quick look is as good a figure as another only to who knows of it: options stand among what differs."""
    quick = replace(ONE.options, quick=True, trials=2, max_time_s=0.03)
    done = command.on(base=ONE, new=replace(ONE, options=quick))
    assert "environment: options only" in done.lines
    start = done.lines.index("settings options.quick no yes")
    assert done.lines[start : start + 3] == [
        "settings options.quick no yes",
        "options.trials 1 2",
        "options.max_time_s 0.5 s 0.03 s",
    ]
    (found,) = json.loads(command("base", "new", "--json").out)["comparisons"]
    assert [each["key"] for each in found["environment"]] == ["options.quick", "options.trials", "options.max_time_s"]
    done = command.on(driver=replace(run(timed(case(), 1000.0), driver_version="590"), options=quick), old=ONE)
    assert "environment: several: driver, options" in done.lines


def test_a_locked_clock_is_compared(command: Command) -> None:
    """Against a run without, of an older version too, it is what differs, as a power limit is; not what NVML read."""
    locked = replace(
        run(timed(case(), 1000.0), locked_sm_clock_mhz=1395), options=replace(ONE.options, lock_clocks_mhz=1410)
    )
    done = command.on(base=ONE, new=locked)
    assert "environment: locked clock only" in done.lines
    assert "settings options.lock_clocks_mhz (not set) 1 410 MHz" in done.lines
    again = replace(run(timed(case(), 1000.0), locked_sm_clock_mhz=1410), options=locked.options)
    assert "environment: same environment" in command.on(night=locked, later=again).lines


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"gpu_name": "NVIDIA H100"}, "other GPU model: NVIDIA H100 against NVIDIA H200"),
        ({"mig": True}, "other MIG mode: on against off"),
        ({"ecc": False}, "other ECC: off against on"),
        ({"allow_tf32": True}, "other TF32 flag: on against off"),
        ({"l2_bytes": 50 * 2**20}, "other l2_bytes: 52428800 against 62914560"),
    ],
)
def test_what_makes_runs_not_comparable(command: Command, changes: dict[str, Any], reason: str) -> None:
    """3 % or twice as slow, it is no change of the code."""
    done = command.on(base=ONE, new=run(timed(case(), 2000.0), **changes))
    assert done.code == 3
    assert f"not comparable: {reason}" in done.lines
    assert f"not comparable: {reason} (mine 64×64 graph cold)" in " ".join(done.lines)
    assert done.lines[-2] == "1 not comparable of 1 case, threshold 1 %"


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        (case(timer="event"), "other timer: event here, graph in the other run"),
        (case(cache=Cache.HOT), "other cache: hot here, cold in the other run"),
        (case(dtype="float16"), "other dtype: float16 here, float32 in the other run"),
    ],
)
def test_what_makes_cases_not_comparable(command: Command, other: Any, reason: str) -> None:
    """The same kernel on the same problem, measured in another way."""
    done = command.on(base=ONE, new=run(timed(other, 2000.0)))
    assert done.code == 3
    assert f"not comparable: {reason}" in " ".join(done.lines)


def test_cpu_against_gpu(command: Command) -> None:
    """One reason, and no figure of one beside the other."""
    done = command.on(base=cpu_run(), new=gpu_run(shapes=((1024, 16),), samples=3))
    assert done.lines.count("not comparable: GPU against CPU") == 1
    assert not any(line.endswith((" slower", " faster", " same", " ambiguous")) for line in done.lines)


@pytest.mark.parametrize(
    "key",
    [
        "driver_version",
        "cuda_driver_version",
        "cuda_runtime_version",
        "torch_version",
        "cublas_version",
        "vbios_version",
        "power_limit_mw",
        "max_sm_clock_mhz",
        "application_sm_clock_mhz",
        "gpu_uuid",
        "kernel",
        "hostname",
        "git_commit",
    ],
)
def test_what_is_compared_all_the_same(command: Command, key: str) -> None:
    """It is what is asked about: named, and the case has its word."""
    done = command.on(base=run(timed(case(), 1000.0), **{key: "1"}), new=run(timed(case(), 1100.0), **{key: "2"}))
    assert done.code == 1
    assert any(line.endswith(f"{key} 1 2") or f" {key} 1 " in f" {line} " for line in done.lines)
    assert done.lines[-2] == "1 slower of 1 case, threshold 1 %"


def test_another_clock_is_compared_all_the_same(command: Command) -> None:
    """And said right beside the word."""
    free, low = ((DeviceState(time_unix_s=1.0, sm_clock_mhz=mhz),) for mhz in (1980, 1200))
    done = command.on(base=run(timed(case(), 1000.0, states=free)), new=run(timed(case(), 1650.0, states=low)))
    assert done.code == 1
    assert "slower: lower clock: 1 200 against 1 980 MHz (mine 64×64 graph cold)" in done.lines


def test_the_kernel_changed(command: Command) -> None:
    """Its source and its device code are others: that is said where it is slower, and of no other kernel."""

    def built(digest: str) -> tuple[Any, ...]:
        sources = {"mine.cu": digest, "other.cu": "0"}
        return (
            replace(
                cuda_build(), sources_sha256=sources, device_code_sha256={f"{k}:sm_90": v for k, v in sources.items()}
            ),
        )

    cases = {name: case(name) for name in ("mine", "other")}
    base = run(*(timed(each, 1000.0) for each in cases.values()), builds=built("1"))
    new = run(timed(cases["mine"], 1100.0), timed(cases["other"], 1000.0), builds=built("2"))
    done = command.on(base=base, new=new)
    assert done.code == 1
    assert "slower: kernel changed (mine 64×64 graph cold)" in done.lines
    assert not any(line.startswith("note: ") for line in done.lines)
