"""What a rule loses: against the fastest of the kernels that it picks among, by trials, and how it is told."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.__main__ import main
from harness.errors import CommandError, Exit
from harness.model import Cache, Case, Measurement, Run, Word
from harness.regret import Regrets, regrets
from harness.timing import not_benched
from tests.planted_runs import Done, case, judged, measured, publish, run
from tests.sample_run import HOSTILE

AMONG = ("rows", "tiles", "split")
NS = (1000.0, 1100.0)
"""Two trials that lie far apart: paired, that cancels."""


def picked(of: Case, ns: tuple[float, ...], chose: str = "rows", reason: str = "few rows") -> Measurement:
    return measured(of, ns, variant=chose, variant_reason=reason)


def scaled(factor: float, ns: tuple[float, ...] = NS) -> list[float]:
    return [factor * each for each in ns]


def planted(*more: Measurement, **changes: Any) -> Run:
    """`sgemv` took 5 % longer in both trials than `tiles`, and `rows`, which it picked, 10 % longer."""
    own = (
        picked(case("sgemv"), NS),
        measured(case("rows"), scaled(1.1 / 1.05)),
        measured(case("tiles"), scaled(1 / 1.05)),
        judged(case("split"), Word.UNSUPPORTED, "K=64 is not 16"),
        measured(case("torch.matmul"), scaled(0.5)),
        measured(case("sgemv_k32"), scaled(0.5)),
    )
    return run(*own, *more, **{"picked_among": AMONG, **changes})


def only(found: Regrets) -> Any:
    (each,) = found.cases
    return each


def test_the_regret_is_against_the_fastest_that_it_picks_among() -> None:
    """Neither against torch nor against a kernel of a like name; trials are paired, so that the interval is a point."""
    each = only(regrets(planted()))
    assert (each.chose, each.reasons, each.fastest.kernel) == (("rows",), ("few rows",), "tiles")
    assert each.ratio.estimate == pytest.approx(1.05)
    assert (each.ratio.low, each.ratio.high) == (pytest.approx(1.05), pytest.approx(1.05))
    assert each.centre_ns.estimate == pytest.approx(math.sqrt(1000 * 1100))
    assert (each.measured, each.eligible, len(each.variants)) == (2, 2, 3)
    assert each.chose_unmeasured == ()


def test_an_interval_by_hand() -> None:
    """Ratios of 1.0 and 1.1 in two trials: ln 1.1 / 2 ± 12.7062 · ln 1.1 / 2, Student's t with one degree."""
    uneven = run(picked(case("sgemv"), (1000.0, 1100.0)), measured(case("tiles"), (1000.0, 1000.0)), picked_among=AMONG)
    ratio = only(regrets(uneven)).ratio
    half = math.log(1.1) / 2
    assert ratio.estimate == pytest.approx(math.exp(half))
    assert ratio.low == pytest.approx(math.exp(half - 12.7062047 * half))
    assert ratio.high == pytest.approx(math.exp(half + 12.7062047 * half))


def test_what_a_variant_lacks_is_said() -> None:
    """Not in the run, refused, wrong, twice, or of other trials."""
    among = ("absent", "refuses", "wrong", "twice", "damaged", "elsewhere", "tiles")
    alone = measured(case("elsewhere"), NS)
    other_trial = replace(alone, trials=tuple(replace(trial, trial=7 + trial.trial) for trial in alone.trials))
    found = planted(
        judged(case("refuses"), Word.UNSUPPORTED, "not for it"),
        judged(case("wrong"), Word.WRONG, "row 3"),
        measured(case("twice"), NS),
        measured(case("twice"), NS),
        measured(case("damaged"), (math.nan, 1.0)),
        other_trial,
        picked_among=among,
    )
    faults = {each.kernel: each.fault for each in only(regrets(found)).variants}
    assert faults == {
        "absent": "not in this run",
        "refuses": "unsupported: not for it",
        "wrong": "wrong: row 3",
        "twice": "twice in this run",
        "damaged": "a sample of nan ns: wanted 1e-06 to 1e+18 ns",
        "elsewhere": "shares no trial with it",
        "tiles": None,
    }


