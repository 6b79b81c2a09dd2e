"""Whatever shows a run, on runs all of whose texts are hostile: nothing runs, breaks, hides or goes on without end."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import unicodedata
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest
from markdown_it import MarkdownIt

from harness.__main__ import main as harness
from harness.store import load, verify
from harness.store.draft import Draft
from reports.__main__ import main as reports
from reports.render import write_run_page
from tests.browsing import opened, wait_until
from tests.hostile import KNOWN, TEXTS, each_by_another, followed_by, full_run, spoiled
from tests.planted_runs import publish

if TYPE_CHECKING:
    from playwright.sync_api import Browser

PAGES = {"run": ("run", "base", "--table"), "comparison": ("compare", "base", "new"), "history": ("history",)}
"""By `python -m reports`."""

PRINTED = {"runs": ("runs",), "verify": ("verify",), "compare": ("compare", "base", "new", "--all")}
"""For people, by `python -m harness`."""

DATA = {
    "compare": ("compare", "base", "new", "--json"),
    "pytest-benchmark": ("export", "base", "--to", "pytest-benchmark"),
    "github-action-benchmark": ("export", "base", "--to", "github-action-benchmark"),
}
"""In JSON."""

MARKDOWN = ("compare", "base", "new", "--markdown")
CSV = ("export", "base", "--to", "csv")

HIDING = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
"""Unicode's categories of what has no glyph, or ends a line."""

LONGER_BY = 200_000
"""Characters that hostile texts may add to all of an output."""


class Told:
    """A store of two runs, and what the commands say of them."""

    def __init__(self, root: Path, spoil: Callable[[str], str], kept: frozenset[str] = KNOWN) -> None:
        self.root = root
        self.run = spoiled(full_run(), spoil, kept)
        publish(root, "base", self.run)
        publish(root, "new", spoiled(full_run(driver_version="another", hostname="another"), spoil, kept))
        self._written: dict[str, tuple[Path, str]] = {}

    def ended(self, program: Callable[..., int], *arguments: str) -> tuple[int, str, str]:
        """Exit code, output, complaints."""
        out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="") for _ in range(2))
        with redirect_stdout(out), redirect_stderr(err):
            code = program([*arguments, "--store", str(self.root)])
        return code, *(each.detach().getvalue().decode() for each in (out, err) if each.flush() is None)

    def said(self, program: Callable[..., int], *arguments: str) -> str:
        """Output of a command that has nothing to complain of."""
        code, out, err = self.ended(program, *arguments)
        assert (code in (0, 5), err) == (True, "")  # 5: a kernel is wrong
        return out

    def written(self, name: str) -> tuple[Path, str]:
        """The file of a page, and what was printed meanwhile."""
        if name not in self._written:
            file = self.root / "pages" / f"{name}.html"
            self._written[name] = file, self.said(reports, *PAGES[name], "--output", str(file))
        return self._written[name]

    def html(self, name: str) -> str:
        """The text of a page."""
        return self.written(name)[0].read_text(encoding="utf-8")


class Page(HTMLParser):
    """The elements of a page with the names of their attributes, what can be read of it, and its data."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, ...]] = []
        self.text = ""
        self.data: list[str] = []
        self._open = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """An element with its attributes, whose values are text too."""
        self.elements.append((tag, *sorted(name for name, _ in attrs)))
        self.text += "".join(value or "" for _, value in attrs)
        self._open = "data" if ("type", "application/json") in attrs else tag
        self.data += [""] if self._open == "data" else []

    def handle_endtag(self, tag: str) -> None:
        """An element's end."""
        self.elements.append((f"/{tag}",))
        self._open = ""

    def handle_data(self, data: str) -> None:
        """Text, by what it is in."""
        if self._open == "data":
            self.data[-1] += data
        elif self._open not in ("script", "style"):
            self.text += data


def hiding(text: str) -> set[str]:
    """Codes of the characters in it that show as nothing, or end a line otherwise than by a newline."""
    return {f"{ord(c):04X}" for c in set(text) if unicodedata.category(c) in HIDING and c != "\n"}


def strings(value: Any) -> str:
    """Every string in JSON's values, together."""
    if isinstance(value, dict):
        return "".join(map(str, value)) + strings(list(value.values()))
    return "".join(map(strings, value)) if isinstance(value, list) else str(value)


@pytest.fixture(scope="module")
def harmless(tmp_path_factory: pytest.TempPathFactory) -> Told:
    return Told(tmp_path_factory.mktemp("harmless"), followed_by(""))


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Told:
    return Told(tmp_path_factory.mktemp("mixed"), each_by_another("NVIDIA H200", "sgemv_k32_f32"))


