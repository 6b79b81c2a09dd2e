"""Measurements with samples and readings of every kind, and the way of their tables through files."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from harness.model import Cache, Case, DeviceState, Measurement, Problem, Role, TrialResult, Verdict, Word
from harness.store.tables import TABLES, tables

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


def state(time_unix_s: float, limited_ns: dict[str, int] | None = None, **fields: object) -> DeviceState:
    return DeviceState(time_unix_s=time_unix_s, limited_ns=limited_ns, **fields)  # type: ignore[arg-type]


STATES_OF_EVERY_KIND = (
    state(
        1747213920.123456, {"sw_power_cap": 2**53 + 1, "hw_slowdown": 0},
        sm_clock_mhz=1980, memory_clock_mhz=3201, temperature_c=42, power_mw=695123, power_is_instant=True,
        clock_event_reasons=("sw_power_cap", "hw_slowdown"),
    ),
    state(2.0, {}, power_is_instant=False, clock_event_reasons=()),
    state(3.0, None, unknown={"limited_ns": "not supported", "power_mw": 'a "quoted" µ'}),
)  # fmt: skip
