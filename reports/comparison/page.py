"""A comparison → its page: one offline HTML file."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

from harness.comparison.request import Compared
from reports import format as fmt
from reports.comparison.columns import Column, columns, device_name
from reports.comparison.details import details
from reports.comparison.environment import attribution, environment_table
from reports.comparison.heat_map import BY_PROBLEM, ORDERS, WORDS, HeatMap, heat_map
from reports.comparison.summary import counts_table, takeaway
from reports.comparison.words import MEANINGS, SIGNS, notes
from reports.page import render_page, template_text
from reports.tables import Table

MANY = 6
"""More new runs than this take the whole width of the window."""


@dataclass(frozen=True, kw_only=True)
class View:
    """Everything that the page says."""

    title: str
    base: Column
    news: tuple[Column, ...]
    attribution: str
    """What differs from the base, with the number of new runs where they differ in it."""
    obstacles: tuple[tuple[str, str], ...]
    """(new run, why it is not comparable)."""
    environment: Table | None
    takeaway: str
    counts: Table
    exit_code: int
    exit_means: str
    map: HeatMap
    notes: tuple[str, ...]
    words: tuple[tuple[str, str, str], ...]
    """(sign, word, meaning)."""


def view(compared: Compared) -> View:
    """What the page of a comparison says."""
    runs = columns([compared.base, *compared.news])
    found = compared.found
    pairs = list(zip(found, runs[1:], strict=True))
    return View(
        title=f"SGEMV on {device_name(compared.base)}, compared",
        base=runs[0],
        news=runs[1:],
        attribution=attribution(found),
        obstacles=tuple((run.text, fmt.line(why)) for each, run in pairs for why in each.not_comparable),
        environment=environment_table(found, runs),
        takeaway=takeaway(found, runs),
        counts=counts_table(found, runs),
        exit_code=int(compared.exit_code),
        exit_means=compared.exit_means,
        map=heat_map(found),
        notes=notes(found),
        words=tuple((SIGNS[word], str(word), MEANINGS[word]) for word in WORDS),
    )


def render_comparison(compared: Compared) -> str:
    """The page of a comparison.

    Args:
        compared: at least one new run, all with samples and device states.
    """
    content = view(compared)
    return render_page(
        "compare.html.j2",
        {"page": template_text("compare.js")},
        view=content,
        many=len(content.news) > MANY,
        orders=ORDERS,
        by_problem=BY_PROBLEM,
        word_places={str(word): place for place, word in enumerate(WORDS)},
        data=details(compared.found, (content.base, *content.news), content.map.rows),
        marks={},
    )


def file_name(compared: Compared) -> str:
    """Of the page: both ids, or the base's and a hash of the others where there are several."""
    base, *news = (re.sub(r"[^A-Za-z0-9._-]+", "-", run.id)[:100] for run in (compared.base, *compared.news))
    if len(news) == 1:
        return f"compare-{base}-{news[0]}.html"
    digest = hashlib.sha256("\n".join(news).encode()).hexdigest()[:8]
    return f"compare-{base}-{len(news)}-runs-{digest}.html"
