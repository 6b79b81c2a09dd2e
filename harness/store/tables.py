"""Samples and readings of the device as tables, one Parquet file each, and back into the records."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pandas as pd

from harness.errors import first_line
from harness.json_text import parsed
from harness.model import DeviceState, Digest, Measurement, TrialResult
from harness.throttling import reference_clock_mhz, throttled

SAMPLES, STATES = "samples.parquet", "device_states.parquet"
TABLES = (SAMPLES, STATES)
"""Names of the files."""

SAMPLE_TYPES = {
    "case_id": "category",
    "trial": "int32",
    "index": "int32",
    "ns": "float64",
    "time_unix_s": "float64",
    "sm_clock_mhz": "float64",
    "throttled": "category",
}
"""A row a sample: its place within case and trial, ns per launch, when it began, the SM clock meanwhile where it was
read, and what held the clocks back, derived from the readings when the run was published; empty where nothing did."""

AS_JSON = ("clock_event_reasons", "limited_ns", "unknown")
"""Fields of `DeviceState` that are no single value: text in JSON."""

IN_TABLES = ("samples_ns", "sample_times_unix_s", "sample_clocks_mhz", "states")
"""Fields of `TrialResult` that the tables hold: run.json does not name them."""

WHOLE = ("sm_clock_mhz", "memory_clock_mhz", "temperature_c", "power_mw")
"""Fields of `DeviceState` that are whole numbers; pandas makes floats of a column with gaps."""

NEEDED = {
    SAMPLES: ("case_id", "trial", "index", "ns"),
    STATES: ("case_id", "trial", "time_unix_s", *WHOLE),
}
"""Columns that every run's tables have."""

_Key = tuple[str, int]
"""A case's id and a trial's number."""

_Read = TypeVar("_Read")


def tables(measurements: Sequence[Measurement]) -> dict[str, pd.DataFrame]:
    """The tables of a run by file name."""
    reference_mhz = reference_clock_mhz(measurements)
    results = [(m.case.id, trial) for m in measurements for trial in m.trials]
    rows = [row for case, trial in results for row in _sample_rows(case, trial, reference_mhz)]
    states = [{"case_id": case, "trial": t.trial, **_flat_state(s)} for case, t in results for s in t.states]
    return {
        SAMPLES: pd.DataFrame(rows, columns=list(SAMPLE_TYPES)).astype(SAMPLE_TYPES),
        STATES: pd.DataFrame(states, columns=["case_id", "trial", *DeviceState.__dataclass_fields__]),
    }


def without_tables(measurements: Sequence[Measurement]) -> tuple[Measurement, ...]:
    """The measurements without what the tables hold, and with a digest of each trial's samples instead."""
    bare: dict[str, Any] = dict.fromkeys(IN_TABLES, ())
    reference_mhz = reference_clock_mhz(measurements)

    def slim(trial: TrialResult) -> TrialResult:
        return replace(trial, digest=digest(trial, reference_mhz), **bare)

    return tuple(replace(m, trials=tuple(map(slim, m.trials))) for m in measurements)


def digest(trial: TrialResult, reference_mhz: float | None) -> Digest | None:
    """What is kept beside the record of a trial's samples; None where it has none.

    Args:
        trial: with its samples and states.
        reference_mhz: of the whole run, as `throttling.reference_clock_mhz` gives it.
    """
    if not trial.samples_ns:
        return None
    held_back = sum(limit is not None for limit in throttled(trial, reference_mhz))
    median_ns = statistics.median(trial.samples_ns)
    return Digest(count=len(trial.samples_ns), median_ns=median_ns, throttled=held_back)


def with_tables(measurements: Sequence[Measurement], frames: Mapping[str, pd.DataFrame]) -> tuple[Measurement, ...]:
    """The measurements with what the tables hold instead of digests.

    A run of before a column existed lacks its values; samples of one of before digests are held against nothing.

    Raises:
        ValueError: a table is not what `tables` makes, or not of these measurements; the message begins with its name.
    """
    samples = _of_table(SAMPLES, _samples, frames)
    states = _of_table(STATES, _states, frames)
    _check_trials(measurements, {SAMPLES: samples, STATES: states})
    _check_digests(measurements, {key: fields["samples_ns"] for key, fields in samples.items()})

    def filled(case_id: str, trial: TrialResult) -> TrialResult:
        key = (case_id, trial.trial)
        return replace(trial, **samples.get(key, {}), digest=None, states=states.get(key, ()))

    return tuple(replace(m, trials=tuple(filled(m.case.id, trial) for trial in m.trials)) for m in measurements)


def _of_table(name: str, read: Callable[[pd.DataFrame], _Read], frames: Mapping[str, pd.DataFrame]) -> _Read:
    if missing := [column for column in NEEDED[name] if column not in frames[name]]:
        raise ValueError(f"{name}: no column {missing[0]!r}")
    try:
        return read(frames[name])
    except (TypeError, OverflowError, ValueError) as error:  # a list where a number belongs, or one without end
        raise ValueError(f"{name}: {first_line(error)}") from error


