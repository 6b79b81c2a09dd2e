"""What a cell opens: both runs' trials, samples, clocks and limits, as compact data that a script draws on demand.

Every text is made here; the script only sets it. Texts that repeat are kept once, and cases name them by place.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from harness.comparison.records import CaseChange, Comparison
from harness.comparison.sides import FAILED
from harness.model import DeviceState, Measurement, Run, TrialResult, Word
from harness.stats import Interval, trial_medians_ns
from harness.throttling import SM_CLOCK, reference_clock_mhz, throttled
from harness.words import THIN
from reports import format as fmt
from reports.comparison.columns import Column
from reports.comparison.heat_map import Row
from reports.comparison.words import limit, probability, ratio_in_words, signed
from reports.held_back import HARMLESS_REASONS, reason_in_words, value_range

QUANTILES = (0.05, 0.25, 0.75, 0.95)
"""Of each trial's samples, beside the median; samples themselves would be most of the page."""

DIGITS = 5
"""Significant digits of a time in a chart."""


class Texts:
    """Each text once, in order of appearance."""

    def __init__(self) -> None:
        self.places: dict[str, int] = {}

    def place(self, text: str) -> int:
        """Where `text` stands."""
        return self.places.setdefault(text, len(self.places))


def details(found: Sequence[Comparison], runs: Sequence[Column], rows: Sequence[Row]) -> dict[str, Any]:
    """Data of every cell, JSON-ready.

    Args:
        found: one for each new run.
        runs: the base, then the new runs, with samples.
        rows: of the map.

    Returns:
        `runs`: [label, id, when] each; `texts`; `cases`: in the order of `rows`, each `sides` (by run: `centre` [ns,
        low, high], `trials` [[median, *quantiles] in ns], `facts` [[what, value] as places in `texts`], or null) and
        `changes` (by new run: [place of the word, ratio in words, reason and notes as places], or null).
    """
    texts = Texts()
    sides = [_Sides(column.run, texts) for column in runs]
    by_run = [{each.case.id: each for each in comparison.cases} for comparison in found]
    cases = []
    for row in rows:
        changes = [by_id.get(row.case.id) for by_id in by_run]
        base = next((each.base_ns for each in changes if each), None)
        centres = [base, *(each.new_ns if each else None for each in changes)]
        cases.append(
            {
                "sides": [side.of(row.case.id, centre) for side, centre in zip(sides, centres, strict=True)],
                "changes": [None if each is None else _change(each, texts) for each in changes],
            }
        )
    named = [[column.text, fmt.line(column.run.id), fmt.moment(column.run.started_utc)] for column in runs]
    return {"runs": named, "texts": list(texts.places), "cases": cases}


class _Sides:
    """One run's cases."""

    def __init__(self, run: Run, texts: Texts) -> None:
        failed_last = sorted(run.measurements, key=lambda m: bool(m.trials) and m.verdict.word in FAILED)
        self.by_id = {m.case.id: m for m in failed_last}
        self.reference_mhz = reference_clock_mhz(run.measurements)
        self.texts = texts

    def of(self, case_id: str, centre: Interval | None) -> dict[str, Any] | None:
        """A case's side; None where the run has no such case."""
        measurement = self.by_id.get(case_id)
        if measurement is None:
            return None
        facts = [*_figures(measurement, centre), *_device(measurement, self.reference_mhz)]
        return {
            "centre": [_rounded(ns) for ns in (centre.estimate, centre.low, centre.high)] if centre else None,
            "trials": [_quantiles(trial) for trial in measurement.trials if trial.samples_ns] if centre else [],
            "facts": [[self.texts.place(what), self.texts.place(value)] for what, value in facts],
        }


def _change(change: CaseChange, texts: Texts) -> list[Any]:
    ratio, said = change.ratio, ""
    if ratio:
        said = f"{ratio_in_words(ratio)}, {probability(change.p)} after Holm's correction, "
        said += f"threshold {limit(change.threshold)}"
        said += f", between boards {limit(change.least)}" if change.least > change.threshold else ""
    remarks = [texts.place(fmt.line(each)) for each in (change.reason, *change.notes) if each]
    return [texts.place(signed(change.change)), said, remarks]


