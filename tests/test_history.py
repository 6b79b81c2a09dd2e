"""A store over time: what is read, which runs belong together, and what is said of the newest figures."""

from __future__ import annotations

import hashlib
import json
import math
import statistics
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.compare import compare
from harness.comparison.records import Change
from harness.errors import Exit
from harness.history.devices import Device, device, read_history
from harness.history.digests import Cases, PastRun, read
from harness.history.standing import Standing, standings, step
from harness.model import Case, Digest, Measurement, Run, TrialResult, Verdict, Word
from harness.stats import log_t_interval, trial_medians_ns
from harness.store import Store, load
from harness.store.draft import write_run
from tests.many_runs import Digests, around, case, many_cases, night_run, write
from tests.sample_run import cuda_build, gpu_run
from tests.sample_selfcheck import selfcheck_run

A, B, C = case(), case("sgemv_k32_f32"), case("sgemv_k16_f32")
WRONG = Verdict(word=Word.WRONG, reason="integers: row 3 is 5, wanted 6")
WOBBLE = (0.0, 0.001, -0.001, 0.002, -0.002)
"""What a quiet case does from night to night, as a fraction."""


def steady(each: Case, night: int) -> Sequence[Digest]:  # noqa: ARG001 - every case does the same
    return around(1000.0 * (1 + WOBBLE[night % 5]))


def device_of(root: Path, nights: int, cases: Sequence[Case], digests: Digests) -> Device:
    """The one device of a store of `nights` runs."""
    for night in range(nights):
        write(root, night_run(night, cases, digests))
    (found,) = read_history(Store(root)).devices
    return found


def standing_of(root: Path, nights: int, digests: Digests) -> Standing:
    """Of the one case of a store."""
    (found,) = standings(device_of(root, nights, [A], digests))
    return found


def published(root: Path, run: Run) -> Path:
    """A run with its samples."""
    folder = root / run.id
    folder.mkdir(parents=True)
    write_run(folder, run)
    return folder


def rewrite(folder: Path, change: Any) -> None:
    """Change a published run.json as its writer would have: with its sum."""
    data = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    change(data)
    text = json.dumps(data).encode()
    (folder / "run.json").write_bytes(text)
    (folder / "SHA256SUMS").write_text(f"{hashlib.sha256(text).hexdigest()}  run.json\n")


def by_case(past: PastRun, cases: Cases) -> dict[str, tuple[list[float], float, Word]]:
    """(trial medians, share held back, verdict) by case id."""
    rows = zip(past.places, past.medians_ns, past.held_back, past.verdicts, strict=True)
    return {
        cases.known[place].id: ([ns for ns in medians if not math.isnan(ns)], held_back, verdict.word)
        for place, medians, held_back, verdict in rows
    }


