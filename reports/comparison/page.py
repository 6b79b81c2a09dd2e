"""A comparison → its page: one offline HTML file."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

from harness.comparison.request import Compared
from reports import format as fmt
from reports.comparison.columns import Column, columns
from reports.comparison.details import details
from reports.comparison.environment import attribution, environment_table, what_else
from reports.comparison.heat_map import BY_PROBLEM, ORDERS, WORDS, HeatMap, heat_map
from reports.comparison.scope import cut_short, exit_line, selection
from reports.comparison.summary import counts_table, takeaway
from reports.comparison.words import MEANINGS, SIGNS, notes
from reports.facts import device_name
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
    selection: str
    """Which cases were asked for; "" where all were."""
    cautions: tuple[str, ...]
    """Runs that were cut short, and why new ones are not comparable."""
    environment: Table | None
    what_else: str
    """What there is to say instead of `environment`; "" for nothing."""
    takeaway: str
    counts: Table
    exit_line: str
    map: HeatMap
    notes: tuple[str, ...]
    words: tuple[tuple[str, str, str], ...]
    """(sign, word, meaning)."""


def view(compared: Compared) -> View:
    """What the page of a comparison says."""
    runs = columns([compared.base, *compared.news])
    found = compared.found
    pairs = list(zip(found, runs[1:], strict=True))
    obstacles = [
        f"{run.text} cannot be compared with the base: {fmt.line(why)}"
        for each, run in pairs
        for why in each.not_comparable
    ]
    return View(
        title=f"SGEMV on {device_name(compared.base)}, compared",
        base=runs[0],
        news=runs[1:],
        attribution=attribution(found),
        selection=selection(compared),
        cautions=tuple(said for said in (cut_short(compared, runs), *obstacles) if said),
        environment=environment_table(found, runs),
        what_else=what_else(found),
        takeaway=takeaway(compared, runs),
        counts=counts_table(compared, runs),
        exit_line=exit_line(compared),
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
