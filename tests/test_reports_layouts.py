"""A run of one shape in several layouts: no page, table or chart takes one of them for another."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from rich.console import Console

from harness.model import Layout, Problem, Role, Run, TrialResult, Verdict, Word
from reports import format as fmt
from reports.cases import case_table
from reports.cautions import cautions
from reports.charts import charts
from reports.charts.trials import FLOOR
from reports.figures import figures
from reports.launch_rate import launch_rate
from reports.render import render_run
from reports.side_by_side import ordered_problems
from reports.terminal import summary_table
from tests.browsing import opened, wait_until
from tests.sample_run import gpu_run

if TYPE_CHECKING:
    from playwright.sync_api import Browser

LAYOUTS = {
    "1024×128, col-major": Layout(order="col"),
    "1024×128": Layout(),
    "1024×128, first element 1": Layout(first_element=1),
    "1024×128, col-major, column stride 1100, first element 1": Layout(order="col", row_stride=1100, first_element=1),
}
"""By the name that each has for people; the reference's own problem is not the first."""


def views_run() -> Run:
    """A GPU's run of them; each layout's times are its own."""
    run = gpu_run(shapes=((1024, 128),), trials=3, samples=10)
    floors = [m for m in run.measurements if m.case.role is Role.FLOOR]
    others = [m for m in run.measurements if m.case.role is not Role.FLOOR]
    measurements = list(floors)
    for number, layout in enumerate(LAYOUTS.values()):
        for m in others:
            problem = replace(m.case.problem, layout=layout)
            slower = tuple(
                replace(t, samples_ns=tuple(round(ns * (1 + number / 10), 3) for ns in t.samples_ns)) for t in m.trials
            )
            measurements.append(replace(m, case=replace(m.case, problem=problem), trials=slower))
    return replace(run, measurements=tuple(measurements))


RUN = views_run()


def test_each_layout_has_its_own_table() -> None:
    """In order of measuring, under its own name, with its own figures."""
    f = figures(RUN)
    tables = [case_table(f, problem) for problem in f.problems]
    assert [each.caption for each in tables] == list(LAYOUTS)
    medians = [next(row for row in each.rows if row[0].text == "torch.matmul")[2].text for each in tables]
    assert len(set(medians)) == len(LAYOUTS)


def test_each_layout_has_its_own_band_in_every_chart() -> None:
    """And in the tables behind them."""
    f = figures(RUN)
    by_section = {chart.section: chart for chart in charts()}
    for section in ("speed", "limit", "trials"):
        for panel in by_section[section].spec(f):
            if panel.chosen is not None:
                continue
            domains = re.findall(r"'domain': \[(['\"]1024×128.*?)\]", str(panel.spec))
            assert domains
            assert all(name in domain for domain in domains for name in map(repr, LAYOUTS))
        for table in by_section[section].table(f):
            assert {row[0].text for row in table.rows if row[0].text} - {FLOOR} == set(LAYOUTS)


def test_a_view_is_not_the_references_problem() -> None:
    """Published figures stand beside the packed problem alone; it leads where it is, also behind a view."""
    f = figures(RUN)
    found = launch_rate(f)
    assert found is not None
    assert found.problems == (Problem(m=1024, k=128),)
    assert ordered_problems(f)[0] == Problem(m=1024, k=128)
    views = replace(RUN, measurements=tuple(m for m in RUN.measurements if m.case.problem != Problem(m=1024, k=128)))
    assert launch_rate(figures(views)) is None


def test_layouts_are_told_apart_on_the_terminal() -> None:
    """A table each."""
    out = io.StringIO()
    Console(file=out, width=100).print(summary_table(RUN))
    lines = out.getvalue().splitlines()
    assert [line for line in lines if line in LAYOUTS] == list(LAYOUTS)


@pytest.mark.parametrize(
    ("parts", "listed"),
    [
        (["8×8", "4×4"], "8×8 and 4×4"),
        (["8×8", "4×4", "2×2"], "8×8, 4×4 and 2×2"),
        (["8×8, col-major", "8×8", "2×2"], "8×8, col-major; 8×8 and 2×2"),
    ],
)
def test_names_with_commas_are_kept_apart(parts: list[str], listed: str) -> None:
    """Otherwise 8×8, col-major, 8×8 could be read as one."""
    assert fmt.listing(parts) == listed


def test_what_is_left_out_says_of_which_layouts() -> None:
    """A kernel that takes packed operands alone is missing on the views, and only there."""
    packed, reason = Problem(m=1024, k=128), "A lies otherwise"
    refused = TrialResult(trial=0, verdict=Verdict(word=Word.UNSUPPORTED, reason=reason))
    measurements = tuple(
        replace(m, trials=(refused,)) if m.case.kernel == "sgemv_k32_f32" and m.case.problem != packed else m
        for m in RUN.measurements
    )
    details = [line for each in cautions(figures(replace(RUN, measurements=measurements))) for line in each.details]
    (said,) = (line for line in details if reason in line)
    views = "; ".join(name for name in LAYOUTS if name != "1024×128")
    assert said == f"sgemv_k32_f32 on {views}: {reason}"


def test_no_name_is_cut_off_at_an_axis(browser: Browser, tmp_path: Path) -> None:
    """Each part has a line of its own, which fits; on a phone too."""
    path = tmp_path / "run.html"
    path.write_text(render_run(RUN), encoding="utf-8")
    for width in (1280, 390):
        complaints: list[str] = []
        page = opened(browser, path, complaints, viewport={"width": width, "height": 900})
        wait_until(page, "document.querySelectorAll('#speed .plot.drawn svg').length > 0")
        texts = page.evaluate("[...document.querySelectorAll('#speed .plot svg text')].map(text => text.textContent)")
        assert {name.replace(", ", "") for name in LAYOUTS} <= set(texts)
        assert not [text for text in texts if "…" in text]
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert complaints == []
        page.close()