def test_each_rule_has_candidates_of_its_own() -> None:
    """Another kernel's, of another dtype, are neither missed nor counted; older runs name those of all rules alone."""
    found = planted(picked_among=("half_tiles", *AMONG), candidates={"sgemv": AMONG, "hgemv": ("half_tiles",)})
    assert [variant.kernel for variant in only(regrets(found)).variants] == list(AMONG)
    older = planted(picked_among=("half_tiles", *AMONG))
    assert [variant.kernel for variant in only(regrets(older)).variants] == ["half_tiles", *AMONG]


def test_a_case_without_figures_of_its_own_is_said() -> None:
    """The others still have a regret."""
    silent = measured(case("sgemv", m=256), NS)
    found = regrets(planted(judged(case("sgemv", m=128), Word.CRASHED, "signal 11"), silent))
    assert [each.fault for each in found.cases] == [None, "crashed: signal 11", "no choice recorded"]
    assert [each.ratio is None for each in found.cases] == [False, True, True]
    assert found.worst.case == case("sgemv")


def test_only_the_headline_timer_counts() -> None:
    """In both cache states; else the first timer of the bench, and never one that checks another."""
    check = next(iter(not_benched()))
    more = [picked(case("sgemv", timer="event"), NS), picked(case("sgemv", cache=Cache.HOT), NS)]
    found = regrets(planted(*more))
    assert [(each.case.timer, each.case.cache) for each in found.cases] == [("graph", "cold"), ("graph", "hot")]
    cases = [(name, timer) for timer in (check, "async", "sync") for name in ("sgemv", "tiles")]
    others = [picked(case(name, timer=timer), NS) if name == "sgemv" else measured(case(name, timer=timer), NS)
              for name, timer in cases]  # fmt: skip
    assert [each.case.timer for each in regrets(run(*others, picked_among=AMONG)).cases] == ["async"]


@pytest.mark.parametrize(
    ("made", "what"),
    [
        (run(measured(case("sgemv"), NS)), "no kernel chose among others by a rule"),
        (run(measured(case("read"), NS, variant="float4")), "no kernel chose among others by a rule"),
        (run(), "no kernel chose among others by a rule"),
        (planted(picked_among=()), "none of the kernels that sgemv picks among has figures beside it"),
        (planted(picked_among=("split",)), "none of the kernels that sgemv picks among has figures beside it"),
    ],
)
def test_a_run_that_cannot_tell_says_what_is_missing(made: Run, what: str) -> None:
    """In one line, with the command that measures it."""
    with pytest.raises(CommandError, match=f": {what}; `nox -s tune` measures them all$") as caught:
        regrets(made)
    assert caught.value.code == Exit.NOT_COMPARABLE


@pytest.fixture
def told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    """`harness regret` on a run."""

    def tell(made: Run, *options: str) -> Done:
        publish(tmp_path, made.id, made)
        return Done(main(["regret", made.id, *options, "--store", str(tmp_path)]), *capsys.readouterr())

    return tell


def test_the_table(told: Any) -> None:
    """A line a case, what has no figures, and the worst."""
    more = [picked(case("sgemv", m=128), NS, chose="tiles", reason="many"), measured(case("tiles", m=128), NS)]
    done = told(planted(*more, judged(case("rows", m=128), Word.CRASHED, "signal 11")))
    assert done.code == 0
    assert done.lines[1].startswith("regret of sgemv: its time over that of the fastest kernel that it picks among")
    assert done.lines[3:] == [
        "problem chose fastest regret measured",
        "64×64 graph cold rows 1.049 µs ±64 % tiles 0.999 µs ±64 % +5.0 % +5.0 to +5.0 % 2 of 2",
        "128×64 graph cold tiles 1.049 µs ±64 % tiles 1.049 µs ±64 % 0.0 % 0.0 to 0.0 % 1 of 3",
        "",
        "rows on 128×64 graph cold: crashed: signal 11",
        "split on 128×64 graph cold: not in this run",
        "unsupported in 1 of 2 cases: split",
        "worst: sgemv on 64×64 graph cold: +5.0 % (+5.0 to +5.0 %), rows against tiles",
    ]


