"""`python -m harness compare` with several new runs, and the JSON of one and of several."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from harness.compare import compare
from harness.comparison.as_json import comparison_json
from harness.comparison.request import Compared
from harness.model import DeviceState, Run, Word
from tests.planted_runs import Command, case, judged, run, timed
from tests.sample_run import HOSTILE, cpu_run, gpu_run

BASE = run(*(timed(case(name), 1723.0) for name in ("steady", "quick", "slow", "lost")))
SLOWER = run(
    timed(case("steady"), 1723.0),
    timed(case("quick"), 1551.0),
    timed(case("slow"), 1775.0),
    timed(case("fresh", timer="async"), 4e3),
    driver_version="590.48",
)
HELD = (DeviceState(time_unix_s=1.0, clock_event_reasons=("sw_power_cap",)),)
RUNS = {
    "base": BASE,
    "fine": BASE,
    "slower": SLOWER,
    "held": run(*(timed(each.case, 1900.0, states=HELD) for each in BASE.measurements), torch_version="3"),
    "wrong": run(*BASE.measurements[:3], judged(case("lost"), Word.WRONG, "integers: row 3")),
    "cpu": cpu_run(),
    "gpu": gpu_run(shapes=((1024, 128),), trials=3, samples=3, hostile=True),
    "one": gpu_run(shapes=((1024, 128),), trials=1, samples=3),
}


# The text


def test_runs_are_numbered_and_each_says_what_differs(command: Command) -> None:
    """First which runs, then the environment of each against the base."""
    lines = command("base", "slower", "base", "held").lines
    assert lines[:4] == ["base base", "new 1 slower", "new 2 base: same run", "new 3 held"]
    first, second, third = (lines.index(f"environment of new {i}: {said}") for i, said in _ENVIRONMENTS)
    assert lines[first + 1 : first + 3] == ["base new 1", "driver driver_version 580.159.04 590.48"]
    assert second < third
    assert lines[third + 1 : third + 3] == ["base new 3", "software torch_version 2.11.0+cu130 3"]


_ENVIRONMENTS = ((1, "driver only"), (2, "same environment"), (3, "torch only"))


def test_a_column_a_run(command: Command) -> None:
    """By hand: 1551 / 1723 = 0.900, 1775 / 1723 = 1.030, 1900 / 1723 = 1.103. Worst first."""
    lines = command("base", "slower", "held").lines
    start = lines.index("case µs new 1 new 2")
    assert lines[start + 1].startswith("steady 1.723 1.000 ±0")
    table = " ".join(lines[start + 1 : lines.index("", start)])
    for name, ratio, word in (("quick", "0.900", "faster"), ("slow", "1.030", "slower")):
        row = table[table.index(f"{name} 1.723") :]
        assert row.startswith(f"{name} 1.723 {ratio} ±")
        assert f"64×64 graph cold ±0.1% {word} slower" in row[:80]
    assert "fresh – new – 64×64 async cold" in table
    assert "lost 1.723 gone 1.103 ±" in table
    assert table.index("lost ") < table.index("fresh ")  # slower in one run, against new


def test_marks_stand_in_the_column_of_their_run(command: Command) -> None:
    """What held one run back says nothing of the other."""
    lines = command("base", "slower", "held", "--kernel", "slow").lines
    start = lines.index("case µs new 1 new 2")
    assert lines[start + 2] == "64×64 graph cold ±0.1% slower slower"
    assert lines[start + 3] == "power cap in new"
    assert "slower: power cap in new (slow 64×64 graph cold)" in lines[lines.index("new 2: 1 slower of 1 case") :]


def test_counts_by_run_and_one_code(command: Command) -> None:
    """Reasons stand below the run that they are of."""
    done = command("base", "slower", "wrong", "fine")
    first = done.lines.index("new 1: 1 slower, 1 faster, 1 new, 1 gone, 1 same of 5 cases")
    second = done.lines.index("new 2: 1 failed, 3 same of 4 cases")
    assert "gone: not in new (lost 64×64 graph cold)" in done.lines[first:second]
    assert done.lines[second + 1] == "failed: wrong: integers: row 3 (lost 64×64 graph cold)"
    assert done.lines[-4:] == [
        "new 3: 4 same of 4 cases",
        "",
        "threshold 1 %",
        "exit code 5: a kernel is wrong or crashed in a new run",
    ]


def test_what_is_the_same_in_all_runs_is_counted(command: Command) -> None:
    """A case that one run has otherwise is shown for all of them."""
    done = command("base", "fine", "slower")
    assert "1 same or not comparable in every new run: --all shows each" in done.lines
    assert not any(line.startswith("steady") for line in done.lines)
    everything = command("base", "fine", "slower", "--all")
    assert any(line.startswith("steady 1.723 1.000 ±") for line in everything.lines)
    assert "--all" not in everything.out
    assert "case µs" not in command("base", "fine", "fine").out


def test_many_runs_go_into_several_tables(command: Command) -> None:
    """Three a table; every run keeps its number."""
    lines = command("base", *["slower"] * 7).lines
    heads = [line for line in lines if line.startswith("case µs")]
    assert heads == ["case µs new 1 new 2 new 3", "case µs new 4 new 5 new 6", "case µs new 7"]
    assert [line[:6] for line in lines if line.endswith(" of 5 cases")] == [f"new {i}:" for i in range(1, 8)]


@pytest.mark.parametrize("news", [["gpu", "gpu"], ["gpu", "cpu", "one", "base", "gpu"], ["one", "gpu"]])
@pytest.mark.parametrize("options", [[], ["--all"]])
def test_it_fits_80_columns(command: Command, news: list[str], options: list[str]) -> None:
    """Names of any length and kind included."""
    out = command.on_a_terminal()("gpu", *news, *options).out
    assert max(len(line) for line in out.splitlines()) <= 80
    assert "\u202e" not in out
    assert "\x1b" not in out


def test_a_narrow_terminal_has_one_thing_a_line(command: Command) -> None:
    """40 columns: names whole, and each new run below its case."""
    done = command.on_a_terminal(40)("base", "slower", "held")
    start = done.lines.index("quick 64×64 graph cold")
    assert done.lines[start + 1] == "base 1.723 ±0.1% µs"
    assert done.lines[start + 2].startswith("new 1: 0.900 ±0.1% faster")
    assert done.lines[start + 3].startswith("new 2: 1.103 ±0.1% slower, power cap")
    assert done.lines[done.lines.index("fresh 64×64 async cold") + 1 :][:3] == ["base –", "new 1: new", "new 2: –"]
    assert "driver_version: 580.159.04 → 590.48" in done.lines
    assert max(map(len, done.out.splitlines())) <= 40


def test_one_trial_has_no_spread(command: Command) -> None:
    """And says so beside the ratio."""
    done = command("one", "one", "one", "--kernel", "torch.matmul")
    start = next(place for place, line in enumerate(done.lines) if "1.000 1 trial 1.000 1 trial" in line)
    assert "1 trial ambiguous ambiguous" in done.lines[start + 1]  # of the time


# JSON


def test_json_is_all_of_it(command: Command) -> None:
    """What a program needs, by name; one object for each new run, also where there is one."""
    done = command("base", "slower", "--json", "--fail-on", "slower", "--fail-on", "gone")
    assert (done.code, done.err) == (1, "")
    data = json.loads(done.out, parse_constant=pytest.fail)
    assert list(data) == ["schema_version", "base_id", "fails", "exit_code", "exit_means", "filter", "comparisons"]
    assert (data["schema_version"], data["base_id"], data["fails"]) == (3, "base", ["slower", "gone"])
    assert (data["exit_code"], data["exit_means"]) == (1, "a case is slower or gone")
    (found,) = data["comparisons"]
    assert (found["base_id"], found["new_id"], found["same_run"]) == ("base", "slower", False)
    assert (found["attribution"], found["threshold"], found["not_comparable"]) == ("driver only", 0.01, [])
    assert found["counts"] == {
        "failed": 0, "slower": 1, "faster": 1, "ambiguous": 0, "same": 1, "new": 1, "gone": 1, "not comparable": 0,
    }  # fmt: skip
    assert found["environment"] == [
        {"key": "driver_version", "group": "driver", "base": "580.159.04", "new": "590.48", "unit": None}
    ]
    slow = next(each for each in found["cases"] if each["change"] == "slower")
    assert slow["case"]["kernel"] == "slow"
    assert slow["ratio"]["estimate"] == pytest.approx(1775 / 1723)
    assert slow["ratio"]["low"] < slow["ratio"]["estimate"] < slow["ratio"]["high"]
    assert (slow["base_trials"], slow["new_trials"], slow["marks"], slow["notes"]) == (5, 5, [], [])
    assert next(each for each in found["cases"] if each["change"] == "gone")["ratio"] is None


def test_json_of_several(command: Command) -> None:
    """In the order asked for, each with its own code; the highest is the whole's."""
    done = command("base", "slower", "wrong", "base", "--json")
    data = json.loads(done.out)
    found = [(each["new_id"], each["same_run"], each["exit_code"]) for each in data["comparisons"]]
    assert found == [("slower", False, 1), ("wrong", False, 5), ("base", True, 0)]
    assert (done.code, data["exit_code"]) == (5, 5)


