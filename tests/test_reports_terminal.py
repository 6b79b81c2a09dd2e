"""The table at the end of a bench."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from harness.model import Run
from reports.terminal import summary_table
from tests.sample_run import cpu_run, empty_run, gpu_run, one_trial_run


def printed(run: Run, width: int) -> str:
    out = io.StringIO()
    Console(file=out, width=width, force_terminal=False).print(summary_table(run))
    return out.getvalue()


@pytest.mark.parametrize("width", [80, 120])
def test_fits_and_says_everything(width: int) -> None:
    """No line is longer than the terminal, nothing is cut, reasons and units are there."""
    shown = printed(gpu_run(), width)
    assert max(len(line) for line in shown.splitlines()) <= width
    assert not any(line.rstrip().endswith("…") for line in shown.splitlines())
    for part in ("1024×128", "graph/cold", "µs", "GB/s", "K=128 is not 16", "SIGSEGV", "wrong", "±"):
        assert part in shown


def test_other_runs() -> None:
    """A CPU run, one trial without intervals, and nothing at all."""
    assert "needs a CUDA device" in printed(cpu_run(), 80)
    assert "±" not in printed(one_trial_run(), 80).split("kernel", 1)[1].split("Timed by")[0]
    assert "No kernel has figures" in printed(empty_run(), 80)
