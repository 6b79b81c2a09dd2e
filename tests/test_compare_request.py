"""What a comparison is asked for: runs, cases, the words that fail, and the one exit code of it all."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from harness.compare import compare
from harness.comparison.request import Compared
from harness.model import Word
from harness.store.draft import Draft
from tests.planted_runs import Command, case, judged, publish, run, timed
from tests.sample_run import cpu_run, empty_run, gpu_run, one_trial_run

BASE = run(*(timed(case(name), 1723.0) for name in ("steady", "quick", "slow", "lost")), timed(case("slow", 128), 2e3))
SLOWER = run(
    timed(case("steady"), 1723.0),
    timed(case("quick"), 1551.0),
    timed(case("slow"), 1775.0),
    timed(case("slow", 128), 2e3),
    timed(case("fresh", timer="async"), 4e3),
    driver_version="590.48",
)
RUNS = {
    "base": BASE,
    "fine": BASE,
    "slower": SLOWER,
    "wrong": replace(SLOWER, measurements=(*SLOWER.measurements, judged(case("lost"), Word.WRONG, "integers: row 3"))),
    "crashed": run(judged(case("steady"), Word.CRASHED, "signal 11")),
    "other": run(*BASE.measurements, gpu_name="NVIDIA H100"),
    "cpu": cpu_run(),
    "empty": empty_run(),
    "one": one_trial_run(),
    "gpu": gpu_run(shapes=((1024, 128),), trials=3, samples=3),
}


# The exit code


@pytest.mark.parametrize(
    ("runs", "code", "means"),
    [
        ("base fine", 0, "no case is known to be slower"),
        ("base base", 0, "no case is known to be slower"),
        ("base slower", 1, "a case is slower"),
        ("base other", 3, "no case is comparable"),
        ("gpu cpu", 3, "no case is comparable"),
        ("base empty", 3, "no case is comparable"),
        ("empty empty", 3, "no case is comparable"),
        ("base wrong", 5, "a kernel is wrong or crashed in the new run"),
        ("base crashed", 5, "a kernel is wrong or crashed in the new run"),
        ("one one", 5, "a kernel is wrong or crashed in the new run"),
        ("base fine fine", 0, "no case is known to be slower"),
        ("base fine slower fine", 1, "a case is slower"),
        ("base other slower fine", 3, "no case is comparable in a new run"),
        ("base empty fine", 3, "no case is comparable in a new run"),
        ("base wrong other", 5, "a kernel is wrong or crashed in a new run"),
    ],
)
def test_exit_codes(command: Command, runs: str, code: int, means: str) -> None:
    """The highest that applies to any new run; text and JSON say the same."""
    done = command(*runs.split())
    assert (done.code, done.err) == (code, "")
    assert done.lines[-1] == f"exit code {code}: {means}"
    data = json.loads(command(*runs.split(), "--json").out)
    assert (data["exit_code"], data["exit_means"]) == (code, means)


@pytest.mark.parametrize(
    ("runs", "words", "code", "means"),
    [
        ("base slower", ["nothing"], 0, "no kernel failed, and no change was to count"),
        ("base slower", ["faster"], 1, "a case is faster"),
        ("base slower", ["slower", "gone"], 1, "a case is slower or gone"),
        ("base slower", ["gone", "new", "ambiguous"], 1, "a case is gone, new or ambiguous"),
        ("base slower", ["ambiguous"], 0, "no case is known to be ambiguous"),
        ("base slower", ["not comparable", "ambiguous"], 0, "no case is known to be not comparable or ambiguous"),
        ("base fine", ["same", "same"], 1, "a case is same"),
        ("base other", ["not comparable"], 3, "no case is comparable"),
        ("base other", ["nothing"], 3, "no case is comparable"),
        ("base wrong", ["nothing"], 5, "a kernel is wrong or crashed in the new run"),
        ("base wrong", ["slower"], 5, "a kernel is wrong or crashed in the new run"),
    ],
)
def test_words_that_fail(command: Command, runs: str, words: list[str], code: int, means: str) -> None:
    """Code 1 is for the words that are asked for; 3 and 5 are not asked about."""
    asked = [part for word in words for part in ("--fail-on", word)]
    done = command(*runs.split(), *asked)
    assert (done.code, done.err) == (code, "")
    assert done.lines[-1] == f"exit code {code}: {means}"
    data = json.loads(command(*runs.split(), *asked, "--json").out)
    assert (data["exit_code"], data["exit_means"]) == (code, means)
    assert data["fails"] == ([] if words == ["nothing"] else list(dict.fromkeys(words)))


def test_300_regressions_leave_with_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No count becomes a code: 300 modulo 256 would be 44."""
    cases = [case(m=i + 1) for i in range(300)]
    base, new = (run(*(timed(each, ns) for each in cases)) for ns in (1000.0, 1100.0))
    done = Command(tmp_path, capsys, monkeypatch).on(base=base, new=new)
    assert done.code == 1
    assert done.lines[-2] == "300 slower of 300 cases, threshold 1 %"


