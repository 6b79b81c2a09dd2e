"""View data → one HTML file that asks the network for nothing."""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import jinja2
import vl_convert
from markupsafe import Markup

from harness import store
from harness.errors import CommandError, Exit
from harness.model import Run
from reports import format as fmt
from reports.charts import Panel, charts
from reports.figures import Figures
from reports.marks import kernel_marks, page_config
from reports.view import view

TEMPLATES = Path(__file__).parent / "templates"


def render_run(run: Run, files: Sequence[tuple[str, int]] = ()) -> str:
    """The page of one run.

    Args:
        run: with samples and device states, as `harness.store.load` gives it.
        files: (path within the run's folder, bytes) to be listed.
    """
    content = view(run, files)
    scripts = {
        "library": vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;"),
        "page": _template_text("page.js"),
    }
    return (
        _environment()
        .get_template("run.html.j2")
        .render(
            view=content,
            run=run,
            sections=_pictures(content.figures),
            marks=kernel_marks(content.figures),
            config=page_config(),
            style=Markup(_template_text("style.css")),  # noqa: S704 - a file of this package
            scripts={name: Markup(text) for name, text in scripts.items()},  # noqa: S704 - no part of a run is in them
            policy=content_security_policy(list(scripts.values())),
        )
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
    html = render_run(run, files)
    temporary = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(html, encoding="utf-8")
        temporary.replace(target)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink()
        why = error.strerror or error
        raise CommandError(f"page {target}: {why}; name a writable file with --output", Exit.INFRASTRUCTURE) from error
    return target


def content_security_policy(scripts: Sequence[str]) -> str:
    """Only these scripts run, whatever a name in a run contains, and nothing is fetched."""
    digests = (base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in scripts)
    allowed = " ".join(f"'sha256-{digest}'" for digest in digests)
    return f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data:; base-uri 'none'"


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


def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.policies["json.dumps_kwargs"] = {"allow_nan": False, "separators": (",", ":")}
    environment.filters["name"] = fmt.name
    environment.filters["line"] = fmt.line
    environment.filters["until"] = fmt.period
    return environment


def _template_text(name: str) -> str:
    return (TEMPLATES / name).read_text(encoding="utf-8")
