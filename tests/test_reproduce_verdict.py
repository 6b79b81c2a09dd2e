"""What it means that a run was reproduced, on runs whose every trial is known."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from harness.compare import compare
from harness.comparison.request import Compared
from harness.model import Cache, Case, Check, Measurement, Problem, Role, Run, TrialResult, Verdict, Word
from harness.reproduce.session import AGAINST
from harness.reproduce.verdict import verdict
from tests.sample_run import gpu_run

QUIET = (0.0, 0.001, -0.001, 0.0005, -0.0005)
PASSED = Verdict(word=Word.PASSED)
WRONG = Verdict(word=Word.WRONG, reason="row 3")


def case(kernel: str) -> Case:
    return Case(kernel=kernel, role=Role.GEMV, problem=Problem(m=64, k=64), timer="graph", cache=Cache.COLD)


def timed(kernel: str, ns: float, offsets: tuple[float, ...] = QUIET) -> Measurement:
    trials = (TrialResult(trial=i, verdict=PASSED, samples_ns=(ns * (1 + each),)) for i, each in enumerate(offsets))
    return Measurement(case=case(kernel), trials=tuple(trials))


def judged(kernel: str, found: Verdict) -> Measurement:
    return Measurement(case=case(kernel), trials=(TrialResult(trial=0, verdict=found),))


def run_of(*measurements: Measurement, **values: Any) -> Run:
    plain = gpu_run(shapes=((64, 64),), kernels={}, trials=1, samples=2)
    environment = replace(plain.environment, values={**plain.environment.values, **values})
    return replace(plain, measurements=measurements, environment=environment)


NOISY = (0.0, 0.05, -0.05, 0.03, -0.04)
BASE = run_of(timed("a", 1000.0), timed("b", 2000.0))


@pytest.mark.parametrize(
    ("base", "new", "code", "line"),
    [
        (BASE, BASE, 0, "reproduced: 2 cases compared, none known to be slower or faster by more than 1 % (2 same);"),
        (BASE, run_of(timed("a", 1030.0), timed("b", 1900.0)), 1,
         "not reproduced: 1 of 2 cases slower, 1 faster (a 64×64 graph cold 1.030×; b 64×64 graph cold 0.950×)"),
        (BASE, run_of(timed("a", 1000.0)), 1, "not reproduced: 1 of 2 cases lost (b 64×64 graph cold)"),
        (BASE, run_of(timed("a", 1000.0), judged("b", WRONG)), 5, "not reproduced: 1 of 2 cases failed (b 64×64 graph"),
        (run_of(timed("a", 1000.0), judged("b", WRONG)), run_of(timed("a", 1000.0), judged("b", WRONG)), 5,
         "not reproduced: 1 of 2 cases failed (b 64×64 graph cold); what failed had failed in the run too"),
        (run_of(timed("a", 1000.0), judged("b", WRONG)), BASE, 1,
         "not reproduced: 1 of 1 case failed in the run alone (b 64×64 graph cold)"),
        (BASE, run_of(timed("a", 1000.0, NOISY), timed("b", 2000.0)), 0,
         "reproduced: 2 cases compared, none known to be slower or faster by more than 1 % (1 same, 1 ambiguous); "),
        (run_of(timed("a", 1000.0, (0.0,))), run_of(timed("a", 1000.0, (0.0,))), 3,
         "cannot be told: 1 case compared, by one trial a side, which gives no interval; take a run of more trials"),
        (run_of(timed("a", 1000.0, NOISY)), run_of(timed("a", 1000.0, NOISY)), 3,
         "cannot be told: all of 1 case ambiguous; the widest 95 % interval reaches "),
        (BASE, run_of(timed("c", 1000.0)), 3, "cannot be told: no case has figures in both runs"),
        (BASE, run_of(timed("a", 1000.0), ecc=False), 3, "cannot be told: other ECC: off against on"),
        (BASE, run_of(timed("a", 1000.0), timed("b", 2000.0), timed("c", 1.0), driver_version="590.1"), 0,
         "reproduced: 2 cases compared, "),
    ],
    ids=["same", "slower and faster", "lost", "failed", "failed again", "right now", "one ambiguous", "one trial",
         "noise", "nothing in both", "not comparable", "more cases, other driver"],
)  # fmt: skip
def test_what_reproduced_means(base: Run, new: Run, code: int, line: str) -> None:
    """A case is the same and nothing speaks against it; every other outcome has its own word and code."""
    given = verdict(Compared(base=base, news=(new,), found=(compare(base, new),), fails=AGAINST))
    assert given.line.startswith(line)
    assert given.code == code


def test_a_selfcheck_that_fails_now_is_told() -> None:
    """Code 5, though every case is as it was; if it had failed before, it is as it was too."""
    bad = Check(name="length", kernel="a", problem=Problem(m=8, k=8), passed=False)
    for before, code in (((replace(bad, passed=True),), 5), ((bad,), 0)):
        base, new = replace(BASE, selfcheck=before), replace(BASE, selfcheck=(bad,))
        given = verdict(Compared(base=base, news=(new,), found=(compare(base, new),), fails=AGAINST))
        assert given.code == code
        assert ("the selfcheck failed, and had not in the run" in given.line) == (code == 5)
