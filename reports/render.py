"""A run → its page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness import store
from harness.model import Run
from reports.chart_data import ChartData
from reports.charts import Panel, charts
from reports.figures import Figures
from reports.marks import kernel_marks, page_config, unchecked
from reports.page import chart_library, render_page, template_text, write_page
from reports.view import view


def render_run(run: Run, files: Sequence[tuple[str, int]] = ()) -> str:
    """The page of one run.

    Args:
        run: with samples and device states, as `harness.store.load` gives it.
        files: (path within the run's folder, bytes) to be listed.
    """
    content, data = view(run, files), ChartData()
    with unchecked():
        sections = _pictures(content.figures, data)
    return render_page(
        "run.html.j2",
        {"library": chart_library(), "page": template_text("page.js"), "figures": template_text("figures.js")},
        view=content,
        run=run,
        sections=sections,
        rows=data.by_name,
        marks=kernel_marks(content.figures),
        config=page_config(),
    )


def write_run_page(folder: Path, target: Path) -> Path:
    """Render the published run in `folder` into `target`, replacing it in one step.

    Returns:
        `target`.

    Raises:
        CommandError: the run is missing or damaged (RUN), or `target` cannot be written (INFRASTRUCTURE).
    """
    run = store.load(folder)
    present = sorted(path for path in folder.rglob("*") if path.is_file())
    files = [(path.relative_to(folder).as_posix(), path.stat().st_size) for path in present]
    return write_page(render_run(run, files), target)


def _pictures(f: Figures, data: ChartData) -> dict[str, list[dict[str, Any]]]:
    """Charts that have something to show, by section; their rows are put into `data`."""
    by_section: dict[str, list[dict[str, Any]]] = {}
    for chart in charts():
        if found := chart.spec(f):
            panels = [replace(panel, spec=data.without_rows(panel.spec)) for panel in found]
            entry = {"chart": chart, "panels": panels, "tables": chart.table(f), "kernels": _legend(f, panels)}
            by_section.setdefault(chart.section, []).append(entry)
    return by_section


def _legend(f: Figures, panels: Sequence[Panel]) -> list[str]:
    """Kernels that its panels show, in the order of the run's."""
    return [kernel for kernel in kernel_marks(f) if any(kernel in panel.kernels for panel in panels)]
