"""The page of a store over time in a real browser: opened, filtered, drawn; no complaint, no request."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from harness.history.devices import read_history
from harness.model import Case, Digest, Verdict, Word
from harness.store import Store
from reports.history.page import render_history
from tests.browsing import opened, wait_until
from tests.many_runs import around, case, night_run, write
from tests.sample_run import HOSTILE

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

SLOWER, WRONG, HELD, EVIL = case(), case("sgemv_broken"), case("read", timer="async"), case(HOSTILE)
NIGHTS = 40
DRIVER, TORCH = 25, 33
SPILL = """[...document.querySelectorAll('.cases > tbody > tr:first-child > *')].filter(cell => {
  const text = document.createRange();
  text.selectNodeContents(cell);
  return text.getBoundingClientRect().right > cell.getBoundingClientRect().right + 1;
}).map(cell => cell.textContent)"""
"""Cells whose text runs into the next one."""

LATE = (28, 31, 36)
"""Nights in which a limit held the clocks back."""


def told(each: Case, night: int) -> Sequence[Digest] | Verdict:
    """One case is slower since the driver, one fails in four nights, one was held back in three."""
    wobble = 1 + 0.001 * (night * 7 % 5)
    if each == WRONG and night in (12, 20, 38, 39):
        return Verdict(word=Word.WRONG, reason=f"row 3, {HOSTILE}")
    if each == SLOWER:
        return around(1000.0 * wobble * (1.08 if night >= DRIVER else 1))
    return around(2000.0 * wobble, held_back=10 if each == HELD and night in LATE else 0)


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """40 nights of one GPU and three of another."""
    root = tmp_path_factory.mktemp("store")
    for night in range(NIGHTS):
        values = {
            "driver_version": "580.1" if night < DRIVER else "590.2",
            "torch_version": "2.11" if night < TORCH else "2.12",
            "git_commit": f"{night // 4:08d}{'0' * 32}",
        }
        write(root, night_run(night, [SLOWER, WRONG, HELD, EVIL], told, **values))
    for night in range(NIGHTS, NIGHTS + 3):
        other = {"gpu_name": "NVIDIA A100", "device_name": "NVIDIA A100"}
        write(root, night_run(night, [SLOWER], lambda *_: around(5000.0), **other))
    path = tmp_path_factory.mktemp("page") / "history.html"
    path.write_text(render_history(read_history(Store(root))), encoding="utf-8")
    return path


def open_case(page: Page, kernel: str, runs: str) -> Locator:
    """Open the case of a kernel on the last device but one, and show these runs."""
    body = page.locator("#device-2 table.cases > tbody", has=page.locator("button.open", has_text=kernel))
    body.locator("button.open").click()
    body.locator(".plot.drawn svg").wait_for(timeout=30_000)
    body.get_by_role("button", name=runs).click()
    body.locator(f".windows [aria-pressed=true] >> text={runs}").wait_for()
    page.wait_for_timeout(300)
    return body


def dots(body: Locator) -> list[str]:
    """The fill of each point's mark, from left to right."""
    script = "all => all.map(e => e.getAttribute('fill'))"
    found: list[str] = body.locator(".plot path[aria-roledescription=point][fill^=var]").evaluate_all(script)
    return [fill for fill in found if fill in ("var(--accent)", "var(--page)")]


@pytest.mark.parametrize("width", [1240, 400])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_case_is_drawn(browser: Browser, page_file: Path, width: int, scheme: str) -> None:
    """All charts, all windows; no message on the console, no request, no sideways scrolling, hostile names inert."""
    complaints: list[str] = []
    view: Any = {"width": width, "height": 900}
    page = opened(browser, page_file, complaints, viewport=view, color_scheme=scheme)
    for button in page.locator("button.open").all():
        button.click()
    wait_until(page, "document.querySelectorAll('.plot.drawn svg').length === 5")
    for button in page.get_by_role("button", name="all 40 runs").all():
        button.click()
    page.wait_for_timeout(500)
    for box in page.locator("details.numbers > summary").all():
        box.click()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert min(page.locator(".plot svg").evaluate_all("all => all.map(e => e.clientWidth)")) > 300
    assert page.evaluate(SPILL) == []
    assert complaints == []
    page.close()


def test_hollow_where_held_back(browser: Browser, page_file: Path) -> None:
    """Three of forty points are hollow: those nights; a case that was never held back has none."""
    page = opened(browser, page_file, [], viewport={"width": 1240, "height": 900})
    held = dots(open_case(page, "read", "all 40 runs"))
    assert (held.count("var(--page)"), held.count("var(--accent)")) == (3, 37)
    assert dots(open_case(page, "torch.matmul", "last 30")) == ["var(--accent)"] * 30
    page.close()


def test_changes_and_beginning_are_marked(browser: Browser, page_file: Path) -> None:
    """Driver and torch by name, where it began at the driver, and the line broken by each row of failures."""
    page = opened(browser, page_file, [], viewport={"width": 1240, "height": 900})
    body = open_case(page, "torch.matmul", "all 40 runs")
    words = body.locator(".plot svg text").all_text_contents()
    assert {"driver 590.2", "torch 2.12", "began", "best", "newest"} <= set(words)
    places = body.locator(".plot svg text").evaluate_all(
        "all => Object.fromEntries(all.map(e => [e.textContent, e.getBoundingClientRect()]))"
    )
    assert places["began"]["right"] == pytest.approx(places["driver 590.2"]["left"], abs=12)
    assert places["driver 590.2"]["right"] < places["torch 2.12"]["left"]
    failed = open_case(page, "sgemv_broken", "all 40 runs")
    assert failed.locator(".plot svg text", has_text="×").count() == 4
    assert failed.locator(".plot svg .mark-line path").count() == 3
    assert len(dots(failed)) == 36
    page.close()


