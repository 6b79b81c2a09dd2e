"""What every page is made of: templates, scripts that alone may run, and one step onto the disk."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.output import write_file
from harness.stats import CENTRE
from harness.words import coded
from reports import format as fmt

if TYPE_CHECKING:
    import jinja2

TEMPLATES = Path(__file__).parent / "templates"


def render_page(template: str, scripts: Mapping[str, str], **content: Any) -> str:
    """One offline HTML file.

    Args:
        template: file name in `templates/`; it finds `style`, `policy` and `scripts` beside `content`.
        scripts: text by name, from `template_text` or `chart_library`; the template writes `{{ scripts.name }}` between
            script tags. No part of a run may be in them: that goes into `<script type="application/json">` by `tojson`.
        **content: what the template shows; all of it is escaped.
    """
    from markupsafe import Markup

    return (
        page_environment()
        .get_template(template)
        .render(
            **content,
            style=Markup(template_text("style.css")),  # noqa: S704 - a file of this package
            scripts={name: Markup(text) for name, text in scripts.items()},  # noqa: S704 - no part of a run is in them
            policy=content_security_policy(list(scripts.values())),
        )
    )


def write_page(html: str, target: Path) -> Path:
    """Write `html`, or other text, into `target`, replacing it in one step; needs none of the page's packages.

    Returns:
        `target`.

    Raises:
        CommandError: `target` cannot be written (INFRASTRUCTURE).
    """
    return write_file(html.encode(), target)


def content_security_policy(scripts: Sequence[str]) -> str:
    """Only these scripts run, whatever a name in a run contains, and nothing is fetched."""
    digests = (base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in scripts)
    allowed = " ".join(f"'sha256-{digest}'" for digest in digests)
    return f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data:; base-uri 'none'"


def page_environment() -> jinja2.Environment:
    """Templates whose values are escaped; an unknown value is an error.

    They have `harness.stats.CENTRE` and the filters `name`, `line` and `until`. Of text that comes without a filter
    what would hide or reorder the text around it shows as codes all the same.
    """
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=lambda value: coded(value) if type(value) is str else value,  # Markup is the program's own
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.policies["json.dumps_kwargs"] = {"allow_nan": False, "separators": (",", ":")}
    environment.globals["CENTRE"] = CENTRE
    environment.filters["name"] = fmt.name
    environment.filters["line"] = fmt.line
    environment.filters["until"] = fmt.period
    return environment


def template_text(name: str) -> str:
    """A file of `templates/` as it is."""
    return (TEMPLATES / name).read_text(encoding="utf-8")


@cache
def chart_library() -> str:
    """The script that draws Vega-Lite charts as `vegaEmbed`, 0.9 MB."""
    import vl_convert

    bundle: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    return bundle
