"""Runs of a few cases whose trials are given, to be compared; kept in a store, and compared from a command line."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from harness.__main__ import main
from harness.compare import compare
from harness.comparison.request import Compared
from harness.comparison.text import comparison_text
from harness.model import Cache, Case, Measurement, Problem, Role, Run, TrialResult, Verdict, Word
from harness.store.draft import write_run
from tests.sample_run import gpu_run

PASSED = Verdict(word=Word.PASSED)
QUIET = (0.0, 0.001, -0.001, 0.0005, -0.0005)
"""Five trials: what each is off by, as a fraction."""


def case(
    kernel: str = "mine", m: int = 64, timer: str = "graph", dtype: str = "float32", cache: Cache = Cache.COLD
) -> Case:
    problem = Problem(m=m, k=64, dtype=dtype)
    return Case(kernel=kernel, role=Role.GEMV, problem=problem, timer=timer, cache=cache)


def measured(of: Case, medians_ns: Sequence[float], **more: Any) -> Measurement:
    """One sample a trial, which is its median; `more` goes into every trial."""
    trials = (TrialResult(trial=i, verdict=PASSED, samples_ns=(ns,), **more) for i, ns in enumerate(medians_ns))
    return Measurement(case=of, trials=tuple(trials))


def around(ns: float, offsets: Sequence[float] = QUIET) -> list[float]:
    return [ns * (1 + each) for each in offsets]


def timed(of: Case, ns: float, **more: Any) -> Measurement:
    """Five quiet trials around `ns`."""
    return measured(of, around(ns), **more)


def judged(of: Case, verdict: Word, reason: str = "because") -> Measurement:
    return Measurement(case=of, trials=(TrialResult(trial=0, verdict=Verdict(word=verdict, reason=reason)),))


def run(*measurements: Measurement, **changes: Any) -> Run:
    """A run with only these measurements; `changes` whose names are keys of the environment go there."""
    plain = gpu_run(shapes=((64, 64),), kernels={}, trials=1, samples=2)
    values = {key: changes.pop(key) for key in list(changes) if key in plain.environment.values}
    environment = replace(plain.environment, values={**plain.environment.values, **values})
    return replace(plain, measurements=measurements, environment=environment, **changes)


def publish(root: Path, run_id: str, made: Run) -> Path:
    folder = root / run_id
    folder.mkdir(parents=True)
    write_run(folder, replace(made, id=run_id))
    return folder


def printed(base: Run, new: Run, *, every: bool = False, width: int = 80, colour: bool = False, **more: Any) -> str:
    """As on a terminal of that width; `more` goes to `compare`."""
    console = Console(
        file=io.StringIO(),
        width=width,
        force_terminal=colour,
        color_system="standard" if colour else None,
        highlight=False,
        markup=False,
    )
    found = Compared(base=base, news=(new,), found=(compare(base, new, **more),))
    console.print(comparison_text(found, every=every))
    return console.file.getvalue()  # type: ignore[attr-defined]


class Done:
    """What a command left."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err
        self.lines = [" ".join(line.split()) for line in out.splitlines()]


class Command:
    """`compare` on a store, as in a pipe unless it is said to be on a terminal."""

    def __init__(self, root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self.root, self.capsys, self.monkeypatch = root, capsys, monkeypatch
        monkeypatch.delenv("COLUMNS", raising=False)

    def on_a_terminal(self, columns: int = 80) -> Command:
        """From now on: without colours, of that width."""
        for name, value in {"TERM": "dumb", "COLUMNS": str(columns), "LINES": "50"}.items():
            self.monkeypatch.setenv(name, value)
        self.monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
        return self

    def __call__(self, *arguments: str, root: Path | None = None) -> Done:
        """`compare ARGUMENTS` on the store, or on the one in `root`."""
        self.capsys.readouterr()
        try:
            code = main(["compare", *arguments, "--store", str(root or self.root)])
        except SystemExit as left:  # argparse's own
            code = int(left.code or 0)
        return Done(code, *self.capsys.readouterr())

    def on(self, **runs: Run) -> Done:
        """The first of these runs against the others."""
        for name, made in runs.items():
            publish(self.root, name, made)
        return self(*runs)
