"""Synthetic runs with planted changes, held against each other. No figure in them was measured."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

from harness.compare import compare
from harness.comparison.request import Compared
from harness.model import Case, DeviceState, Environment, Measurement, Run, TrialResult, Verdict, Word
from tests.sample_run import HOSTILE, KERNELS, START, gpu_run

Factor = Callable[[Case], float]
"""By how much a run's times of a case differ from the usual ones; NaN: the kernel is wrong there."""

FEW = {name: KERNELS[name] for name in ("torch.matmul", "sgemv_k32_f32", "sgemv_k128_f32x4", "read", "empty")}
SMALL = ((1024, 16), (1024, 1024))
"""Without the problem on which a kernel has two states, which hide a change."""


def usual(case: Case) -> float:  # noqa: ARG001 - every factor is asked about a case
    """Nothing changed."""
    return 1.0


def planted(case: Case) -> float:
    """torch.matmul by graph is 5 % slower, read 4 % faster; sgemv_k128_f32x4 is wrong on 1024×1024."""
    if case.kernel == "sgemv_k128_f32x4" and case.problem.k == 1024:
        return math.nan
    if case.timer != "graph":
        return 1.0
    return {"torch.matmul": 1.05, "read": 0.96}.get(case.kernel, 1.0)


def night(
    number: int,
    factor: Factor = usual,
    *,
    kernels: dict[str, str] | None = None,
    shapes: tuple[tuple[int, int], ...] = SMALL,
    trials: int = 5,
    samples: int = 20,
    hostile: bool = False,
    **values: Any,
) -> Run:
    """The run of a night; `values` are of its environment."""
    names = dict(FEW if kernels is None else kernels) | ({HOSTILE: "evil"} if hostile else {})
    run = gpu_run(shapes=shapes, kernels=names, trials=trials, samples=samples)
    when = START + timedelta(days=number)
    return replace(
        run,
        id=f"{when:%Y%m%dT%H%M%SZ}-nvidia-h200-{number:06x}",
        started_utc=when.isoformat(),
        finished_utc=(when + timedelta(minutes=9)).isoformat(),
        environment=Environment(
            values={**run.environment.values, **values},
            unknown={k: v for k, v in run.environment.unknown.items() if k not in values},
        ),
        measurements=tuple(_of(m, number, factor(m.case)) for m in run.measurements),
    )


def held(base: Run, *news: Run, **options: Any) -> Compared:
    """The comparison of these runs; `options` are of `harness.compare.compare`."""
    return Compared(base=base, news=news, found=tuple(compare(base, new, **options) for new in news))


def pair(*, hostile: bool = False) -> Compared:
    """Two runs on two drivers, with the planted changes; and with a hostile kernel, driver and host name."""
    evil = {"driver_version": f"590.1 {HOSTILE}", "hostname": HOSTILE} if hostile else {"driver_version": "590.44.01"}
    return held(night(0, hostile=hostile), night(1, planted, hostile=hostile, **evil))


def several(runs: int = 4) -> Compared:
    """One base and `runs` new ones, each with another driver, the last with the planted changes."""
    news = [night(i, planted if i == runs else usual, driver_version=f"590.{i:02}.01") for i in range(1, runs + 1)]
    return held(night(0), *news)


def large(runs: int, *, trials: int = 5, samples: int = 100) -> Compared:
    """300 cases: 15 problems, 5 kernels, 4 ways of timing; with a clock, a time and counters at every sample."""
    names = {name: KERNELS[name] for name in ("torch.matmul", "sgemv_k32_f32", "sgemv_k128_f32x4", "read")}
    names |= {"sgemv_extra": "one more"}
    shapes = tuple((256 * 2**i, k) for i in range(5) for k in (256, 1024, 4096))
    made = [
        _watched(night(i, _luck(i), kernels=names, shapes=shapes, trials=trials, samples=samples, **_nightly(i)))
        for i in range(runs + 1)
    ]
    return held(*made)


def _nightly(number: int) -> dict[str, str]:
    drivers = ("570.86.15", "580.159.04", "590.44.01")
    return {"driver_version": drivers[number * 3 // 31], "git_commit": f"{number // 5 + 11:02x}" * 20}


def _luck(number: int) -> Factor:
    def factor(case: Case) -> float:
        luck = random.Random(f"{case.id}/{number // 8}")  # noqa: S311 - wanted: the same numbers every time
        if case.kernel == "sgemv_extra" and luck.random() < 0.05:
            return math.nan
        return 1 + (luck.choice((0.03, 0.06, -0.03, 0.12)) if number > 10 and luck.random() < 0.1 else 0.0)

    return factor


def _of(measurement: Measurement, number: int, factor: float) -> Measurement:
    """The measurement on another night: every trial's times by the factor and by a luck of its own."""
    if math.isnan(factor):
        wrong = Verdict(word=Word.WRONG, reason="integers: row 3 is 16776192, wanted 16777216")
        return replace(measurement, trials=tuple(TrialResult(trial=t.trial, verdict=wrong) for t in measurement.trials))
    luck = random.Random(f"{measurement.case.id}/{number}")  # noqa: S311 - wanted: the same numbers every time
    own = [factor * luck.gauss(1, 0.0007) for _ in measurement.trials]
    return replace(
        measurement,
        trials=tuple(
            replace(trial, samples_ns=tuple(round(ns * by, 3) for ns in trial.samples_ns))
            for trial, by in zip(measurement.trials, own, strict=True)
        ),
    )


def _watched(run: Run) -> Run:
    return replace(
        run, measurements=tuple(replace(m, trials=tuple(map(_with_clocks, m.trials))) for m in run.measurements)
    )


def _with_clocks(trial: TrialResult) -> TrialResult:
    """A reading before and after the samples, between which the power limit grew where it was named."""
    if not trial.samples_ns:
        return trial
    first, last = trial.states[0], trial.states[-1]
    start, step = first.time_unix_s, (last.time_unix_s - first.time_unix_s) / (len(trial.samples_ns) + 1)
    capped = "sw_power_cap" in (first.clock_event_reasons or ())
    states: list[DeviceState] = [
        replace(first, limited_ns={"sw_power_cap": 0}),
        replace(last, limited_ns={"sw_power_cap": 40_000_000 if capped else 0}),
    ]
    return replace(
        trial,
        states=tuple(states),
        sample_times_unix_s=tuple(start + step * (i + 1) for i in range(len(trial.samples_ns))),
        sample_clocks_mhz=tuple(1905.0 if capped and i % 2 else 1980.0 for i in range(len(trial.samples_ns))),
    )
