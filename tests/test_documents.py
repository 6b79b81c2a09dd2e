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
    """Within the project."""
    for target in re.findall(r"\]\((?!https?:)([^)#]+)(?:#[^)]*)?\)", path.read_text(encoding="utf-8")):
        assert (path.parent / target).exists(), target
