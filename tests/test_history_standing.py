"""harness.history.standing: what is said of the newest figures, since when, and how seldom without cause."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from harness.compare import compare
from harness.comparison.records import Change
from harness.history.devices import device, read_history
from harness.history.digests import PastRun
from harness.history.standing import Standing, standings, step
from harness.model import Case, Digest, Measurement, TrialResult, Verdict, Word
from harness.store import Store, load
from tests.many_runs import Digests, around, case, many_cases, night_run, write
from tests.quiet_nights import WOBBLE, WRONG, A, B, device_of, published, steady
from tests.sample_run import gpu_run


def standing_of(root: Path, nights: int, digests: Digests) -> Standing:
    """Of the one case of a store."""
    (found,) = standings(device_of(root, nights, [A], digests))
    return found


class TestStanding:
    """The newest figure against the previous one and the best."""

    def test_newest_previous_and_best(self, tmp_path: Path) -> None:
        """900 ns in the second of five nights is the best; the last is 8 % above the one before."""
        centres = (1000.0, 900.0, 1000.0, 1000.0, 1080.0)
        found = standing_of(tmp_path, 5, lambda _, night: around(centres[night]))
        assert (found.newest, found.previous, found.best) == (4, 3, 1)
        assert found.against_previous.change is Change.SLOWER
        assert found.against_best.change is Change.SLOWER
        assert found.against_previous.ratio is not None
        assert found.against_previous.ratio.estimate == pytest.approx(1.08)
        assert found.against_best.ratio is not None
        assert found.against_best.ratio.estimate == pytest.approx(1.2)
        assert found.against_previous.new_ns is not None
        assert found.against_previous.new_ns.estimate == pytest.approx(1080.0)

    def test_same_words_as_compare(self, tmp_path: Path) -> None:
        """Word, ratio, interval and p of every case are those of `compare` on the whole runs."""
        base = gpu_run(samples=9)
        factors = {"sgemv_k32_f32": 1.2, "read": 1.05, "torch.matmul": 0.97, "sgemv_k128_f32x4": 1.004}

        def slower(m: Measurement) -> Measurement:
            factor = factors.get(m.case.kernel, 1.0)
            times = [tuple(ns * factor for ns in t.samples_ns) for t in m.trials]
            return replace(m, trials=tuple(replace(t, samples_ns=ns) for t, ns in zip(m.trials, times, strict=True)))

        new = replace(base, id=f"{base.id}-new", measurements=tuple(map(slower, base.measurements)))
        folders = [published(tmp_path, run) for run in (base, new)]
        wanted = {each.case: each for each in compare(*map(load, folders)).cases}
        (device,) = read_history(Store(tmp_path)).devices
        found = {each.case: each.against_previous for each in standings(device)}
        assert len(found) > 40
        for each, change in found.items():
            assert (change.change, change.ratio, change.new_ns) == (
                wanted[each].change,
                wanted[each].ratio,
                wanted[each].new_ns,
            )
        assert {change.change for change in found.values()} >= {Change.SLOWER, Change.FASTER, Change.FAILED}

    def test_one_trial_is_never_slower(self, tmp_path: Path) -> None:
        """Two values alone cannot tell, however far apart."""
        found = standing_of(tmp_path, 2, lambda _, night: around((1000.0, 2000.0)[night], trials=1))
        assert found.against_previous.change is Change.AMBIGUOUS
        assert found.against_previous.reason == "one trial on a side gives no interval"
        assert found.against_best.change is Change.AMBIGUOUS

    def test_another_board_is_allowed_for(self, tmp_path: Path) -> None:
        """A step of 1.1 % between two runs of one board is one; between two boards it may be theirs."""
        quiet = (0.0, 0.0005, -0.0005, 0.0002, -0.0002)

        def told(_: Case, night: int) -> Sequence[Digest]:
            return [
                replace(each, median_ns=(1000.0, 1011.0)[night] * (1 + q))
                for each, q in zip(around(1.0), quiet, strict=True)
            ]

        words = []
        for second in ("GPU-a", "GPU-b"):
            root = tmp_path / second
            for night, board in enumerate(("GPU-a", second)):
                write(root, night_run(night, (case(),), told, gpu_uuid=board))
            (device,) = read_history(Store(root)).devices
            (found,) = standings(device)
            words.append(found.against_previous.change)
        assert words == [Change.SLOWER, Change.AMBIGUOUS]

    def test_first_run(self, tmp_path: Path) -> None:
        """Nothing to hold it against."""
        found = standing_of(tmp_path, 1, steady)
        assert (found.newest, found.previous, found.best, found.began) == (0, None, None, None)
        assert found.against_previous.change is Change.NEW

    def test_usual_step_is_marked(self, tmp_path: Path) -> None:
        """The word is `compare`'s; that runs always differ as much is said beside it."""

        def unsteady(_: Case, night: int) -> Sequence[Digest]:
            return around(1000.0 * (1.03 if night % 2 else 1.0), spread=1e-4)

        found = standing_of(tmp_path, 14, unsteady)
        assert found.against_previous.change is Change.SLOWER
        assert found.usual_step
        assert found.noise == pytest.approx(math.log(1.03) / statistics.NormalDist().inv_cdf(0.75) / math.sqrt(2), 1e-3)

    def test_unusual_step_is_not(self, tmp_path: Path) -> None:
        """3 % are much for a case that moves by 0.2 %."""

        def stepped(each: Case, night: int) -> Sequence[Digest]:
            return around(1030.0, spread=1e-4) if night == 14 else steady(each, night)

        found = standing_of(tmp_path, 15, stepped)
        assert found.against_previous.change is Change.SLOWER
        assert not found.usual_step

    def test_luck_of_the_best(self, tmp_path: Path) -> None:
        """Of many runs that wander by 1 % one lies 2.5 % lower and those around it do not: no `slower`."""
        offsets = (0.0, 0.012, -0.01, 0.008, -0.012)

        def wandering(_: Case, night: int) -> Sequence[Digest]:
            return around(1000.0 * (1 + (-0.025 if night == 7 else offsets[night % 5])), spread=1e-4)

        found = standing_of(tmp_path, 31, wandering)
        assert found.best == 7
        assert found.against_best.p is not None
        assert found.against_best.p < 1e-3
        assert found.against_best.change is Change.AMBIGUOUS
        assert found.against_best.reason == "the best was a lucky run: those around it were no faster"

    def test_few_runs_pay_for_the_choice(self, tmp_path: Path) -> None:
        """Chosen from three, its p is three times that of the pair."""
        centres = (1000.0, 1010.0, 1005.0, 1030.0)
        found = standing_of(tmp_path, 4, lambda _, night: around(centres[night], spread=3e-3))
        alone = standing_of(tmp_path / "pair", 2, lambda _, night: around(centres[3 * night], spread=3e-3))
        assert found.best == 0
        assert alone.against_previous.p is not None
        assert found.against_best.p == pytest.approx(3 * alone.against_previous.p)

    def test_failure_began(self, tmp_path: Path) -> None:
        """Its unbroken row of failures, not an earlier lone one."""

        def digests(each: Case, night: int) -> Sequence[Digest] | Verdict:
            return WRONG if night in (2, 7, 8, 9) else steady(each, night)

        found = standing_of(tmp_path, 10, digests)
        assert found.against_previous.change is Change.FAILED
        assert (found.newest, found.previous, found.began) == (9, 6, 7)

    @pytest.mark.parametrize("outlier", [None, 3, 15, 18, 25])
    def test_slower_began(self, tmp_path: Path, outlier: int | None) -> None:
        """A level 5 % higher from the 21st of 30 nights on; a night in which a stranger ran changes nothing."""

        def digests(each: Case, night: int) -> Sequence[Digest]:
            if night == outlier:
                return around(1400.0)
            return around(1050.0 * (1 + WOBBLE[night % 5])) if night >= 20 else steady(each, night)

        found = standing_of(tmp_path, 30, digests)
        assert found.against_previous.change is Change.SAME
        assert found.against_best.change is Change.SLOWER
        assert found.began == 20

    def test_case_that_the_newest_run_lacks(self, tmp_path: Path) -> None:
        """It stands as it was measured last."""
        for night in range(3):
            write(tmp_path, night_run(night, [A, B] if night < 2 else [B], steady))
        (device,) = read_history(Store(tmp_path)).devices
        found = {each.case: each for each in standings(device)}
        assert (found[A].newest, found[A].previous) == (1, 0)
        assert (found[B].newest, found[B].previous) == (2, 1)

    def test_trial_that_failed_costs_the_run(self, tmp_path: Path) -> None:
        """One wrong trial of five is a wrong kernel, as everywhere."""
        run = night_run(1, [A], steady)
        (measurement,) = run.measurements
        trials = (*measurement.trials[:4], TrialResult(trial=4, verdict=WRONG))
        write(tmp_path, night_run(0, [A], steady))
        write(tmp_path, replace(run, measurements=(replace(measurement, trials=trials),)))
        (device,) = read_history(Store(tmp_path)).devices
        (found,) = standings(device)
        assert np.isnan(device.centres_ns[1, 0])
        assert found.against_previous.change is Change.FAILED
        assert found.against_previous.reason == f"wrong: {WRONG.reason}"


