"""README.md and docs/measuring.md: no figure without a run, every table is what examples/tables.py makes of one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from examples import tables


@pytest.mark.parametrize("path", tables.DOCUMENTS, ids=lambda path: path.name)
def test_its_tables_are_those_of_the_runs(path: Path) -> None:
    """`python examples/tables.py` writes them."""
    text = path.read_text(encoding="utf-8")
    assert text == tables.with_tables(text)


def test_every_table_stands_somewhere() -> None:
    """A table that nobody reads need not be made."""
    shown = "".join(path.read_text(encoding="utf-8") for path in tables.DOCUMENTS)
    assert set(re.findall(r"<!-- (?!end)(.+?) -->", shown)) == set(tables.TABLES)


@pytest.mark.parametrize("path", tables.DOCUMENTS, ids=lambda path: path.name)
def test_its_links_lead_somewhere(path: Path) -> None:
    """Within the project; an anchor is a heading there."""
    prose = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target, anchor in re.findall(r"\]\((?!https?:)([^)#]+)(?:#([^)]*))?\)", prose):
        assert (path.parent / target).exists(), target
        if anchor:
            headings = re.findall(r"(?m)^#+ (.+)$", (path.parent / target).read_text(encoding="utf-8"))
            assert anchor in {re.sub(r"[^\w -]", "", each.lower()).replace(" ", "-") for each in headings}, anchor
