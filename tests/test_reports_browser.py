"""The page in a real browser: charts drawn, nothing complained about, no sideways scrolling, tables without script."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from harness.model import Run, TrialResult, Verdict, Word
from reports.render import render_run
from tests.browsing import opened, wait_until
from tests.sample_run import gpu_run, one_trial_run
from tests.sample_selfcheck import selfcheck_run

if TYPE_CHECKING:
    from playwright.sync_api import Browser

DRAWN = "[...document.querySelectorAll('.plot:not(.drawn)')].every(plot => plot.closest('details:not([open])'))"


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "run.html"
    path.write_text(render_run(gpu_run(hostile=True)), encoding="utf-8")
    return path


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_charts_are_drawn(browser: Browser, page_file: Path, width: int, scheme: str) -> None:
    """All 18 charts as SVG, no message on the console, no request, no sideways scrolling, hostile names inert."""
    complaints: list[str] = []
    view: Any = {"width": width, "height": 900}
    page = opened(browser, page_file, complaints, viewport=view, color_scheme=scheme)
    wait_until(page, DRAWN)
    assert page.locator(".plot svg").count() == 18
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert complaints == []
    page.close()


@pytest.mark.parametrize("width", [1240, 400])
def test_many_timers_are_folded(browser: Browser, tmp_path: Path, width: int) -> None:
    """The headline timer's charts are drawn at once, the others when their box is opened, at its full width."""
    path = tmp_path / "many.html"
    path.write_text(render_run(selfcheck_run(shapes=((1024, 16), (1024, 128)), samples=6, hostile=True)), "utf-8")
    complaints: list[str] = []
    page = opened(browser, path, complaints, viewport={"width": width, "height": 900})
    wait_until(page, DRAWN)
    assert page.locator("#speed .plot svg").count() == 2
    page.locator("#speed details.pictures > summary").click()
    wait_until(page, "document.querySelectorAll('#speed .plot svg').length === 8")
    wait_until(page, DRAWN)
    widths = page.evaluate(
        "[...document.querySelectorAll('#speed .plot svg')].map(e => e.getBoundingClientRect().width)"
    )
    assert min(widths) > 250
    page.evaluate("for (const box of document.querySelectorAll('details')) box.open = true")
    wait_until(page, DRAWN)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    ids = page.evaluate("[...document.querySelectorAll('[id]')].map(e => e.id)")
    assert len(ids) == len(set(ids))
    assert complaints == []
    page.close()


def grouped_run() -> Run:
    """Every kernel but one fails for the same reason, so that they share a row."""
    run = gpu_run(shapes=((1024, 128),))
    wrong = Verdict(word=Word.WRONG, reason="integers: 1 of 64 wrong")
    return replace(
        run,
        measurements=tuple(
            m
            if m.case.kernel in ("sgemv_k32_f32", "empty")
            else replace(m, trials=(TrialResult(trial=0, verdict=wrong),))
            for m in run.measurements
        ),
    )


def test_small_screen_leaves_room_for_figures(browser: Browser, tmp_path: Path) -> None:
    """At 390 px the column that stays while its table is scrolled takes at most half; no cell runs into the next."""
    path = tmp_path / "grouped.html"
    path.write_text(render_run(grouped_run()), encoding="utf-8")
    page = opened(browser, path, [], viewport={"width": 390, "height": 900})
    wait_until(page, DRAWN)
    grouped = page.locator("#cases tbody tr:not(.group) th", has_text=" and ")
    assert "torch.matmul, " in grouped.first.inner_text()
    heads = (
        "[...document.querySelectorAll('.scroll tr:not(.group) > th:first-child')].filter(e => !e.closest('.pairs'))"
    )
    assert page.evaluate(f"Math.max(...{heads}.map(e => e.getBoundingClientRect().width))") <= 195
    spill = """[...document.querySelectorAll('.pairs tr > *, .scroll tr > th:first-child')].filter(cell => {
      const text = document.createRange();
      text.selectNodeContents(cell);
      return text.getBoundingClientRect().right > cell.getBoundingClientRect().right + 1;
    }).map(cell => cell.textContent)"""
    assert page.evaluate(spill) == []
    page.close()


