"""harness.store.tables: samples and readings become tables, and come back as they were, also of an older run.

Every table goes through its file: what Parquet makes of gaps and categories is half of it.
"""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from harness.model import DeviceState, Measurement
from harness.store.tables import SAMPLES, STATES, with_tables, without_tables
from tests.planted_tables import ODD_NS, STATES_OF_EVERY_KIND, TIMES, WHOLE, measurement, state, through_files, trial


def back(measurements: tuple[Measurement, ...], folder: Path) -> tuple[Measurement, ...]:
    """The measurements without their samples and readings, and then with those of the files."""
    return with_tables(without_tables(measurements), through_files(measurements, folder))


def test_what_is_written_comes_back(tmp_path: Path) -> None:
    """Bit for bit, in order, each trial with just what it had; nothing else of a record is touched."""
    found = back(WHOLE, tmp_path)
    assert found == WHOLE
    first = found[0].trials[0]
    assert [ns.hex() for ns in first.samples_ns] == [ns.hex() for ns in ODD_NS]
    assert [time.hex() for time in first.sample_times_unix_s] == [time.hex() for time in TIMES]
    assert {type(value) for value in (*first.samples_ns, *first.sample_times_unix_s)} == {float}


def test_a_row_a_sample(tmp_path: Path) -> None:
    """Where it belongs, what it is, and gaps where nothing is known."""
    frame = through_files(WHOLE, tmp_path)[SAMPLES]
    assert list(frame.columns) == ["case_id", "trial", "index", "ns", "time_unix_s", "sm_clock_mhz", "throttled"]
    assert list(frame["case_id"]) == ["mine-64x32-graph-cold"] * 6 + ["other-64x32-graph-cold"] * 4
    assert list(frame["trial"]) == [0, 0, 0, 1, 1, 1, 0, 0, 0, 1]
    assert list(frame["index"]) == [0, 1, 2, 0, 1, 2, 0, 1, 2, 0]
    assert list(frame["ns"]) == [*ODD_NS, *ODD_NS[::-1], 3.0, 1.0, 2.0, 7.0]
    assert list(frame["time_unix_s"].dropna()) == [*TIMES, *TIMES]
    assert list(frame["sm_clock_mhz"].dropna()) == [1980.0, 1979.5, 1215.25]


def test_rows_may_stand_in_any_order(tmp_path: Path) -> None:
    """Whoever sorted the file by another column has not changed the run."""
    frames = through_files(WHOLE, tmp_path)
    shuffled = frames | {SAMPLES: frames[SAMPLES].sort_values("ns", ascending=False)}
    assert with_tables(without_tables(WHOLE), shuffled) == WHOLE


def test_throttled_samples_are_marked(tmp_path: Path) -> None:
    """By hand: the cap's counter grew around the second sample, the third ran 20 % below the run's clock."""
    held = trial(
        samples_ns=(1e6, 1e6, 1e6),
        sample_times_unix_s=(10.0, 11.0, 12.0),
        sample_clocks_mhz=(1980.0, 1980.0, 1584.0),
        launches_per_sample=1,
        states=tuple(state(time, {"sw_power_cap": ns}) for time, ns in ((9.9, 5), (11.0, 5), (12.0, 8), (13.0, 8))),
    )
    free = trial(1, sample_clocks_mhz=(1980.0, 1980.0, 1980.0))
    unknown = measurement(trial(), kernel="other")
    measurements = (measurement(held, free), unknown)
    marks = through_files(measurements, tmp_path)[SAMPLES]["throttled"].astype(object)
    assert list(marks.where(marks.notna(), None)) == [None, "sw_power_cap", "sm_clock", *[None] * 6]
    digests = [trial.digest for trial in without_tables(measurements)[0].trials]
    assert [digest and digest.throttled for digest in digests] == [2, 0]
    assert back(measurements, tmp_path) == measurements


def test_the_reference_clock_is_the_whole_run_s(tmp_path: Path) -> None:
    """A case whose own clock was low from start to end is marked by that of another."""
    slow = measurement(trial(sample_clocks_mhz=(1500.0,) * 3))
    fast = measurement(trial(sample_clocks_mhz=(1980.0,) * 3), kernel="other")
    marks = through_files((slow, fast), tmp_path)[SAMPLES]["throttled"].astype(object)
    assert list(marks.where(marks.notna(), None)) == ["sm_clock"] * 3 + [None] * 3


def test_readings_come_back(tmp_path: Path) -> None:
    """A limit's ns as whole numbers that a float could not hold; «counts none» is not «counts nothing»."""
    measurements = (
        measurement(trial(0, states=STATES_OF_EVERY_KIND), trial(1)),
        measurement(trial(0, states=STATES_OF_EVERY_KIND[::-1]), kernel="other"),
    )
    found = back(measurements, tmp_path)
    assert found == measurements
    read = found[0].trials[0].states
    assert [each.limited_ns for each in read] == [{"sw_power_cap": 2**53 + 1, "hw_slowdown": 0}, {}, None]
    assert type(read[0].sm_clock_mhz) is int
    assert [each.power_is_instant for each in read] == [True, False, None]
    assert [each.clock_event_reasons for each in read] == [("sw_power_cap", "hw_slowdown"), (), None]


