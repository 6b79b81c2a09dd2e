"""What a comparison says beside a word: another kernel, other clocks, states, drift; and where the runs differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from harness.compare import CaseChange, Change, Comparison, compare
from harness.comparison.attribution import NOT_SET, UNKNOWN_CHANGES
from harness.comparison.boards import are_two_boards
from harness.environment import Group
from harness.model import DeviceState, Measurement, Run, TrialResult
from tests.planted_runs import PASSED, QUIET, around, case, measured, run
from tests.sample_run import cpu_run, cuda_build


def only(comparison: Comparison) -> CaseChange:
    (change,) = comparison.cases
    return change


def of_medians(base_ns: Sequence[float], new_ns: Sequence[float]) -> CaseChange:
    return only(compare(run(measured(case(), base_ns)), run(measured(case(), new_ns))))


# Notes


def noted(base: Measurement, new: Measurement, **changes: Any) -> tuple[str, ...]:
    return only(compare(run(base), run(new, **changes))).notes


def test_clocks_that_differ_are_said() -> None:
    """By the samples' own clocks; else by NVML's readings; 0.5 % is not worth a word."""
    plain = measured(case(), around(1000.0), sample_clocks_mhz=(1980.0,))
    assert noted(plain, measured(case(), around(1040.0), sample_clocks_mhz=(1905.0,))) == (
        "lower clock: 1 905 against 1 980 MHz",
    )
    assert noted(plain, measured(case(), around(1000.0), sample_clocks_mhz=(1971.0,))) == ()
    slow, fast = (DeviceState(time_unix_s=1.0, sm_clock_mhz=mhz) for mhz in (1200, 1980))
    assert noted(measured(case(), around(1.0), states=(slow,)), measured(case(), around(1.0), states=(fast,))) == (
        "higher clock: 1 980 against 1 200 MHz",
    )


def test_a_power_cap_is_said() -> None:
    """By what a reading names, or by a counter that grew; an idle GPU is no limit."""
    plain = measured(case(), around(1000.0))
    capped = DeviceState(time_unix_s=1.0, clock_event_reasons=("sw_power_cap", "gpu_idle"))
    assert noted(plain, measured(case(), around(1000.0), states=(capped,))) == ("power cap in new",)
    counts = tuple(DeviceState(time_unix_s=t, limited_ns={"thermal": 5, "sw_power_cap": int(t)}) for t in (1.0, 2.0))
    assert noted(measured(case(), around(1000.0), states=counts), plain) == ("power cap in base",)


def test_slower_and_at_a_lower_clock_are_told_apart() -> None:
    """Two cases are 3 % slower; the one whose clock was as much lower has that beside its word, and stays slower."""
    old, now = (
        (DeviceState(time_unix_s=1.0, sm_clock_mhz=1980),),
        (DeviceState(time_unix_s=1.0, sm_clock_mhz=1935, clock_event_reasons=("sw_power_cap",)),),
    )
    base = run(measured(case("a"), around(1000.0), states=old), measured(case("b"), around(1000.0), states=old))
    new = run(measured(case("a"), around(1030.0), states=now), measured(case("b"), around(1030.0), states=old))
    held, free = compare(base, new).cases
    assert (held.change, free.change) == (Change.SLOWER, Change.SLOWER)
    assert held.marks == ("lower clock", "power cap in new")
    assert held.notes == ("lower clock: 1 935 against 1 980 MHz", "power cap in new")
    assert (free.marks, free.notes) == ((), ())


def test_clocks_of_what_was_not_compared_are_not_said() -> None:
    """Another GPU has other clocks."""
    old, now = ((DeviceState(time_unix_s=1.0, sm_clock_mhz=mhz),) for mhz in (1980, 1200))
    base, new = measured(case(), around(1.0), states=old), measured(case(), around(1.0), states=now)
    assert noted(base, new, gpu_name="NVIDIA H100") == ()


def test_two_states_between_trials_are_named() -> None:
    """Two levels 6.5 % apart in one run; where the levels are the two runs, that is the change."""
    states = (1000.0, 1065.0, 1001.0, 1066.0, 1000.5)
    assert noted(measured(case(), around(1000.0)), measured(case(), states)) == (
        "two states between trials in new: 6.5 % apart",
    )
    assert noted(measured(case(), states), measured(case(), states)) == (
        "two states between trials in both: 6.5 % apart",
    )
    assert noted(measured(case(), around(1000.0)), measured(case(), around(1065.0))) == ()
    assert of_medians(states, states[::-1]).change is Change.AMBIGUOUS


def drifting(of: float, step_ns: float = 6.0, offsets: Sequence[float] = QUIET) -> Measurement:
    """Ten samples a trial, each `step_ns` above the one before, with median `of`."""
    ramp = [step_ns * (i - 4.5) for i in range(10)]
    trials = (
        TrialResult(trial=i, verdict=PASSED, samples_ns=tuple(of * (1 + off) + each for each in ramp))
        for i, off in enumerate(offsets)
    )
    return Measurement(case=case(), trials=tuple(trials))


def test_drift_within_trials_is_named() -> None:
    """By hand: the halves' medians are 1000 - 15 and 1000 + 15 ns, 3.0 % apart, in every trial of one run."""
    plain = drifting(1000.0, 0.01)
    assert noted(plain, drifting(1000.0)) == ("drift within trials in new: +3.0 %",)
    assert noted(drifting(1000.0, -6.0), plain) == ("drift within trials in base: −3.0 %",)
    assert noted(drifting(1000.0, 1.0), plain) == ()  # 0.5 %: below the threshold


