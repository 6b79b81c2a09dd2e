"""What a reader must know beside a case's word: another kernel, other clocks, states, drift.

A note is a head, such as `lower clock`, and behind a colon figures where it has any; notes of many cases are counted
by their heads.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Collection, Iterable, Sequence
from pathlib import PurePosixPath

from harness.comparison.sides import Side
from harness.comparison.states import find_states
from harness.kernel_names import short_name
from harness.model import BuildRecord, Measurement, Run, TrialResult
from harness.stats import Interval
from harness.throttling import NO_LIMITS

CLOCK_DIFFERS = 0.01
"""SM clocks that are further apart are named, as a fraction of the higher one."""

FEWEST_DRIFTING = 3
"""Trials that must drift the same way: fewer do so by chance too often."""

PROJECTS = ("cuda", "cpu")
"""Targets of the project's own libraries."""

_HEADERS = (".h", ".cuh")
_NO_LIMIT = NO_LIMITS | {"gpu_idle", "applications_clocks_setting", "display_clock_setting"}
"""Reasons for a clock that are no sign of a device held back."""


def kernel_notes(kernel: str, base: Run, new: Run) -> list[str]:
    """Whether the kernel's code is another one; nothing of kernels whose code no build records, such as torch's.

    Told by the sources whose code a launch may run: where one holds several variants, by the code of any of them.
    """
    before, after = (_build(run, new.options.device_type, kernel) for run in (base, new))
    if before is None or after is None:
        return []
    names = {*_sources(before, kernel), *_sources(after, kernel)}
    if not names:
        return []
    same_source = all(before.sources_sha256.get(name) == after.sources_sha256.get(name) for name in names)
    same_text = same_source and _headers(before) == _headers(after)
    codes = _device_code(before, names), _device_code(after, names)
    shared = codes[0].keys() & codes[1].keys()
    if not shared:
        return [] if same_text else ["kernel changed"]
    # The machine code decides: a comment or an unused helper changes no figure.
    if all(codes[0][architecture] == codes[1][architecture] for architecture in shared):
        return [] if same_source else ["source changed, device code did not"]
    return ["device code changed, source did not"] if same_text else ["kernel changed"]


def _build(run: Run, target: str, kernel: str) -> BuildRecord | None:
    """Of the library with the kernel: the user's file that declares it, else the project's for the target."""
    own = (build for build in run.builds if build.target not in PROJECTS and kernel in build.sources_by_kernel)
    return next(own, None) or next((build for build in run.builds if build.target == target), None)


def _sources(build: BuildRecord, kernel: str) -> Collection[str]:
    """Whose code a launch runs; where the record does not tell, as of `read`: the file that bears the kernel's name."""
    named = {kernel, f"{kernel}_cpu"}
    own = [name for name in build.sources_sha256 if PurePosixPath(name).stem in named]
    return build.sources_by_kernel.get(kernel, own)


def _device_code(build: BuildRecord, names: Collection[str]) -> dict[str, dict[str, str]]:
    """Of some sources: hashes by source, by architecture."""
    found: dict[str, dict[str, str]] = {}
    for key, digest in build.device_code_sha256.items():
        name, _, architecture = key.partition(":")
        if name in names:
            found.setdefault(architecture, {})[name] = digest
    return found


def _headers(build: BuildRecord) -> dict[str, str]:
    return {name: digest for name, digest in build.sources_sha256.items() if name.endswith(_HEADERS)}


def variant_notes(base: Measurement, new: Measurement) -> list[str]:
    """Whether another of the kernel's variants was the fastest."""
    found = [sorted({t.variant for t in m.trials if t.variant is not None}) for m in (base, new)]
    if found[0] == found[1] or not all(found):
        return []
    return [f"other variant: {', '.join(found[1])} against {', '.join(found[0])}"]


def device_kernel_notes(base: Measurement, new: Measurement) -> list[str]:
    """Whether a launch ran other kernels on the device, as where a library of another version picks another one.

    By their full names; nothing where one run does not name them.
    """
    old, fresh = _launches(base), _launches(new)
    if old == fresh or not old or not fresh:
        return []
    shown = _shown(fresh), _shown(old)
    if shown[0] == shown[1]:  # short names leave out long template arguments
        return [f"other device kernel: another instance of {shown[0]}"]
    return [f"other device kernel: {shown[0]} against {shown[1]}"]


def _launches(measurement: Measurement) -> list[tuple[str, ...]]:
    """What a launch ran in order, each once over the trials."""
    return sorted({tuple(each.name for each in t.device_kernels) for t in measurement.trials if t.device_kernels})


def _shown(launches: Iterable[Sequence[str]]) -> str:
    return ", ".join(" + ".join(map(short_name, names)) for names in launches)


