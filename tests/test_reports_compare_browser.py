"""The comparison's page in a real browser: filters, orders, opening a cell, keyboard, without script, no complaint."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from harness.comparison.request import Compared
from reports.comparison.page import render_comparison
from tests.browsing import opened
from tests.sample_comparison import held, large, night, pair, several
from tests.sample_run import cpu_run, empty_run, one_trial_run

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

VISIBLE = "[...document.querySelectorAll('#map tbody tr[data-case]')].filter(row => !row.hidden)"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    made = {"pair": pair(hostile=True), "several": several()}
    folder = tmp_path_factory.mktemp("pages")
    return {name: written(folder / f"{name}.html", each) for name, each in made.items()}


@pytest.fixture
def page(browser: Browser, files: dict[str, Path]) -> Iterator[Page]:
    """Two runs; whatever the page complains of fails the test."""
    complaints: list[str] = []
    found = opened(browser, files["pair"], complaints, viewport={"width": 1240, "height": 900})
    yield found
    assert complaints == []
    found.close()


def written(path: Path, made: Compared) -> Path:
    path.write_text(render_comparison(made), encoding="utf-8")
    return path


def shown(page: Page) -> list[str]:
    """Heads of the rows that can be seen, in order: `torch.matmul 1024×16 graph/hot`."""
    heads = page.evaluate(f"{VISIBLE}.map(row => row.cells[0].textContent)")
    return [re.sub(r"\s+", " ", head).strip() for head in heads]


def words(page: Page) -> list[str]:
    """Of the cells that can be seen, all text."""
    return [str(each) for each in page.evaluate(f"{VISIBLE}.map(row => row.querySelector('.cell').textContent)")]


@pytest.mark.parametrize("width", [1240, 400])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["pair", "several"])
def test_nothing_complains_and_nothing_scrolls_sideways(
    browser: Browser, files: dict[str, Path], name: str, width: int, scheme: str
) -> None:
    """No message, no request, hostile names inert; also with a cell open, and with signs only."""
    complaints: list[str] = []
    page = opened(browser, files[name], complaints, viewport={"width": width, "height": 900}, color_scheme=scheme)
    wide = "document.documentElement.scrollWidth"
    assert page.evaluate(wide) <= width
    if name == "several":
        page.locator("#compact").check()
        assert page.evaluate(wide) <= width
    page.locator("#map tbody .cell").first.click()
    assert page.locator("#detail").is_visible()
    assert page.evaluate(wide) <= width
    assert page.evaluate(
        "document.querySelector('#detail').scrollWidth <= document.querySelector('#detail').clientWidth"
    )
    assert complaints == []
    page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_on_every_colour(browser: Browser, files: dict[str, Path], scheme: str) -> None:
    """The strongest of either side has a contrast of 4.5 at least, as WCAG asks of small text."""
    page = opened(browser, files["pair"], [], color_scheme=scheme)
    channels = r"(css) => css.match(/[\d.]+/g).slice(0, 3).map(Number).map(v => css.startsWith('color(') ? v : v / 255)"
    for side in ("longer", "shorter"):
        cell = f"document.querySelector('#map .cell.{side}')"
        colours = (
            f"[getComputedStyle({cell}).backgroundColor, getComputedStyle({cell}.querySelector('b + span')).color]"
        )
        ground, ink = page.evaluate(f"{colours}.map({channels})")
        lights = sorted((luminance(ground), luminance(ink)))
        assert (lights[1] + 0.05) / (lights[0] + 0.05) >= 4.5, (side, ground, ink)
    page.close()


def luminance(channels: list[float]) -> float:
    """Of sRGB, as WCAG 2 defines it."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_chips_filter_by_word(page: Page) -> None:
    """One pressed shows its cases alone, two show both, none shows all."""
    total = len(shown(page))
    assert page.locator("#shown").inner_text() == f"all {total} cases"
    page.get_by_role("button", name="4 slower").click()
    assert [("slower" in each, each.strip()[0]) for each in words(page)] == [(True, "▲")] * 4
    assert page.locator("#shown").inner_text() == f"4 of {total} cases"
    page.get_by_role("button", name="4 failed").click()
    assert sum("failed" in each for each in words(page)) == 4
    assert len(words(page)) == 8
    page.get_by_role("button", name="show all").click()
    assert len(shown(page)) == total
    assert page.locator("[aria-pressed=true]").count() == 0


