"""The table at the end of a bench."""

from __future__ import annotations

import io
import re
from dataclasses import replace

import pytest
from rich.console import Console

from harness.model import Role, Run
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


def test_says_what_a_time_is() -> None:
    """A case's figure is no median; neither is it called one."""
    shown = " ".join(printed(gpu_run(), 80).split())
    assert "Time in µs, the geometric mean of the medians of the trials, ± half its 95 % interval" in shown
    assert "edian in µs" not in shown


@pytest.mark.parametrize("ways", [2, 4])
def test_figures_stand_below_each_other(ways: int) -> None:
    """A kernel with a ratio, torch.matmul and read, which have none: their first µs figures end in one column."""
    run = gpu_run(shapes=((1024, 128),))
    kept = tuple(m for m in run.measurements if ways == 4 or m.case.timer == "graph")
    lines = printed(replace(run, measurements=kept), 80).splitlines()
    ends = {}
    for kernel in ("torch.matmul", "sgemv_k32_f32", "sgemv_k128_f32x4", "read"):
        line = next(each for each in lines if each.startswith(f"{kernel} "))
        figure = re.search(r"(?<= )\d\.\d{3}(?= )", line)
        assert figure is not None
        ends[kernel] = figure.end()
    assert len(set(ends.values())) == 1, ends


def test_only_the_floor_keeps_its_cautions() -> None:
    """A run that was cut short before its first problem says so."""
    run = replace(gpu_run(shapes=((64, 64),), trials=1), partial=True)
    floors = tuple(m for m in run.measurements if m.case.role is Role.FLOOR)
    shown = " ".join(printed(replace(run, measurements=floors), 80).split())
    assert floors
    assert "cut short" in shown
    assert "One trial only" in shown
    assert "No kernel has figures in this run." in shown


def test_other_runs() -> None:
    """A CPU run, one trial without intervals, and nothing at all."""
    assert "needs a CUDA device" in printed(cpu_run(), 80)
    assert "±" not in printed(one_trial_run(), 80).split("kernel", 1)[1].split("Timed by")[0]
    assert "No kernel has figures" in printed(empty_run(), 80)
