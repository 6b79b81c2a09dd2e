"""What a comparison's page says of the runs: their labels, what differs, how much changed."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import Any

import pytest

from harness.compare import Change
from harness.model import Run
from reports.comparison.columns import columns
from reports.comparison.environment import ALL_THE_SAME, attribution, environment_table, what_else
from reports.comparison.heat_map import heat_map
from reports.comparison.markdown import comparison_markdown
from reports.comparison.page import render_comparison
from reports.comparison.scope import cut_short
from reports.comparison.summary import counts_table, takeaway
from tests.sample_comparison import held, night, pair, planted, several
from tests.sample_run import cuda_build

NBSP = "\N{NO-BREAK SPACE}"


def labels(*runs: Run) -> list[str]:
    return [column.text for column in columns(runs)]


def texts(made: Any) -> list[list[str]]:
    """A table's cells."""
    return [[each.text for each in row] for row in made.rows]


# What a run is called


def test_runs_are_called_by_their_drivers() -> None:
    """The date differs too, but says less."""
    found = labels(night(0), night(1, driver_version="590.44.01"))
    assert found == ["driver 580.159.04", "driver 590.44.01"]


def test_what_the_driver_does_not_tell_apart_the_commit_does() -> None:
    """Two runs on the new driver: the commit stands beside it in every label."""
    found = labels(
        night(0, git_commit="a" * 40),
        night(1, driver_version="590.44.01", git_commit="a" * 40),
        night(2, driver_version="590.44.01", git_commit="b" * 40, git_dirty=True),
    )
    assert found == [
        "driver 580.159.04, commit aaaaaaa",
        "driver 590.44.01, commit aaaaaaa",
        "driver 590.44.01, commit bbbbbbb and changes",
    ]


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ({"torch_version": "2.12.0"}, ["torch 2.11.0+cu130", "torch 2.12.0"]),
        ({"torch_version": None}, ["torch 2.11.0+cu130", "torch unknown"]),
        ({"power_limit_mw": 500_000}, [f"power limit 700{NBSP}W", f"power limit 500{NBSP}W"]),
        ({"gpu_uuid": "GPU-8f1c7a52-0b3d"}, ["GPU-00000000", "GPU-8f1c7a52"]),
        ({}, ["14 May 2026", "15 May 2026"]),
    ],
)
def test_else_by_torch_the_power_limit_the_board_or_the_day(values: dict[str, Any], found: list[str]) -> None:
    """Whatever comes first that differs; the day where nothing does."""
    assert labels(night(0), night(1, **values)) == found


def test_else_by_the_locked_clock() -> None:
    """Before all that it changes."""
    free = night(0)
    locked = replace(night(1, power_limit_mw=500_000), options=replace(free.options, lock_clocks_mhz=1410))
    assert labels(free, locked) == ["clock locked at nothing", f"clock locked at 1410{NBSP}MHz"]


def test_else_by_the_compilers_flags() -> None:
    """Only those that not all runs have."""
    base = night(0)
    build = replace(cuda_build(), flags=("-O3", "-std=c++17", "-use_fast_math"))
    assert labels(base, replace(night(1), builds=(build,))) == [
        "flags -gencode=arch=compute_90,code=sm_90",
        "flags -use_fast_math",
    ]


def test_runs_of_one_day_by_the_time_and_one_run_twice_by_its_side() -> None:
    """There is always something."""
    base = night(0)
    later = replace(base, started_utc="2026-05-14T11:30:00+00:00", id="20260514T113000Z-other-000001")
    assert labels(base, later) == ["09:12 UTC", "11:30 UTC"]
    assert labels(base, replace(base, id="x-ab12")) == ["run 000000", "run ab12"]
    assert labels(base, base) == ["base", "new 1"]


# What differs


def test_differing_fields_only() -> None:
    """Base against each new run, with the reason of what is not known; runs that agree share a column."""
    made = held(
        night(0, hostname="a"),
        night(1, driver_version="590.44.01", hostname=None),
        night(2, driver_version="590.44.01", hostname=None),
        night(3, hostname="a"),
    )
    table = environment_table(made.found, columns([made.base, *made.news]))
    assert table is not None
    assert [column.title for column in table.columns] == [
        "what",
        "group",
        "base: driver 580.159.04, 14 May 2026",
        "2 new: 15 May 2026 … 16 May 2026",
        "new: driver 580.159.04, 17 May 2026",
    ]
    assert texts(table) == [
        ["NVIDIA driver", "Driver", "580.159.04", "590.44.01", "as base"],
        ["name of the machine", "Host", "a", "unknown", "as base"],
    ]
    assert attribution(made.found) == "driver only (2 runs); same environment (1 run)"


