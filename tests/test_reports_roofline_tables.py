"""A roofline run's tables: ceilings and shares of them, energy, the reference's case, bytes against time; by hand."""

from __future__ import annotations

import pytest

from harness.model import Cache, Problem
from reports.datasheet import datasheet
from reports.figures import Way, figures
from reports.roofline.energy import taken
from reports.roofline.points import of_attainable
from reports.roofline.tables import ceilings_table, own_table, reference_table, weight_only_tables
from tests.planted_roofline import cells, half, of, small, timed


def test_ceilings_beside_the_datasheet() -> None:
    """4.4 TB/s less 2 µs of 978 is 4 391 GB/s, 91.5 % of the H200's published 4 800."""
    rows = {row[0]: row for row in cells(ceilings_table(figures(small())))}
    assert rows["read bandwidth"][1].startswith("4\u202f39")
    assert rows["read bandwidth"][5:7] == ["4\u202f800\u00a0GB/s", "92"]
    assert rows["float16 peak"][5] == "990\u00a0TFLOP/s"
    missing = cells(ceilings_table(figures(small(ceilings=False))))
    assert all("not measured: not in this run" in row[1] for row in missing)
    assert datasheet("NVIDIA GeForce RTX 3080") is not None
    assert datasheet("NVIDIA GB200") is None
    assert datasheet(None) is None


def test_share_of_attainable() -> None:
    """4096×4096 float16, T = 1: 33 570 816 bytes at the measured rate, over the time that it took."""
    f = figures(small())
    row = f.find("hgemv", half(1), Way(timer="graph", cache=Cache.COLD))
    assert row is not None
    assert row.summary is not None
    assert f.ceilings.read.per_s is not None
    least_ns = 33_570_816 / f.ceilings.read.per_s.estimate * 1e9
    assert of_attainable(f, row) == pytest.approx(least_ns / row.summary.median_ns.estimate)
    assert f.ceilings.peak("int8") is f.ceilings.peak("float16")


def test_energy_by_launch_and_token() -> None:
    """MJ a token is mJ a launch over T; the board's own figures beside it."""
    found = {(t.row.kernel, t.row.problem.n): t for t in taken(figures(small())) if t.row.problem.dtype == "float16"}
    one, many = found["torch.matmul", 1], found["torch.matmul", 512]
    trial = one.row.measurement.trials[0].energy
    assert trial is not None
    assert one.mj_per_launch.estimate == pytest.approx(trial.millijoules / trial.launches, rel=0.02)
    assert one.mj_per_token == one.mj_per_launch.estimate
    assert many.mj_per_token == many.mj_per_launch.estimate / 512
    assert one.idle_watts == 78.0
    assert one.source == "NVML's energy counter"
    assert 300 < one.watts < 700


def test_the_reference_case_beside_its_figures() -> None:
    """Published 60.0, 60.9 and 329.9 µs; ours by the same protocol and by the graph."""
    rows = cells(reference_table(figures(small())))
    assert [row[0] for row in rows] == ["T = 1", "T = 16", "T = 512"]
    assert [row[4] for row in rows] == ["60.0", "60.9", "329.9"]
    assert float(rows[0][2]) == pytest.approx((33_570_816 / 4400 + 2000) * 1.25e-3 + 9, rel=0.01)
    assert reference_table(figures(small(dtypes=("float32",)))) is None


def test_fewer_bytes_against_faster() -> None:
    """4096×4096: 33 570 816 bytes over 16 801 792 are 2.00×; twice as fast keeps 100 % of it."""
    own = timed("gemv_w8", Problem(m=4096, k=4096, dtype="int8"), 5e3, 5e3)
    found = of(own, timed("hgemv", half(1), 1e4, 1e4))
    row = cells(weight_only_tables(found)[0])[0]
    assert row[:3] == ["4096×4096", "1", "5.000"]
    assert row[6:8] == ["2.00", "2.00"]
    assert row[9] == "100"
    assert weight_only_tables(of(own)) == ()
    assert own_table(of(timed("sgemv", Problem(m=4, k=4), 1.0))) is None
