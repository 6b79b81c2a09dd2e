"""reports.roofline.ran: which device kernels torch's products ran, and where that changes."""

from __future__ import annotations

from dataclasses import replace

from harness.model import Layout
from reports.device_kernels import device_kernels_view, duration, named
from reports.figures import figures
from reports.roofline.ran import ran
from tests.planted_roofline import cells, half, of, small, timed


def test_which_kernel_ran() -> None:
    """Gemv at T = 1 and 2, another from 16 on: two lines; F.linear differs on one of two."""
    found = ran(
        of(
            timed("torch.matmul", half(1), 1.0, names=("void gemv<int>(int)",)),
            timed("torch.matmul", half(2), 1.0, names=("void gemv<int>(int)",)),
            timed("torch.matmul", half(16), 1.0, names=("nvjet_a", "splitk")),
            timed("F.linear", half(2), 1.0, names=("void gemv<int>(int)",)),
            timed("F.linear", half(16), 1.0, names=("nvjet_b",)),
        )
    )
    assert found is not None
    assert [row[:3] for row in cells(found.tables[0])] == [
        ["4096×4096", "1–2", "gemv<int> (1)"],
        ["4096×4096", "16", "nvjet_a (2), splitk (3)"],
    ]
    assert "changes 1 time over 1 weight" in found.takeaway
    assert "the same one on 1 of 2 problems" in found.takeaway
    assert ran(of(timed("torch.matmul", half(1), 1.0))) is None


def test_layouts_are_weights_of_their_own() -> None:
    """Column order stands apart from row order."""
    col = replace(half(2), layout=Layout(order="col"))
    names = ("nvjet_a",)
    found = ran(of(timed("torch.matmul", half(2), 1.0, names=names), timed("torch.matmul", col, 1.0, names=names)))
    assert found is not None
    assert [row[0] for row in cells(found.tables[0])] == ["4096×4096", "4096×4096, col-major"]


def test_names_without_durations_are_no_profile() -> None:
    """The profiler's table is about durations; names alone are told elsewhere."""
    f = figures(small())
    assert any(named(row) for row in f.rows)
    assert device_kernels_view(f) is None
    row = next(row for row in f.rows if named(row))
    assert duration(named(row)[0]) == "–"
    assert duration(replace(named(row)[0], duration_ns=1500.0)) == "1.500"
