"""The table of all figures in a real browser: filters, sorting, the address, what it hands out, and who can use it."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from markdown_it import MarkdownIt

from reports.render import render_run
from tests.browsing import opened, serious_complaints, wait_until
from tests.sample_run import HOSTILE, KERNELS, gpu_run

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

FORMULA = "=1+1"
"""A kernel's name that a spreadsheet would compute."""

SHOWN = "[...document.querySelectorAll('#figures tbody tr:not(.group)')].filter(row => row.offsetParent)"


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = gpu_run(shapes=((1024, 16), (1024, 128)), samples=6, hostile=True)
    renamed = tuple(
        replace(m, case=replace(m.case, kernel=FORMULA)) if m.case.kernel == "sgemv_k32_f32" else m
        for m in run.measurements
    )
    path = tmp_path_factory.mktemp("page") / "run.html"
    path.write_text(render_run(replace(run, measurements=renamed)), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def drawn(browser: Browser, page_file: Path) -> Iterator[Page]:
    """One page for all tests: drawing its charts takes longer than they do."""
    complaints: list[str] = []
    page = opened(browser, page_file, complaints, viewport={"width": 1240, "height": 900})
    wait_until(page, "document.querySelectorAll('.plot:not(.drawn)').length === 0")
    yield page
    assert complaints == []
    page.close()


@pytest.fixture
def page(drawn: Page) -> Page:
    drawn.get_by_role("button", name="Show all").click()
    return drawn


def column(page: Page, place: int) -> list[str]:
    """Texts of one column of the rows shown, without the notes behind them."""
    own = "[...cell.childNodes].filter(node => node.className !== 'note').map(node => node.textContent).join('')"
    return list(page.evaluate(f"{SHOWN}.map(row => row.cells[{place}]).filter(Boolean).map(cell => {own}.trim())"))


def kernels(page: Page) -> list[str]:
    """By row; the problem that a sorted row shows is not part of it."""
    return list(page.evaluate(f"{SHOWN}.map(row => row.cells[0].firstChild.textContent.trim())"))


def choose(page: Page, facet: str, value: str) -> None:
    page.locator(f"#controls select[name={facet}]").select_option(label=value)


def test_filters_by_every_facet(page: Page) -> None:
    """Kernel, problem, timer and cache; what is left is counted; a row about several kernels is found by each."""
    whole = page.evaluate(f"{SHOWN}.length")
    assert page.locator("#shown").inner_text() == f"All {whole} rows, by problem"
    choose(page, "kernel", "read")
    assert set(kernels(page)) == {"read"}
    assert page.locator("#shown").inner_text() == f"8 of {whole} rows, by problem"
    choose(page, "timer", "graph")
    choose(page, "cache", "hot")
    assert column(page, 1) == ["graph/hot"] * 2
    choose(page, "problem", "1024×128")
    assert page.evaluate(f"{SHOWN}.length") == 1
    assert page.locator("#figures .group:visible .problem").all_inner_texts() == ["1024×128"]
    page.get_by_role("button", name="Show all").click()
    assert page.evaluate(f"{SHOWN}.length") == whole
    choose(page, "kernel", "sgemv_broken")
    assert page.evaluate(f"{SHOWN}.length") == 2
    assert all("sgemv_broken" in name for name in kernels(page))


def test_searches_text(page: Page) -> None:
    """Every word must be found somewhere in a row, its problem among it; × is typed as x; nothing found is said."""
    page.get_by_label("search").fill("1024X128 MATMUL")
    assert page.locator("#shown").inner_text().startswith("4 of ")
    page.get_by_label("search").fill("not a multiple nowhere")
    assert page.locator("#shown").inner_text().startswith("0 of ")
    assert page.locator("#figures .group:visible").count() == 0


def test_sorts_by_keyboard(page: Page) -> None:
    """Largest first, smallest first, by problem again; what has no figure comes last; the direction is announced."""
    before = page.evaluate(f"{SHOWN}.map(row => row.textContent)")
    head = page.locator("#figures thead th", has_text="µs")
    head.get_by_role("button").focus()
    for direction, sign in (("descending", -1), ("ascending", 1)):
        page.keyboard.press("Enter")
        assert head.get_attribute("aria-sort") == direction
        texts = [text for text in column(page, 2) if text[:1].isdigit()]
        figures = [float(text.replace("\u202f", "")) for text in texts]
        assert figures == sorted(figures, key=lambda value: sign * value)
        assert [text[:1].isdigit() for text in column(page, 2)] == sorted(
            (text[:1].isdigit() for text in column(page, 2)), reverse=True
        )
        assert page.locator("#figures .group:visible").count() == 0
        assert page.locator("#figures tbody tr:not(.group) .problem").first.is_visible()
    page.keyboard.press("Enter")
    assert head.get_attribute("aria-sort") is None
    assert page.evaluate(f"{SHOWN}.map(row => row.textContent)") == before
    assert page.locator("#figures [aria-sort]").count() == 0


def test_the_address_keeps_what_is_shown(page: Page, browser: Browser) -> None:
    """Opened elsewhere, it shows the same; a hostile value in it chooses nothing and runs nothing."""
    choose(page, "timer", "async")
    page.get_by_label("search").fill("matmul")
    page.locator("#figures thead button", has_text="bandwidth").click()
    complaints: list[str] = []
    other = browser.new_page()
    other.on("pageerror", lambda error: complaints.append(str(error)))
    other.goto(page.url)
    wait_until(other, "document.getElementById('shown').textContent !== ''")
    assert "#cases?search=matmul&timer=async&sort=-bandwidth" in page.url
    assert kernels(other) == kernels(page) == ["torch.matmul"] * 4
    assert column(other, 5) == column(page, 5)
    other.goto(page.url.split("#")[0] + "#cases?timer=<img src=x onerror=alert(1)>&sort=nothing&search=%")
    other.reload()
    wait_until(other, "document.getElementById('shown').textContent !== ''")
    assert other.locator("#shown").inner_text().startswith("0 of ")
    assert complaints == []
    other.close()


def test_hands_out_csv(page: Page) -> None:
    """What is shown, in its order: figures as plain numbers, no dash, no formula, notes in a column of their own."""
    choose(page, "timer", "graph")
    with page.expect_download() as download:
        page.get_by_role("button", name="Download as CSV").click()
    assert download.value.suggested_filename == "20260514T091200Z-nvidia-h200-580.159.04-5a3b1c-figures.csv"
    content = Path(download.value.path()).read_bytes().decode("utf-8-sig")
    head, *rows = csv.reader(io.StringIO(content))
    assert head[:4] == ["problem", "kernel", "timer, cache", "time (µs)"]
    assert head[-1] == "note"
    assert len(rows) == page.evaluate(f"{SHOWN}.length")
    assert {len(row) for row in rows} == {len(head)}
    by_kernel = {(row[0], row[1], row[2]): row for row in rows}
    assert float(by_kernel["1024×128", "torch.matmul", "graph/cold"][3]) > 1
    assert by_kernel["1024×128", "read", "graph/cold"][8] == ""
    assert by_kernel["1024×128", "read", "graph/cold"][-1] == "float4"
    assert ("1024×16", f"'{FORMULA}", "graph/cold") in by_kernel
    assert not any(cell.startswith("=") for row in rows for cell in row)
    assert any("⟨202E⟩" in row[1] for row in rows)


def test_copies_markdown(page: Page) -> None:
    """A table that a Markdown reader takes for one, whatever is in a name."""
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    choose(page, "cache", "cold")
    page.get_by_role("button", name="Copy as Markdown").click()
    wait_until(page, "document.getElementById('shown').textContent.startsWith('Copied')")
    said = page.evaluate("navigator.clipboard.readText()")
    html = MarkdownIt("commonmark").enable("table").render(said)
    assert html.count("<tr>") == 1 + page.evaluate(f"{SHOWN}.length")
    assert html.count("<th") - html.count("<thead") == 12
    assert "<td>1024×128</td>" in html.replace(' style="text-align:left"', "")
    assert HOSTILE.split("<")[0] in html
    assert "<script" not in html


def test_a_browser_that_forbids_copying(page: Page) -> None:
    """The same text stands there to be copied by hand."""
    page.evaluate("() => { navigator.clipboard.writeText = () => Promise.reject(new Error('no')) }")
    page.get_by_role("button", name="Copy as Markdown").click()
    area = page.locator("#by-hand textarea")
    area.wait_for(state="visible")
    assert area.input_value().startswith("| problem | kernel |")


def test_without_a_script_all_stands_there(browser: Browser, page_file: Path) -> None:
    """Every case, under its problem's name; no control that would do nothing."""
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(page_file.as_uri())
    assert not page.locator("#controls").is_visible()
    assert page.locator("#figures .group").all_inner_texts()[1].startswith("1024×128")
    rows = page.locator("#figures tbody tr:not(.group)")
    assert rows.count() > 30
    assert all(row.is_visible() for row in rows.all()[:10])
    context.close()


def test_a_screen_reader_can_use_the_page(browser: Browser, tmp_path: Path) -> None:
    """Axe finds nothing serious with every box open: light and wide, dark and on a phone."""
    page_file = tmp_path / "small.html"
    names = {name: KERNELS[name] for name in ("torch.matmul", "sgemv_k32_f32", "sgemv_broken", "read", "empty")}
    page_file.write_text(render_run(gpu_run(shapes=((1024, 128),), kernels=names, trials=3, samples=6)), "utf-8")
    for width, scheme, rules in ((1240, "light", ()), (400, "dark", ("color-contrast", "target-size"))):
        page = opened(browser, page_file, [], viewport={"width": width, "height": 900}, color_scheme=scheme)
        page.evaluate("for (const box of document.querySelectorAll('details')) box.open = true")
        wait_until(page, "document.querySelectorAll('.plot:not(.drawn)').length === 0")
        assert serious_complaints(page, *rules) == []
        page.close()


def test_a_phone_says_that_there_is_more(browser: Browser, page_file: Path) -> None:
    """A shadow at the right edge of a table that goes on there, and none once its end is in view."""
    page = opened(browser, page_file, [], viewport={"width": 400, "height": 900})
    wait_until(page, "document.querySelectorAll('.plot:not(.drawn)').length === 0")
    box = page.locator("#figures-box")
    box.scroll_into_view_if_needed()
    assert box.evaluate("box => box.scrollWidth > box.clientWidth + 50")
    looks = box.evaluate("box => getComputedStyle(box).background")
    assert looks.count("linear-gradient") == 2
    assert "local" in looks
    first = page.locator("#figures tbody th[scope=row]").first
    assert first.bounding_box()["width"] <= 195
    page.close()


def test_paper_has_every_row_and_no_control(page: Page) -> None:
    """Nothing scrolls on paper."""
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.getElementById('figures-box')).maxHeight") == "none"
    assert page.locator("#copy").is_hidden()
    assert page.locator("#search").is_hidden()
    assert page.locator("#figures tbody tr:not(.group)").last.is_visible()
    page.emulate_media(media="screen")
