"""harness.store.tables: samples and readings become tables, and come back as they were, also of an older run.

Every table goes through its file: what Parquet makes of gaps and categories is half of it.
"""

from __future__ import annotations

import json
import math
import statistics
import time
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from harness.model import Cache, Case, DeviceState, Measurement, Problem, Role, TrialResult, Verdict, Word
from harness.store.tables import SAMPLES, STATES, TABLES, tables, with_tables, without_tables

PASSED = Verdict(word=Word.PASSED)


def case(kernel: str = "mine") -> Case:
    return Case(kernel=kernel, role=Role.GEMV, problem=Problem(m=64, k=32), timer="graph", cache=Cache.COLD)


def trial(number: int = 0, **fields: object) -> TrialResult:
    values = {"samples_ns": (3.0, 1.0, 2.0), "launches_per_sample": 1000}
    return TrialResult(trial=number, verdict=PASSED, **{**values, **fields})  # type: ignore[arg-type]


def measurement(*trials: TrialResult, kernel: str = "mine") -> Measurement:
    return Measurement(case=case(kernel), trials=trials)


def through_files(measurements: tuple[Measurement, ...], folder: Path) -> dict[str, pd.DataFrame]:
    """The tables, written as a run's and read again."""
    for name, frame in tables(measurements).items():
        frame.to_parquet(folder / name, index=False, compression="zstd")
    return {name: pd.read_parquet(folder / name) for name in TABLES}


def back(measurements: tuple[Measurement, ...], folder: Path) -> tuple[Measurement, ...]:
    """The measurements without their samples and readings, and then with those of the files."""
    return with_tables(without_tables(measurements), through_files(measurements, folder))


TIMES = (1747213920.123456, 1747213920.223457, 1747213920.323458)
ODD_NS = (0.1 + 0.2, 1 / 3, 1723.0000000000002)
WHOLE = (
    measurement(
        trial(0, samples_ns=ODD_NS, sample_times_unix_s=TIMES, sample_clocks_mhz=(1980.0, None, 1979.5)),
        trial(1, samples_ns=ODD_NS[::-1], sample_times_unix_s=TIMES),
    ),
    measurement(trial(0), trial(1, samples_ns=(7.0,), sample_clocks_mhz=(1215.25,)), kernel="other"),
    measurement(
        TrialResult(trial=0, verdict=Verdict(word=Word.WRONG, reason="row 3")), kernel="wrong"
    ),
)  # fmt: skip
"""With times and clocks, with either, with neither; a clock that was not read; a case without samples."""


def test_what_is_written_comes_back(tmp_path: Path) -> None:
    """Bit for bit, in order, each trial with just what it had; nothing else of a record is touched."""
    found = back(WHOLE, tmp_path)
    assert found == WHOLE
    first = found[0].trials[0]
    assert [ns.hex() for ns in first.samples_ns] == [ns.hex() for ns in ODD_NS]
    assert [time.hex() for time in first.sample_times_unix_s] == [time.hex() for time in TIMES]
    assert {type(value) for value in (*first.samples_ns, *first.sample_times_unix_s)} == {float}


def test_a_record_without_samples_says_what_they_come_to() -> None:
    """Readers of many runs need no more; beside samples a digest would say it twice."""
    for whole, bare in zip(WHOLE, without_tables(WHOLE), strict=True):
        for trial, slim in zip(whole.trials, bare.trials, strict=True):
            assert trial.digest is None
            if not trial.samples_ns:
                assert slim.digest is None
                continue
            assert slim.digest is not None
            assert slim.digest.count == len(trial.samples_ns)
            assert slim.digest.median_ns == statistics.median(trial.samples_ns)


def test_a_record_without_tables_has_none_of_their_content() -> None:
    """It would be on disk twice."""
    bare = without_tables(WHOLE)
    fields = ("samples_ns", "sample_times_unix_s", "sample_clocks_mhz", "states")
    assert {getattr(t, name) for m in bare for t in m.trials for name in fields} == {()}
    assert [t.verdict for m in bare for t in m.trials] == [t.verdict for m in WHOLE for t in m.trials]


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


def state(time_unix_s: float, limited_ns: dict[str, int] | None = None, **fields: object) -> DeviceState:
    return DeviceState(time_unix_s=time_unix_s, limited_ns=limited_ns, **fields)  # type: ignore[arg-type]


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


STATES_OF_EVERY_KIND = (
    state(
        1747213920.123456, {"sw_power_cap": 2**53 + 1, "hw_slowdown": 0},
        sm_clock_mhz=1980, memory_clock_mhz=3201, temperature_c=42, power_mw=695123, power_is_instant=True,
        clock_event_reasons=("sw_power_cap", "hw_slowdown"),
    ),
    state(2.0, {}, power_is_instant=False, clock_event_reasons=()),
    state(3.0, None, unknown={"limited_ns": "not supported", "power_mw": 'a "quoted" µ'}),
)  # fmt: skip


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


