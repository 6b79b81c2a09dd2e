"""harness.export.spreadsheet: a CSV row a case with figures by hand, failed ones too, and no cell a formula."""

from __future__ import annotations

import csv
import io
import math
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from harness.export import spreadsheet
from tests.runs_to_export import case, rows, run_of, timed
from tests.sample_run import cpu_run, empty_run, gpu_run, one_trial_run


def test_csv_has_a_row_a_case_with_figures_worked_out_by_hand(tmp_path: Path) -> None:
    """Trial medians of 100, 200 and 400 ns: centre (100·200·400)^⅓ = 200, spread 300/200, 1 005 000 bytes."""
    (row,) = rows(spreadsheet.export(run_of(timed(case("mine"), (90.0, 100.0, 150.0), (200.0,), (400.0,))), tmp_path))
    assert float(row["median_ns"]) == pytest.approx(200.0)
    error = math.log(2) / math.sqrt(3)  # of the mean of three logarithms, ln 2 apart
    assert float(row["median_high_ns"]) == pytest.approx(200 * math.exp(4.302653 * error), rel=1e-6)
    assert float(row["median_low_ns"]) == pytest.approx(200 / math.exp(4.302653 * error), rel=1e-6)
    assert float(row["trial_spread_fraction"]) == 1.5
    assert float(row["bandwidth_gb_per_s"]) == pytest.approx((1000 * 250 + 250 + 1000) * 4 / 200)
    assert (row["trials"], row["samples"], row["m"], row["k"], row["n"]) == ("3", "5", "1000", "250", "1")
    assert (row["dtype"], row["timer"], row["cache"], row["verdict"]) == ("float32", "graph", "cold", "passed")
    assert row["driver_version"] == "580.159.04"
    assert row["throttled_samples"] == ""  # nothing was read that could tell


def test_csv_counts_marked_samples_where_something_tells(tmp_path: Path) -> None:
    """Two of five samples ran 50 % below the run's clock."""
    measured = timed(case("mine"), (100.0,) * 5)
    clocks = (1980.0, 990.0, 1980.0, 990.0, 1980.0)
    trial = replace(measured.trials[0], sample_clocks_mhz=clocks)
    (row,) = rows(spreadsheet.export(run_of(replace(measured, trials=(trial,))), tmp_path))
    assert (row["throttled_samples"], float(row["sm_clock_mhz"])) == ("2", 1980.0)


def test_csv_has_failed_cases_with_empty_figures(tmp_path: Path) -> None:
    """Every word with its reason; no figure, no NaN, no None."""
    text = spreadsheet.export(gpu_run(), tmp_path)
    assert not {"nan", "none", "inf"} & set(text.lower().replace("\n", ",").split(","))
    found = rows(text)
    assert len(found) == len(gpu_run().measurements)
    assert {row["verdict"] for row in found} == {"passed", "wrong", "crashed", "unsupported"}
    for row in found:
        passed = row["verdict"] == "passed"
        assert bool(row["median_ns"]) == bool(row["samples"]) == passed
        assert bool(row["reason"]) != passed
    wrong = next(row for row in found if row["verdict"] == "wrong")
    assert wrong["reason"] == "integers: row 3 is 16776192, wanted 16777216"
    assert {row["bandwidth_gb_per_s"] for row in found if row["kernel"] == "empty"} == {""}


@pytest.mark.parametrize("name", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", " =1", "＝1", "a;=1", "\n@x", '"=1'])
def test_no_cell_is_a_formula(name: str, tmp_path: Path) -> None:
    """However a spreadsheet splits the line: at commas, or at semicolons where commas mark decimals."""
    text = spreadsheet.export(run_of(timed(case(name), (100.0,))), tmp_path)
    line = text.splitlines()[1]
    assert len(text.splitlines()) == 2
    cells = [cell for row in csv.reader([line]) for cell in row]
    cells += [cell for row in csv.reader([line], delimiter=";") for cell in row]
    assert not [cell for cell in cells if cell.lstrip()[:1] in set("=+-@\t\r＝＋－＠")]
    assert rows(text)[0]["timer"] == "graph"


def test_csv_files_of_several_runs_go_under_each_other(tmp_path: Path) -> None:
    """Also pandas reads numbers as numbers, whatever the run lacks."""
    texts = [spreadsheet.export(run, tmp_path) for run in (gpu_run(), cpu_run(), one_trial_run())]
    frame = pd.concat([pd.read_csv(io.StringIO(text)) for text in texts])
    assert frame["run_id"].nunique() == 2  # the one-trial run has the id of the first
    assert frame["median_ns"].dtype == float
    assert frame.loc[frame["verdict"] == "passed", "median_ns"].notna().all()
    assert frame.loc[frame["trials"] == 1, ["median_low_ns", "trial_spread_fraction"]].isna().all(axis=None)
    assert list(frame.columns) == list(spreadsheet.COLUMNS)
    assert spreadsheet.export(empty_run(), tmp_path) == ",".join(spreadsheet.COLUMNS) + "\n"
