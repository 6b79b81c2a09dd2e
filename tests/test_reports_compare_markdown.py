"""A comparison in Markdown: what stands in the open, what is escaped, what is cut."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from markdown_it import MarkdownIt

from harness.compare import Change
from harness.words import visible
from reports.comparison.markdown import MOST_BYTES, comparison_markdown, plain
from tests.sample_comparison import large, pair
from tests.sample_run import HOSTILE

NBSP = "\N{NO-BREAK SPACE}"


def _columns(line: str) -> int:
    return len(re.findall(r"(?<!\\)\|", line)) - 1


def test_markdown_of_two_runs() -> None:
    """The attribution, what changed in the open, the rest folded, with threshold, timer, unit and spread."""
    said = comparison_markdown(pair())
    lines = said.splitlines()
    assert lines[0] == "### SGEMV on NVIDIA H200: driver only"
    assert "Exit code 5: a kernel is wrong or crashed in the new run." in lines
    slower = [line for line in lines if line.startswith("| ▲ slower")]
    assert len(slower) == 4
    figures = r"\d\.\d{3} µs ±0\.\d %"
    row = rf"\| ▲ slower \| torch\.matmul \| 1024×16 \| graph/\w+ \| {figures} \| {figures} \| \+5\.\d % \| "
    assert re.match(row, slower[0].replace(NBSP, " "))
    opened = lines.index("<details><summary>14 ambiguous</summary>")
    assert all(line.startswith("| ? ambiguous") for line in lines[opened + 4 : opened + 18])
    assert "<details><summary>6 same and 4 not comparable</summary>" in lines[opened:]
    assert said.count("<details>") == said.count("</details>") == 2
    assert f"Threshold: 1{NBSP}% unless a case says otherwise." in said
    assert "Cut:" not in said


def test_every_row_of_a_markdown_table_has_its_columns() -> None:
    """Also where names hold pipes and newlines."""
    for block in comparison_markdown(pair(hostile=True)).split("\n\n"):
        rows = [line for line in block.splitlines() if line.startswith("|")]
        assert len({_columns(row) for row in rows}) <= 1


def test_markdown_of_hostile_names() -> None:
    """No tag, code span, pipe, link or mention of a record survives."""
    said = comparison_markdown(pair(hostile=True))
    assert HOSTILE not in said
    assert set(re.findall(r"</?\w+", said)) == {
        "<br",
        "<sub",
        "</sub",
        "<details",
        "</details",
        "<summary",
        "</summary",
    }
    assert "`" not in said
    assert "evil&#60;/script&#62;" in said


class _Text(HTMLParser):
    """Tags and text of HTML."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        assert not [name for name, _ in attrs if name in ("href", "src")]

    def handle_data(self, data: str) -> None:
        self.text += data


def test_markdown_as_a_renderer_reads_it() -> None:
    """By another's implementation of CommonMark with tables: names come out as they are, and nothing else does."""
    renderer = MarkdownIt("commonmark", {"html": True}).enable("table")
    read = _Text(renderer.render(comparison_markdown(pair(hostile=True))))
    page = {"h3", "p", "table", "thead", "tbody", "tr", "th", "td", "br", "sub", "details", "summary"}
    assert read.tags == page
    assert visible(HOSTILE) in read.text
    assert "16776192, wanted 16777216" in read.text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("sgemv_k16_f32 on 1024×16 (graph/cold), −4.0 %", "sgemv_k16_f32 on 1024×16 (graph/cold), −4.0 %"),
        ("_a_", "&#95;a&#95;"),
        ("a|b<c>`d`", "a&#124;b&#60;c&#62;&#96;d&#96;"),
        ("@you #1", "&#64;&#8288;you &#35;&#8288;1"),
        ("[x](http://y)", "&#91;x&#93;(http:&#47;&#47;y)"),
        ("WWW.evil.com", "WWW&#46;evil.com"),
        ("a\nb&amp;\\*$", "a&#10;b&#38;amp;&#92;&#42;&#36;"),
    ],
)
def test_text_for_markdown(text: str, shown: str) -> None:
    """What Markdown, HTML or GitHub could take for something else becomes an entity."""
    assert plain(text) == shown


def test_markdown_keeps_to_githubs_limit() -> None:
    """The sure changes of every run stay, later rows are cut, and how many is said."""
    made = large(12, samples=4)
    said = comparison_markdown(made)
    assert len(said.encode()) <= MOST_BYTES == 65536
    cut = re.search(r"Cut: ([\d\u202f]+) more rows, since GitHub takes 65536 characters at most\.", said)
    assert cut is not None
    sure = sum(each.counts[word] for each in made.found for word in (Change.FAILED, Change.SLOWER, Change.FASTER))
    assert len(re.findall(r"^\| (?:✕ failed|▲ slower|▼ faster)", said, re.MULTILINE)) == sure > 30
    total = sum(len(each.cases) for each in made.found)
    shown = len(
        re.findall(r"^\| \S+ (?:failed|slower|faster|ambiguous|same|new|gone|not comparable) ", said, re.MULTILINE)
    )
    assert int(cut[1].replace("\u202f", "")) == total - shown
    assert said.count("<details>") == said.count("</details>")
