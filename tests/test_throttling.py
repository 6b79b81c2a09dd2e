"""harness.throttling: which samples are marked, by counters that a fake driver tells and by the SM clock."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from harness.device.nvml import Nvml, NvmlDevice
from harness.model import Cache, Case, DeviceState, Measurement, Problem, Role, TrialResult, Verdict, Word
from harness.stats import summarize
from harness.throttling import (
    reference_clock_mhz,
    throttled,
    throttled_share,
)
from tests.fake_nvml import FakeGpu, FakeNvml

PASSED = Verdict(word=Word.PASSED)
CASE = Case(kernel="k", role=Role.GEMV, problem=Problem(m=64, k=64), timer="graph", cache=Cache.COLD)


def reading(time_unix_s: float, limited_ns: Mapping[str, int] | None) -> DeviceState:
    return DeviceState(time_unix_s=time_unix_s, limited_ns=None if limited_ns is None else dict(limited_ns))


def trial(
    times: Sequence[float], states: Sequence[DeviceState], clocks: Sequence[float | None] = (), number: int = 0
) -> TrialResult:
    """Samples of 1,000 launches of 20 µs, 20 ms in all, that began at `times`."""
    return TrialResult(
        trial=number,
        verdict=PASSED,
        samples_ns=(20_000.0,) * len(times),
        sample_times_unix_s=tuple(times),
        sample_clocks_mhz=tuple(clocks),
        launches_per_sample=1000,
        states=tuple(states),
    )


def measurement(*trials: TrialResult) -> Measurement:
    return Measurement(case=CASE, trials=trials)


def night(number: int) -> TrialResult:
    """A trial on a GPU whose power cap and heat hold the clocks back from before its first sample to after its last."""
    gpu = FakeGpu()
    library = Nvml.open(FakeNvml([gpu]))
    assert isinstance(library, Nvml)
    device = library.find(uuid=gpu.uuid, pci_bus_id=None)
    assert isinstance(device, NvmlDevice)
    states = []
    for i in range(12):
        states.append(replace(device.state(), time_unix_s=1000 + 0.05 * i))
        gpu.limited_ns[74] += 50_000_000
        gpu.limited_ns[270] += 10_000_000
    return trial([1000.01 + 0.025 * i for i in range(20)], states, [1215.0] * 20, number)


def test_a_throttled_night():
    """Every sample of every trial is marked, none is dropped, and the figures are as finite as on a good day.

    All clocks are low alike, so that they alone would tell nothing: it is the counters that do.
    """
    whole = measurement(*(night(i) for i in range(5)))
    reference_mhz = reference_clock_mhz([whole])
    assert reference_mhz == 1215
    assert [throttled(each, reference_mhz) for each in whole.trials] == [
        ("sw_power_cap, hw_thermal_slowdown",) * 20
    ] * 5
    assert throttled_share(whole, reference_mhz) == (100, 100)
    summary = summarize(whole)
    assert summary is not None
    assert summary.samples == 100
    median = summary.median_ns
    assert all(end is not None and math.isfinite(end) for end in (median.estimate, median.low, median.high))


TIMES = [10.0, 10.1, 10.2, 10.3]


def test_one_limit_for_a_moment():
    """It grew between the readings at 10.1 and 10.2: the sample between them alone, and by this limit alone."""
    rising = {9.95: 7, 10.1: 7, 10.2: 9, 10.3: 9, 10.4: 9}
    states = [reading(time, {"sw_power_cap": ns, "thermal": 5}) for time, ns in rising.items()]
    assert throttled(trial(TIMES, states), None) == (None, "sw_power_cap", None, None)
    assert throttled_share(measurement(trial(TIMES, states)), None) == (1, 4)


def test_readings_that_are_coarser_than_samples():
    """Growth between two readings marks every sample that they enclose, whole or in part; order does not matter."""
    states = [reading(10.25, {"thermal": 3}), reading(9.9, {"thermal": 2}), reading(10.5, {"thermal": 3})]
    assert throttled(trial(TIMES, states), None) == ("thermal", "thermal", "thermal", None)


def test_the_last_sample_ends_after_its_own_duration():
    """20 ms: a reading within it is not the one after it; without any after it nothing is known of it."""
    before, within, after = (
        reading(10.29, {"thermal": 1}),
        reading(10.31, {"thermal": 1}),
        reading(10.33, {"thermal": 2}),
    )
    assert throttled(trial(TIMES, [before, within, after]), None)[-1] == "thermal"
    assert throttled(trial(TIMES, [before, within]), None)[-1] is None


def test_a_clock_dip_in_two_samples():
    """5 % below the run's highest median is marked, 2 % is not, and what was not read tells nothing."""
    steady = trial(TIMES, [], [1980.0] * 4)
    dipped = trial(TIMES, [], [1881.0, 1940.0, None, 1881.0], number=1)
    whole = measurement(steady, dipped)
    reference_mhz = reference_clock_mhz([whole])
    assert reference_mhz == 1980
    assert throttled(dipped, reference_mhz) == ("sm_clock", None, None, "sm_clock")
    assert throttled_share(whole, reference_mhz) == (2, 8)


