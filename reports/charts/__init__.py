"""The page's charts: one module each, found by looking into this folder.

A chart module holds `CHARTS`, a tuple of `Chart`. To add a chart, add a module.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from reports.figures import Figures
from reports.tables import Table


@dataclass(frozen=True, kw_only=True)
class Panel:
    """One picture of a chart; panels stand side by side where the page is wide enough."""

    title: str
    """What it shows of the chart, e.g. the timer."""
    description: str
    """For who cannot see it: what it shows, in a sentence."""
    spec: dict[str, Any]
    """Vega-Lite, as wide as its box; colours are CSS variables of the page."""
    kernels: tuple[str, ...] = ()
    """Kernels that are told apart by colour and shape in it, for the legend."""
    wide: bool = False
    """True: takes the whole width."""
    folded: bool = False
    """True: is drawn only once the reader opens the box of such panels."""
    chosen: int | None = None
    """Of a picture of one case at a time: the first, a number in `case` of the rows of its chart's other panels."""


@dataclass(frozen=True, kw_only=True)
class Chart:
    """A chart with its numbers."""

    section: str
    """Of the page: `speed`, `limit`, `roofline`, `latency`, `energy`, `trials`, `launches` or `device`."""
    title: str
    """What it shows, with units."""
    explanation: str
    """How to read it, in a sentence or two."""
    spec: Callable[[Figures], list[Panel]]
    """Its panels; none: the run has nothing to show, and the chart is left out."""
    table: Callable[[Figures], list[Table]]
    """The same numbers."""
    others: str = "The same by"
    """Before the titles of the folded panels."""


def charts() -> tuple[Chart, ...]:
    """All charts, by module name."""
    modules = sorted(info.name for info in pkgutil.iter_modules(__path__))
    return tuple(chart for name in modules for chart in importlib.import_module(f"{__name__}.{name}").CHARTS)
