"""Samples under a limit or off the clock, warm-ups that did not settle: each told once, with its cases."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.model import Run
from reports.cautions import Caution, Level, cautions
from reports.figures import figures
from tests.counted_run import MINE, OTHER, counted_run, trial

FULL = (1980.0,) * 4
CAPPED_ONCE = {"sw_power_cap": (7, 7, 5_000_007, 5_000_007, 5_000_007)}
CAPPED_ALWAYS = {"sw_power_cap": (0, 1_000_000, 2_000_000, 3_000_000, 4_000_000)}
STEADY = {"sw_power_cap": (7,) * 5}
ALL_SAMPLES = "Every figure is over all samples, these too."


def told(run: Run) -> list[Caution]:
    """Cautions of these runs that speak of clocks or warm-ups."""
    words = ("clock", "steady")
    return [c for c in cautions(figures(run)) if any(word in c.text.lower() for word in words)]


class TestHeldBack:
    """Marks of samples."""

    def test_one_caution_a_limit(self) -> None:
        """One sample of four, whose low clock the limit explains: its clock is no caution of its own."""
        capped = trial(limited_ns=CAPPED_ONCE, sample_clocks_mhz=(1980.0, 1900.0, 1980.0, 1980.0))
        free = trial(limited_ns=STEADY, sample_clocks_mhz=FULL)
        [found] = told(counted_run({(MINE, "graph"): [capped], (OTHER, "graph"): [free]}))
        assert found.level is Level.CAUTION
        assert found.text == (
            "1 of 4 samples of 1 case was taken while the power limit (software power cap) held the clocks back. "
            + ALL_SAMPLES
        )
        assert found.details == ("sgemv_k32_f32 on 64×64 (graph/cold): 1 of 4 samples, SM clock 1900\xa0MHz",)

    def test_cases_of_a_reason_are_added_up(self) -> None:
        """1 of 8 samples in one case, 1 of 4 in the other: 2 of 12; what has no clock gives none."""
        one, free = trial(0, limited_ns=CAPPED_ONCE), trial(1, limited_ns=STEADY)
        [found] = told(counted_run({(MINE, "graph"): [one, free], (MINE, "async"): [one]}))
        assert found.text.startswith("2 of 12 samples of 2 cases were taken while the power limit")
        assert [detail.partition(": ")[2] for detail in found.details] == ["1 of 8 samples", "1 of 4 samples"]

    def test_low_clock_that_no_limit_explains(self) -> None:
        """1920 MHz is 3.03 % below 1980, 1921 MHz less than 3 %."""
        low = trial(sample_clocks_mhz=(1980.0, 1920.0, 1980.0, 1921.0))
        [found] = told(counted_run({(MINE, "graph"): [low], (OTHER, "graph"): [trial(sample_clocks_mhz=FULL)]}))
        assert found.text == (
            "1 of 4 samples of 1 case was taken at an SM clock more than 3\xa0% below the 1980\xa0MHz that this run "
            f"could have, and no counted limit says why. {ALL_SAMPLES}"
        )
        assert found.details == ("sgemv_k32_f32 on 64×64 (graph/cold): 1 of 4 samples, SM clock 1920\xa0MHz",)

    def test_case_without_a_free_sample_says_so_itself(self) -> None:
        """It keeps its figures, is not counted among the others, and comes before them."""
        never_free = trial(limited_ns=CAPPED_ALWAYS, sample_clocks_mhz=(1905.0, 1935.0, 1920.0, 1910.0))
        once = trial(limited_ns=CAPPED_ONCE, sample_clocks_mhz=FULL)
        run = counted_run({(MINE, "graph"): [never_free], (OTHER, "graph"): [once]})
        always, partly = told(run)
        assert always.text == (
            "Every sample of 1 case was taken while a counted limit held the clocks back: its figures are those of a "
            f"slower device. {ALL_SAMPLES}"
        )
        [detail] = always.details
        assert detail.startswith("sgemv_k32_f32 on 64×64 (graph/cold): 4 samples; the power limit (software power cap)")
        assert detail.endswith("; SM clock 1905–1935\xa0MHz")
        assert partly.text == (
            "1 of 4 samples of 1 other case was taken while the power limit (software power cap) held the clocks back."
        )
        assert partly.details == ("torch.matmul on 64×64 (graph/cold): 1 of 4 samples, SM clock 1980\xa0MHz",)
        summary = figures(run).rows[0].summary
        assert summary is not None
        assert summary.samples == 4
        assert summary.median_ns.estimate == pytest.approx(1000)

    def test_clocks_alone_can_mark_every_sample(self) -> None:
        """Then nothing is known of what held them back, and they are no case of a limit."""
        low = trial(sample_clocks_mhz=(1500.0,) * 4)
        [found] = told(counted_run({(MINE, "graph"): [low], (OTHER, "graph"): [trial(sample_clocks_mhz=FULL)]}))
        assert found.details == (
            "sgemv_k32_f32 on 64×64 (graph/cold): 4 samples; no counted limit says what; SM clock 1500\xa0MHz",
        )

        assert found.text == (
            "Every sample of 1 case was taken at an SM clock more than 3\xa0% below the 1980\xa0MHz that this run "
            f"could have, and no counted limit says why: that may come of its own power draw. {ALL_SAMPLES}"
        )

    def test_a_limit_and_the_clock_alone_are_two_cautions(self) -> None:
        """The limit's first; a case with samples of both kinds is the limit's."""
        capped = trial(limited_ns=CAPPED_ALWAYS, sample_clocks_mhz=(1500.0,) * 4)
        both = trial(limited_ns=CAPPED_ONCE, sample_clocks_mhz=(1500.0,) * 4)
        low, free = trial(sample_clocks_mhz=(1500.0,) * 4), trial(sample_clocks_mhz=FULL)
        cases = {(MINE, "graph"): [capped], (MINE, "async"): [both], (OTHER, "graph"): [low], (OTHER, "async"): [free]}
        by_limit, by_clock = told(counted_run(cases))
        assert by_limit.text.startswith("Every sample of 2 cases was taken while a counted limit held the clocks back,")
        assert "or at a low clock beside such samples" in by_limit.text
        assert by_clock.text.startswith("Every sample of 1 case was taken at an SM clock")
        assert [len(each.details) for each in (by_limit, by_clock)] == [2, 1]

    def test_a_locked_clock_that_was_never_reached(self) -> None:
        """Samples are held against the best trial, which says nothing where all were held back alike."""
        low, held = trial(sample_clocks_mhz=(1700.0,) * 4), 1755
        run = counted_run({(MINE, "graph"): [low]})
        for locked_mhz, found in ((None, []), (1750, []), (held, [held])):
            options = replace(run.options, lock_clocks_mhz=locked_mhz)
            words = [f"No trial ran at the SM clock that was locked: {mhz} MHz, and 1700 MHz at best." for mhz in found]
            assert [each.text for each in told(replace(run, options=options))] == words

    def test_a_locked_clock_that_was_left(self) -> None:
        """A dip is marked as any other."""
        dipped = trial(sample_clocks_mhz=(1410.0, 1350.0, 1410.0, 1410.0))
        run = counted_run({(MINE, "graph"): [dipped], (OTHER, "graph"): [trial(sample_clocks_mhz=(1410.0,) * 4)]})
        [found] = told(replace(run, options=replace(run.options, lock_clocks_mhz=1410)))
        assert found.text.startswith(
            "1 of 4 samples of 1 case was taken at an SM clock more than 3\xa0% below the 1410"
        )

    def test_nothing_where_no_counter_grew(self) -> None:
        """Counters that stand still and clocks near the reference are no caution."""
        free = trial(limited_ns=STEADY, sample_clocks_mhz=(1980.0, 1975.0, 1970.0, 1980.0))
        assert told(counted_run({(MINE, "graph"): [free]})) == []


class TestMoments:
    """What NVML said when it was asked."""

    CAPPED = (("sw_power_cap",), ("sw_power_cap",), (), (), ())

    def test_not_told_where_a_counter_tells(self) -> None:
        """The same limit by its counter once, whether it grew or not."""
        grown = trial(limited_ns=CAPPED_ONCE, moments=self.CAPPED)
        [found] = told(counted_run({(MINE, "graph"): [grown]}))
        assert found.text.startswith("1 of 4 samples")
        assert told(counted_run({(MINE, "graph"): [trial(limited_ns=STEADY, moments=self.CAPPED)]})) == []

    def test_told_where_none_counts_it(self) -> None:
        """Without counters, and of a limit that is not counted; an idle device holds nothing back."""
        without = trial(moments=self.CAPPED)
        [found] = told(counted_run({(MINE, "graph"): [without]}))
        assert found.text == "Clocks were held back by the power limit (software power cap) in the one case."
        assert found.details == ("sgemv_k32_f32 on 64×64 (graph/cold): in 2 of 5 readings",)
        uncounted = trial(limited_ns=STEADY, moments=(("hw_slowdown", "sw_power_cap"), *[("gpu_idle",)] * 4))
        [found] = told(counted_run({(MINE, "graph"): [uncounted]}))
        assert found.text == "Clocks were held back by the hardware's own slowdown in the one case."
        assert found.details == ("sgemv_k32_f32 on 64×64 (graph/cold): in 1 of 5 readings",)

    def test_readings_of_counted_trials_are_left_out(self) -> None:
        """Of two trials one has counters: 2 of the other's 5 readings."""
        both = [trial(0, limited_ns=STEADY, moments=self.CAPPED), trial(1, moments=self.CAPPED)]
        [found] = told(counted_run({(MINE, "graph"): both}))
        assert found.details == ("sgemv_k32_f32 on 64×64 (graph/cold): in 2 of 5 readings",)

    def test_told_where_samples_have_no_times(self) -> None:
        """Counters cannot mark what nobody knows the time of."""
        timeless = trial(limited_ns=CAPPED_ONCE, moments=self.CAPPED, sample_times_unix_s=(0.0,) * 4)
        [found] = told(counted_run({(MINE, "graph"): [timeless]}))
        assert found.details == ("sgemv_k32_f32 on 64×64 (graph/cold): in 2 of 5 readings",)