class TestReading:
    """One run, from run.json alone."""

    def test_medians_are_those_of_the_samples(self, tmp_path: Path) -> None:
        """Every case's trial medians as `stats` has them; none where a trial failed."""
        run = gpu_run(samples=7)
        cases = Cases()
        found = by_case(read(published(tmp_path, run), cases), cases)
        assert found.keys() == {m.case.id for m in run.measurements}
        for m in run.measurements:
            assert found[m.case.id][0] == list(trial_medians_ns(m).values())
            assert found[m.case.id][2] is m.verdict.word
        assert sum(bool(medians) for medians, _, _ in found.values()) > 40
        assert {word for _, _, word in found.values()} >= {Word.WRONG, Word.CRASHED, Word.UNSUPPORTED}

    def test_run_from_before_digests(self, tmp_path: Path) -> None:
        """It is loaded whole and gives the same figures; without its samples it is damaged."""

        def old(data: dict[str, Any]) -> None:
            for trial in (trial for m in data["measurements"] for trial in m["trials"]):
                del trial["digest"]

        folder = published(tmp_path, gpu_run(samples=7))
        fast, slow = Cases(), Cases()
        found = read(folder, fast)
        rewrite(folder, old)
        again = read(folder, slow)
        assert by_case(again, slow) == by_case(found, fast)
        assert again.run == replace(found.run, id=again.run.id)
        (folder / "samples.parquet").unlink()
        (unreadable,) = read_history(Store(tmp_path)).unreadable
        assert "samples.parquet: No such file" in str(unreadable)

    def test_share_held_back(self, tmp_path: Path) -> None:
        """10 of 30 samples in each of four trials, none in the fifth: 40 of 150."""
        some = (*around(1000.0, held_back=10, trials=4), Digest(count=30, median_ns=1000.0, throttled=0))
        folder = write(tmp_path, night_run(0, [A], lambda *_: some))
        assert read(folder, Cases()).held_back.tolist() == [pytest.approx(40 / 150)]

    def test_timers_that_check_others_are_left_out(self, tmp_path: Path) -> None:
        """As in a comparison."""
        cases = Cases()
        past = read(published(tmp_path, selfcheck_run(shapes=((1024, 16),), samples=4)), cases)
        timers = {cases.known[place].timer for place in past.places}
        assert "graph" in timers
        assert not {timer for timer in timers if timer.startswith(("graph-", "event-"))}

    @pytest.mark.parametrize("median_ns", [0.0, -1.0, 1e30])
    def test_median_that_is_no_time(self, tmp_path: Path, median_ns: float) -> None:
        """No figure, with a reason; another trial's good median does not save it."""
        digests = (Digest(count=3, median_ns=median_ns, throttled=0), *around(1000.0, trials=2))
        past = read(write(tmp_path, night_run(0, [A], lambda *_: digests)), Cases())
        assert np.isnan(past.medians_ns).all()
        assert "wanted finite times above 0" in str(past.verdicts[0].reason)

    def test_case_that_is_there_twice(self, tmp_path: Path) -> None:
        """Which of both is meant cannot be known."""
        past = read(write(tmp_path, night_run(0, [A, A, B], steady)), Cases())
        assert past.verdicts[0].reason == "twice in this run"
        assert np.isnan(past.medians_ns[0]).all()
        assert not np.isnan(past.medians_ns[1]).any()


class TestDamage:
    """What cannot be read is named in a line, and the others are read."""

    @pytest.mark.parametrize(
        ("harm", "said"),
        [
            (lambda f: (f / "run.json").write_text("{}"), "run.json: changed since it was published"),
            (lambda f: (f / "run.json").unlink(), "run.json: No such file or directory"),
            (lambda f: (f / "SHA256SUMS").unlink(), "SHA256SUMS: No such file or directory"),
            (lambda f: (f / "SHA256SUMS").write_text("abc  other\n"), "run.json: not listed in SHA256SUMS"),
            (lambda f: rewrite(f, lambda data: data.update(schema_version=99)), "schema version 99, wanted at most"),
            (lambda f: rewrite(f, lambda data: (data.clear(), data.update(schema_version=99))), "schema version 99"),
            (
                lambda f: rewrite(f, lambda data: data.pop("options")),
                "damaged: Object missing required field",
            ),
            (
                lambda f: rewrite(f, lambda data: data["measurements"][0]["case"].pop("role")),
                "damaged: Object missing",
            ),
        ],
    )
    def test_one_line_each(self, tmp_path: Path, harm: Any, said: str) -> None:
        """The file's path and what is wrong with it."""
        folders = [write(tmp_path, night_run(night, [A], steady)) for night in range(3)]
        harm(folders[1])
        found = read_history(Store(tmp_path))
        (error,) = found.unreadable
        assert error.code is Exit.RUN
        assert folders[1].name in str(error)
        assert said in str(error)
        assert "\n" not in str(error)
        assert [past.run.id for past in found.devices[0].runs] == [folders[0].name, folders[2].name]

    @pytest.mark.parametrize("text", [b"\xff{", b"", b"[]", b'{"id": "\xff"}', b'{"x": ' + b"[" * 100_000])
    def test_text_that_is_no_run(self, tmp_path: Path, text: bytes) -> None:
        """Its sum may be right all the same."""
        folder = write(tmp_path, night_run(0, [A], steady))
        (folder / "run.json").write_bytes(text)
        (folder / "SHA256SUMS").write_text(f"{hashlib.sha256(text).hexdigest()}  run.json\n")
        (error,) = read_history(Store(tmp_path)).unreadable
        assert "run.json: damaged: " in str(error)
        assert "\n" not in str(error)


