"""harness.comparison.power: the rates of the words, on trials whose truth is known."""

from __future__ import annotations

import math
import random
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from harness.__main__ import main
from harness.commands.power import rows
from harness.comparison.power import LONG_NS, Null, Planted, Power, _Drawing, _sources, power
from harness.comparison.records import Change
from harness.errors import CommandError, Exit
from harness.model import Cache, Case, Measurement, Problem, Role, Run, TrialResult, Verdict, Word
from harness.store import Store
from harness.store.draft import write_run
from tests.sample_run import gpu_run

PLAIN = gpu_run(shapes=((64, 64),), kernels={}, trials=1, samples=2)
TIMES_NS = {64: 2e3, 128: 20e3, 256: 40e3}
"""By m: one case is short, two are long enough to be planted into."""


def run(name: str, *, trials: int = 12, spread: float = 0.002, shift: float = 0.0, seed: int = 0) -> Run:
    """A run whose trials scatter by `spread` around their times, all of it slower by `shift`; fractions."""
    chance = random.Random(seed)  # noqa: S311

    def measurement(m: int, ns: float) -> Measurement:
        case = Case(kernel="mine", role=Role.GEMV, problem=Problem(m=m, k=64), timer="graph", cache=Cache.COLD)
        medians = [ns * math.exp(chance.gauss(math.log1p(shift), spread)) for _ in range(trials)]
        passed = Verdict(word=Word.PASSED)
        return Measurement(
            case=case,
            trials=tuple(TrialResult(trial=i, verdict=passed, samples_ns=(each,)) for i, each in enumerate(medians)),
        )

    options = replace(PLAIN.options, trials=trials)
    return replace(PLAIN, id=name, options=options, measurements=tuple(measurement(*each) for each in TIMES_NS.items()))


QUIET = run("quiet")
OTHER = replace(QUIET.measurements[0], case=replace(QUIET.measurements[0].case, kernel="other"))


def test_nothing_changed_and_nothing_is_said() -> None:
    """Trials of one run, however they are grouped."""
    (null,) = power([QUIET], tables=100, draws=2).nulls
    assert (null.tables, null.cases, null.slower, null.faster, null.named) == (100, 3, 0, 0, {})


def test_what_is_planted_is_found() -> None:
    """3 % in trials that scatter by 0.2 %; of the long cases alone."""
    three, none = power([QUIET], tables=1, draws=20, effects=(0.03, 0.0)).planted
    assert three.one_run
    assert set(three.words) == {m.case.id for m in QUIET.measurements[1:]}
    assert math.exp(sum(map(math.log, QUIET.measurements[1].samples_ns)) / 12) > LONG_NS
    assert three.share(Change.SLOWER) == 1
    assert none.share(Change.SLOWER) == 0
    assert none.share(Change.SAME) > 0.9


def test_two_runs_that_differ_are_told_apart() -> None:
    """Every table of trials from either is `slower` in all cases, and those of one alone are not."""
    found = power([QUIET, run("later", shift=0.05, seed=1)], tables=20, draws=1)
    assert [(null.base, null.new, null.slower, null.faster) for null in found.nulls] == [
        (1, 1, 0, 0),
        (2, 2, 0, 0),
        (1, 2, 20, 0),
    ]
    assert found.nulls[2].named == {m.case.id: 20 for m in QUIET.measurements}


def test_groups_share_no_trial() -> None:
    """And are the same trials in every case: what a process did to one, it did to all."""
    numbered = [replace(m, trials=tuple(replace(t, samples_ns=(t.trial + 1.0,)) for t in m.trials)) for m in
                QUIET.measurements]  # fmt: skip
    (source,) = _sources([replace(QUIET, measurements=tuple(numbered))], 5)
    drawn = _Drawing(trials=5, threshold=0.01, chance=random.Random(0))  # noqa: S311
    for _ in range(50):
        first, *others = drawn.table(source, source)._pairs
        assert len({*first.base, *first.new}) == 10
        assert all((each.base, each.new) == (first.base, first.new) for each in others)


def test_the_same_on_every_call() -> None:
    """Its figures stand in a document."""
    assert power([QUIET], tables=20, draws=3) == power([QUIET], tables=20, draws=3)