@pytest.fixture(scope="module", params=TEXTS)
def told(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Told:
    return Told(tmp_path_factory.mktemp("hostile"), followed_by(TEXTS[request.param]))


def test_a_run_is_kept(told: Told) -> None:
    """As it is, in files that other readers take: of JSON, Parquet and sums."""
    folder, run = told.root / "base", load(told.root / "base")
    assert replace(run, id=told.run.id, measurements=()) == replace(told.run, measurements=())
    assert [m.case for m in run.measurements] == [m.case for m in told.run.measurements]
    ids = {m.case.id for m in told.run.measurements if m.samples_ns}
    assert set(pd.read_parquet(folder / "samples.parquet")["case_id"]) == ids
    assert subprocess.run(["sha256sum", "-c", "--quiet", "SHA256SUMS"], cwd=folder, check=False).returncode == 0


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_the_same_page(name: str, told: Told, harmless: Told) -> None:
    """Element by element, attribute by attribute, and hardly longer; nothing that it shows or draws hides."""
    html = told.html(name)
    page, wanted = Page(html), Page(harmless.html(name))
    assert page.elements == wanted.elements
    assert hiding(page.text) == set()
    assert hiding(strings([json.loads(each) for each in page.data])) == set()
    assert len(html) < len(harmless.html(name)) + LONGER_BY


@pytest.mark.parametrize("name", PRINTED)
def test_a_terminal_shows_it(name: str, told: Told, harmless: Told) -> None:
    """Without a character that a terminal obeys, in lines that all belong to the table."""
    said, wanted = (each.said(harness, *PRINTED[name]) for each in (told, harmless))
    assert hiding(said) == set()
    assert len(said) < len(wanted) + LONGER_BY
    assert not [line for line in said.splitlines() if line.startswith(("::", "#"))]  # what GitHub would obey in a log


def test_a_bench_ends_with_it(told: Told) -> None:
    """The table of a run, with where the run and its page are."""
    _, said = told.written("run")
    assert hiding(said) == set()
    assert len(said) < LONGER_BY


def test_markdown_renders_the_same(told: Told, harmless: Told) -> None:
    """Element by element, by another's implementation of CommonMark with tables."""
    read = MarkdownIt("commonmark", {"html": True}).enable("table").render
    page, wanted = (Page(read(each.said(reports, *MARKDOWN))) for each in (told, harmless))
    assert page.elements == wanted.elements
    assert hiding(page.text) <= {"2060"}  # our own, which keeps names from being mentions


@pytest.mark.parametrize("name", DATA)
def test_json_is_read_by_others(name: str, told: Told, harmless: Told) -> None:
    """Entry by entry, in ASCII."""
    said, wanted = (each.said(harness, *DATA[name]) for each in (told, harmless))
    assert said.isascii()
    assert len(json.loads(said)) == len(json.loads(wanted))


def test_csv_keeps_its_rows(told: Told, harmless: Told) -> None:
    """Cell by cell; a spreadsheet takes none for a formula."""
    found, wanted = (list(csv.reader(io.StringIO(each.said(harness, *CSV)))) for each in (told, harmless))
    assert [len(row) for row in found] == [len(row) for row in wanted]
    assert hiding(strings(found)) == set()


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("name", PAGES)
def test_a_browser_shows_it(name: str, width: int, browser: Browser, mixed: Told) -> None:
    """Nothing runs, nothing is complained of or asked for, nothing scrolls sideways; also with every box open."""
    complaints: list[str] = []
    page = opened(browser, mixed.written(name)[0], complaints, viewport={"width": width, "height": 900})
    wait_until(page, "document.readyState === 'complete'")
    page.evaluate("for (const box of document.querySelectorAll('details')) box.open = true")
    wait_until(page, "!document.querySelector('.plot:not(.drawn)')")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert hiding(page.evaluate("document.body.innerText").replace("\t", "")) == set()
    assert complaints == []
    page.close()


def test_words_of_the_program_are_hostile_too(tmp_path: Path) -> None:
    """Timers, dtypes, times, ids: each command has its output, or one line of why not."""
    told = Told(tmp_path, each_by_another(), kept=frozenset())
    commands = {harness: (*PRINTED.values(), *DATA.values(), CSV), reports: (*PAGES.values(), MARKDOWN)}
    for program, words in ((program, words) for program, each in commands.items() for words in each):
        code, out, err = told.ended(program, *words)
        assert code in (0, 4, 5), err  # 4: of a later version; 5: a kernel is wrong
        assert (hiding(err), err.count("\n")) == (set(), int(not out)), err


def test_names_of_folders_and_refs(tmp_path: Path) -> None:
    """A run in a folder, under a ref, in a store of such a name: listed, verified, shown."""
    name = "".join(TEXTS[each][:12] for each in ("markup", "quotes", "lines", "controls", "invisible")) + "\udcff"
    name = name.replace("/", "").replace("\0", "")
    told = Told(tmp_path / name, followed_by(""))
    (told.root / "base").rename(told.root / name)
    (told.root / "refs").mkdir()
    (told.root / "refs" / name).write_bytes(os.fsencode(name))
    for words in (("runs",), ("verify",), ("export", name, "--to", "csv")):
        assert hiding(told.said(harness, *words)) == set()
    for words in (("run", name), ("history",)):
        assert hiding(told.said(reports, *words)) == set()
    assert {path.stem for path in (told.root / "reports").iterdir()} == {name, "history"}


def test_a_draft_is_published(tmp_path: Path) -> None:
    """Also where its records are of this process, and texts of theirs no file can hold."""
    evil = spoiled(full_run(), followed_by("!"))
    name = "host\udcff"
    run = replace(evil, environment=replace(evil.environment, values={"hostname": name}), warnings=(name,))
    draft = Draft.create(tmp_path / "store", replace(run, measurements=()))
    (draft.kept / f"{name}\x85\x1b\u2028</script>\u202e".replace("/", "")).write_text(
        "a kernel's source", encoding="utf-8"
    )
    for each in run.measurements:
        draft.append(replace(each, case=replace(each.case, kernel=name)))
    folder = draft.publish(partial=False)
    verify(folder)
    assert subprocess.run(["sha256sum", "-c", "--quiet", "SHA256SUMS"], cwd=folder, check=False).returncode == 0
    assert hiding(Page(write_run_page(folder, tmp_path / "page.html").read_text(encoding="utf-8")).text) == set()
    found = load(folder)
    assert found.environment.get("hostname") == "host\\udcff"
    assert {m.case.kernel for m in found.measurements} == {"host\\udcff"}
