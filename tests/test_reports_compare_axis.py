"""The axis of a case's trials on the comparison's page, in a real browser."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from reports.comparison.page import render_comparison
from tests.browsing import opened
from tests.sample_comparison import Factor, held, night

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.mark.parametrize("width", [400, 1240])
def test_every_axis_can_be_read(browser: Browser, tmp_path: Path, width: int) -> None:
    """At least two ticks, in their order and apart, for times that differ by a factor or by next to nothing."""
    runs = [night(i, spread_out(i), shapes=tuple((m, 64) for m in range(64, 704, 64)), samples=4) for i in range(2)]
    complaints: list[str] = []
    view: Any = {"width": width, "height": 900}
    path = tmp_path / "page.html"
    path.write_text(render_comparison(held(*runs)), encoding="utf-8")
    page = opened(browser, path, complaints, viewport=view)
    page.locator("#map .cell:visible").first.click()
    seen = set()
    for _ in range(min(page.locator("#map .cell").count(), 60)):
        ticks = page.evaluate(
            "[...document.querySelectorAll('.strips text[text-anchor=middle]')]"
            ".map(text => [text.textContent, text.getBBox().x, text.getBBox().width])"
        )
        seen.add(len(ticks))
        assert len(ticks) >= 2, ticks
        assert len({text for text, _, _ in ticks}) == len(ticks), ticks
        assert all(at + long < after for (_, at, long), (_, after, _) in itertools.pairwise(ticks)), ticks
        page.keyboard.press("ArrowDown")
    assert len(seen) > 1
    assert complaints == []
    page.close()


def spread_out(number: int) -> Factor:
    """Another factor for each case, from a hundredth of a percent to threefold, in the second run."""
    return lambda case: 1 + number * 3 ** -(sum(case.id.encode()) % 9)