def test_drift_that_cannot_matter_is_not_named() -> None:
    """Not where both runs drift alike, nor where trials differ by more than the drift, nor in two trials by chance."""
    plain = drifting(1000.0, 0.01)
    assert noted(drifting(1000.0), drifting(1001.0)) == ()
    loud = (0.0, 0.02, -0.02, 0.01, -0.01)  # the ratio is known to 2.3 %
    assert noted(drifting(1000.0, 0.01, loud), drifting(1000.0, 4.0, loud)) == ()
    assert noted(plain, drifting(1000.0, 4.0)) == ("drift within trials in new: +2.0 %",)
    assert noted(plain, drifting(1000.0, 6.0, (0.0, 0.001))) == ()


def test_another_variant_is_said() -> None:
    """Of a kernel whose fastest variant is taken."""
    fast, plain = (measured(case(), around(1000.0), variant=name) for name in ("float4", "float"))
    assert noted(plain, fast) == ("other variant: float4 against float",)


# The environment


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "same environment"),
        ({"driver_version": "1", "cuda_driver_version": "13.1"}, "driver only"),
        ({"torch_version": "3", "cuda_runtime_version": "14", "cublas_version": None}, "torch only"),
        ({"driver_version": "1", "torch_version": "3"}, "several: driver, torch"),
        ({"vbios_version": "9"}, "same environment, as far as both runs know it"),
        ({"gpu_uuid": "GPU-1", "git_commit": "f"}, "several: board, source"),
        ({"power_limit_mw": 500_000}, "power limit only"),
    ],
)
def test_attribution(changes: dict[str, Any], said: str) -> None:
    """One line. The sample does not know its VBIOS: that is not known to differ."""
    found = compare(run(), run(**changes))
    assert found.attribution == said
    assert {each.key for each in found.environment} == {k for k in changes if changes[k] is not None}


def test_two_instances_of_one_board() -> None:
    """They are no two boards."""
    base, new = run(gpu_uuid="MIG-1"), run(gpu_uuid="MIG-2")
    assert compare(base, new).attribution == "MIG instance only"
    assert compare(run(), new).attribution == "board only"


def test_differences_by_group() -> None:
    """Differing fields only, with units, in the registry's groups; what a build was made with is among them."""
    build = replace(cuda_build(), flags=("-O1",))
    found = compare(run(), run(power_limit_mw=500_000, driver_version="1", builds=(build,)))
    groups = found.by_group
    assert list(groups) == [Group.DRIVER, Group.SETTINGS, Group.SOURCE]
    (limit,) = groups[Group.SETTINGS]
    assert (limit.key, limit.base, limit.new, limit.unit) == ("power_limit_mw", 700_000, 500_000, "mW")
    assert groups[Group.SOURCE][0].key == "build.cuda.flags"
    assert found.attribution == "several: driver, power limit, build"


def variables(base: str | None, new: str | None) -> Comparison:
    return compare(run(environment_variables=base), run(environment_variables=new))


def test_environment_variables_one_by_one() -> None:
    """Only those that differ; one that is not set is none that is empty."""
    found = variables(
        '{"CUDA_HOME": "/usr", "CUDA_VISIBLE_DEVICES": "0", "CUDA_CACHE_PATH": ""}',
        '{"CUDA_HOME": "/usr", "CUDA_VISIBLE_DEVICES": "", "NVIDIA_X": "1"}',
    )
    assert [(each.key, each.base, each.new) for each in found.environment] == [
        ("environment_variables.CUDA_CACHE_PATH", "", NOT_SET),
        ("environment_variables.CUDA_VISIBLE_DEVICES", "0", ""),
        ("environment_variables.NVIDIA_X", NOT_SET, "1"),
    ]
    assert found.attribution == "environment variables only"
    assert {each.group for each in found.environment} == {Group.SETTINGS}


@pytest.mark.parametrize("value", [None, "", "[1]", "{", '"x"', "[" * 100_000])
def test_environment_variables_that_are_no_table(value: str | None) -> None:
    """They differ as a whole."""
    (found,) = variables("{}", value).environment
    assert (found.key, found.base, found.new) == ("environment_variables", "{}", value)