def test_why_a_value_is_unknown() -> None:
    """The run's own reason stands beside it."""
    made = held(night(0, hostname="a"), night(1))  # turned off in the sample
    table = environment_table(made.found, columns([made.base, *made.news]))
    assert table is not None
    (row,) = table.rows
    assert (row[-1].text, row[-1].note) == ("unknown", "turned off")


def test_variables_and_builds_are_named_in_words() -> None:
    """Each variable by itself, a build's field by its target; a long hash is shortened."""
    new = night(
        1, environment_variables='{"CUDA_VISIBLE_DEVICES": "1", "PYTORCH_ALLOC_CONF": "x"}', git_commit="b" * 40
    )
    new = replace(new, builds=(replace(cuda_build(), compiler_version="nvcc 13.1.10"),))
    made = held(night(0), new)
    table = environment_table(made.found, columns([made.base, *made.news]))
    assert table is not None
    rows = {row[0]: row[2:] for row in texts(table)}
    assert rows["variable CUDA_VISIBLE_DEVICES"] == ["0", "1"]
    assert rows["compiler version of the cuda build"] == ["nvcc 13.0.88", "nvcc 13.1.10"]
    assert rows["commit of this checkout"] == ["6188ce3f0c…", "bbbbbbbbbb…"]
    assert not any("PYTORCH" in what for what in rows)


def test_nothing_differs() -> None:
    """No table, and the page says so."""
    made = held(night(0), night(1))
    assert environment_table(made.found, columns([made.base, *made.news])) is None
    html = render_comparison(made)
    assert "same environment" in html
    assert ALL_THE_SAME in html


def test_what_nobody_recorded_is_not_said_to_be_the_same() -> None:
    """Two checkouts with changes: unknown ones may be others, the same ones are the same, other ones stand there."""
    changed = {"git_dirty": True}
    for hashes in ({}, {"git_diff_sha256": None}):
        unknown = held(night(0, **changed), night(1, **changed, **hashes))
        assert what_else(unknown.found) == (
            "No recorded fact differs, but which uncommitted changes the checkouts had is not recorded."
        )
        assert what_else(unknown.found) in render_comparison(unknown)
    one = {**changed, "git_diff_sha256": "a" * 64}
    assert what_else(held(night(0, **one), night(1, **one)).found) == ALL_THE_SAME
    other = held(night(0, **one), night(1, **changed, git_diff_sha256="b" * 64))
    assert what_else(other.found) == ""
    table = environment_table(other.found, columns([other.base, *other.news]))
    assert table is not None
    assert [row[2:] for row in texts(table)] == [["aaaaaaaaaa…", "bbbbbbbbbb…"]]
    mixed = held(night(0, **changed), night(1, **changed), night(2, **changed, driver_version="590.1"))
    assert what_else(mixed.found) == ""
    assert ALL_THE_SAME not in render_comparison(mixed)


def test_runs_that_were_asked_to_measure_otherwise() -> None:
    """Each option stands in the table, in words and with its unit; «all the same» does not."""
    base, new = night(0), night(1)
    made = held(base, replace(new, options=replace(new.options, quick=True, trials=3, max_time_s=0.1)))
    table = environment_table(made.found, columns([made.base, *made.news]))
    assert table is not None
    assert [[row[0], *row[2:]] for row in texts(table)] == [
        ["time for a case and trial", f"0.5{NBSP}s", f"0.1{NBSP}s"],
        ["a quick look, coarser", "no", "yes"],
        ["trials asked for", "5", "3"],
    ]
    assert what_else(made.found) == ""
    assert ALL_THE_SAME not in render_comparison(made)


@pytest.mark.parametrize(
    ("partial", "said"),
    [
        ((True, False), "The base run was cut short"),
        ((False, True), "The new run was cut short"),
        ((True, True), "The base run and the new run were cut short"),
        ((False, True, False), "15 May 2026 was cut short"),
        ((True, True, True, True, True), "The base run, 15 May 2026, 16 May 2026 and 2 more were cut short"),
    ],
)
def test_a_run_that_was_cut_short_is_named_on_top(partial: tuple[bool, ...], said: str) -> None:
    """On the page and in Markdown, before any figure; and nothing is said to be all the same."""
    made = held(*(replace(night(i), partial=each) for i, each in enumerate(partial)))
    sentence = f"{said}: what had not been measured until then is missing."
    html, markdown = render_comparison(made), comparison_markdown(made)
    assert ALL_THE_SAME not in html
    assert sentence in html[: html.index('id="changes"')]
    assert markdown.splitlines()[2] == f"**{sentence}**"


