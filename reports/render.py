"""A run → its page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness import store
from harness.model import Run
from reports.charts import Panel, charts
from reports.figures import Figures
from reports.marks import kernel_marks, page_config
from reports.page import chart_library, render_page, template_text, write_page
from reports.view import view


def render_run(run: Run, files: Sequence[tuple[str, int]] = ()) -> str:
    """The page of one run.

    Args:
        run: with samples and device states, as `harness.store.load` gives it.
        files: (path within the run's folder, bytes) to be listed.
    """
    content = view(run, files)
    return render_page(
        "run.html.j2",
        {"library": chart_library(), "page": template_text("page.js")},
        view=content,
        run=run,
        sections=_pictures(content.figures),
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


def _pictures(f: Figures) -> dict[str, list[dict[str, Any]]]:
    """Charts that have something to show, by section."""
    by_section: dict[str, list[dict[str, Any]]] = {}
    for chart in charts():
        if panels := chart.spec(f):
            entry = {"chart": chart, "panels": panels, "tables": chart.table(f), "kernels": _legend(f, panels)}
            by_section.setdefault(chart.section, []).append(entry)
    return by_section


def _legend(f: Figures, panels: Sequence[Panel]) -> list[str]:
    return [kernel for kernel in f.kernels if any(kernel in panel.kernels for panel in panels)]