def test_an_interrupt_leaves_with_130(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """No traceback."""

    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("harness.comparison.request.load_whole", interrupt)
    done = command("base", "fine")
    assert (done.code, done.out, done.err) == (130, "", "")


# Wrong usage


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["base", "fine", "--threshold", "5%"], "--threshold: found '5%', wanted a fraction from 0 to below 1, such"),
        (["base", "fine", "--threshold", "nan"], "--threshold: found 'nan', wanted a fraction"),
        (["base", "fine", "--threshold", "-0.1"], "--threshold: found '-0.1', wanted a fraction"),
        (
            ["base", "fine", "--threshold", "2.5"],
            ("--threshold: found '2.5', wanted a fraction from 0 to below 1, such as 0.025 for 2.5 %"),
        ),
        (["base", "fine", "--kernel", "nope"], "--kernel: found 'nope', wanted one of: steady, quick, slow, lost"),
        (["base", "slower", "--timer", "grpah"], "--timer: found 'grpah', wanted one of: graph, async"),
        (["base", "fine", "--shape", "9y9"], "--shape: found '9y9', wanted MxK or MxKxN with whole numbers"),
        (["base", "fine", "--shape", "9x9"], "--shape 9x9: none of the 5 cases in these runs"),
        (
            ["base", "slower", "--kernel", "slow", "--timer", "async"],
            ("--kernel slow --timer async: none of the 6 cases in these runs"),
        ),
        (["base", "fine", "--fail-on", "slow"], "--fail-on: found 'slow', wanted one of: nothing, slower, faster"),
        (["base", "fine", "--fail-on", "failed"], "--fail-on: found 'failed', which always leaves with code 5, wanted"),
        (
            ["base", "fine", "--fail-on", "gone", "--fail-on", "nothing"],
            ("--fail-on: found gone and nothing, wanted nothing alone"),
        ),
    ],
)
def test_wrong_usage_is_one_line(command: Command, arguments: list[str], line: str) -> None:
    """Code 2, nothing on stdout, and the line says what was wanted."""
    done = command(*arguments)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(line)
    assert len(done.err.splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "words"), [(["base"], "required: NEW; "), ([], "required: BASE, NEW; "), (["--no"], "required: BASE")]
)
def test_two_runs_are_needed(command: Command, arguments: list[str], words: str) -> None:
    """Code 2; the one that is missing is named."""
    done = command(*arguments)
    assert (done.code, done.out) == (2, "")
    assert words in done.err


# Cases


def test_filters_choose_cases_and_change_no_word(command: Command) -> None:
    """The exit code is that of what was asked for; the figures are those of the whole table."""

    def cases(*arguments: str) -> list[dict]:
        (found,) = json.loads(command("base", "slower", "--json", *arguments).out)["comparisons"]
        return found["cases"]

    whole = cases()
    for arguments, wanted in [
        (["--kernel", "slow"], [("slow", 64), ("slow", 128)]),
        (["--kernel", "slow", "--kernel", "quick", "--shape", "64x64"], [("quick", 64), ("slow", 64)]),
        (["--shape", "128x64", "--shape", "1x1"], [("slow", 128)]),
        (["--timer", "async"], [("fresh", 64)]),
    ]:
        found = cases(*arguments)
        assert [(each["case"]["kernel"], each["case"]["problem"]["m"]) for each in found] == wanted
        assert all(each in whole for each in found)
    assert command("base", "slower", "--kernel", "steady").code == 0
    assert command("base", "slower", "--shape", "128x64").code == 0
    assert command("base", "slower", "--timer", "async").code == 3