def test_whole_runs_are_not_said_to_be_cut_short() -> None:
    """Neither on the page nor in Markdown."""
    made = held(night(0), night(1))
    assert cut_short(made, columns([made.base, *made.news])) == ""
    assert "cut short" not in render_comparison(made) + comparison_markdown(made)


# What changed


def test_the_sentences_name_what_weighs_most() -> None:
    """What failed, how many are slower and faster with the largest two, and that the rest is not all the same."""
    made = pair()
    said = takeaway(made, columns([made.base, *made.news])).replace(NBSP, " ")
    assert said.startswith(
        "sgemv_k128_f32x4 is wrong or crashed in the new run. 4 of 28 compared cases take more than 1 % longer"
    )
    assert re.search(
        r"most of all torch\.matmul on 1024×16 \(graph/\w+\) by \+5\.\d % \(95 %: \+4\.\d to \+5\.\d %\)", said
    )
    assert re.search(r"4 are faster, most of all read on \S+ \(graph/\w+\) by −4\.\d %", said)
    counts = made.found[0].counts
    end = f"{counts[Change.SAME]} are the same within 1 %, and of {counts[Change.AMBIGUOUS]} these trials cannot tell."
    assert said.endswith(end)


def test_the_sentences_where_nothing_is_slower() -> None:
    """Not: nothing changed."""
    made = held(night(0), night(1), threshold=0.2)
    said = takeaway(made, columns([made.base, *made.news])).replace(NBSP, " ")
    assert said == "None of 32 compared cases is known to take more than 20 % longer. 32 are the same within 20 %."


def test_between_boards_more_counts() -> None:
    """From 4 % on a case is called slower: the sentence says so, and what a cell opens beside the threshold."""
    made = held(night(0), night(1, planted, gpu_uuid="GPU-another"))
    said = takeaway(made, columns([made.base, *made.news])).replace(NBSP, " ")
    assert "4 of 28 compared cases take more than 4 % longer" in said
    assert "threshold 1\\u00a0%, between boards 4\\u00a0%" in render_comparison(made)
    on_one = held(night(0), night(1, planted))
    assert "between boards" not in render_comparison(on_one)


def test_thresholds_of_their_own_are_not_said_to_be_one() -> None:
    """The sentence speaks of each case's own, its cell and the Markdown name it."""
    made = held(night(0), night(1), threshold=0.2, thresholds={"read": 0.3})
    assert "more than its threshold longer" in takeaway(made, columns([made.base, *made.news]))
    remarks = {row.case.kernel: row.cells[0].remark for row in heat_map(made.found).rows if row.cells[0]}
    assert remarks["read"] == f"threshold 30{NBSP}%"
    assert remarks["torch.matmul"] == ""
    assert f"| threshold 30{NBSP}% |" in comparison_markdown(made)


def test_the_sentences_over_several_runs_name_the_run() -> None:
    """One change is named, with the column in which it is."""
    made = several()
    said = takeaway(made, columns([made.base, *made.news])).replace(NBSP, " ")
    assert "4 of 124 compared cases in 4 runs take more than 1 % longer, most of all torch.matmul on" in said
    assert "in driver 590.04.01. 4 are faster" in said


def test_many_failed_kernels_are_counted() -> None:
    """A sentence is no list."""
    names = {f"mine_{i}": "" for i in range(9)}
    made = held(night(0, kernels=names), night(1, lambda _: math.nan, kernels=names))
    said = takeaway(made, columns([made.base, *made.news]))
    assert said.startswith(
        "mine_0, mine_1, mine_2, mine_3 and 5 more are wrong or crashed in the new run. No case can be"
    )


def test_counts_by_run() -> None:
    """A row a new run, a column a word that there is; the run's id beside its label."""
    made = several(2)
    table = counts_table(made, columns([made.base, *made.news]))
    heads = [column.title for column in table.columns]
    assert heads[2:8] == ["✕ failed", "▲ slower", "▼ faster", "? ambiguous", "= same", "/ not comparable"]
    first, last = texts(table)
    assert first[:5] == ["driver 590.01.01", "driver only", "–", "–", "–"]
    assert last[2:5] == ["4", "4", "4"]
    assert first[-1] == "none"
    assert last[-1].startswith("+5.")
    assert table.rows[0][0].note == made.news[0].id


def test_the_same_run_twice() -> None:
    """It is said."""
    base = night(0)
    html = render_comparison(held(base, base))
    assert "the base run itself" in html
    assert "None of 32 compared cases is known to take more than" in html
