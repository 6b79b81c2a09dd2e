"""reports.history.sparkline: a case over all its runs in a small picture."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.history.devices import History, read_history
from harness.history.standing import standings
from harness.store import Store
from reports.history.sparkline import HEIGHT, WIDTH, sparkline
from tests.many_runs import around
from tests.thirty_nights import DRIVER, NIGHTS, A, C, history, tell

__all__ = ["history"]


class TestSparkline:
    """The small picture."""

    def test_shape(self, history: History) -> None:
        """A point a run from left to right; up is slower; marks at the newest, the best and where it began."""
        (device,) = history.devices
        found = sparkline(device, next(each for each in standings(device) if each.case == A))
        points = [tuple(map(float, pair.split())) for pair in found.line.removeprefix("M").split("L")]
        assert len(points) == NIGHTS
        assert all(0 <= x <= WIDTH and 0 <= y <= HEIGHT for x, y in points)
        assert max(y for _, y in points[DRIVER:]) < min(y for _, y in points[:DRIVER])
        assert found.newest == pytest.approx(points[-1], abs=0.06)
        assert found.best == pytest.approx(points[14], abs=0.06)
        assert found.began == pytest.approx(points[DRIVER][0], abs=0.06)
        assert (found.hollow, found.failures, found.band) == (False, "", "")

    def test_failures_are_ticks(self, history: History) -> None:
        """Two nights, two ticks; no dot for a figure that is not there."""
        (device,) = history.devices
        found = sparkline(device, next(each for each in standings(device) if each.case == C))
        assert found.failures.count("M") == 2
        assert found.newest is None

    def test_many_runs_have_a_band(self, tmp_path: Path) -> None:
        """More runs than pixels: a span a pixel and a line of medians, a few hundred characters."""
        root = tell(tmp_path, [A], lambda _, night: around(1000.0 + night % 7), nights=400)
        (device,) = read_history(Store(root)).devices
        (standing,) = standings(device)
        found = sparkline(device, standing)
        assert 100 < found.band.count("M") <= WIDTH
        assert found.line.count("L") == found.band.count("M") - 1
        assert len(found.line + found.band) < 5000
