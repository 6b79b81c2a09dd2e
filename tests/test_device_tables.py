"""Clocks of samples and counters of limits in the device's tables, marks and placements in the table of cases."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from harness.model import Run, TrialResult
from reports.cases import case_table
from reports.device import QUANTITIES, device_tables, line, states_of
from reports.figures import figures
from reports.held_back import growth_times_unix_s
from reports.tables import Cell, Table
from tests.counted_run import MINE, OTHER, counted_run, trial

BY_PLACE = "By problem and timer"
REASONS = "Clock event reasons"


def named(run: Run, caption: str) -> Table:
    """The device's table of that caption."""
    [found] = [t for t in device_tables(figures(run)) if t.caption == caption]
    return found


def heads(table: Table) -> list[str]:
    """Titles of its columns."""
    return [column.title for column in table.columns]


def texts(table: Table) -> list[list[str]]:
    """What its cells say, without notes."""
    return [[cell.text for cell in row] for row in table.rows]


class TestSampleClocks:
    """The SM clock by the device's own counters."""

    def test_beside_nvml_by_timer(self) -> None:
        """Median of 1500, 1980, 1980, 1960 and 1980, 1980, 1970, None is 1980; a timer without clocks has a dash."""
        clocked = [
            trial(0, sample_clocks_mhz=(1500.0, 1980.0, 1980.0, 1960.0)),
            trial(1, sample_clocks_mhz=(1980.0, 1980.0, 1970.0, None)),
        ]
        found = named(counted_run({(MINE, "graph"): clocked, (MINE, "async"): [trial()]}), BY_PLACE)
        assert heads(found)[:4] == ["problem", "timer, cache", "SM clock of samples", "SM clock by NVML"]
        assert [column.unit for column in found.columns[2:4]] == ["MHz", "MHz"]
        assert [row[:4] for row in texts(found)] == [
            ["64×64", "graph/cold", "1980", "1965"],
            ["64×64", "async/cold", "–", "1965"],
        ]
        assert [row[2].note for row in found.rows] == ["1500–1980", ""]

    def test_reference_and_maximum(self) -> None:
        """The reference is the highest median of a trial, 1900 MHz; NVML's maximum stands in the environment."""
        run = counted_run({(MINE, "graph"): [trial(0, sample_clocks_mhz=(1890.0, 1900.0, 1910.0, 1900.0))]})
        said = named(run, BY_PLACE).note
        assert "Reference: 1900\xa0MHz" in said
        assert "more than 3\xa0% below" in said
        assert said.endswith("The device's maximum by NVML: 1980\xa0MHz.")
        unknown = replace(run.environment, values={**run.environment.values, "max_sm_clock_mhz": None})
        assert "maximum" not in named(replace(run, environment=unknown), BY_PLACE).note

    def test_reason_where_it_was_not_read(self) -> None:
        """Of all, or of some."""
        refused = trial(unknown={"sample_clocks_mhz": "the driver does not take it"})
        run = counted_run({(MINE, "graph"): [refused]})
        assert named(run, BY_PLACE).note == "The SM clock of samples is unknown: the driver does not take it."
        run = counted_run({(MINE, "graph"): [refused], (OTHER, "graph"): [trial(sample_clocks_mhz=(1980.0,) * 4)]})
        assert named(run, BY_PLACE).note.endswith("Where it was not read: the driver does not take it.")

    def test_without_nvml(self) -> None:
        """Clocks alone make a table; what NVML would say is a dash."""
        run = counted_run({(MINE, "graph"): [trial(sample_clocks_mhz=(1980.0,) * 4, states=())]})
        [found] = device_tables(figures(run))
        assert texts(found) == [["64×64", "graph/cold", "1980", "–", "–", "–", "–", "–"]]

    def test_as_before_without_clocks(self) -> None:
        """No column and no note for what no timer reads."""
        found = named(counted_run({(MINE, "graph"): [trial()]}), BY_PLACE)
        assert heads(found)[2:4] == ["SM clock", "memory clock"]
        assert found.note == ""