def test_a_table_of_something_else(tmp_path: Path) -> None:
    """A column that must be there is missed."""
    frames = through_files(WHOLE, tmp_path)
    for column in ("ns", "index", "case_id"):
        with pytest.raises(ValueError, match=rf"^{SAMPLES}: no column '{column}'$"):
            with_tables(WHOLE, frames | {SAMPLES: frames[SAMPLES].drop(columns=[column])})


@pytest.mark.parametrize(
    ("table", "column", "value"),
    [
        (SAMPLES, "ns", {}),
        (SAMPLES, "ns", "x"),
        (SAMPLES, "index", {}),
        (SAMPLES, "trial", []),
        (STATES, "case_id", {}),
        (STATES, "power_mw", math.inf),
        (STATES, "power_mw", []),
        (STATES, "unknown", None),
        (STATES, "limited_ns", "{"),
    ],
)
def test_a_value_of_something_else(tmp_path: Path, table: str, column: str, value: object) -> None:
    """It is a damaged table, not a crash."""
    measurements = (measurement(trial(states=STATES_OF_EVERY_KIND)),)
    frames = through_files(measurements, tmp_path)
    damaged = frames[table].assign(**{column: pd.Series([value] * len(frames[table]), dtype=object)})
    with pytest.raises(ValueError, match=rf"^{table}: ."):
        with_tables(measurements, frames | {table: damaged})


SAID = "mine-64x32-graph-cold"
"""The first case's id."""


@pytest.mark.parametrize(
    ("rows", "column", "value", "line"),
    [
        (slice(0, 2), "case_id", "gone", "has rows of gone, trial 0, which run.json does not have"),
        (slice(0, 2), "trial", 7, f"has rows of {SAID}, trial 7, which run.json does not have"),
        (slice(0, 2), "trial", 1, f"{SAID}, trial 0: has 0 samples, and 3 by run.json"),
        (slice(0, 2), "case_id", "wrong-64x32-graph-cold", f"{SAID}, trial 0: has 0 samples, and 3 by run.json"),
        (slice(9, 9), "case_id", None, "a row names no case or no trial"),
        (slice(9, 9), "ns", 7.5, "other-64x32-graph-cold, trial 1: has a median of 7.5 ns, and 7.0 ns by run.json"),
    ],
    ids=["case", "trial", "another trial", "a case without samples", "no case", "another sample"],
)
def test_samples_of_another_record_are_damage(
    tmp_path: Path, rows: slice, column: str, value: object, line: str
) -> None:
    """Whoever renamed or changed them has changed the run, whatever the sums say: which case and trial."""
    frames = through_files(WHOLE, tmp_path)
    changed = frames[SAMPLES].astype({"case_id": object})
    changed.loc[rows, column] = value
    with pytest.raises(ValueError, match=f"^{SAMPLES}: {line}$"):
        with_tables(without_tables(WHOLE), frames | {SAMPLES: changed})


def test_rows_lost_and_rows_added_are_damage(tmp_path: Path) -> None:
    """The record has the number of each trial's samples; also of one that should have none."""
    frames = through_files(WHOLE, tmp_path)
    less, more = frames[SAMPLES].drop(index=[4]), pd.concat([frames[SAMPLES], frames[SAMPLES].tail(1)])
    with pytest.raises(ValueError, match=f"^{SAMPLES}: {SAID}, trial 1: has 2 samples, and 3 by run.json$"):
        with_tables(without_tables(WHOLE), frames | {SAMPLES: less})
    with pytest.raises(ValueError, match=r"other-64x32-graph-cold, trial 1: has 2 samples, and 1 by run\.json$"):
        with_tables(without_tables(WHOLE), frames | {SAMPLES: more})
    wrong = frames[SAMPLES].astype({"case_id": object}).tail(1).assign(case_id="wrong-64x32-graph-cold", trial=0)
    added = pd.concat([frames[SAMPLES], wrong])
    with pytest.raises(ValueError, match=r"wrong-64x32-graph-cold, trial 0: has 1 samples, and 0 by run\.json$"):
        with_tables(without_tables(WHOLE), frames | {SAMPLES: added})


def test_readings_of_another_record_are_damage(tmp_path: Path) -> None:
    """Of a trial that was not measured."""
    measurements = (measurement(trial(states=STATES_OF_EVERY_KIND)),)
    frames = through_files(measurements, tmp_path)
    frames[STATES]["trial"] = 3
    with pytest.raises(ValueError, match=f"^{STATES}: has rows of {SAID}, trial 3, which run.json does not have$"):
        with_tables(without_tables(measurements), frames)


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