def test_dark_changes_charts_too(browser: Browser, page_file: Path) -> None:
    """Colours in the charts follow the page's scheme while it is open."""
    page = opened(browser, page_file, [])
    wait_until(page, DRAWN)
    colour = "getComputedStyle(document.querySelector('.plot svg .role-axis-label text')).fill"
    page.emulate_media(color_scheme="light")
    light = page.evaluate(colour)
    page.emulate_media(color_scheme="dark")
    assert page.evaluate(colour) != light
    page.close()


def test_hover_shows_figures(browser: Browser, page_file: Path) -> None:
    """A mark names its kernel, problem, timer and figures."""
    page = opened(browser, page_file, [])
    wait_until(page, DRAWN)
    page.locator(".plot svg path[aria-roledescription='point']").nth(2).hover()
    tip = page.locator("#vg-tooltip-element")
    tip.wait_for(state="visible")
    shown = tip.inner_text()
    wanted = ("kernel", "1024×", "graph/cold", "×", "µs")
    assert "undefined" not in shown
    assert [word for word in wanted if word not in shown] == []
    page.close()


def test_one_case_trial_by_trial(browser: Browser, page_file: Path) -> None:
    """The widest first; the list, by keyboard, and a click on a mark choose another; its quantiles are told."""
    complaints: list[str] = []
    page = opened(browser, page_file, complaints, viewport={"width": 1280, "height": 900})
    wait_until(page, DRAWN)
    table, case = page.locator("#trials-1-one-table"), page.locator("#trials-1-one-case")
    assert page.locator("#trials .plot[data-chosen] path[aria-roledescription='point']").count() == 5
    assert table.locator("thead th").all_inner_texts() == [
        "trial", "lowest, µs", "5 %, µs", "25 %, µs", "median, µs", "75 %, µs", "95 %, µs", "highest, µs", "samples",
    ]  # fmt: skip
    assert "sgemv_k32_f32, 1024×128, graph" in case.evaluate("select => select.selectedOptions[0].text")
    before = table.inner_text()
    case.focus()
    page.keyboard.press("ArrowDown")
    wait_until(page, f"document.getElementById('trials-1-one-table').innerText !== {json.dumps(before)}")
    figures = [float(text) for text in table.locator("tbody tr").first.locator("td").all_inner_texts()]
    assert figures[:7] == sorted(figures[:7])
    assert figures[7] == 30
    chosen = case.input_value()
    mark = page.locator("#trials .plot:not([data-chosen]) path[aria-roledescription='point']").first
    mark.click(force=True)
    wait_until(page, f"document.getElementById('trials-1-one-case').value !== {json.dumps(chosen)}")
    page.mouse.move(0, 0)
    mark.hover(force=True)
    tip = page.locator("#vg-tooltip-element")
    tip.wait_for(state="visible")
    shown = tip.inner_text()
    assert [word for word in ("25 %, µs", "median, µs", "against the case", "samples") if word not in shown] == []
    assert complaints == []
    page.close()


def test_tables_without_javascript(browser: Browser, page_file: Path) -> None:
    """Without script the charts' numbers stand open."""
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(page_file.as_uri())
    assert page.locator("details.numbers table").first.is_visible()
    assert page.get_by_text("Charts need JavaScript").is_visible()
    context.close()


def test_keyboard_reaches_tables(browser: Browser, page_file: Path) -> None:
    """The skip link comes first; every box that scrolls takes the focus and has a name."""
    page = opened(browser, page_file, [])
    wait_until(page, DRAWN)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the figures"
    unnamed = ".scroll:not([tabindex='0']), .scroll:not([aria-labelledby]):not([aria-label])"
    assert page.locator(unnamed).count() == 0
    ids = page.evaluate("[...document.querySelectorAll('[id]')].map(e => e.id)")
    assert len(ids) == len(set(ids))
    page.close()


def test_one_trial_draws_without_a_word(browser: Browser, tmp_path: Path) -> None:
    """A run without intervals and without a held-back clock draws too."""
    path = tmp_path / "one.html"
    path.write_text(render_run(one_trial_run()), encoding="utf-8")
    complaints: list[str] = []
    page = opened(browser, path, complaints)
    wait_until(page, DRAWN)
    assert complaints == []
    page.close()
