"""`python -m harness compare` on terminals of any width, and in a pipe."""

from __future__ import annotations

import pytest

from tests.planted_runs import Command, case, printed, run, timed
from tests.sample_run import gpu_run

RUNS = {"gpu": gpu_run(shapes=((1024, 128),), trials=3, samples=3)}
LONG = "sgemv_with_a_name_as_long_as_thirty_c"


@pytest.mark.parametrize(("width", "lines"), [(1000, 1), (80, 2), (72, 2)])
def test_a_name_is_folded_nowhere(width: int, lines: int) -> None:
    """A line a case where it fits; else the name has one of its own above the figures, which still are columns."""
    base, new = (run(*(timed(case(name), ns) for name in (LONG, "k")), id=str(ns)) for ns in (12_340.0, 17_620.0))
    text = printed(base, new, width=width).splitlines()
    figures = next(place for place, line in enumerate(text) if "17.62 ±0.1%" in line)
    assert (LONG in text[figures]) == (lines == 1)
    assert LONG in text[figures - lines + 1]
    assert "12.34 ±0.1%" in text[figures]
    assert text[figures].rstrip().endswith("slower")
    assert text[figures].index("17.62") == text[figures + lines].index("17.62")


def test_a_narrow_terminal_is_read_line_by_line() -> None:
    """40 columns: the case, then its figures in the order of their heads; facts that differ are a line each."""
    base, new = run(timed(case("k"), 1e3), id="a"), run(timed(case("k"), 1100.0), driver_version="590.48", id="b")
    lines = [line.rstrip() for line in printed(base, new, width=40).splitlines()]
    assert "  driver_version: 580.159.04 → 590.48" in lines
    start = lines.index("case")
    assert lines[start + 1 : start + 4] == [
        "  base µs  new µs  ratio  change",
        "k 64×64 graph cold",
        "  1.000 ±0.1%  1.100 ±0.1%  1.100",
    ]
    assert lines[start + 4].endswith(" slower")
    assert max(map(len, lines)) <= 40


def test_a_pipe_has_lines_of_any_length(command: Command) -> None:
    """Whoever searches them finds names and figures of a case in one; a terminal is asked for its width."""
    (row,) = (line for line in command("gpu", "gpu", "--all").lines if "sgemv_k128_f32x4 graph cold" in line)
    assert row.startswith("1024×128 sgemv_k128_f32x4 graph cold ")
    assert row.endswith(" same")
    assert max(map(len, command.on_a_terminal(100)("gpu", "gpu", "--all").out.splitlines())) <= 100