def device_notes(base: Measurement, new: Measurement) -> list[str]:
    """Clocks and limits that differ, so that «slower» and «ran at a lower clock» are told apart."""
    made = []
    clocks = sample_clock_mhz(base), sample_clock_mhz(new)
    if None in clocks:
        clocks = _nvml_clocks(base), _nvml_clocks(new)
    old, fresh = clocks
    if old is not None and fresh is not None and abs(fresh - old) > CLOCK_DIFFERS * max(old, fresh):
        word = "lower" if fresh < old else "higher"
        made.append(f"{word} clock: {_thousands(fresh)} against {_thousands(old)} MHz")
    limits = _limits(base), _limits(new)
    made += [f"{_limit_name(name)} in new" for name in sorted(limits[1] - limits[0])]
    made += [f"{_limit_name(name)} in base" for name in sorted(limits[0] - limits[1])]
    return made


def sample_clock_mhz(measurement: Measurement) -> float | None:
    """Median over the trials of the SM clock during samples, MHz."""
    return _typical(t.sample_clocks_mhz for t in measurement.trials)


def _nvml_clocks(measurement: Measurement) -> float | None:
    """Median over the trials of the SM clock that NVML read, MHz."""
    return _typical([s.sm_clock_mhz for s in t.states] for t in measurement.trials)


def _typical(clocks_by_trial: Iterable[Sequence[float | None]]) -> float | None:
    known = ([mhz for mhz in clocks if mhz is not None and math.isfinite(mhz)] for clocks in clocks_by_trial)
    medians = [statistics.median(clocks) for clocks in known if clocks]
    return statistics.median(medians) if medians else None


def _limits(measurement: Measurement) -> set[str]:
    """What held the clocks back at a reading, or between two of a trial."""
    found: set[str] = set()
    for trial in measurement.trials:
        for state in trial.states:
            found.update(state.clock_event_reasons or ())
        found |= _grown(trial)
    return found - _NO_LIMIT


def _grown(trial: TrialResult) -> set[str]:
    """Limits whose counter was higher at the last reading than at the first."""
    told = [state.limited_ns for state in sorted(trial.states, key=lambda s: s.time_unix_s) if state.limited_ns]
    return {name for name, ns in told[-1].items() if ns > told[0].get(name, ns)} if told else set()


def _limit_name(name: str) -> str:
    return name.removeprefix("sw_").replace("_", " ")


def _thousands(mhz: float) -> str:
    return f"{mhz:,.0f}".replace(",", " ")


def state_notes(base: Side, new: Side, threshold: float) -> list[str]:
    """Whether a run's own trials fall into two levels that are further apart than the threshold."""
    found = find_states(base.logs, new.logs, max(base.tick, new.tick))
    if found is None or found.step <= math.log1p(threshold):
        return []
    where = "both" if found.in_base and found.in_new else "base" if found.in_base else "new"
    return [f"two states between trials in {where}: {100 * math.expm1(found.step):.1f} % apart"]


def drift_notes(base: Measurement, new: Measurement, ratio: Interval, threshold: float) -> list[str]:
    """Runs that drift within their trials, unless the ratio can bear it.

    The median of a trial that drifts is that of a device on its way to somewhere else. It is worth a note where the
    runs differ in it by more than the threshold, and by more than the ratio is uncertain anyway.
    """
    bar = max(math.log1p(threshold), 0.0 if ratio.high is None else math.log(ratio.high / ratio.estimate))
    steps = {"base": _drift(base), "new": _drift(new)}
    if abs(steps["new"] - steps["base"]) <= bar:
        return []
    named = {name: step for name, step in steps.items() if abs(step) > bar / 2}  # at least one of them
    shown = {name: f"{100 * math.expm1(step):+.1f}".replace("-", "−") for name, step in named.items()}
    return [f"drift within trials in {name}: {percent} %" for name, percent in shown.items()]


def _drift(measurement: Measurement) -> float:
    """How far second halves typically lie above first ones, as a logarithm; 0 unless all trials drift the same way."""
    steps = [_half_step(t.samples_ns) for t in measurement.trials if len(t.samples_ns) >= FEWEST_DRIFTING + 1]
    one_way = all(step > 0 for step in steps) or all(step < 0 for step in steps)
    return statistics.median(steps) if len(steps) >= FEWEST_DRIFTING and one_way else 0.0


def _half_step(samples_ns: Sequence[float]) -> float:
    """How far the second half's median lies above the first half's, as the logarithm of their ratio."""
    half = len(samples_ns) // 2
    return math.log(statistics.median(samples_ns[half:]) / statistics.median(samples_ns[:half]))


def trial_notes(base: Side, new: Side) -> list[str]:
    """Runs with one trial: what a process adds to it is not known from that run."""
    return [f"one trial in {name}" for name, side in (("base", base), ("new", new)) if len(side.logs) == 1]