def test_lists_and_search_filter_together(page: Page) -> None:
    """Kernel, timer and cache from lists; every word of the search, with x for ×, over names and notes."""
    page.get_by_label("kernel").select_option(label="torch.matmul")
    page.get_by_label("timer").select_option(label="graph")
    page.get_by_label("cache").select_option(label="cold")
    assert sorted(shown(page)) == ["torch.matmul 1024×1024 graph/cold", "torch.matmul 1024×16 graph/cold"]
    page.get_by_label("search").fill("1024x16 Slower")
    assert shown(page) == ["torch.matmul 1024×16 graph/cold"]
    page.get_by_label("search").fill("nothing like it")
    assert shown(page) == []
    assert page.locator("#shown").inner_text().startswith("0 of ")
    page.get_by_role("button", name="show all").click()
    page.get_by_label("search").fill("16777216")
    assert len(shown(page)) == 4
    assert all("sgemv_k128_f32x4" in head for head in shown(page))


def test_orders(page: Page) -> None:
    """By ratio alone, and grouped by problem under a head each; a head without cases is not shown."""
    page.get_by_label("order").select_option(label="largest slowdown first")
    figures = [re.search(r"([+−])([\d.]+)", each) for each in words(page)]
    ratios = [float(f[2]) * (1 if f[1] == "+" else -1) for f in figures if f]
    assert ratios == sorted(ratios, reverse=True)
    page.get_by_label("order").select_option(label="by problem")
    groups = page.locator("#map .group:visible")
    assert groups.all_inner_texts() == ["1×1", "1024×16", "1024×1024"]
    page.get_by_label("kernel").select_option(label="torch.matmul")
    assert groups.all_inner_texts() == ["1024×16", "1024×1024"]
    page.get_by_label("order").select_option(label="gravest word first")
    assert groups.count() == 0


def test_a_cell_opens_both_sides(page: Page) -> None:
    """Word, ratio, threshold; each trial in either run; figures, clocks, both ids. Escape goes back to the cell."""
    page.locator("#map tr", has_text="torch.matmul").first.locator(".cell").click()
    said = page.locator("#detail").inner_text().replace("\N{NO-BREAK SPACE}", " ")
    assert re.search(
        r"▲ slower \+5\.\d % \(95 %: \+4\.\d to \+5\.\d %\), p < 0\.0001 after Holm's correction, threshold 1 %", said
    )
    wanted = ("torch.matmul 1024×", "graph/", "samples\t100\t100", "1980 MHz", "20260514T091200Z-nvidia-h200-000000")
    assert [each for each in (*wanted, "20260515T091200Z-nvidia-h200-000001") if each not in said] == []
    assert len(re.findall(r"\d\.\d{3} µs ±0\.\d %", said)) == 2
    places = "side => [...document.querySelectorAll(`.strips .${side} circle`)].map(c => Number(c.getAttribute('cx')))"
    base, new = (page.evaluate(places, side) for side in ("base", "new"))
    assert len(base) == len(new) == 5
    assert max(base) < min(new)  # 5 % later, with a spread of 0.3 %
    page.keyboard.press("Escape")
    assert page.locator("#detail").is_hidden()
    assert "torch.matmul" in page.evaluate("document.activeElement.closest('tr').textContent")


def test_the_axis_is_true(page: Page) -> None:
    """A tick's place is its time: the centre of each run lies where its figure says."""
    page.locator("#map tr", has_text="torch.matmul").first.locator(".cell").click()
    ticks = page.evaluate(
        "[...document.querySelectorAll('.strips text[text-anchor=middle]')]"
        ".map(text => [Number(text.textContent), Number(text.getAttribute('x'))])"
    )
    (first, at), (last, end) = ticks[0], ticks[-1]
    table = page.locator("#detail .facts-table tbody tr").first.locator("td").all_inner_texts()
    for side, text in zip(("base", "new"), table, strict=True):
        drawn = page.evaluate(f"document.querySelector('.strips .{side} .centre').getAttribute('d').slice(1)")
        found = first + (float(drawn.split()[0]) - at) / (end - at) * (last - first)
        assert found == pytest.approx(float(text.split()[0].split("\N{NO-BREAK SPACE}")[0]), rel=5e-4)