@pytest.mark.parametrize("kept", [STATES_OF_EVERY_KIND[:1], STATES_OF_EVERY_KIND[1:2], STATES_OF_EVERY_KIND[2:]])
def test_readings_of_one_kind_alone(tmp_path: Path, kept: tuple[DeviceState, ...]) -> None:
    """A column may be all gaps, or have none."""
    measurements = (measurement(trial(states=kept)),)
    assert back(measurements, tmp_path) == measurements


def test_samples_of_an_older_run_load(tmp_path: Path) -> None:
    """Four columns, as runs had before times and clocks were kept: the samples, and nothing of the rest."""
    frames = through_files(WHOLE, tmp_path)
    frames[SAMPLES][["case_id", "trial", "index", "ns"]].to_parquet(tmp_path / SAMPLES)
    old = with_tables(without_tables(WHOLE), frames | {SAMPLES: pd.read_parquet(tmp_path / SAMPLES)})
    assert [t.samples_ns for m in old for t in m.trials] == [t.samples_ns for m in WHOLE for t in m.trials]
    assert {t.sample_times_unix_s for m in old for t in m.trials} == {()}
    assert {t.sample_clocks_mhz for m in old for t in m.trials} == {()}


def test_readings_of_an_older_run_load(tmp_path: Path) -> None:
    """Its driver's counters were not read: that is None, not zero."""
    measurements = (measurement(trial(states=STATES_OF_EVERY_KIND)),)
    frames = through_files(measurements, tmp_path)
    frames[STATES] = frames[STATES].drop(columns=["limited_ns"])
    (found,) = with_tables(without_tables(measurements), frames)
    assert found.trials[0].states == tuple(replace(each, limited_ns=None) for each in STATES_OF_EVERY_KIND)


def test_times_with_a_gap_are_not_known(tmp_path: Path) -> None:
    """None at all, rather than one that is no number."""
    frames = through_files(WHOLE, tmp_path)
    frames[SAMPLES].loc[1, "time_unix_s"] = None
    found = with_tables(without_tables(WHOLE), frames)
    assert [t.sample_times_unix_s for t in found[0].trials] == [(), TIMES]


def test_text_columns_are_json(tmp_path: Path) -> None:
    """For other tools: lists and tables by name, in one cell."""
    frame = through_files((measurement(trial(states=STATES_OF_EVERY_KIND[:1])),), tmp_path)[STATES]
    assert json.loads(frame["limited_ns"][0]) == {"hw_slowdown": 0, "sw_power_cap": 2**53 + 1}
    assert json.loads(frame["clock_event_reasons"][0]) == ["sw_power_cap", "hw_slowdown"]


def test_an_empty_run(tmp_path: Path) -> None:
    """Both files exist, have their columns and no rows."""
    frames = through_files((), tmp_path)
    assert set(frames) == {"samples.parquet", "device_states.parquet"}
    assert [len(frame) for frame in frames.values()] == [0, 0]
    assert "throttled" in frames[SAMPLES].columns
    assert "limited_ns" in frames[STATES].columns
    assert with_tables((), frames) == ()


def test_a_run_without_samples(tmp_path: Path) -> None:
    """Every kernel was wrong."""
    assert back(WHOLE[2:], tmp_path) == WHOLE[2:]


def test_a_case_that_was_measured_twice_is_whole(tmp_path: Path) -> None:
    """Its samples are kept together: their number is that of both."""
    twice = (measurement(trial(0)), measurement(trial(0, samples_ns=(5.0, 6.0))))
    found = back(twice, tmp_path)
    assert {tuple(sorted(m.trials[0].samples_ns)) for m in found} == {(1.0, 2.0, 3.0, 5.0, 6.0)}


def test_samples_of_a_run_of_before_digests_load(tmp_path: Path) -> None:
    """Nothing says how many there were."""
    bare = tuple(replace(m, trials=tuple(replace(t, digest=None) for t in m.trials)) for m in without_tables(WHOLE))
    frames = through_files(WHOLE, tmp_path)
    found = with_tables(bare, frames | {SAMPLES: frames[SAMPLES].drop(index=[4])})
    assert [len(t.samples_ns) for t in found[0].trials] == [3, 2]


def test_large_tables_are_read_fast(tmp_path: Path) -> None:
    """300 cases of 5 trials: a frame a trial would take more than a second."""
    many = tuple(
        measurement(*(trial(i, samples_ns=(1.0,) * 100, states=STATES_OF_EVERY_KIND) for i in range(5)), kernel=f"k{n}")
        for n in range(300)
    )
    frames = through_files(many, tmp_path)
    bare = without_tables(many)
    start = time.process_time()
    assert with_tables(bare, frames) == many
    assert time.process_time() - start < 1.0
