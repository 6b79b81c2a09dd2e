"""A page opened in the browser of tests/conftest.py, with whatever it complains of."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

MOST_WAITING_S = 30.0

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


def opened(browser: Browser, path: Path, complaints: list[str], **options: Any) -> Page:
    """`complaints` gets console messages, errors, dialogs, and requests for anything but the file.

    Without motion: a page that scrolls smoothly is still on its way when a forced click asks where its mark is.
    """
    page = browser.new_page(**{"reduced_motion": "reduce"} | options)
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("dialog", lambda dialog: complaints.append(f"dialog {dialog.message}"))
    page.on("request", lambda request: request.url.startswith(("file:", "data:")) or complaints.append(request.url))
    page.goto(path.as_uri())
    return page


def wait_until(page: Page, expression: str) -> None:
    """Ask from outside until it is true: a page that allows no `eval` cannot be asked from within."""
    ends = time.monotonic() + MOST_WAITING_S
    while not page.evaluate(expression):
        assert time.monotonic() < ends, f"not so after {MOST_WAITING_S:g} s: {expression}"
        page.wait_for_timeout(50)


def serious_complaints(page: Page, *rules: str) -> list[str]:
    """What axe calls serious or critical by these rules, by default all: rule, and the first element that breaks it."""
    sync: Any = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed")
    options = {"resultTypes": ["violations"], **({"runOnly": list(rules)} if rules else {})}
    found = sync.Axe().run(page, options=options).response["violations"]
    grave = [each for each in found if each["impact"] in ("serious", "critical")]
    return [f"{each['id']}: {each['nodes'][0]['html'][:200]}" for each in grave]
