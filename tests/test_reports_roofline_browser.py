"""A roofline run's page in a real browser: every chart drawn, nothing complained about, no sideways scrolling."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from reports.render import render_run
from tests.browsing import opened, wait_until
from tests.sample_roofline import WEIGHTS, roofline_run

if TYPE_CHECKING:
    from playwright.sync_api import Browser

DRAWN = "[...document.querySelectorAll('.plot:not(.drawn)')].every(plot => plot.closest('details:not([open])'))"
OPEN_ALL = "for (const box of document.querySelectorAll('details')) box.open = true"
SECTIONS = ("roofline", "latency", "half", "ran", "energy", "llama", "claims")


COVERING = """
['roofline', 'latency', 'energy'].flatMap(id => [...document.querySelectorAll(`#${id} .plot svg`)]).flatMap(svg => {
  const plot = svg.querySelector('.mark-group.role-frame.root .background').getBoundingClientRect();
  return [...svg.querySelectorAll('text')].filter(e => {
    const box = e.getBoundingClientRect(), beside = box.right <= plot.left || box.left >= plot.right;
    return e.textContent && !beside && box.bottom > plot.top && box.top < plot.bottom;
  }).map(e => e.textContent);
})
"""
"""What is written in a plot, where lines and points are."""


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "roofline.html"
    path.write_text(render_run(roofline_run(weights=WEIGHTS[:5], tokens=(1, 2, 8, 16, 512))), encoding="utf-8")
    return path


@pytest.mark.parametrize("width", [1240, 400])
def test_sections_and_charts(browser: Browser, page_file: Path, width: int) -> None:
    """Each section once and led to; with every box open all is drawn, within the window; ids are unique."""
    complaints: list[str] = []
    page = opened(browser, page_file, complaints, viewport={"width": width, "height": 900})
    wait_until(page, DRAWN)
    for section in SECTIONS:
        assert page.locator(f"section#{section}").count() == 1
        assert page.locator(f"nav a[href='#{section}']").count() == 1
    page.evaluate(OPEN_ALL)
    wait_until(page, DRAWN)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator("#latency .plot svg").count() == 5
    over = "[...document.querySelectorAll('.plot svg')].filter(e => e.getBoundingClientRect().right > innerWidth + 1)"
    assert page.evaluate(f"{over}.map(e => e.getAttribute('aria-label'))") == []
    assert page.evaluate(COVERING) == []
    ids = page.evaluate("[...document.querySelectorAll('[id]')].map(e => e.id)")
    assert len(ids) == len(set(ids))
    assert complaints == []
    page.close()


def test_a_point_names_its_case(browser: Browser, page_file: Path) -> None:
    """On hover: case, time with its interval, intensity, speed, share of what is attainable."""
    page = opened(browser, page_file, [], viewport={"width": 1240, "height": 900})
    wait_until(page, DRAWN)
    page.locator("#roofline .plot svg path[aria-roledescription='point']").nth(3).hover(force=True)
    tip = page.locator("#vg-tooltip-element")
    tip.wait_for(state="visible")
    shown = tip.inner_text().replace("\u00a0", " ")
    for part in ("-graph-cold", "µs ±", "FLOP/byte", "TFLOP/s", "of attainable", "%"):
        assert part in shown
    page.close()


def test_claims_can_be_read_on_a_small_screen(browser: Browser, page_file: Path) -> None:
    """At 400 px a claim's word and figures stand below it, not beside the window."""
    page = opened(browser, page_file, [], viewport={"width": 400, "height": 900})
    wait_until(page, DRAWN)
    boxes = "[...document.querySelectorAll('#claims tbody td')].map(e => e.getBoundingClientRect().right)"
    assert max(page.evaluate(boxes)) <= 400
    assert page.locator("#claims tbody tr").count() == 22
    page.close()
