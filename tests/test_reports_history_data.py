"""reports.history.data: what the script of the page of a store over time gets."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from harness.history.devices import History, read_history
from harness.history.standing import standings
from harness.store import Store
from reports.history.data import NONE, WORD, packed
from tests.many_runs import around, night_run, write
from tests.page_data import unpacked
from tests.thirty_nights import NIGHTS, A, B, C, D, history, tell

__all__ = ["history"]


class TestData:
    """What the page's script gets."""

    def test_figures_survive(self, history: History) -> None:
        """Centres within half a hundredth of a percent, half-widths within 3 %, in the order of the rows."""
        (device,) = history.devices
        shown = standings(device)[::-1]
        header, (low, high, half, _) = unpacked(packed(device, shown))
        for row, each in enumerate(shown):
            about = header["cases"][row]
            level = low[row] + 256 * high[row]
            us = np.where(level, about["lowest_us"] * np.exp((level - 1) * about["height"]), np.nan)
            wanted = device.centres_ns[:, each.place] / 1e3
            assert np.allclose(us, wanted, rtol=5.1e-5, equal_nan=True)
            finest, step = header["quantum"]["half"]
            share = np.where(half[row], finest * np.exp(step * (half[row] - 1.0)), np.nan)
            assert np.allclose(share, device.half_widths[:, each.place], rtol=0.03, equal_nan=True)
        assert [about["best"] for about in header["cases"]] == [each.best for each in shown]
        assert [about["began"] for about in header["cases"]] == [None, 28, 29, 18]

    def test_remarks(self, history: History) -> None:
        """How much runs usually differ: the median step is 0.2 % of a level, and a normal one 0.6745 deviations."""
        (device,) = history.devices
        shown = {each.case: row for row, each in enumerate(standings(device))}
        header, _ = unpacked(packed(device, standings(device)))
        said = "One run of this case usually differs from the next by 0.3\xa0% (standard deviation)."
        assert header["cases"][shown[A]]["remarks"] == [said]

    def test_reason_for_ambiguous(self, tmp_path: Path) -> None:
        """One trial on a side is told where the word is explained."""
        root = tell(tmp_path, [A], lambda _, night: around(1000.0 + night, trials=1), nights=2)
        (device,) = read_history(Store(root)).devices
        header, _ = unpacked(packed(device, standings(device)))
        (about,) = header["cases"]
        assert about["remarks"] == [
            "Ambiguous against the run before: one trial on a side gives no interval.",
            "Ambiguous against the best before: one trial on a side gives no interval.",
        ]

    def test_wide_span_keeps_its_ends(self, tmp_path: Path) -> None:
        """A case from a nanosecond to an hour has coarser levels, and none runs over."""
        times = (1.0, 1000.0, 3.6e12)
        root = tell(tmp_path, [A], lambda _, night: around(times[night]), nights=3)
        (device,) = read_history(Store(root)).devices
        header, (low, high, _, _) = unpacked(packed(device, standings(device)))
        (about,) = header["cases"]
        us = about["lowest_us"] * np.exp((low[0] + 256 * high[0] - 1) * about["height"])
        assert us.tolist() == [pytest.approx(ns / 1e3, rel=3e-4) for ns in times]

    def test_states(self, history: History) -> None:
        """The share held back in percent, a failure with its reason, and nothing where the run lacks the case."""
        (device,) = history.devices
        shown = {each.case: row for row, each in enumerate(standings(device))}
        header, (_, _, _, state) = unpacked(packed(device, standings(device)))
        assert state[shown[D]].tolist() == [40 if night == 5 else 0 for night in range(NIGHTS)]
        assert np.flatnonzero(state[shown[C]]).tolist() == [28, 29]
        assert set(state[shown[C]][28:]) <= set(header["quantum"]["failed"])
        assert sorted(header["cases"][shown[C]]["reasons"]) == ["28", "29"]
        assert NONE not in state
        assert WORD > 100  # no share can be taken for a word

    def test_absent_case(self, tmp_path: Path) -> None:
        """A run without it has no point, and no failure."""
        for night in range(3):
            write(tmp_path, night_run(night, [A] if night == 1 else [A, B], lambda *_: around(1000.0)))
        (device,) = read_history(Store(tmp_path)).devices
        _, (low, high, _, state) = unpacked(packed(device, standings(device)))
        assert (low[1] + high[1] > 0).tolist() == [True, False, True]
        assert state[1].tolist() == [0, NONE, 0]

    def test_marks_stand_at_their_run(self, history: History) -> None:
        """Driver, torch and commits."""
        (device,) = history.devices
        header, _ = unpacked(packed(device, standings(device)))
        assert [mark[:3] for mark in header["marks"]] == [
            [10, "commit", "commit 00000000"],
            [18, "driver", "driver 590.2"],
            [20, "commit", "commit 00000000"],
            [24, "torch", "torch 2.12"],
        ]
        assert header["marks"][1][3] == "driver: 580.1 → 590.2"
