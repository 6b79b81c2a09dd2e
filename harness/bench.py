"""A bench session: workers, device readings and the draft, from the first case to the published run."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from harness import environment
from harness.answers import Fact
from harness.cases import EVERY_WORKER, candidates, picked_among, stage_of
from harness.device.held_gpu import HeldGpu
from harness.errors import TRACEBACK, CommandError, Exit
from harness.model import (
    SCHEMA_VERSION,
    Cache,
    Case,
    DeviceState,
    Measurement,
    Options,
    Problem,
    Run,
    TrialResult,
    Verdict,
    Word,
)
from harness.pool import Pool
from harness.registry import Built, Registry
from harness.store import Store
from harness.store.draft import Draft
from harness.store.run_id import new_run_id
from harness.store.store_folder import unwritable
from harness.timing import Crew, Timer, timers
from harness.worker import ROOT, SILENCE_S, WorkerGone, WorkerLost, WorkerSpec, log_folder

BUDGETS_OF_SILENCE = 20
"""Time budgets that a worker may say nothing: a timer may take ten for its fewest samples."""

BUSY = "busy or unavailable"
"""What CUDA says to the second process where the compute mode allows one."""
ONE_AT_A_TIME = "in an exclusive compute mode (nvidia-smi -q -d COMPUTE) only --trials 1 can be measured"


@dataclass
class Bench:
    """Measures cases into one draft. Use as a context manager; `publish` ends it well."""

    registry: Registry
    store: Store
    options: Options
    on_measured: Callable[[Measurement], None] = lambda _measurement: None
    """Called after every case."""
    say: Callable[[str], None] = lambda _line: None
    """Told in one line what is waited for."""
    silence_s: float | None = None
    """Longest silence of a worker; None: the pool's own."""
    sleep: Callable[[float], object] = time.sleep
    """Waits so many seconds."""

    def __enter__(self) -> Self:
        """Build, start the workers, ask them for the device, open the draft.

        Raises:
            CommandError: nothing can be measured here (INFRASTRUCTURE).
        """
        self._device_type = self.options.device_type
        self._kernels = self.registry.kernels()
        self._lost: dict[tuple[str, Problem], Verdict] = {}
        self._variants: dict[tuple[str, Problem, Cache], str] = {}
        self._gpu = HeldGpu(self.options, self.say, self.sleep)
        builds = self.registry.prepare(self._device_type)
        self.store.check_writable()  # found out now, not when the first case has been measured
        self._gpu.take_turn()  # before workers start: that alone would disturb another bench's samples
        self._log_folder = log_folder()
        started = datetime.now(UTC)
        self._spec = WorkerSpec(
            registry=self.registry.__name__,
            device=self.options.device,
            uuid=self.options.uuid,
            log_folder=self._log_folder,
            trials=self.options.trials,
            silence_s=self.silence_s or max(SILENCE_S, BUDGETS_OF_SILENCE * self.options.max_time_s),
        )
        self._pool = Pool(self._spec)
        self._stage = EVERY_WORKER
        try:
            facts = self._pool.facts()
            self._gpu.find(facts["values"])
            header = self._header(started, facts, builds, self._gpu.lock_clock())
            self.environment = header.environment
            self._warned = header.warnings
            self._draft = Draft.create(self.store.root, header)
            self._keep(builds)
        except WorkerLost as lost:
            self.close()
            hint = f"; {ONE_AT_A_TIME}" if BUSY in str(lost) else ""
            what = f"no worker could start on {self.options.device}: {lost}{hint}"
            raise CommandError(what, Exit.INFRASTRUCTURE) from lost
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the workers; a draft that was not published stays for `Store.recover`."""
        self.close()

    def keep(self, name: str, text: str) -> None:
        """Let a file become part of the run.

        Raises:
            CommandError: the disk is full or gone (INFRASTRUCTURE).
        """
        self._draft.keep(name, text)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the run says first, known before the first case is measured."""
        return self._warned

    def measure(self, case: Case) -> Measurement:
        """Every trial of a case, put into the journal. A verdict other than `passed` ends the case."""
        results: list[TrialResult] = []
        timer = timers()[case.timer]
        self._go_to(timer)
        for trial in range(timer.trials(self.options.trials)):
            results.append(self._measure_trial(case, trial))
            if results[-1].verdict.word is not Word.PASSED:
                break
        measurement = Measurement(case=case, trials=tuple(results))
        self._draft.append(measurement)
        self.on_measured(measurement)
        if measurement.verdict.word is Word.CRASHED:
            self._refuse_lost_device(results[-1].trial)
        return measurement

    def _refuse_lost_device(self, trial: int) -> None:
        """After a crash: a fresh worker must start, or all cases to come would be called crashed too.

        Raises:
            CommandError: it does not, as when the GPU has fallen off its bus (INFRASTRUCTURE).
        """
        try:
            self._pool.revive(trial)
        except WorkerGone:
            return  # died while it idled: the next case replaces it
        except WorkerLost as lost:
            state = self._read_state()
            nvml_says = "" if state is None or state.temperature_c is not None else state.unknown["temperature_c"]
            what = f"no worker starts on {self.options.device} any more: {lost}{nvml_says and f'; NVML: {nvml_says}'}"
            raise CommandError(f"{what}; what was measured until then is kept", Exit.INFRASTRUCTURE) from lost

    def publish(self, *, partial: bool = False) -> Path | None:
        """End the session; the run's folder, or None if nothing was measured."""
        self.close()
        return self._draft.publish(partial=partial)

    def close(self) -> None:
        """End the workers, then let the GPU go. Can be called again."""
        try:
            self._pool.close()
            shutil.rmtree(self._log_folder, ignore_errors=True)
        finally:
            self._gpu.release()

    def _measure_trial(self, case: Case, trial: int) -> TrialResult:
        kernel = self._kernels[case.kernel]
        reason = kernel.unsupported(case.problem)
        if self._device_type not in kernel.devices:
            wanted = " or ".join("CUDA" if each == "cuda" else each.upper() for each in kernel.devices)
            reason = f"needs a {wanted} device"
        if reason is not None:
            return TrialResult(trial=trial, verdict=Verdict(word=Word.UNSUPPORTED, reason=reason))
        key = (case.kernel, case.problem)
        if key in self._lost:
            reason = f"not tried again on this problem: {self._lost[key].reason}"
            return TrialResult(trial=trial, verdict=replace(self._lost[key], reason=reason))
        way = (case.kernel, case.problem, case.cache)
        result = self._pool.measure(case, trial, self.options.max_time_s, self._read_state, self._variants.get(way))
        if result.variant is not None:
            self._variants.setdefault(way, result.variant)
        apart = timers()[case.timer].crew is Crew.FRESH  # the timer itself may have ended its process
        if result.verdict.word in (Word.CRASHED, Word.WRONG) and not apart:
            self._lost[key] = result.verdict
        if result.printed is not None and os.environ.get(TRACEBACK):
            self.say(result.printed)
        return result if kernel.file is not None else replace(result, printed=None)

    def _go_to(self, timer: Timer) -> None:
        """Change the workers, if the timer needs others than there are."""
        stage = stage_of(timer)
        if stage == self._stage:
            return
        if timer.crew is Crew.LAST_ONE and self._stage == EVERY_WORKER:
            self._pool.keep_first()
        else:
            self._pool.close()
            every = timer.crew is Crew.EVERY
            trials = self.options.trials if every else timer.trials(self.options.trials)
            self._pool = Pool(replace(self._spec, trials=trials))
            self._pool.wait()
        self._stage = stage

    def _read_state(self) -> DeviceState | None:
        return self._gpu.state()

    def _header(self, started: datetime, facts: Mapping[str, object], builds: Sequence[Built], locked_mhz: Fact) -> Run:
        where = environment.collect(facts, self._gpu.device, root=ROOT, locked_sm_clock_mhz=locked_mhz)
        now = started.isoformat(timespec="seconds")
        return Run(
            schema_version=SCHEMA_VERSION,
            id=new_run_id(started, where),
            started_utc=now,
            finished_utc=now,
            partial=False,
            options=self.options,
            environment=where,
            builds=tuple(built.record for built in builds),
            kernels={kernel.name: kernel.summary for kernel in self._kernels.values()},
            picked_among=picked_among(self._kernels.values()),
            candidates=candidates(self._kernels.values()),
            warnings=tuple(self._warnings(where.get("git_dirty") is True)),
            measurements=(),
        )

    def _warnings(self, dirty: bool) -> Iterable[str]:
        if self._device_type == "cpu":
            yield "These are CPU numbers: no CUDA device was used, and the CUDA kernels were not measured."
        if dirty:
            yield "The checkout had uncommitted changes: see build/source.diff, and every kernel source in build/."
        yield from self._gpu.warnings(self._pool.pids)

    def _keep(self, builds: Sequence[Built]) -> None:
        """Copy what was built into the draft, and what the checkout had changed."""
        folder = self._draft.kept / "build"
        try:
            folder.mkdir()
            for built in builds:
                shutil.copytree(
                    built.directory, folder / built.record.target, ignore=shutil.ignore_patterns("*.so", "SHA256SUMS")
                )
            diff = environment.git_diff(ROOT)
            if isinstance(diff, str) and diff:
                (folder / "source.diff").write_text(diff, encoding="utf-8")
        except OSError as error:
            self._draft.leave()  # there is nothing in it yet
            raise unwritable(self.store.root, error) from error
