"""A kernel that picks among others: its trials say which and why, and whoever reads a run finds it there."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from harness.__main__ import main
from harness.bench import Bench
from harness.compare import compare
from harness.comparison.request import Compared
from harness.history.digests import Cases, read
from harness.model import Cache, Case, Measurement, Options, Problem, Role, Run, TrialResult, Word
from harness.store import Store, load, verify
from harness.trial import Worker
from reports.choices import choice_tables
from reports.comparison.page import render_comparison
from reports.figures import figures
from reports.render import render_run
from tests import planted_choices
from tests.planted_runs import around, case, measured, run
from tests.sample_run import HOSTILE

FEW, MANY = Problem(m=4, k=8), Problem(m=16, k=8)


def planted(kernel: str, problem: Problem = FEW) -> Case:
    return Case(kernel=kernel, role=Role.GEMV, problem=problem, timer="async", cache=Cache.HOT)


def of_worker(kernel: str, problem: Problem) -> TrialResult:
    return Worker(planted_choices.kernels(), "cpu", lambda _: None, 1.0).measure(planted(kernel, problem), 0, 0.002)


@pytest.mark.parametrize(("problem", "chosen", "reason"), [(FEW, "plain", "4 rows"), (MANY, "double", "16 rows")])
def test_a_trial_says_what_was_picked_and_why(problem: Problem, chosen: str, reason: str) -> None:
    """Asked once for the operands of the case."""
    result = of_worker("picks", problem)
    assert (result.verdict.word, result.variant, result.variant_reason) == (Word.PASSED, chosen, reason)
    plain = of_worker("plain", problem)
    assert (plain.variant, plain.variant_reason) == (None, None)


def test_a_rule_that_fails_is_a_crash() -> None:
    """No figure without knowing what it is of."""
    verdict = of_worker("picks_nothing", FEW).verdict
    assert (verdict.word, verdict.reason) == (Word.CRASHED, "RuntimeError: no rule")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A published run of two trials on the CPU."""
    store = Store(tmp_path_factory.mktemp("store"))
    asked = Options(trials=2, max_time_s=0.002, quick=False, device="cpu", command=("x",))
    with Bench(registry=planted_choices, store=store, options=asked) as bench:
        for problem in (FEW, MANY):
            for kernel in ("picks", "plain", "double"):
                bench.measure(planted(kernel, problem))
        published = bench.publish()
    assert published is not None
    return published


def test_a_run_keeps_it(folder: Path) -> None:
    """Every trial of its own, beside which kernels are picked among; digests and sums are as ever."""
    verify(folder)
    kept = load(folder)
    assert kept.picked_among == ("plain", "double")
    assert kept.candidates == dict.fromkeys(("picks", "picks_nothing"), ("plain", "double"))
    first, *_, last = (m for m in kept.measurements if m.case.kernel == "picks")
    assert [(t.variant, t.variant_reason) for t in first.trials] == [("plain", "4 rows")] * 2
    assert [(t.variant, t.variant_reason) for t in last.trials] == [("double", "16 rows")] * 2
    assert len(read(folder, Cases()).verdicts) == 6


def test_its_regret_can_be_told(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By the first timer of a CPU."""
    assert main(["regret", str(folder), "--json", "--store", str(folder.parent)]) == 0
    found = json.loads(capsys.readouterr().out)["cases"]
    assert [(each["chose"], each["reasons"]) for each in found] == [(["plain"], ["4 rows"]), (["double"], ["16 rows"])]
    assert {variant["kernel"] for each in found for variant in each["variants"]} == {"plain", "double"}


def test_an_older_record_has_none(folder: Path) -> None:
    """Fields that it lacks are as if nothing was picked."""
    trial = {"trial": 0, "verdict": {"word": "passed"}, "variant": "float4"}
    assert TrialResult.from_dict(trial).variant_reason is None
    old = json.loads((folder / "run.json").read_text())
    del old["picked_among"], old["candidates"]
    assert (Run.from_dict(old).picked_among, Run.from_dict(old).candidates) == ((), {})


def chose(of: Case, kernel: str, reason: str) -> Measurement:
    return measured(of, around(1000.0), variant=kernel, variant_reason=reason)


def test_the_page_says_it_once_a_problem() -> None:
    """Whatever it was timed by; a second line where a cache state or a trial differs."""
    cold, hot = case("sgemv"), case("sgemv", cache=Cache.HOT)
    other = chose(case("sgemv", m=128), "sgemv_tiles", "many rows")
    odd = replace(other.trials[0], variant="sgemv_rows", variant_reason="by another device")
    mixed = replace(other, trials=(odd, *other.trials[1:]))
    page = run(chose(cold, "sgemv_rows", "few rows"), chose(hot, "sgemv_rows", "few rows"), mixed)
    (found,) = choice_tables(figures(page))
    assert found.caption == "What sgemv chose"
    assert [[cell.text for cell in row] for row in found.rows] == [
        ["64×64", "sgemv_rows", "few rows"],
        ["128×64", "sgemv_rows", "by another device"],
        ["128×64", "sgemv_tiles", "many rows"],
    ]
    html = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", render_run(page)))
    assert "What sgemv chose problem kernel reason 64×64 sgemv_rows few rows" in html


def test_a_page_without_choices_has_no_such_table() -> None:
    """A variant that was the fastest was not chosen by a rule."""
    page = run(measured(case("read"), around(1000.0), variant="float4"))
    assert choice_tables(figures(page)) == ()
    assert "chose" not in render_run(page).partition("<script>")[0]


def test_hostile_names_and_reasons_stay_text() -> None:
    """On the page of a run and on that of a comparison."""
    page = run(chose(case("sgemv"), HOSTILE, HOSTILE))
    assert "alert(1)</script>" not in render_run(page)
    found = Compared(base=page, news=(page,), found=(compare(page, page),))
    assert "alert(1)</script>" not in render_comparison(found)


def test_a_comparison_says_that_another_was_picked() -> None:
    """In the notes of its case, and beside the figures of each run."""
    base, new = (run(chose(case("sgemv"), name, f"for {name}")) for name in ("sgemv_rows", "sgemv_tiles"))
    found = compare(base, new)
    assert "other variant: sgemv_tiles against sgemv_rows" in found.cases[0].notes
    html = render_comparison(Compared(base=base, news=(new,), found=(found,)))
    assert "for sgemv_rows" in html
    assert "for sgemv_tiles" in html
