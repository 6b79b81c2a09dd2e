"""What a page needs beyond measuring, so that a run can be kept where the page cannot be made."""

from __future__ import annotations

import importlib.util

from harness.errors import CommandError, Exit

PAGE_PACKAGES = {"jinja2": "jinja2", "altair": "altair", "vl_convert": "vl-convert-python"}
"""Module → the package that brings it."""


def missing_for_page() -> list[str]:
    """Packages that a page needs and that are not installed; finds them without importing any."""
    return [package for module, package in PAGE_PACKAGES.items() if importlib.util.find_spec(module) is None]


def require_page_packages() -> None:
    """Check that pages can be made.

    Raises:
        CommandError: names what is missing and how to get it (INFRASTRUCTURE).
    """
    if missing := missing_for_page():
        names = " ".join(missing)
        raise CommandError(f"the page needs {', '.join(missing)}: pip install {names}", Exit.INFRASTRUCTURE)