def _check_trials(measurements: Sequence[Measurement], found: Mapping[str, Iterable[_Key]]) -> None:
    """Raise ValueError where a table has rows of what was not measured."""
    known = {(m.case.id, trial.trial) for m in measurements for trial in m.trials}
    for name, keys in found.items():
        for case_id, trial in keys:
            if (case_id, trial) not in known:
                raise ValueError(f"{name}: has rows of {case_id}, trial {trial}, which run.json does not have")


def _check_digests(measurements: Sequence[Measurement], samples: Mapping[_Key, Sequence[float]]) -> None:
    """Raise ValueError where samples are not those that the record was written with."""
    digests: dict[_Key, list[Digest]] = {}
    for case_id, trial in ((m.case.id, trial) for m in measurements for trial in m.trials):
        digests.setdefault((case_id, trial.trial), []).extend([trial.digest] if trial.digest else [])
    if not any(digests.values()):
        return  # of before there were any
    for (case_id, number), wanted in digests.items():
        found_ns = samples.get((case_id, number), ())
        count = sum(each.count for each in wanted)  # a case that was measured twice keeps its samples together
        where = f"{SAMPLES}: {case_id}, trial {number}"
        if len(found_ns) != count:
            raise ValueError(f"{where}: has {len(found_ns)} samples, and {count} by run.json")
        if len(wanted) == 1 and statistics.median(found_ns) != wanted[0].median_ns:
            median_ns = statistics.median(found_ns)
            raise ValueError(f"{where}: has a median of {median_ns} ns, and {wanted[0].median_ns} ns by run.json")


def _sample_rows(case_id: str, trial: TrialResult, reference_mhz: float | None) -> list[tuple[object, ...]]:
    count = len(trial.samples_ns)
    nothing = (None,) * count
    columns = (
        trial.samples_ns,
        trial.sample_times_unix_s or nothing,
        trial.sample_clocks_mhz or nothing,
        throttled(trial, reference_mhz),
    )
    return [(case_id, trial.trial, i, *values) for i, values in enumerate(zip(*columns, strict=True))]


def _samples(frame: pd.DataFrame) -> dict[_Key, dict[str, Any]]:
    """What a trial's record gets from its rows, in the order of their index."""
    optional = [name for name in ("time_unix_s", "sm_clock_mhz") if name in frame]
    ordered = frame[["case_id", "trial", "index", "ns", *optional]].sort_values("index", kind="stable")
    columns = {name: ordered[name].to_numpy(dtype=np.float64, na_value=np.nan) for name in ("ns", *optional)}
    found = _places(ordered)
    return {
        key: _sample_fields({name: column[rows] for name, column in columns.items()}) for key, rows in found.items()
    }


def _sample_fields(columns: Mapping[str, npt.NDArray[np.float64]]) -> dict[str, Any]:
    found: dict[str, Any] = {"samples_ns": tuple(columns["ns"].tolist())}
    times, clocks = columns.get("time_unix_s"), columns.get("sm_clock_mhz")
    if times is not None and not np.isnan(times).any():
        found["sample_times_unix_s"] = tuple(times.tolist())
    if clocks is not None and not np.isnan(clocks).all():
        found["sample_clocks_mhz"] = tuple(None if math.isnan(mhz) else mhz for mhz in clocks.tolist())
    return found


def _flat_state(state: DeviceState) -> dict[str, Any]:
    plain = state.to_dict()
    for name in AS_JSON:
        plain[name] = json.dumps(plain[name], sort_keys=True)
    return plain


def _states(frame: pd.DataFrame) -> dict[_Key, tuple[DeviceState, ...]]:
    """The readings of each trial, in the order of their rows."""
    plain = frame.drop(columns=["case_id", "trial"]).astype(object)
    rows = plain.where(plain.notna(), None).to_dict("records")
    read = [_state({str(key): value for key, value in row.items()}) for row in rows]
    return {key: tuple(read[place] for place in places) for key, places in _places(frame).items()}


def _state(row: dict[str, Any]) -> DeviceState:
    texts = {name: parsed(row[name]) for name in AS_JSON if name in row}
    whole = {name: None if row[name] is None else int(row[name]) for name in WHOLE}
    return DeviceState.from_dict({**row, **texts, **whole})


def _places(frame: pd.DataFrame) -> dict[_Key, npt.NDArray[np.intp]]:
    """Where each trial's rows are, by position: whole columns are cut by these, since a frame a trial takes seconds."""
    groups: Any = frame.groupby(["case_id", "trial"], observed=True).indices
    if sum(map(len, groups.values())) != len(frame):
        raise ValueError("a row names no case or no trial")
    return {(str(case_id), int(trial)): places for (case_id, trial), places in groups.items()}
