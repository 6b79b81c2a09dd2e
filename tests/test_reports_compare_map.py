"""The map of a comparison's page, and what a cell opens: figures by hand, order, colours."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import pytest

from harness.compare import Change
from harness.comparison.records import CaseChange
from harness.comparison.request import Compared
from harness.stats import Interval
from reports import format as fmt
from reports.comparison.columns import columns
from reports.comparison.details import details
from reports.comparison.heat_map import ORDERS, WORDS, attention, cell, heat_map, tint
from reports.comparison.page import render_comparison
from reports.comparison.words import MEANINGS, SIGNS, probability, ratio_in_words
from tests.counted_run import MINE, counted_run, trial
from tests.sample_comparison import held, night, pair, planted, several

NBSP = "\N{NO-BREAK SPACE}"


# The map


def test_colour_is_linear_in_the_logarithm_and_saturates() -> None:
    """5 % longer and as much shorter are full; half of it in logarithms is half; more is no more."""
    assert tint(1.05, 0.05) == tint(1 / 1.05, 0.05) == tint(3.0, 0.05) == 100
    assert tint(math.sqrt(1.05), 0.05) == 50
    assert tint(1.0, 0.05) == 0


@pytest.mark.parametrize(
    ("change", "ratio", "figure", "side", "strength"),
    [
        (Change.SLOWER, 1.05, "+5.0", "longer", 100),
        (Change.FASTER, 1 / 1.05, "−4.8", "shorter", 100),
        (Change.AMBIGUOUS, 1.05, "+5.0", "longer", 40),
        (Change.SAME, 1.0, "0.0", "", 0),
    ],
)
def test_a_cell_says_all_without_colour(change: Change, ratio: float, figure: str, side: str, strength: int) -> None:
    """Sign, word, figure and its interval; who cannot be sure is pale."""
    case = night(0).measurements[0].case
    interval = Interval(estimate=ratio, low=ratio - 0.01, high=ratio + 0.02)
    made = cell(CaseChange(case=case, change=change, threshold=0.01, ratio=interval, p=0.00213), 0.01)
    assert (made.sign, made.word, made.side, made.tint) == (SIGNS[change], change, side, strength)
    assert made.figure == f"{figure}{NBSP}%"
    ends = [f"{100 * (end - 1):+.1f}".replace("-", "−") for end in (ratio - 0.01, ratio + 0.02)]
    assert made.interval == f"{ends[0]} to {ends[1]}{NBSP}%"
    assert made.probability == "p = 0.0021"


def test_every_word_has_a_sign_and_a_meaning() -> None:
    """No two the same."""
    assert set(SIGNS) == set(MEANINGS) == set(WORDS) == set(Change)
    assert len(set(SIGNS.values())) == len(SIGNS)


@pytest.mark.parametrize(
    ("ratio", "said"),
    [
        ((1.0312, 1.0281, 1.0343), "+3.1 % (95 %: +2.8 to +3.4 %)"),
        ((2.0597, 2.0588, 2.0606), "+105.97 % (95 %: +105.88 to +106.06 %)"),
        ((1.5894, 1.5878, 1.5911), "+58.9 % (95 %: +58.8 to +59.1 %)"),
        ((1.72, 1.015, 2.91), "+72.0 % (95 %: +1.5 to +191.0 %)"),
        ((1.43, 1.14, 1.79), "+43 % (95 %: +14 to +79 %)"),
        ((0.99997, 0.99990, 1.00004), "−0.003 % (95 %: −0.010 to +0.004 %)"),
        ((0.99997, 0.98, 1.0004), "0.0 % (95 %: −2.0 to +0.04 %)"),
        ((1.00004, 0.9998, 1.0003), "0.00 % (95 %: −0.02 to +0.03 %)"),
        ((1.0, 1.0, 1.0), "0.0 % (95 %: 0.0 to 0.0 %)"),
        ((0.99997, None, None), "−0.003 % (no interval)"),
        ((1.0312, None, None), "+3.1 % (no interval)"),
    ],
)
def test_figures_of_a_ratio(ratio: tuple[float, float | None, float | None], said: str) -> None:
    """By hand: the ends differ, the figure has as many decimals, nothing is −0."""
    estimate, low, high = ratio
    assert ratio_in_words(Interval(estimate=estimate, low=low, high=high)).replace(NBSP, " ") == said


def test_the_ends_of_an_interval_differ_whatever_its_width() -> None:
    """Over six orders of magnitude of widths around ratios from a tenth to tenfold; and no zero has a sign."""
    for i, (width, centre) in enumerate(itertools.product([10**-e for e in (0.5, 1, 2, 3, 4, 5, 6)], _CENTRES)):
        interval = Interval(estimate=centre, low=centre * (1 - width / 2), high=centre * (1 + width / 2 + i * 1e-9))
        low, high = fmt.difference_range(interval).removesuffix(f"{NBSP}%").split(" to ")
        assert low != high, interval
        for said, value in ((low, interval.low), (high, interval.high)):
            shown = float(said.replace("−", "-"))
            assert shown == pytest.approx(100 * (value - 1), abs=25 * width * centre + 1e-6)  # half of a half
            assert shown or said[0].isdigit()


_CENTRES = (0.1, 0.5, 0.9, 0.9999, 1.0, 1.00003, 1.05, 1.0995, 2.0597, 9.9949)


def test_probabilities() -> None:
    """By hand; the smallest only bounded."""
    assert [probability(p) for p in (None, 0.2, 1e-9)] == ["no p", "p = 0.2", "p < 0.0001"]


def test_the_order_of_the_map() -> None:
    """Failed, then slower by size, faster by size, ambiguous, same; any run counts, wherever it stands."""
    made = several(2)
    found = heat_map(made.found)
    gravest = [min(WORDS.index(c.word) for c in row.cells if c) for row in found.rows]
    assert gravest == sorted(gravest)
    sizes = [each.ratio.estimate for each in _in_order(made, found, Change.SLOWER)]
    assert len(sizes) == 4
    assert sizes == sorted(sizes, reverse=True)
    speedups = [each.ratio.estimate for each in _in_order(made, found, Change.FASTER)]
    assert speedups == sorted(speedups)


def test_of_the_ambiguous_the_surer_effect_comes_first() -> None:
    """+3 % with an interval above 1 before +60 % that may be none, and before one trial."""
    case = night(0).measurements[0].case

    def ambiguous(estimate: float, low: float | None, high: float | None) -> CaseChange:
        interval = Interval(estimate=estimate, low=low, high=high)
        return CaseChange(case=case, change=Change.AMBIGUOUS, threshold=0.01, ratio=interval)

    noisy, alone, sure = ambiguous(1.6, 0.9, 3.0), ambiguous(1.3, None, None), ambiguous(1.03, 1.02, 1.04)
    faster = ambiguous(0.96, 0.95, 0.97)
    order = sorted([noisy, alone, sure, faster], key=lambda each: attention([each]))
    assert order == [faster, sure, noisy, alone]


def _in_order(made: Compared, found: Any, word: Change) -> list[Any]:
    by_id = {each.case.id: each for each in made.found[-1].cases}
    return [by_id[row.case.id] for row in found.rows if by_id[row.case.id].change is word]


def test_the_other_orders() -> None:
    """By ratio alone, by problem as first met, and as measured."""
    made = pair()
    found = heat_map(made.found)
    by = [sorted(found.rows, key=lambda row, place=place: row.places[place]) for place in range(len(ORDERS))]
    assert list(found.rows) == by[0]
    ratios = {each.case.id: each.ratio.estimate if each.ratio else -1 for each in made.found[0].cases}
    assert [ratios[row.case.id] for row in by[1]] == sorted(ratios.values(), reverse=True)
    problems = [row.problem for row in by[2]]
    assert list(dict.fromkeys(problems)) == ["1×1", "1024×16", "1024×1024"]
    assert sorted(problems, key=["1×1", "1024×16", "1024×1024"].index) == problems
    assert [row.case.id for row in by[3]] == [each.case.id for each in made.found[0].cases]


def test_facets_and_words_for_the_filters() -> None:
    """Each row knows its places in the lists, and every word that it has in any run."""
    found = heat_map(several(2).found)
    values = dict(found.facets)
    assert values["timer"] == ("graph", "async")
    assert values["cache"] == ("cold", "hot")
    for row in found.rows:
        names = [each[place] for (_, each), place in zip(found.facets, row.facets, strict=True)]
        assert names == [row.case.kernel, row.problem, row.case.timer, row.case.cache]
    slower = {row.case.kernel for row in found.rows if str(WORDS.index(Change.SLOWER)) in row.words.split()}
    assert slower == {"torch.matmul"}
    assert sum(count for _, _, count in found.counts) == 2 * len(found.rows)


def test_a_case_that_only_one_of_the_new_runs_has() -> None:
    """A cell says that the other has none, and nothing is made up."""
    made = held(night(0, shapes=((1024, 16),)), night(1, shapes=((1024, 16),)), night(2))
    rows = [row for row in heat_map(made.found).rows if row.problem == "1024×1024" and row.case.kernel == "read"]
    assert [[each.word if each else None for each in row.cells] for row in rows] == [[None, Change.NEW]] * 4
    assert "in neither" in render_comparison(made)


# What a cell opens


def test_details_by_hand() -> None:
    """Median and quantiles of each trial, its clocks, the limit by its counter, in both runs."""
    base = counted_run({(MINE, "graph"): [trial(0), trial(1)]})
    capped = trial(
        0, limited_ns={"sw_power_cap": (0, 0, 10**9, 10**9, 10**9)}, samples_ns=(1000.0, 1010.0, 1020.0, 990.0)
    )
    new = counted_run({(MINE, "graph"): [capped, replace(capped, trial=1)]})
    made = held(base, new)
    data = details(made.found, columns([made.base, *made.news]), heat_map(made.found).rows)
    (shown,) = heat_map(made.found).rows
    assert shown.cells[0] is not None
    assert shown.cells[0].marks == "power cap in new"
    assert '<span class="marks">power cap in new</span>' in render_comparison(made)
    ((old, fresh),) = (each["sides"] for each in data["cases"])
    assert fresh["trials"] == [[1005.0, 990.0, 1000.0, 1010.0, 1020.0]] * 2
    assert old["trials"][0][0] == 1000.0
    facts = {data["texts"][what]: data["texts"][value].replace(NBSP, " ") for what, value in fresh["facts"]}
    assert (facts["trials"], facts["samples"]) == ("2", "8")
    assert facts["held back"] == "2 of 8 samples by the power limit (software power cap)"
    assert "held back" not in {data["texts"][what] for what, _ in old["facts"]}
    assert len(set(data["texts"])) == len(data["texts"])


def test_details_of_what_has_no_figures() -> None:
    """The verdict with its reason instead, and null where the run has no such case."""
    made = held(night(0, shapes=((1024, 1024),)), night(1, planted))
    rows = heat_map(made.found).rows
    data = details(made.found, columns([made.base, *made.news]), rows)
    by_case = {
        (row.case.kernel, row.problem): each
        for row, each in zip(rows, data["cases"], strict=True)
        if row.way == "graph/cold"
    }
    _, fresh = by_case["sgemv_k128_f32x4", "1024×1024"]["sides"]
    ((what, value),) = fresh["facts"]
    assert (data["texts"][what], fresh["trials"], fresh["centre"]) == ("verdict", [], None)
    assert data["texts"][value] == "wrong: integers: row 3 is 16776192, wanted 16777216"
    assert by_case["torch.matmul", "1024×16"]["sides"][0] is None
    word, said, _ = by_case["torch.matmul", "1024×1024"]["changes"][0]
    assert data["texts"][word] == "▲ slower"
    assert "after Holm's correction, threshold 1" in said
