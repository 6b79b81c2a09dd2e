"""harness.history.digests: a run's figures from run.json alone, and what cannot be read named in a line."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.errors import Exit
from harness.history.devices import read_history
from harness.history.digests import Cases, PastRun, read
from harness.model import Digest, Word
from harness.stats import trial_medians_ns
from harness.store import Store
from tests.many_runs import around, night_run, write
from tests.quiet_nights import A, B, published, steady
from tests.sample_run import gpu_run
from tests.sample_selfcheck import selfcheck_run


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
