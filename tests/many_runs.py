"""A store of synthetic runs, a night each, with a story that a history must tell; no figure in it was measured.

`python -m tests.many_runs FOLDER --nights 2000` writes one to measure the speed of `python -m reports history` on;
tests write small ones. Only run.json and SHA256SUMS are there: a history reads no samples.
"""

from __future__ import annotations

import argparse
import hashlib
import math
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

import msgspec

from harness.model import Cache, Case, Digest, Environment, Measurement, Problem, Role, Run, TrialResult, Verdict, Word
from tests.sample_run import START, gpu_run, typical_ns

PASSED = Verdict(word=Word.PASSED, max_error=0.2)
KERNELS = ("torch.matmul", "sgemv_k32_f32", "sgemv_k128_f32x4", "sgemv_k16_f32", "read")
WAYS = (("graph", Cache.COLD), ("graph", Cache.HOT), ("async", Cache.COLD), ("async", Cache.HOT))
SAMPLES = 30

Digests = Callable[[Case, int], Sequence[Digest] | Verdict]
"""What a case has in a night: a digest a trial, or why it has none."""


def many_cases(count: int) -> list[Case]:
    """The first `count` cases of a large suite."""
    shapes = [(256 * 2 ** (i % 8), 16 * 4 ** (i % 5)) for i in range(40)]
    return [
        Case(
            kernel=kernel,
            role=Role.LIMIT if kernel == "read" else Role.GEMV,
            problem=Problem(m=m, k=k),
            timer=timer,
            cache=cache,
        )
        for m, k in shapes
        for timer, cache in WAYS
        for kernel in KERNELS
    ][:count]


def case(kernel: str = "torch.matmul", timer: str = "graph", m: int = 1024) -> Case:
    """One of a small suite."""
    role = Role.LIMIT if kernel == "read" else Role.GEMV
    return Case(kernel=kernel, role=role, problem=Problem(m=m, k=128), timer=timer, cache=Cache.COLD)


def around(centre_ns: float, *, held_back: int = 0, spread: float = 1e-3, trials: int = 5) -> tuple[Digest, ...]:
    """Trials whose medians lie evenly around `centre_ns`, which is their geometric centre."""
    places = [2 * i / (trials - 1) - 1 if trials > 1 else 0.0 for i in range(trials)]
    return tuple(Digest(count=SAMPLES, median_ns=centre_ns * (1 + spread) ** at, throttled=held_back) for at in places)


def night_run(night: int, cases: Iterable[Case], digests: Digests, **values: str | float | bool | None) -> Run:
    """The run of a night; `values` are of its environment."""
    sample = gpu_run(shapes=((64, 64),), trials=1, samples=2)
    when = START + timedelta(days=night)
    environment = Environment(
        values={**sample.environment.values, "git_commit": "0" * 40, "git_dirty": False, **values},
        unknown=sample.environment.unknown,
    )
    return replace(
        sample,
        id=f"{when:%Y%m%dT%H%M%SZ}-nvidia-h200-{night:06x}",
        started_utc=when.isoformat(),
        finished_utc=(when + timedelta(minutes=9)).isoformat(),
        environment=environment,
        measurements=tuple(Measurement(case=each, trials=_trials(digests(each, night))) for each in cases),
    )


def _trials(found: Sequence[Digest] | Verdict) -> tuple[TrialResult, ...]:
    if isinstance(found, Verdict):
        return (TrialResult(trial=0, verdict=found),)
    return tuple(
        TrialResult(trial=i, verdict=PASSED, launches_per_sample=1200, operand_sets=400, stopped="precise", digest=each)
        for i, each in enumerate(found)
    )


def write(root: Path, run: Run) -> Path:
    """Publish a run without samples; its folder."""
    folder = root / run.id
    folder.mkdir(parents=True)
    text = msgspec.json.format(msgspec.json.encode(run.to_dict()), indent=1)
    (folder / "run.json").write_bytes(text)
    (folder / "SHA256SUMS").write_text(f"{hashlib.sha256(text).hexdigest()}  run.json\n", encoding="utf-8")
    return folder


@dataclass(frozen=True, kw_only=True)
class Story:
    """A long one: a driver, a torch, two commits and last night each make some cases slower or faster."""

    nights: int
    trials: int

    def at(self, share: float) -> int:
        """The night when this share of all has passed."""
        return int(self.nights * share)

    def level(self, each: Case, night: int) -> float:
        """How much longer than usual a case takes."""
        driver, torch, commit, fixed = map(self.at, (0.35, 0.6, 0.8, 0.9))
        effects = (
            (night >= driver and each.kernel == "torch.matmul" and each.timer == "async", 1.06),
            (night >= torch and each.kernel == "torch.matmul" and each.problem.k == 1024, 0.9),
            (commit <= night < fixed and each.kernel == "sgemv_k16_f32", 1.15),
            (night >= fixed and each.kernel == "sgemv_k32_f32" and each.problem.m >= 8192, 1.035),
            (night == self.nights - 1 and each.kernel == "sgemv_k128_f32x4" and each.problem.m == 4096, 1.05),
        )
        return math.prod(factor for holds, factor in effects if holds)

    def digests(self, each: Case, night: int) -> Sequence[Digest] | Verdict:
        """What a case has in a night; now and then it is wrong, held back, or disturbed by somebody else."""
        luck = random.Random(f"{each.id}/{night}")  # noqa: S311 - wanted: the same numbers every time
        if each.kernel == "sgemv_k16_f32" and each.problem.k == 4096 and luck.random() < 0.01:
            return Verdict(word=Word.WRONG, reason="integers: row 3 is 16776192, wanted 16777216")
        wobble = 0.012 if each.timer == "async" else 0.002
        held_back = luck.randrange(1, SAMPLES) if each.problem.m >= 16384 and luck.random() < 0.2 else 0
        disturbed = (1.02 if held_back else 1) * (1.3 if luck.random() < 0.002 else 1)
        centre = typical_ns(each) * self.level(each, night) * luck.gauss(1, wobble) * disturbed
        medians = (round(centre * luck.gauss(1, wobble / 2), 3) for _ in range(self.trials))
        return tuple(Digest(count=SAMPLES, median_ns=ns, throttled=held_back) for ns in medians)

    def values(self, night: int) -> dict[str, str]:
        """What the environment has in a night."""
        commit = "slow" if night == self.at(0.8) else str(night // 3)
        return {
            "driver_version": "580.159.04" if night < self.at(0.35) else "590.44.01",
            "torch_version": "2.11.0+cu130" if night < self.at(0.6) else "2.12.0+cu130",
            "git_commit": hashlib.sha256(commit.encode()).hexdigest()[:40],
        }


def write_story(root: Path, *, nights: int, cases: int, trials: int) -> None:
    """A store of `Story`."""
    told, measured = Story(nights=nights, trials=trials), many_cases(cases)
    for night in range(nights):
        write(root, night_run(night, measured, told.digests, **told.values(night)))


def main(arguments: Sequence[str] | None = None) -> None:
    """Write a store of `Story`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--nights", type=int, default=2000)
    parser.add_argument("--cases", type=int, default=300)
    parser.add_argument("--trials", type=int, default=5)
    options = parser.parse_args(arguments)
    write_story(options.folder, nights=options.nights, cases=options.cases, trials=options.trials)


if __name__ == "__main__":
    main()