def test_keyboard(page: Page) -> None:
    """One cell is in the tab order; arrows move, Enter opens, arrows step inside, and the focus follows."""
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to what changed"
    assert page.locator("#map .cell[tabindex='0']").count() == 1
    page.locator("#map .cell[tabindex='0']").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    assert page.locator("#detail-title").inner_text() == shown(page)[1]
    page.keyboard.press("ArrowDown")
    assert page.locator("#detail-title").inner_text() == shown(page)[2]
    page.get_by_role("button", name="↑ case").click()
    page.get_by_role("button", name="Close").click()
    assert page.evaluate("document.activeElement.closest('tr').rowIndex") == 2
    page.locator("#map .cell[tabindex='0']").focus()
    head = "document.querySelector('#map thead th').getBoundingClientRect().bottom"
    for _ in range(3):
        page.keyboard.press("PageDown")
    for _ in range(25):
        page.keyboard.press("ArrowUp")
        assert page.evaluate(f"document.activeElement.getBoundingClientRect().top >= {head} - 1")
    unnamed = ".scroll:not([tabindex='0']), .scroll:not([aria-labelledby]):not([aria-label])"
    assert page.locator(unnamed).count() == 0


def test_runs_are_stepped_through(browser: Browser, files: dict[str, Path]) -> None:
    """→ goes to the next run of the same case, and stays at the last."""
    complaints: list[str] = []
    page = opened(browser, files["several"], complaints)
    page.locator("#map tr", has_text="torch.matmul").first.locator(".cell").nth(2).click()
    heads = page.locator("#detail thead th")
    assert heads.nth(1).inner_text().startswith("new: driver 590.03.01")
    assert page.locator("#detail strong").inner_text() == "= same"
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert heads.nth(1).inner_text().startswith("new: driver 590.04.01")
    assert page.locator("#detail strong").inner_text() == "▲ slower"
    assert complaints == []
    page.close()


@pytest.mark.parametrize(
    "make",
    [
        lambda: held(one_trial_run(), one_trial_run()),
        lambda: held(night(0), cpu_run()),
        lambda: held(night(0, shapes=((1024, 16),)), night(1), night(2, shapes=((64, 64),))),
        lambda: held(empty_run(), empty_run()),
    ],
    ids=["one trial", "not comparable", "gone and new", "empty"],
)
def test_every_cell_of_every_kind_opens(browser: Browser, tmp_path: Path, make: Any) -> None:
    """Without figures, without intervals, without a side."""
    complaints: list[str] = []
    page = opened(browser, written(tmp_path / "page.html", make()), complaints)
    cells = page.locator("#map tbody .cell")
    for place in range(0, cells.count(), 7):
        cells.nth(place).click()
        said = page.locator("#detail-body").inner_text()
        assert said.strip()
        assert not re.search("undefined|NaN|null", said)
        page.keyboard.press("Escape")
    assert complaints == []
    page.close()


def test_without_javascript(browser: Browser, files: dict[str, Path]) -> None:
    """The whole map is there with its words and figures; what would do nothing is not."""
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(files["pair"].as_uri())
    assert page.locator("#map tbody tr:visible").count() == page.locator("#map tbody tr").count() == 44
    assert page.get_by_text("Every case stands here without.").is_visible()
    assert page.locator("#controls, #detail, #hint").filter(visible=True).count() == 0
    assert page.locator("#map .slower").first.inner_text().startswith("▲ +5.")
    context.close()


def test_many_cases_and_runs_are_usable(browser: Browser, tmp_path: Path) -> None:
    """300 cases × 12 runs: filter, order and cell take less than two seconds each; signs need no scrolling."""
    complaints: list[str] = []
    view: Any = {"width": 1240, "height": 900}
    page = opened(browser, written(tmp_path / "large.html", large(12, samples=4)), complaints, viewport=view)
    for act in (
        lambda: page.get_by_role("button", name="slower").click(),
        lambda: page.get_by_label("order").select_option(label="by problem"),
        page.locator("#map .cell:visible").first.click,
    ):
        started = time.perf_counter()
        act()
        page.evaluate("document.body.offsetHeight")
        assert time.perf_counter() - started < 2
    page.keyboard.press("Escape")
    page.locator("#compact").check()
    assert page.evaluate(
        "document.querySelector('#map-box').scrollWidth <= document.querySelector('#map-box').clientWidth"
    )
    assert complaints == []
    page.close()