@pytest.mark.parametrize(
    ("base", "new", "attribution", "shown"),
    [
        ("a" * 64, "b" * 64, "source only", [("git_diff_sha256", "a" * 64, "b" * 64)]),
        ("a" * 64, "a" * 64, "same environment", []),
        (None, "b" * 64, UNKNOWN_CHANGES, [("git_diff_sha256", None, "b" * 64)]),
        ("a" * 64, None, UNKNOWN_CHANGES, [("git_diff_sha256", "a" * 64, None)]),
        (None, None, UNKNOWN_CHANGES, []),
    ],
)
def test_two_checkouts_with_changes(
    base: str | None, new: str | None, attribution: str, shown: list[tuple[Any, ...]]
) -> None:
    """They are the same where their changes are; what a run from before does not know is no «same environment»."""
    found = compare(changed(base), replace(changed(new), id="new"))
    assert (found.attribution, [(each.key, each.base, each.new) for each in found.environment]) == (attribution, shown)
    assert {each.group for each in found.environment} <= {Group.SOURCE}


def changed(digest: str | None, **more: Any) -> Run:
    """A run from a checkout with these changes."""
    return run(git_dirty=True, git_diff_sha256=digest, **more)


def test_changes_that_are_not_known_beside_others() -> None:
    """They take part; where the source differs anyway, or it is the same run, nothing is to add."""
    old = changed(None)
    assert compare(old, old).attribution == "same environment"
    other = replace(changed(None, driver_version="590"), id="new")
    assert compare(old, other).attribution == f"several: driver, {UNKNOWN_CHANGES}"
    other = replace(changed(None, git_commit="f" * 40), id="new")
    assert compare(old, other).attribution == "source only"


@pytest.mark.parametrize("key", ["git_commit", "git_dirty"])
def test_two_checkouts_outside_of_git(key: str) -> None:
    """Nothing is known to differ, and nothing of the source to be the same."""
    base = run(**{key: None})
    assert compare(base, replace(base, id="new")).attribution == "same environment, as far as both runs know it"
    assert compare(base, base).attribution == "same environment"


def test_changes_against_a_clean_checkout() -> None:
    """That there are some is the difference; their hash would say it twice."""
    (found,) = compare(run(git_dirty=False), replace(changed("a" * 64), id="new")).environment
    assert (found.key, found.base, found.new) == ("git_dirty", False, True)


def test_a_key_of_a_newer_program() -> None:
    """It is shown, not lost."""
    newer = run()
    environment = replace(newer.environment, values={**newer.environment.values, "of_tomorrow": 1})
    (found,) = compare(run(), replace(newer, environment=environment)).environment
    assert (found.key, found.base, found.new) == ("of_tomorrow", None, 1)


@pytest.mark.parametrize(
    ("boards", "change", "two"),
    [(("a", "a"), "slower", False), (("a", "b"), "ambiguous", True), ((None, None), "ambiguous", True)],
)
def test_boards_of_one_model_differ(boards: tuple[str | None, str | None], change: str, two: bool) -> None:
    """1.1 % between two boards, or ones that are not known, may be theirs; it is said that it is allowed for."""
    base, new = (
        run(measured(case(), around(ns)), gpu_uuid=uuid) for ns, uuid in zip((1e3, 1011.0), boards, strict=True)
    )
    found = compare(base, new)
    assert (found.two_boards, found.cases[0].change) == (two, change)


BETWEEN = [
    ("float32", 1.038, "ambiguous"),
    ("float32", 0.964, "ambiguous"),
    ("float32", 1.06, "slower"),
    ("float32", 0.94, "faster"),
    ("float16", 1.075, "ambiguous"),
    ("tf32", 1.075, "ambiguous"),
    ("float16", 1.16, "slower"),
]
"""Other dtypes than float32 may run on tensor cores, where boards differ by more."""


@pytest.mark.parametrize(("dtype", "factor", "change"), BETWEEN)
def test_between_boards_a_small_change_is_no_word(dtype: str, factor: float, change: str) -> None:
    """However sure: in float32 one pair in a hundred differs by 4 %, in others by 8 %, without a change."""
    base, new = (
        run(*(measured(case(m=m, dtype=dtype), around(ns)) for m in range(1, 9)), gpu_uuid=uuid)
        for ns, uuid in ((1e3, "a"), (1e3 * factor, "b"))
    )
    least = 0.04 if dtype == "float32" else 0.08
    for found in compare(base, new).cases:
        assert (found.change, found.threshold, found.least) == (change, 0.01, least)
        assert (found.reason is None) == (change != "ambiguous")


def test_why_a_sure_change_between_boards_is_no_word() -> None:
    """Where the interval would allow it, and the least does not."""
    base, new = (
        run(*(measured(case(m=m), around(ns)) for m in range(1, 3)), gpu_uuid=uuid)
        for ns, uuid in ((1e3, "a"), (1038.0, "b"))
    )
    (found, _) = compare(base, new).cases
    assert (found.change, found.reason) == (
        "ambiguous", "changed by less than two boards of one model may differ, 4 %"
    )  # fmt: skip


def test_a_cpu_has_no_board() -> None:
    """Its runs know no UUID, and nothing is allowed for."""
    assert not are_two_boards(cpu_run(), cpu_run())