def test_shares_by_hand() -> None:
    """3 of 4 and 1 of 4."""
    words = {
        "a": Counter({Change.SLOWER: 3, Change.SAME: 1}),
        "b": Counter({Change.SLOWER: 1, Change.AMBIGUOUS: 3}),
    }
    planted = Planted(effect=0.03, one_run=True, words=words)
    assert planted.draws == 8
    assert planted.share(Change.SLOWER) == 0.5
    assert planted.least(Change.SLOWER) == ("b", 0.25)
    assert planted.most(Change.SAME) == ("a", 0.25)


@pytest.mark.parametrize(
    ("runs", "line"),
    [
        ([run("few", trials=9)], "few: found 9 trials, wanted more: two groups of 5 need 10 trials"),
        ([replace(QUIET, measurements=())], "quiet: found 0 trials"),
        ([QUIET, replace(QUIET, measurements=(OTHER,))], "power: no case has figures in every trial of these runs"),
        ([replace(QUIET, measurements=QUIET.measurements[:1])], "power: no case takes 10 µs or more in these runs"),
    ],
)  # fmt: skip
def test_what_cannot_be_asked(runs: list[Run], line: str) -> None:
    """One line each."""
    with pytest.raises(CommandError) as error:
        power(runs, tables=1, draws=1)
    assert error.value.code is Exit.USAGE
    assert str(error.value).startswith(line)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A line a rate; a wrong number of trials is one line."""
    (tmp_path / "quiet").mkdir()
    write_run(tmp_path / "quiet", QUIET)
    assert main(["power", "quiet", "--store", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert out.startswith("run 1: quiet, 12 trials\n5 against 5 trials")
    assert "nothing changed, run 1" in out
    assert "one case made 3 % slower" in out
    assert main(["power", "quiet", "--store", str(tmp_path), "--trials", "1"]) == 2
    assert capsys.readouterr().err == "--trials: found '1', wanted a whole number from 2 to 1000\n"
    assert main(["power", "quiet", "--store", str(tmp_path), "--trials", "9"]) == 2
    few = "quiet: found 12 trials, wanted more: two groups of 9 need 18 trials\n"
    assert capsys.readouterr() == ("", few)


def test_a_rate_says_of_how_many() -> None:
    """By hand: both words in a row, with the worst case, and what is worst about it."""
    words = {
        "a": Counter({Change.SLOWER: 3, Change.SAME: 1}),
        "b": Counter({Change.SLOWER: 1, Change.AMBIGUOUS: 3}),
    }
    null = Null(base=1, new=2, tables=50, cases=2, slower=1, faster=2, named={"b": 3})
    quiet = Null(base=1, new=1, tables=50, cases=2, slower=0, faster=0, named={})
    planted = Planted(effect=0.03, one_run=True, words=words)
    none = Planted(effect=0.01, one_run=False, words={"b": words["b"]})
    head, *body = rows(Power(trials=5, threshold=0.01, nulls=(quiet, null), planted=(planted, none)))
    assert head == ("5 against 5 trials", "counted", "found", "worst case")
    tables = "tables with any `slower`, any `faster`"
    three, one = "one case made 3 % slower, one run", "one case made 1 % slower, two runs"
    assert body == [
        ("nothing changed, run 1", tables, "0, 0 of 50", "none of 2"),
        ("nothing changed, run 1 against run 2", tables, "1, 2 of 50", "b: 3 of 50, the most"),
        (three, "called `slower`, `same`", "50 %, 12 % of 8", "a: `same` in 25 % of 4, the most"),
        (one, "called `slower`, `same`", "25 %, 0.0 % of 4", "b: `slower` in 25 % of 4, the least"),
    ]


def test_a_run_is_named_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By its folder, its id, a link to it or a ref: one run against itself would pass for two."""
    store = Store(tmp_path / "store")
    folder = store.root / "quiet"
    folder.mkdir(parents=True)
    write_run(folder, QUIET)
    store.set_ref("nightly", "quiet")
    (tmp_path / "link").symlink_to(folder)
    for again in (str(folder), str(tmp_path / "link"), "nightly", "quiet"):
        assert main(["power", "quiet", again, "--store", str(store.root)]) == 2
        said = f"power: 'quiet' and {again!r} are one run, quiet; name each run once\n"
        assert capsys.readouterr() == ("", said)
