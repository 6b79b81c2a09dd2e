"""A history → one HTML file that asks the network for nothing."""

from __future__ import annotations

from collections.abc import Callable

from markupsafe import Markup

from harness.history.devices import History
from harness.model import Case
from reports.history.chart import chart
from reports.history.sparkline import HEIGHT, WIDTH
from reports.history.view import view
from reports.marks import page_config
from reports.page import chart_library, render_page, template_text


def render_history(history: History, wanted: Callable[[Case], bool] = lambda _: True, selected: str = "") -> str:
    """The page of a history.

    Args:
        history: with at least one device.
        wanted: cases to show.
        selected: the same in words; "": all.
    """
    return render_page(
        "history.html.j2",
        {"library": chart_library(), "page": template_text("history.js")},
        view=view(history, wanted, selected),
        chart=chart(),
        config=page_config(),
        picture=(WIDTH, HEIGHT),
        own_style=Markup(template_text("history.css")),  # noqa: S704 - a file of this package
    )