def test_a_clock_and_a_limit():
    """Limits first, the clock last."""
    states = [reading(9.9, {"sw_power_cap": 1}), reading(10.35, {"sw_power_cap": 2})]
    marks = throttled(trial(TIMES, states, [1500.0, 1980.0, 1980.0, 1980.0]), 1980)
    assert marks == ("sw_power_cap, sm_clock", "sw_power_cap", "sw_power_cap", "sw_power_cap")


def test_the_reference_is_the_run_s():
    """The highest of the trials' medians over all cases: one odd sample does not raise it."""
    slow = measurement(trial(TIMES, [], [1800.0] * 4))
    fast = measurement(trial(TIMES, [], [1950.0, 1960.0, 1960.0, 2400.0]), trial(TIMES, [], [None] * 4))
    assert reference_clock_mhz([slow, fast]) == 1960
    assert throttled_share(slow, 1960) == (4, 4)
    assert reference_clock_mhz([measurement(trial(TIMES, []), trial(TIMES, [], [None] * 4))]) is None
    assert reference_clock_mhz([]) is None


@pytest.mark.parametrize(
    "states",
    [
        [],
        [reading(10.15, {"thermal": 5})],
        [reading(9.9, {"thermal": 5}), reading(9.95, {"thermal": 6})],
        [reading(10.4, {"thermal": 5}), reading(10.5, {"thermal": 6})],
        [reading(9.9, {"thermal": 5}), reading(10.4, None)],
        [reading(9.9, {"thermal": 5}), reading(10.4, {"sw_power_cap": 6})],
        [reading(9.9, {"thermal": 5}), reading(10.4, {})],
        [reading(9.9, {"thermal": 900}), reading(10.4, {"thermal": 6})],
    ],
    ids=["none", "one", "all before", "all after", "not known", "another limit", "no limit", "driver reloaded"],
)
def test_readings_that_tell_nothing(states):
    """No sample is marked by a guess."""
    assert throttled(trial(TIMES, states), 1980) == (None,) * 4


def test_readings_that_tell_nothing_are_passed_over():
    """The counter's own last reading before and first one after count, whatever lies between."""
    states = [reading(9.9, {"thermal": 1}), reading(9.99, None), reading(10.33, {}), reading(10.4, {"thermal": 2})]
    assert throttled(trial(TIMES, states), None) == ("thermal",) * 4


def test_a_run_of_before_times_were_kept():
    """Its counters cannot be laid beside its samples; clocks can, where there are any."""
    states = (reading(9.9, {"thermal": 1}), reading(10.4, {"thermal": 2}))
    old = replace(trial(TIMES, states), sample_times_unix_s=())
    assert throttled(old, 1980) == (None,) * 4
    assert throttled(replace(old, sample_clocks_mhz=(1500.0,) * 4), 1980) == ("sm_clock",) * 4


def test_a_trial_without_samples():
    """As of a wrong kernel: nothing to mark, and nothing is always throttled."""
    wrong = TrialResult(trial=0, verdict=Verdict(word=Word.WRONG, reason="row 3"))
    assert throttled(wrong, 1980) == ()
    assert throttled_share(measurement(wrong), 1980) == (0, 0)


def test_a_limit_of_full_boost_is_no_mark():
    """Where the voltage alone ends the clock, its counter grows all the time: that is data, and holds nothing back."""
    states = [reading(1000.0, {"reliability": 0}), reading(1001.0, {"reliability": 10**9})]
    assert throttled(trial([1000.1, 1000.2], states), None) == (None, None)


def test_a_step_longer_than_what_was_read_names_nobody():
    """The counter of an H200 moves every 100 ms: within 40 ms of readings it tells of what was before them."""
    short = [reading(1000.0 + 0.02 * i, {"sw_power_cap": ns}) for i, ns in enumerate((0, 100_000_000, 100_000_000))]
    assert throttled(trial([1000.005, 1000.015], short), None) == (None, None)


def test_a_step_marks_as_far_back_as_it_is_long():
    """100 ms at the fourth of readings 40 ms apart: the samples since the first, and none after it."""
    held = (0, 0, 0, 100_000_000, 100_000_000)
    states = [reading(1000.0 + 0.04 * i, {"sw_power_cap": ns}) for i, ns in enumerate(held)]
    times = [1000.005, 1000.045, 1000.085, 1000.125]
    assert throttled(trial(times, states), None) == ("sw_power_cap",) * 3 + (None,)