def test_newest_runs_as_a_table(browser: Browser, page_file: Path) -> None:
    """The figures, the failures with their reason, and what changed, for who cannot see the chart."""
    page = opened(browser, page_file, [], viewport={"width": 1240, "height": 900})
    body = open_case(page, "sgemv_broken", "all 40 runs")
    body.locator("details.numbers > summary").click()
    rows = body.locator("details.numbers tbody tr").all_inner_texts()
    assert len(rows) == 12
    assert "wrong: row 3" in rows[0]
    assert "2.004" in rows[3]  # night 36: 2000 ns · 1.002, as 36 · 7 % 5 is 2
    assert "commit: 00000008 → 00000009" in rows[3]
    page.close()


def test_small_figures_are_not_rounded_away(browser: Browser, tmp_path: Path) -> None:
    """Half an interval of 0.002 % is no 0.00 %, and a step of 0 has no sign, in the table as in the chart's words."""
    for night in range(3):
        write(tmp_path, night_run(night, [SLOWER], lambda *_: around(1000.0, spread=2e-5)))
    path = tmp_path / "history.html"
    path.write_text(render_history(read_history(Store(tmp_path))), encoding="utf-8")
    page = opened(browser, path, [], viewport={"width": 1240, "height": 900})
    page.locator("button.open").click()
    page.locator(".plot.drawn svg").wait_for(timeout=30_000)
    page.locator("details.numbers > summary").click()
    newest = page.locator("details.numbers tbody tr").first.locator("td.number").all_inner_texts()
    assert newest[:3] == ["1.000", "0.002", "0.00"]
    page.close()


def test_filters(browser: Browser, page_file: Path) -> None:
    """By words, kernel, timer and what became of a case, each device on its own."""
    page = opened(browser, page_file, [], viewport={"width": 1240, "height": 900})
    form = page.locator("#device-2 form.filters")
    shown = page.locator("#device-2 table.cases > tbody:visible")
    assert form.locator("output").inner_text() == "4 cases"
    form.get_by_label("Find").fill("1024×128 ASYNC")
    assert form.locator("output").inner_text() == "1 of 4 cases"
    assert "read" in shown.inner_text()
    form.get_by_label("Find").fill("")
    form.get_by_label("Timer").select_option("graph")
    assert shown.count() == 3
    form.get_by_label("Kernel").select_option("torch.matmul")
    assert shown.count() == 1
    form.get_by_label("Kernel").select_option("all")
    form.get_by_label("Show").select_option("slower or failed")
    assert [text.split()[0] for text in shown.all_inner_texts()] == ["sgemv_broken", "torch.matmul"]
    assert page.locator("#device-1 table.cases > tbody:visible").count() == 1
    page.close()


def test_order_by_name_and_back(browser: Browser, page_file: Path) -> None:
    """The worst first, as the page is written, or by kernel."""
    page = opened(browser, page_file, [], viewport={"width": 1240, "height": 900})
    names = page.locator("#device-2 table.cases > tbody .case")
    written = names.all_inner_texts()
    order = page.locator("#device-2").get_by_label("Order")
    order.select_option("by name")
    assert names.all_inner_texts() == sorted(written)
    order.select_option("worst first")
    assert names.all_inner_texts() == written
    page.close()


def test_keyboard(browser: Browser, page_file: Path) -> None:
    """The skip link first; a case opens and closes by Enter, and says so; ids are unique, scrolling boxes named."""
    page = opened(browser, page_file, [], viewport={"width": 1240, "height": 900})
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the cases"
    button = page.locator("#device-2 button.open").first
    button.focus()
    page.keyboard.press("Enter")
    page.locator("#device-2 .plot.drawn").wait_for(timeout=30_000)
    assert button.get_attribute("aria-expanded") == "true"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "last 30"
    button.focus()
    page.keyboard.press("Enter")
    assert button.get_attribute("aria-expanded") == "false"
    assert page.locator(".drawer").count() == 0
    unnamed = ".scroll:not([tabindex='0']), .scroll:not([aria-labelledby]):not([aria-label])"
    assert page.locator(unnamed).count() == 0
    ids = page.evaluate("[...document.querySelectorAll('[id]')].map(e => e.id)")
    assert len(ids) == len(set(ids))
    page.close()


def test_without_javascript(browser: Browser, page_file: Path) -> None:
    """The sentence, the table with words and small pictures; no filter that does nothing."""
    context = browser.new_context(java_script_enabled=False, viewport={"width": 1240, "height": 900})
    page = context.new_page()
    page.goto(page_file.as_uri())
    assert page.locator("#device-2 .takeaway").is_visible()
    assert page.locator("#device-2 table.cases > tbody:visible").count() == 4
    assert page.locator("#device-2 .spark").first.is_visible()
    assert page.locator("form.filters:visible, button:visible").count() == 0
    context.close()
