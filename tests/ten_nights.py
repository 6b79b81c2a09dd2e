"""Nights made of what was measured: examples/power has 25 trials a case, and every night has five of them.

What a night changes, such as 4 % more time in one kernel, is planted; all else, the scatter between trials and the
environment, is an H200's.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

from harness.model import Environment, Measurement, Run, TrialResult, Verdict, Word
from harness.store import load
from harness.store.draft import Draft, write_run

ROOT = Path(__file__).resolve().parents[1]
FIRST = datetime(2026, 5, 1, 2, 17, tzinfo=UTC)
KERNELS = ("torch.matmul", "sgemv_k32_f32", "sgemv_k128_f32x4", "read")
SHAPES = ("1024x1024", "4096x4096", "11008x4096", "32000x4096")
SLOWED = "sgemv_k128_f32x4"
NEW_DRIVER = "590.44.01"
TRIALS = 5

Factor = Callable[[str], float]
"""By how much longer a kernel of this name takes."""


def usual(_kernel: str) -> float:
    return 1.0


def slowed(kernel: str) -> float:
    """4 % in one kernel."""
    return 1.04 if kernel == SLOWED else 1.0


@cache
def recorded() -> Run:
    """A real run, of some of its cases."""
    run = load(ROOT / "examples" / "power" / "first")
    wanted = [m for m in run.measurements if m.case.kernel == "empty" or _is_wanted(m)]
    return replace(run, measurements=tuple(wanted))


def _is_wanted(measurement: Measurement) -> bool:
    return measurement.case.kernel in KERNELS and measurement.case.problem.label in SHAPES


@dataclass(frozen=True, kw_only=True)
class Played:
    """What a night measures."""

    number: int
    """From 1 on, a day each."""
    factor: Factor = usual
    commit: str = ""
    """The code's; "": the recorded one."""
    gpu: str = "NVIDIA H200"
    """Its model."""
    board: str = ""
    """Its UUID; "": the recorded one."""
    shapes: tuple[str, ...] = SHAPES
    """Measured."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """How it was asked to measure, where that is not as every night."""
    clock: float = 1.0
    """Of the SM clock during all samples but those of `empty`, as a share of the usual one; times follow it."""
    wrong: str = ""
    """A kernel whose output is wrong."""
    partial: bool = False
    """Cut short."""

    @property
    def environment(self) -> dict[str, str]:
        """What differs from the recorded one: the third night and all after it have a new driver."""
        known = {"gpu_name": self.gpu, "device_name": self.gpu, "gpu_uuid": self.board, "git_commit": self.commit}
        changed = {"driver_version": NEW_DRIVER} if self.number >= 3 else {}
        return {key: value for key, value in known.items() if value} | changed

    @property
    def run_id(self) -> str:
        """As the store sorts them."""
        gpu = self.gpu.lower().replace(" ", "-")
        return f"{self.at:%Y%m%dT%H%M%SZ}-{gpu}-{self.number:06x}"

    @property
    def at(self) -> datetime:
        """When it began."""
        return FIRST + timedelta(days=self.number - 1)

    def run(self) -> Run:
        """With its samples."""
        plain, luck = recorded(), random.Random(self.number)  # noqa: S311 - wanted: the same every time
        picked = luck.sample(range(25), TRIALS)
        shift_s = self.at.timestamp() - datetime.fromisoformat(plain.started_utc).timestamp()
        return replace(
            plain,
            id=self.run_id,
            partial=self.partial,
            started_utc=self.at.isoformat(),
            finished_utc=(self.at + timedelta(minutes=4)).isoformat(),
            options=replace(plain.options, trials=TRIALS, command=("nox", "-s", "nightly"), **self.options),
            environment=Environment(
                values={**plain.environment.values, **self.environment}, unknown=plain.environment.unknown
            ),
            measurements=tuple(
                self._measurement(each, picked, shift_s)
                for each in plain.measurements
                if each.case.kernel == "empty" or each.case.problem.label in self.shapes
            ),
        )

    def _measurement(self, measurement: Measurement, picked: list[int], shift_s: float) -> Measurement:
        if measurement.case.kernel == self.wrong:
            verdict = Verdict(word=Word.WRONG, reason="integers: row 3 is 16776192, wanted 16777216", max_error=412.0)
            return replace(measurement, trials=(TrialResult(trial=0, verdict=verdict),))
        if measurement.verdict.word is not Word.PASSED:
            return measurement
        clock = 1.0 if measurement.case.kernel == "empty" else self.clock
        factor = self.factor(measurement.case.kernel) / clock
        trials = [measurement.trials[place] for place in picked]
        return replace(
            measurement,
            trials=tuple(
                replace(
                    trial,
                    trial=number,
                    samples_ns=tuple(factor * ns for ns in trial.samples_ns),
                    sample_times_unix_s=tuple(shift_s + time for time in trial.sample_times_unix_s),
                    sample_clocks_mhz=tuple(mhz and clock * mhz for mhz in trial.sample_clocks_mhz),
                    states=tuple(replace(each, time_unix_s=shift_s + each.time_unix_s) for each in trial.states),
                )
                for number, trial in enumerate(trials)
            ),
        )


def prepared(root: Path, night: Played) -> Path:
    """The night's run in a folder of its own, for `play_bench` to publish."""
    folder = root / night.run_id
    folder.mkdir(parents=True)
    write_run(folder, night.run())
    return folder


def half_done(root: Path, night: Played) -> Path:
    """The draft that a bench leaves that is killed half-way."""
    run = night.run()
    draft = Draft.create(root, replace(run, measurements=(), finished_utc=run.started_utc))
    for measurement in run.measurements[: len(run.measurements) // 2]:
        draft.append(measurement)
    draft._lock.release()  # as the end of its process does
    return draft.folder