class TestDevices:
    """Which runs belong together."""

    def ids(self, root: Path, *environments: dict[str, Any]) -> list[list[int]]:
        """The nights of each device, for runs with these environments night by night."""
        for night, values in enumerate(environments):
            write(root, night_run(night, [A], steady, **values))
        found = read_history(Store(root)).devices
        return [[int(past.run.id[-6:], 16) for past in device.runs] for device in found]

    def test_models_are_not_mixed(self, tmp_path: Path) -> None:
        """Two models in turns are two devices; the one that was measured last comes first."""
        a100 = {"gpu_name": "NVIDIA A100", "device_name": "NVIDIA A100"}
        assert self.ids(tmp_path, {}, a100, {}, a100, {}) == [[0, 2, 4], [1, 3]]

    @pytest.mark.parametrize(
        "other", [{"ecc": False}, {"mig": True}, {"sm_count": 114}, {"l2_bytes": 1}, {"allow_tf32": True}]
    )
    def test_facts_that_must_match(self, tmp_path: Path, other: dict[str, Any]) -> None:
        """One of them parts runs of one model."""
        assert self.ids(tmp_path, {}, other, {}) == [[0, 2], [1]]

    def test_facts_that_may_differ(self, tmp_path: Path) -> None:
        """Driver, torch, this very GPU and the host are what a history is about."""
        other = {"driver_version": "600", "torch_version": "3", "gpu_uuid": "GPU-1", "hostname": "b", "git_commit": "x"}
        assert self.ids(tmp_path, {}, other) == [[0, 1]]

    def test_unknown_forbids_nothing(self, tmp_path: Path) -> None:
        """As in a comparison; but it does not join what differs on either side of it."""
        assert self.ids(tmp_path, {"ecc": True}, {"ecc": None}, {"ecc": False}, {"ecc": True}) == [[0, 1, 3], [2]]

    def test_unknown_model_is_its_own(self, tmp_path: Path) -> None:
        """A run of who knows what is held against none of a known model."""
        nameless = {"gpu_name": None, "device_name": None}
        assert self.ids(tmp_path, {}, nameless, nameless) == [[1, 2], [0]]

    def test_newest_runs_alone(self, tmp_path: Path) -> None:
        """`last` counts runs of the store."""
        device_of(tmp_path, 5, [A], steady)
        (found,) = read_history(Store(tmp_path), last=2).devices
        assert [int(past.run.id[-6:], 16) for past in found.runs] == [3, 4]


class TestFigures:
    """A device's arrays."""

    def test_centres_are_those_of_stats(self, tmp_path: Path) -> None:
        """Centre and half-width of every case as `log_t_interval` has them, with 1, 2 and 5 trials."""
        medians = {A: (1000.0,), B: (1000.0, 1010.0), C: (900.0, 1000.0, 1010.0, 1020.0, 1500.0)}

        def digests(each: Case, _night: int) -> list[Digest]:
            return [Digest(count=3, median_ns=ns, throttled=0) for ns in medians[each]]

        device = device_of(tmp_path, 1, [A, B, C], digests)
        for place, each in enumerate(device.cases):
            wanted = log_t_interval([math.log(ns) for ns in medians[each]])
            half = math.nan if wanted.half_width is None else wanted.half_width
            assert device.centres_ns[0, place] == pytest.approx(wanted.estimate, rel=1e-12)
            assert device.half_widths[0, place] == pytest.approx(half, rel=1e-9, nan_ok=True)
        assert math.isnan(device.half_widths[0, 0])

    def test_only_cases_with_something_to_show(self, tmp_path: Path) -> None:
        """A case that was never supported is left out; one that always failed is not."""
        never = Verdict(word=Word.UNSUPPORTED, reason="K=128 is not 16")
        device = device_of(tmp_path, 2, [A, B, C], lambda each, _: {A: around(1.0), B: never, C: WRONG}[each])
        assert device.cases == (A, C)

    def test_changes_stand_at_their_run(self, tmp_path: Path) -> None:
        """Driver at the third run, torch at the fifth, a kernel's code at the fourth; nothing elsewhere."""
        for night in range(6):
            values = {"driver_version": "580" if night < 2 else "590", "torch_version": "2.11" if night < 4 else "2.12"}
            digest = ("1" if night < 3 else "2") * 64
            build = replace(cuda_build(), device_code_sha256={"sgemv_k32_f32.cu:sm_90": digest})
            write(tmp_path, replace(night_run(night, [A, B], steady, **values), builds=(build,)))
        (device,) = read_history(Store(tmp_path)).devices
        found = {run: [each.key for each in changes] for run, changes in enumerate(device.differences) if changes}
        assert found == {2: ["driver_version"], 4: ["torch_version"]}
        assert device.kernel_changes == {A.kernel: {}, B.kernel: {3: "device code changed, source did not"}}


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