class TestUnsettled:
    """Warm-ups that did not settle."""

    def test_cases_with_their_trials(self) -> None:
        """One trial of three in one of two cases that were looked at; what was not looked at is not counted."""
        moved = [trial(0, settled=True), trial(1, settled=False), trial(2, settled=None)]
        steady = [trial(0, settled=True), trial(1, settled=True)]
        [found] = told(
            counted_run({(MINE, "graph"): moved, (OTHER, "graph"): steady, (MINE, "async"): [trial(0), trial(1)]})
        )
        assert found.level is Level.CAUTION
        assert found.text == "Times had not become steady before the first sample in 1 of 2 cases."
        assert found.details == ("sgemv_k32_f32 on 64×64 (graph/cold): in 1 of 3 trials",)

    def test_nothing_where_all_settled_or_none_looked(self) -> None:
        """Neither is a caution."""
        assert told(counted_run({(MINE, "graph"): [trial(settled=True)], (MINE, "async"): [trial()]})) == []


def test_all_samples_are_kept_is_said_once() -> None:
    """By the first caution of several, which is about the most samples: 2 thermal, 1 capped, 1 at a low clock."""
    counters = {"sw_power_cap": (7, 7, 9, 9, 9), "thermal": (0, 0, 0, 9, 19)}
    low = trial(limited_ns=counters, sample_clocks_mhz=(1500.0, 1980.0, 1980.0, 1980.0))
    found = told(counted_run({(MINE, "graph"): [low, trial(1)]}))
    assert [c.text.partition(" samples")[0] for c in found] == ["2 of 8", "1 of 8", "1 of 8"]
    assert "the temperature limit held" in found[0].text
    assert [ALL_SAMPLES in c.text for c in found] == [True, False, False]
