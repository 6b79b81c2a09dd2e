"""reports.history.view, rows and changes: what the page of a store over time says."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from harness.history.devices import History, read_history
from harness.history.standing import standings
from harness.model import Case, Digest
from harness.store import Store
from reports.history.changes import in_short, what_changed
from reports.history.rows import rows
from reports.history.view import view
from tests.many_runs import around, night_run, write
from tests.page_data import unpacked
from tests.quiet_nights import WOBBLE
from tests.thirty_nights import A, B, C, D, history, tell, told

__all__ = ["history"]


def test_a_checkout_with_changes_is_said_so(tmp_path: Path) -> None:
    """`git dirty: off → on` says nothing to a reader."""
    for night, dirty in enumerate((False, True)):
        write(tmp_path, night_run(night, (A,), told, git_dirty=dirty))
    (device,) = read_history(Store(tmp_path)).devices
    assert what_changed(device, 1) == ["checkout: clean → with changes"]
    assert in_short(device, 1) == "checkout changed"


class TestView:
    """What the page says."""

    def test_five_seconds(self, history: History) -> None:
        """What fails, what is slower since last night, and what is for longer, since when and with what change."""
        (section,) = view(history).sections
        assert section.alarming
        assert section.takeaway == (
            "sgemv_broken on 1024×128 (graph, cold) fails in the newest run. 1 of 3 cases is slower than in the run "
            "before, sgemv_k32_f32 on 1024×128 (graph, cold) by 5.6\xa0%."
        )
        assert section.details == (
            "Nothing recorded changed in between. 1 more was slower than at best already, since 1\xa0Jun\xa02026, when "
            "the driver changed."
        )

    def test_beginnings(self, history: History) -> None:
        """The latest first, each with what changed."""
        (section,) = view(history).sections
        found = [(each.day.replace("\xa0", " "), each.cases.split()[0], each.changes) for each in section.beginnings]
        assert found == [
            ("12 Jun 2026", "sgemv_k32_f32", ()),
            ("11 Jun 2026", "sgemv_broken", ()),
            ("1 Jun 2026", "torch.matmul", ("driver: 580.1 → 590.2",)),
        ]
        assert [each.newest for each in section.beginnings] == [True, False, False]

    def test_rows_by_effect(self, history: History) -> None:
        """Failed, slower since last night, slower than the best, the rest; with figures worked out by hand."""
        rows = view(history).sections[0].rows
        assert [row.kernel for row in rows] == [C.kernel, B.kernel, A.kernel, D.kernel]
        wrong, last_night, long_ago, quiet = rows
        assert (wrong.newest, wrong.previous.word, wrong.began) == ("wrong", "failed", "11\xa0Jun\xa02026")
        # 1.06 · 0.998 against 1.002 before it, and against 0.998, the best; of the 30 nights the last wobbles by -0.2 %
        assert last_night.newest == "1.058\xa0µs"
        assert last_night.previous.figure == "+5.6\xa0%"
        assert (last_night.best.word, last_night.best.figure) == ("slower", "+6.0\xa0%")
        assert (long_ago.previous.word, long_ago.best.word) == ("same", "slower")
        assert (long_ago.began, long_ago.began_note) == ("1\xa0Jun\xa02026", "driver changed")
        assert (quiet.alarming, quiet.moved, quiet.began) == (False, False, "")

    def test_quiet_morning(self, tmp_path: Path) -> None:
        """Nothing to see, in one sentence."""
        root = tell(tmp_path, [D], lambda _, night: around(1000.0 * (1 + WOBBLE[night % 5])))
        (section,) = view(read_history(Store(root))).sections
        assert section.takeaway == "The one case is not slower than in the run before."
        assert (section.alarming, section.details) == (False, "")
        assert section.beginnings == ()

    def test_two_models(self, tmp_path: Path) -> None:
        """A section each, named by the model; ECC off is named where the model alone would not tell."""
        a100 = {"gpu_name": "NVIDIA A100", "device_name": "NVIDIA A100"}
        for night, values in enumerate(({}, a100, {"ecc": False}, {})):
            write(tmp_path, night_run(night, [A], lambda *_: around(1000.0), **values))
        found = view(read_history(Store(tmp_path)))
        assert [section.title for section in found.sections] == [
            "NVIDIA H200, ecc on",
            "NVIDIA H200, ecc off",
            "NVIDIA A100",
        ]
        assert [len(unpacked(section.data)[0]["runs"]) for section in found.sections] == [2, 1, 1]

    def test_selected_cases_keep_their_words(self, history: History) -> None:
        """No word depends on which others are shown."""
        every = {row.kernel: row for row in view(history).sections[0].rows}
        (row,) = view(history, lambda each: each == B).sections[0].rows
        assert row == every[B.kernel]

    def test_intervals_are_not_rounded_away(self, tmp_path: Path) -> None:
        """Narrow ones get more digits, and what did not move has no sign."""

        def narrow(each: Case, night: int) -> Sequence[Digest]:
            return around(2059.7 if each == A and night == 1 else 1000.0, spread=3e-4)

        (device,) = read_history(Store(tell(tmp_path, [A, B], narrow, nights=2))).devices
        moved, still = (row.previous for row in rows(device, standings(device)))
        assert moved.figure == "+105.97\xa0%"
        interval = re.fullmatch(r"\+105\.(\d\d) to \+106\.(\d\d)\xa0% · .*", moved.note)
        assert interval is not None
        assert int(interval[1]) + int(interval[2]) == pytest.approx(94, abs=1)  # evenly around 105.97
        assert still.figure == "0.00\xa0%"
        low, high = re.findall(r"([−+])(0\.\d\d)", still.note)
        assert (low[0], high[0]) == ("−", "+")
        assert low[1] == high[1] > "0.00"
