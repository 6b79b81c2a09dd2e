"""harness.store.tables of something else, or of another record: damage, in a line that names case and trial."""

from __future__ import annotations

import math
from pathlib import Path

import pandas as pd
import pytest

from harness.store.tables import SAMPLES, STATES, with_tables, without_tables
from tests.planted_tables import STATES_OF_EVERY_KIND, WHOLE, measurement, through_files, trial


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