class TestFalseAlarms:
    """A store of 60 nights × 300 cases in which runs differ by 0.5 % more than trials within one do."""

    def standings(self, seed: int, factor: float) -> tuple[Standing, ...]:
        """The first ten cases take `factor` times as long in the last night."""
        luck, cases, runs = np.random.default_rng(seed), many_cases(300), []
        for night in range(60):
            of_run = luck.normal(size=(300, 1)) * 0.005
            medians_ns = 1000 * np.exp(of_run + luck.normal(size=(300, 5)) * 0.0015)
            medians_ns[:10] *= factor if night == 59 else 1.0
            passed = (Verdict(word=Word.PASSED),) * 300
            run = night_run(night, [], steady)
            places, held_back = np.arange(300), np.zeros(300)
            runs.append(PastRun(run=run, places=places, medians_ns=medians_ns, held_back=held_back, verdicts=passed))
        return standings(device(runs, cases))

    @pytest.mark.parametrize("seed", [1, 2, 3])
    def test_nothing_changed(self, seed: int) -> None:
        """`compare` knows one run's trials alone and calls a dozen slower; hardly one of them stands out."""
        found = self.standings(seed, 1.0)
        slower = [each for each in found if each.against_previous.change is Change.SLOWER]
        assert len(slower) > 10
        assert sum(not each.usual_step for each in slower) <= 1
        assert sum(each.against_best.change is Change.SLOWER for each in found) <= 3

    def test_what_changed_is_found(self) -> None:
        """6 % stand out from it, against the run before and against the best."""
        found = self.standings(1, 1.06)
        assert all(each.against_previous.change is Change.SLOWER and not each.usual_step for each in found[:10])
        assert all(each.against_best.change is Change.SLOWER for each in found[:10])
        assert [each.began for each in found[:10]] == [59] * 10


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        ([1.0, 2.0], 1),
        ([1.0, 1.0, 1.0, 2.0, 2.0], 3),
        ([1.0, 1.0, 9.0, 1.0, 2.0, 2.0], 4),
        ([1.0, 1.0, 1.0, 2.0, 1.0, 2.0, 2.0, 2.0], 5),
        ([0.2, 1.0, 1.1, 1.0, 0.9, 1.0, 2.0, 2.1, 1.9, 2.0], 6),
        ([1.0] * 10 + [1.15] * 12 + [1.0] * 10 + [1.05], 32),
        ([1.0] * 10 + [2.0] * 6 + [1.0] * 4 + [2.0] * 6, 10),
    ],
)
def test_step(values: list[float], wanted: int) -> None:
    """Worked out by hand: where most lie nearer to the new level, whatever came and went before, or for four runs."""
    assert step(np.array(values)) == wanted