def plain(base: Run, *news: Run) -> Any:
    """The JSON, read strictly: no NaN, no infinity."""
    text = comparison_json(Compared(base=base, news=news, found=tuple(compare(base, new) for new in news)))
    assert text.isascii()
    return json.loads(text, parse_constant=pytest.fail)


def test_json_is_ascii_without_nan() -> None:
    """Hostile names and values that are no number go through any pipe and any parser."""
    made = run(timed(case(HOSTILE), 1000.0), driver_version=float("nan"))
    (found,) = plain(made, run(driver_version=float("inf")))["comparisons"]
    assert found["cases"][0]["case"]["kernel"] == HOSTILE
    assert (found["environment"][0]["base"], found["environment"][0]["new"]) == (None, None)


def test_json_of_times_that_are_none() -> None:
    """They are in no figure."""
    bad = [
        replace(t, samples_ns=(ns,)) for t, ns in zip(BASE.measurements[0].trials, (1.0, float("nan")), strict=False)
    ]
    (found,) = plain(BASE, run(replace(BASE.measurements[0], trials=tuple(bad))))["comparisons"]
    assert found["cases"][0]["reason"] == "in new a sample of nan ns: wanted 1e-06 to 1e+18 ns"
    assert (found["cases"][0]["new_ns"], found["cases"][0]["ratio"]) == (None, None)