class TestCounters:
    """How long limits held the clocks back."""

    def test_milliseconds_over_the_run_and_by_place(self) -> None:
        """5 ms in one trial, 20 ms in another of the same case, 0.25 ms of another limit: each trial's own growth."""
        low = {"sw_power_cap": (100, 100, 5_000_100, 5_000_100, 5_000_100), "sync_boost": (3,) * 5}
        high = {"sw_power_cap": (0, 20_000_000, 20_000_000, 20_000_000, 20_000_000)}
        other = {"thermal": (0, 0, 0, 0, 250_000)}
        cases = {
            (MINE, "graph"): [trial(0, limited_ns=low, moments=(("sw_power_cap",), (), (), (), ()))],
            (OTHER, "graph"): [trial(0, limited_ns=high)],
            (MINE, "async"): [trial(0, limited_ns=other)],
        }
        found = named(counted_run(cases), REASONS)
        assert [(c.title, c.unit) for c in found.columns][-1] == ("held back", "ms")
        assert texts(found) == [
            ["sw_power_cap", "the power limit (software power cap)", "1 of 15", "25.0"],
            ["thermal", "the temperature limit", "0 of 15", "0.25"],
            ["(none)", "nothing held the clocks back", "14 of 15", "–"],
        ]
        assert "grew in the 12.0\xa0s in which cases were timed" in found.note
        by_place = named(counted_run(cases), BY_PLACE)
        assert [row[-1] for row in texts(by_place)] == ["sw_power_cap (25.0\xa0ms)", "thermal (0.25\xa0ms)"]

    def test_none_grew(self) -> None:
        """Said so, by a line instead of a column of zeros."""
        found = named(counted_run({(MINE, "graph"): [trial(limited_ns={"sw_power_cap": (9,) * 5})]}), REASONS)
        assert heads(found) == ["NVML's name", "in words", "readings"]
        assert found.note.startswith("By the driver's counters, no limit held the clocks back in the 4.0\xa0s in which")

    def test_not_read(self) -> None:
        """Nothing is said of them; moments stand as before."""
        run = counted_run({(MINE, "graph"): [trial(moments=(("sw_power_cap",), (), (), (), ()))]})
        found = named(run, REASONS)
        assert (heads(found), found.note) == (["NVML's name", "in words", "readings"], "")
        assert texts(named(run, BY_PLACE))[0][-1] == "sw_power_cap"

    def test_moment_of_what_is_not_counted(self) -> None:
        """It stands behind the times, and has none itself."""
        moments = (("hw_slowdown", "sw_power_cap"), (), (), (), ())
        counters = {"sw_power_cap": (0, 1_000_000, 1_000_000, 1_000_000, 1_000_000)}
        run = counted_run({(MINE, "graph"): [trial(limited_ns=counters, moments=moments)]})
        assert texts(named(run, BY_PLACE))[0][-1] == "sw_power_cap (1.00\xa0ms), hw_slowdown"
        assert texts(named(run, REASONS))[0][0::3] == ["hw_slowdown", "–"]

    def test_reset_counter(self) -> None:
        """One that went back with its driver adds nothing, and what it grew by before and after counts."""
        counters = {"sw_power_cap": (8_000_000, 9_000_000, 0, 2_000_000, 2_000_000)}
        run = counted_run({(MINE, "graph"): [trial(limited_ns=counters)]})
        assert texts(named(run, BY_PLACE))[0][-1] == "sw_power_cap (3.00\xa0ms)"

    def test_chart_marks_growth_within_a_trial(self) -> None:
        """The reading by which it had grown is marked, though NVML named nothing at any moment."""
        grown = trial(limited_ns={"sw_power_cap": (0, 0, 5, 5, 5)})
        later = trial(limited_ns={"sw_power_cap": (90,) * 5})
        later = replace(later, states=tuple(replace(s, time_unix_s=s.time_unix_s + 10) for s in later.states))
        rows = figures(counted_run({(MINE, "graph"): [grown, later]})).rows
        points = line(QUANTITIES[0], states_of(rows), growth_times_unix_s(rows))
        assert [point.seconds for point in points if point.held_back] == [2.0]


class TestCases:
    """Notes in the table of cases."""

    @staticmethod
    def cells(trials: list[TrialResult]) -> dict[str, Cell]:
        """The one case's cells by the column's title."""
        f = figures(counted_run({(MINE, "graph"): trials}))
        found = case_table(f, f.problems[0])
        return dict(zip(heads(found), found.rows[0], strict=True))

    def test_marked_samples(self) -> None:
        """How many, behind the number of all; nothing where none is."""
        capped = {"sw_power_cap": (0, 0, 5, 9, 9)}
        cell = self.cells([trial(0, limited_ns=capped), trial(1)])["samples"]
        assert (cell.text, cell.note) == ("8", "2 throttled")
        assert self.cells([trial()])["samples"].note == ""

    @pytest.mark.parametrize(
        ("by_trial", "note"),
        [
            ([(1500.0, 1514.0), (1520.0, 1540.0), (1450.0, 1451.0)], "1.450–1.540\xa0µs by placement"),
            ([(1500.0, 1514.0), (1540.0, 1549.0)], ""),
            ([(), ()], ""),
        ],
    )
    def test_placements(self, by_trial: list[tuple[float, ...]], note: str) -> None:
        """Told of all trials where they differ by more than 1 % within one; what differs by trial alone is a spread."""
        cell = self.cells([trial(i, placements_ns=each) for i, each in enumerate(by_trial)])["kernel"]
        assert (cell.text, cell.note) == (MINE, note)

    def test_placements_behind_the_variant(self) -> None:
        """Both stand in the kernel's note."""
        changes: dict[str, Any] = {"variant": "float4", "placements_ns": (1000.0, 1100.0)}
        assert self.cells([trial(**changes)])["kernel"].note == "float4; 1.000–1.100\xa0µs by placement"