def test_what_was_picked_but_not_measured_is_said(told: Any) -> None:
    """The fastest of the others is not the fastest: a regret below zero would be none. One fate is one line."""
    own = [picked(case("sgemv", m=m), NS, chose="reference") for m in (64, 128)]
    others = [measured(case("rows"), scaled(1.25)), measured(case("rows", m=128), scaled(0.8))]
    done = told(run(*own, *others, picked_among=AMONG))
    assert done.lines[4:] == [
        "64×64 graph cold reference 1.049 µs ±64 % rows 1.311 µs ±64 % – 1 of 3",
        "128×64 graph cold reference 1.049 µs ±64 % rows 0.839 µs ±64 % +25.0 % +25.0 to +25.0 % 1 of 3",
        "",
        "tiles, split on 64×64 graph cold: not in this run",
        "sgemv on 64×64 graph cold: chose reference, which has no figures here: its regret cannot be told",
        "tiles, split on 128×64 graph cold: not in this run",
        "sgemv on 128×64 graph cold: chose reference, which has no figures here: its regret is at least that",
        "worst: sgemv on 128×64 graph cold: +25.0 % (+25.0 to +25.0 %), reference against rows",
    ]


def test_a_run_that_was_cut_short_says_so(told: Any) -> None:
    """In the table's notes and as JSON."""
    cut = planted(partial=True)
    assert "the run was cut short: what had not been measured until then is missing" in told(cut).lines
    assert json.loads(told(replace(cut, id="again"), "--json").out)["partial"] is True


@pytest.mark.parametrize(
    ("limit", "code", "means"),
    [
        ("4.9", 1, "exit code 1: a regret lies above 4.9 %"),
        ("5.1", 0, "exit code 0: no regret is known to lie above 5.1 %"),
    ],
)
def test_a_limit_gives_the_code(limit: str, code: int, means: str, told: Any) -> None:
    """1 only where a whole interval lies above it."""
    done = told(planted(), "--fail-above", limit)
    assert (done.code, done.lines[-1]) == (code, means)


@pytest.mark.parametrize(("options", "code"), [((), 0), (("--fail-above", "5"), 3)])
def test_one_trial_cannot_be_held_against_a_limit(options: tuple[str, ...], code: int, told: Any) -> None:
    """It has a regret, but no interval."""
    lone = run(picked(case("sgemv"), (1000.0,)), measured(case("rows"), (500.0,)), picked_among=AMONG)
    done = told(lone, *options)
    assert done.code == code
    assert (
        "64×64 graph cold rows 1.000 µs no interval rows 0.500 µs no interval +100.0 % no interval 1 of 3" in done.lines
    )


@pytest.mark.parametrize("limit", ["x", "-1", "nan", "inf", "1000", ""])
def test_a_wrong_limit_is_one_line(limit: str, told: Any) -> None:
    """Wrong usage."""
    done = told(planted(), f"--fail-above={limit}")
    assert done.code == 2
    assert done.err == f"--fail-above: found {limit!r}, wanted percents from 0 to below 1000, such as 5\n"


def test_as_json(told: Any) -> None:
    """Everything, by fractions and ns; the code says what the program's does."""
    done = told(planted(), "--json", "--fail-above", "4")
    found = json.loads(done.out)
    assert (done.code, found["exit_code"], found["fail_above"], found["worst"]) == (
        1,
        1,
        0.04,
        "sgemv-64x64-graph-cold",
    )
    (each,) = found["cases"]
    assert (each["chose"], each["reasons"], each["fastest"]) == (["rows"], ["few rows"], "tiles")
    assert each["regret"]["estimate"] == pytest.approx(0.05)
    assert [(v["kernel"], v["fault"]) for v in each["variants"]] == [
        ("rows", None), ("tiles", None), ("split", "unsupported: K=64 is not 16")
    ]  # fmt: skip


def test_hostile_text_is_shown_as_codes(told: Any) -> None:
    """Of a name and of a verdict's reason."""
    own = picked(case("sgemv"), NS, chose=HOSTILE)
    bad = judged(case("bad"), Word.WRONG, HOSTILE)
    done = told(run(own, measured(case(HOSTILE), NS), bad, picked_among=(HOSTILE, "bad")))
    assert done.code == 0
    assert "⟨202E⟩" in done.out
    assert "\u202e" not in done.out
