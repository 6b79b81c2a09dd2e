"""The runs of a comparison, each called by what sets it apart from the others: a driver, a torch, a commit, a day."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from harness.model import Run
from reports import format as fmt
from reports.facts import device_name

SHORT_HASH = 7
"""Characters of a commit in a label."""

SHORT_UUID = 12
"""Characters of a GPU's UUID in a label, `GPU-` among them."""


@dataclass(frozen=True, kw_only=True)
class Column:
    """A run with its label."""

    run: Run
    label: tuple[tuple[str, str], ...]
    """(what, value): what sets it apart from the other runs, `driver` first; no two runs have the same."""

    @property
    def text(self) -> str:
        """The label in a line: `driver 580.159.04, 14 May 2026`."""
        return ", ".join(f"{what} {value}".strip() for what, value in self.label)


def columns(runs: Sequence[Run]) -> tuple[Column, ...]:
    """The runs with their labels: the first facts that tell them apart.

    Args:
        runs: the base, then the new ones.
    """
    labels: list[tuple[tuple[str, str], ...]] = [()] * len(runs)
    for what, values in _facts(runs):
        told = [(*label, (what, value)) for label, value in zip(labels, values, strict=True)]
        if len(set(told)) > len(set(labels)):
            labels = told
        if len(set(labels)) == len(runs):
            break
    return tuple(Column(run=run, label=label) for run, label in zip(runs, labels, strict=True))


def _facts(runs: Sequence[Run]) -> Iterator[tuple[str, list[str]]]:
    """What runs may be told apart by, the likeliest question first; the last one always does."""
    yield "", [device_name(run) for run in runs]
    for what, key in (("driver", "driver_version"), ("torch", "torch_version")):
        yield what, _known([run.environment.get(key) for run in runs])
    yield "commit", _known([_commit(run) for run in runs])
    yield "flags", _flags(runs)
    yield "clock locked at", [_locked(run) for run in runs]
    yield "power limit", _known([_power_limit(run) for run in runs])
    yield "", _known([_board(run) for run in runs])
    moments = [fmt.moment(run.started_utc).rpartition(", ") for run in runs]
    yield "", [day or time for day, _, time in moments]
    yield "", [time for _, _, time in moments]
    yield "run", [fmt.name(run.id.rpartition("-")[2]) for run in runs]
    yield "", ["base", *(f"new {place}" for place in range(1, len(runs)))]


def _known(values: Sequence[str | float | None]) -> list[str]:
    return ["unknown" if each is None else fmt.name(str(each)) for each in values]


def _commit(run: Run) -> str | None:
    commit = run.environment.get("git_commit")
    changed = " and changes" if run.environment.get("git_dirty") else ""
    return None if commit is None else f"{str(commit)[:SHORT_HASH]}{changed}"


def _power_limit(run: Run) -> str | None:
    limit_mw = run.environment.get("power_limit_mw")
    return f"{limit_mw / 1e3:g}{fmt.NBSP}W" if isinstance(limit_mw, int | float) else None


def _board(run: Run) -> str | None:
    """Where the runs are of several GPUs of one host."""
    uuid = run.environment.get("gpu_uuid")
    return None if uuid is None else str(uuid)[:SHORT_UUID]


def _locked(run: Run) -> str:
    mhz = run.options.lock_clocks_mhz
    return "nothing" if mhz is None else f"{mhz}{fmt.NBSP}MHz"


def _flags(runs: Sequence[Run]) -> list[str]:
    """Of each run's compiler flags those that not all runs have."""
    sets = [
        tuple(dict.fromkeys(f for build in run.builds if build.target == run.options.device_type for f in build.flags))
        for run in runs
    ]
    return [fmt.name(" ".join(f for f in each if not all(f in other for other in sets))) or "fewer" for each in sets]