def test_a_comparison_of_some_cases_says_so(command: Command) -> None:
    """How many of how many, and which changes one does not see: an exit code 0 is of these cases alone."""
    options = ("--kernel", "steady", "--kernel", "lost")
    done = command("base", "slower", *options)
    line = "only --kernel steady --kernel lost: 2 of 6 cases; 1 slower, 1 faster among those left out"
    assert (done.code, done.lines[2]) == (0, line)
    data = json.loads(command("base", "slower", *options, "--json").out)
    left_out = {"failed": 0, "slower": 1, "faster": 1, "ambiguous": 0, "same": 1, "new": 1, "gone": 0}
    assert data["filter"] == "--kernel steady --kernel lost"
    assert data["comparisons"][0]["left_out"] == {**left_out, "not comparable": 0}
    more = command("base", "slower", *options, "--fail-on", "new").lines[2]
    assert more.endswith("1 slower, 1 faster, 1 new among those left out")


def test_some_cases_of_several_runs(command: Command) -> None:
    """Each run has its own count; nothing that is left out is worth a word where all of it is the same."""
    lines = command("base", "fine", "wrong", "--kernel", "steady").lines
    assert "only --kernel steady: how many of each run stands below" in lines
    assert lines[lines.index("new 1: 1 same of 1 case") + 1] == "only --kernel steady: 1 of 5 cases"
    second = lines[lines.index("new 2: 1 same of 1 case") + 1]
    assert second == "only --kernel steady: 1 of 6 cases; 1 failed, 1 slower, 1 faster among those left out"


def test_all_cases_are_no_choice(command: Command) -> None:
    """Then nothing is said, and nothing was left out."""
    assert "only " not in command("base", "slower").out
    data = json.loads(command("base", "slower", "--json").out)
    assert (data["filter"], set(data["comparisons"][0]["left_out"].values())) == ("", {0})
    known = Compared(base=BASE, news=(SLOWER,), found=(compare(BASE, SLOWER),))
    assert (known.filter, known.left_out, known.selection(0)) == ("", (), "")


@pytest.mark.parametrize("option", ["--html", "--markdown", "--output"])
@pytest.mark.parametrize("runs", [[], ["base", "fine", "--json"]])
def test_options_of_the_other_program(command: Command, option: str, runs: list[str]) -> None:
    """One line that says which takes them, whatever else is missing."""
    done = command(*runs, option)
    assert (done.code, done.out) == (2, "")
    assert done.err == (
        f"{option}: not of this program; `python -m reports compare` writes the page and Markdown; "
        "with nox: `nox -s compare -- BASE NEW --html`\n"
    )


def test_a_filter_on_runs_without_cases(command: Command) -> None:
    """Nothing there to choose from is not the filter's fault: 3."""
    for option in (["--timer", "graph"], ["--shape", "9x9"], ["--kernel", "nope"]):
        done = command("empty", "empty", *option)
        assert (done.code, done.err) == (3, "")


def test_a_filter_that_one_of_several_runs_has_nothing_of(command: Command) -> None:
    """It fits a case of these runs, so it is no slip; the run without any is not comparable."""
    done = command("base", "slower", "fine", "--timer", "async")
    assert (done.code, done.err) == (3, "")
    assert "new 2: no case of 0 cases" in done.lines


def test_options_may_stand_between_the_runs(command: Command) -> None:
    """As people type."""
    assert command("--kernel", "slow", "base", "--threshold", "0.02", "slower").code == 1


# Runs


def test_a_killed_benchs_draft_is_published_first(command: Command, tmp_path: Path) -> None:
    """Then it is the latest run; the line about it stands on stderr, so that JSON stays whole."""
    publish(tmp_path, "20260101T000000Z-base", BASE)
    draft = Draft.create(tmp_path, replace(BASE, id="20260102T000000Z-cut", measurements=()))
    for measurement in BASE.measurements[:2]:
        draft.append(measurement)
    draft._lock.release()  # as when its process dies
    done = command("20260101", "latest", "--json", root=tmp_path)
    assert done.code == 0, done.err
    assert done.err.startswith("published what a bench had measured before it was killed: ")
    (found,) = json.loads(done.out)["comparisons"]
    assert found["new_id"] == "20260102T000000Z-cut"
    assert "not in new, which was cut short" in {each["reason"] for each in found["cases"]}


def test_runs_are_named_in_any_way(command: Command, store: Path, tmp_path: Path) -> None:
    """By path, also outside the store, by a ref, and by what they ran on."""
    outside = shutil.copytree(store / "slower", tmp_path / "kept")
    (store / "refs").mkdir()
    (store / "refs" / "baseline").write_text("base")
    for arguments in (["baseline", str(outside)], ["driver_version=580.159.04,gpu_name=NVIDIA H100", "other"]):
        done = command(*arguments)
        assert done.err == ""
        assert done.code in (0, 1)