def _quantiles(trial: TrialResult) -> list[float | None]:
    ordered = sorted(trial.samples_ns)
    last = len(ordered) - 1
    return [_rounded(ns) for ns in (statistics.median(ordered), *(ordered[round(q * last)] for q in QUANTILES))]


def _rounded(ns: float | None) -> float | None:
    return None if ns is None else float(f"{ns:.{DIGITS}g}")


def _figures(measurement: Measurement, centre: Interval | None) -> Iterator[tuple[str, str]]:
    """Time, trials and spread; the verdict where there are none."""
    if not measurement.trials or centre is None:
        verdict = measurement.verdict if measurement.trials else None
        word = verdict.word if verdict else Word.NOT_MEASURED
        yield "verdict", f"{word}: {fmt.line(verdict.reason)}" if verdict and verdict.reason else str(word)
        return
    medians = list(trial_medians_ns(measurement).values())
    yield "time", fmt.microseconds_pm(centre)
    yield "trials", str(len(medians))
    yield "samples", f"{len(measurement.samples_ns):,}".replace(",", THIN)
    if len(medians) > 1:
        yield "spread of trials", fmt.percent((max(medians) - min(medians)) / statistics.median(medians))
    launches = {t.launches_per_sample for t in measurement.trials if t.launches_per_sample is not None}
    if launches:
        yield "launches a sample", value_range(list(launches))
    if variants := dict.fromkeys(t.variant for t in measurement.trials if t.variant):
        yield "variant", fmt.name(", ".join(variants))
    if reasons := dict.fromkeys(t.variant_reason for t in measurement.trials if t.variant_reason):
        yield "chosen for", fmt.line("; ".join(reasons))


def _device(measurement: Measurement, reference_mhz: float | None) -> Iterator[tuple[str, str]]:
    """Clock, what held it back, temperature and power."""
    trials = measurement.trials
    states = [state for trial in trials for state in trial.states]
    during = measurement.sample_clocks_mhz
    read = [state.sm_clock_mhz for state in states if state.sm_clock_mhz is not None]
    if during:
        yield "SM clock during samples", _clocks(during)
    elif read:
        yield "SM clock by NVML", _clocks(read)
    yield from _held_back(trials, states, reference_mhz)
    if warm := [state.temperature_c for state in states if state.temperature_c is not None]:
        yield "temperature", f"{value_range(warm)}{fmt.NBSP}°C"
    if power := [state.power_mw / 1e3 for state in states if state.power_mw is not None]:
        yield "board power", f"{value_range(power)}{fmt.NBSP}W"


def _clocks(mhz: Sequence[float]) -> str:
    found, median = value_range(mhz), f"{statistics.median(mhz):.0f}"
    return f"{found}{fmt.NBSP}MHz" + ("" if found == median else f", median {median}")


def _held_back(
    trials: Sequence[TrialResult], states: Sequence[DeviceState], reference_mhz: float | None
) -> Iterator[tuple[str, str]]:
    """Limits by the samples that they mark, and those that NVML named at its readings."""
    marks = [mark for trial in trials if trial.samples_ns for mark in throttled(trial, reference_mhz) if mark]
    samples = sum(len(trial.samples_ns) for trial in trials)
    by_name = Counter(name for mark in marks for name in mark.split(", "))
    for name, held in by_name.most_common():
        why = "a clock below the run's best" if name == SM_CLOCK else reason_in_words(name)
        yield "held back", f"{fmt.out_of(held, samples, 'sample')} by {why}"
    known = [state.clock_event_reasons for state in states if state.clock_event_reasons is not None]
    at = Counter(name for names in known for name in names if name not in HARMLESS_REASONS)
    for name, hits in at.most_common():
        yield "limit at readings", f"{reason_in_words(name)}, {fmt.out_of(hits, len(known), 'reading')}"
