"""`python -m harness compare` with one new run: the text, as it fits a terminal."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.comparison.text_remarks import MOST_LINES
from harness.model import DeviceState, Word
from tests.planted_runs import case, judged, printed, run, timed
from tests.sample_run import HOSTILE, cpu_run, empty_run, gpu_run, one_trial_run

ROOT = Path(__file__).resolve().parents[1]

BASE = run(*(timed(case(name), 1723.0) for name in ("steady", "quick", "slow", "lost")), timed(case("slow", 128), 2e3))
FINE = replace(BASE, finished_utc=BASE.started_utc)
SLOWER = run(
    timed(case("steady"), 1723.0),
    timed(case("quick"), 1551.0),
    timed(case("slow"), 1775.0),
    timed(case("slow", 128), 2e3),
    timed(case("fresh", timer="async"), 4e3),
    driver_version="590.48",
    power_limit_mw=600_000,
    ecc=None,
)
WRONG = replace(SLOWER, measurements=(*SLOWER.measurements, judged(case("lost"), Word.WRONG, "integers: row 3")))
RUNS = {
    "base": BASE,
    "fine": FINE,
    "slower": SLOWER,
    "wrong": WRONG,
    "crashed": run(judged(case("steady"), Word.CRASHED, "signal 11")),
    "other": run(*(timed(each.case, 1723.0) for each in BASE.measurements), gpu_name="NVIDIA H100"),
    "cpu": cpu_run(),
    "empty": empty_run(),
    "one": one_trial_run(),
    "gpu": gpu_run(shapes=((1024, 128),), trials=3, samples=3, hostile=True),
}


def test_what_differs_comes_first(command: Any) -> None:
    """By group, only what differs, in one line what it comes down to."""
    done = command("base", "slower")
    assert done.lines[:3] == ["base base", "new slower", ""]
    assert done.lines[3] == "environment: several: driver, power limit"
    assert done.lines[4:8] == [
        "base new",
        "driver driver_version 580.159.04 590.48",
        "settings power_limit_mw 700 000 mW 600 000 mW",
        "ecc yes unknown",
    ]
    assert "torch_version" not in done.out


def test_changed_cases_stand_first_and_same_ones_are_counted(command: Any) -> None:
    """Figures by hand: 1775 / 1723 = 1.030, 1551 / 1723 = 0.900."""
    done = command("base", "wrong")
    start = done.lines.index("problem kernel timer µs µs ratio change")
    rows = done.lines[start + 1 : done.lines.index("", start)]
    assert rows[0] == "64×64 lost graph cold 1.723 ±0.1% – – failed"
    assert rows[1].startswith("64×64 slow graph cold 1.723 ±0.1% 1.775 ±0.1% 1.030 1.0")
    assert rows[1].endswith(" slower")
    assert rows[2].startswith("64×64 quick graph cold 1.723 ±0.1% 1.551 ±0.1% 0.900 0.")
    assert rows[2].endswith(" faster")
    assert rows[3] == "64×64 fresh async cold – 4.000 ±0.1% – new"
    assert len(rows) == 4
    assert "2 same: --all shows each" in done.lines
    assert "failed: wrong: integers: row 3 (lost 64×64 graph cold)" in done.lines
    assert "new: not in base (fresh 64×64 async cold)" in done.lines
    assert done.lines[-2] == "1 failed, 1 slower, 1 faster, 1 new, 2 same of 6 cases, threshold 1 %"


def test_all_shows_each_case(command: Any) -> None:
    """And says nothing of what it left out."""
    done = command("base", "slower", "--all")
    assert sum(line.endswith(" same") for line in done.lines) == 2
    assert "--all" not in done.out


def test_the_same_run_twice(command: Any) -> None:
    """It says so."""
    done = command("base", "base")
    assert done.lines[0] == "base, new base: same run"
    assert done.lines[2] == "environment: same environment"
    assert "5 same: --all shows each" in done.lines
    assert done.lines[-2] == "5 same of 5 cases, threshold 1 %"


def test_runs_that_may_not_be_compared(command: Any) -> None:
    """Why stands with the environment; the cases are counted and the reason is said once."""
    done = command("base", "other")
    assert "not comparable: other GPU model: NVIDIA H100 against NVIDIA H200" in done.lines
    assert "5 not comparable: --all shows each" in done.lines
    assert done.lines[-2] == "5 not comparable of 5 cases, threshold 1 %"
    assert " ".join(done.lines).count("(5 cases of 4 kernels)") == 1


def test_nothing_in_either_run(command: Any) -> None:
    """A sentence, no empty table."""
    done = command("empty", "empty")
    assert done.lines[-2] == "no case of 0 cases, threshold 1 %"
    assert "kernel" not in done.out


def test_one_trial_has_no_interval(command: Any) -> None:
    """The ratio stands alone, and why the case is ambiguous below."""
    done = command("one", "one", "--kernel", "torch.matmul", "--timer", "graph")
    assert done.code == 0
    assert sum("1.000 no interval ambiguous" in line for line in done.lines) == 2
    assert any(line.startswith("ambiguous: one trial on a side gives no interval") for line in done.lines)


def test_the_threshold_moves_the_word(command: Any) -> None:
    """3 % slower is none of 5 %."""
    done = command("base", "slower", "--threshold", "0.05")
    assert done.code == 0
    assert done.lines[-2] == "1 faster, 1 new, 1 gone, 3 same of 6 cases, threshold 5 %"


@pytest.mark.parametrize("pair", [("gpu", "cpu"), ("gpu", "gpu"), ("base", "wrong"), ("gpu", "base")])
@pytest.mark.parametrize("options", [[], ["--all"]])
def test_it_fits_80_columns(command: Any, pair: tuple[str, str], options: list[str]) -> None:
    """Also a kernel whose name is hostile: what it would do to a terminal is written as codes."""
    out = command.on_a_terminal()(*pair, *options).out
    assert max(len(line) for line in out.splitlines()) <= 80
    assert "\u202e" not in out
    assert "\x1b" not in out


def test_names_are_text_and_no_markup() -> None:
    """Square brackets are rich's; control characters are the terminal's; both are only shown."""
    names = ["[bold red]x[/]", "a\x1b[2Jb", ":smile:", HOSTILE]
    base = run(*(timed(case(name), 1000.0) for name in names), driver_version="[blink]1[/blink]\x07")
    new = run(*(timed(case(name), 1100.0) for name in names), driver_version="2")
    text = printed(base, new, width=200)
    for shown in ("[bold red]x[/]", "a⟨001B⟩[2Jb", ":smile:", "[blink]1[/blink]⟨0007⟩", "⟨202E⟩"):
        assert shown in text


def test_changes_are_coloured() -> None:
    """Slower red, faster green; the others as they are."""
    text = printed(replace(BASE, id="a"), replace(SLOWER, id="b"), colour=True, every=True)
    for word, code in (("slower", "\x1b[31m"), ("faster", "\x1b[32m")):
        assert f"{code}{word}" in text
        assert f"{code}1 {word}" in text
    assert "m64×64" not in text
    assert "msame" not in text


def test_many_reasons_are_cut_short() -> None:
    """All of them with --all."""
    new = run(*(judged(case("k", i + 1), Word.WRONG, f"row {i}") for i in range(MOST_LINES + 5)))
    short, long = printed(run(), new), printed(run(), new, every=True)
    assert "… and 5 more reasons and notes: --all shows each" in short
    assert short.count("failed: wrong: row") == MOST_LINES
    assert long.count("failed: wrong: row") == MOST_LINES + 5


def test_many_notes_of_one_kind_are_counted() -> None:
    """Each with --all. What may explain a change is never folded, and stands first."""

    def at(mhz: int) -> tuple[DeviceState, ...]:
        return (DeviceState(time_unix_s=1.0, sm_clock_mhz=mhz),)

    names = [f"k{i}" for i in range(6)]
    base = run(*(timed(case(name), 1000.0, states=at(1980)) for name in names))
    new = run(
        *(timed(case(name), 1000.0, states=at(1900 - i)) for i, name in enumerate(names[:3])),
        *(timed(case(name), 1100.0, states=at(1800 - i)) for i, name in enumerate(names[3:])),
    )
    lines = printed(base, new, width=200).splitlines()
    start = lines.index("slower: lower clock: 1 800 against 1 980 MHz (k3 64×64 graph cold)")
    assert lines[start + 1 : start + 3] == [
        "slower: lower clock: 1 799 against 1 980 MHz (k4 64×64 graph cold)",
        "slower: lower clock: 1 798 against 1 980 MHz (k5 64×64 graph cold)",
    ]
    assert lines[start + 3] == "note: lower clock (3 cases of 3 kernels)"
    assert "note: lower clock: 1 899 against 1 980 MHz (k1 64×64 graph cold)" in printed(base, new, every=True)


def test_a_lower_clock_stands_beside_slower() -> None:
    """In the very row, so that the two are not taken for one; also on the narrowest terminal."""
    free, held = (
        (DeviceState(time_unix_s=1.0, sm_clock_mhz=mhz, clock_event_reasons=reasons),)
        for mhz, reasons in ((1980, ()), (1935, ("sw_power_cap",)))
    )
    names = ("slow", "held")
    base = run(*(timed(case(name), 1000.0, states=free) for name in names))
    new = run(timed(case("slow"), 1030.0, states=free), timed(case("held"), 1030.0, states=held))
    lines = [" ".join(line.split()) for line in printed(base, new).splitlines()]
    place = next(i for i, line in enumerate(lines) if " held " in line)
    assert lines[place].endswith(" slower")
    assert " ".join(lines[place + 1 : place + 5]).startswith("lower clock power cap in new")
    other = next(i for i, line in enumerate(lines) if " slow " in line)
    assert lines[other].endswith(" slower")
    assert lines[other + 1] != "lower clock"
    assert "slower: lower clock: 1 935 against 1 980 MHz (held 64×64 graph cold)" in lines
    assert "slower: power cap in new (held 64×64 graph cold)" in lines


def test_environment_variables_by_name() -> None:
    """Of two dozen only the ones that differ; one that is not set is no empty one."""
    same = {f"CUDA_{i}": "x" for i in range(20)}
    base = run(environment_variables=json.dumps({**same, "CUDA_VISIBLE_DEVICES": "0", "CUDA_MODULE_LOADING": ""}))
    new = run(environment_variables=json.dumps({**same, "CUDA_VISIBLE_DEVICES": "1"}))
    text = printed(base, new)
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert "environment: environment variables only" in lines
    assert 'settings CUDA_MODULE_LOADING "" (not set)' in lines
    assert "CUDA_VISIBLE_DEVICES 0 1" in lines
    assert "CUDA_1" not in text


def test_a_problem_says_what_is_special() -> None:
    """Two cases of one shape are told apart."""
    cases = [timed(case("k", dtype="float16"), 12_345_678.0), timed(case("k"), 0.5)]
    text = printed(run(*cases), run(*cases), every=True, width=120)
    assert "64×64, float16" in text
    assert "12 346 ±0.1% 12 346 ±0.1%" in text
    assert "0.0005" in text


def test_thresholds_by_kernel_are_said() -> None:
    """The default one, then the kernels whose cases have another; many are counted."""
    base = run(*(timed(case(name), 1000.0) for name in "abcde"))
    assert "5 same of 5 cases, threshold 1 %, 5 % of b\n" in printed(base, base, thresholds={"b": 0.05, "x": 0.1})
    many = dict.fromkeys("abcd", 0.001)
    assert "threshold 1 %, 0.1 % of a, 0.1 % of b, other ones of 2 more kernels" in printed(
        base, base, thresholds=many, width=120
    )
    assert "of c, 0.1 % of d" in printed(base, base, thresholds=many, width=120, every=True)


def test_as_a_user_runs_it(store: Path) -> None:
    """In a process of its own, on a terminal that has ASCII alone."""
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "SGEMV_STORE": str(store)}
    arguments = [sys.executable, "-m", "harness", "compare", "base", "slower"]
    done = subprocess.run(arguments, cwd=ROOT, env=environment, capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (1, b"")
    assert b"64?64" in done.stdout
