"""`python -m harness compare`: every exit code and message, the text that fits a terminal, JSON for programs."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from harness.__main__ import main
from harness.compare import Change, Comparison, compare
from harness.comparison.text import EXIT_MEANS, MOST_LINES, ORDER, comparison_json, comparison_text, visible
from harness.draft import Draft, write_run
from harness.errors import Exit
from harness.model import Cache, Case, Measurement, Problem, Role, Run, TrialResult, Verdict, Word
from tests.sample_run import HOSTILE, cpu_run, empty_run, gpu_run, one_trial_run

ROOT = Path(__file__).resolve().parents[1]
QUIET = (0.0, 0.001, -0.001, 0.0005, -0.0005)
"""Five trials: what each is off by, as a fraction."""


def case(kernel: str, m: int = 64, timer: str = "graph", dtype: str = "float32") -> Case:
    problem = Problem(m=m, k=64, dtype=dtype)
    return Case(kernel=kernel, role=Role.GEMV, problem=problem, timer=timer, cache=Cache.COLD)


def timed(of: Case, ns: float, offsets: Sequence[float] = QUIET) -> Measurement:
    """One sample a trial."""
    medians = [ns * (1 + each) for each in offsets]
    passed = Verdict(word=Word.PASSED)
    trials = (TrialResult(trial=i, verdict=passed, samples_ns=(each,)) for i, each in enumerate(medians))
    return Measurement(case=of, trials=tuple(trials))


def judged(of: Case, verdict: Word, reason: str) -> Measurement:
    return Measurement(case=of, trials=(TrialResult(trial=0, verdict=Verdict(word=verdict, reason=reason)),))


def run(*measurements: Measurement, **values: Any) -> Run:
    """A run with only these measurements; `values` go into its environment."""
    plain = gpu_run(shapes=((64, 64),), kernels={}, trials=1, samples=2)
    environment = replace(plain.environment, values={**plain.environment.values, **values})
    return replace(plain, measurements=measurements, environment=environment)


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


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run by each of these names."""
    root = tmp_path_factory.mktemp("store")
    for name, made in RUNS.items():
        publish(root, name, made)
    return root


def publish(root: Path, run_id: str, made: Run) -> Path:
    folder = root / run_id
    folder.mkdir(parents=True)
    write_run(folder, replace(made, id=run_id))
    return folder


class Done:
    """What a command left."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err
        self.lines = [" ".join(line.split()) for line in out.splitlines()]


@pytest.fixture
def command(store: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs `compare` on the store, or on the one that `root` names; as in a pipe."""
    monkeypatch.delenv("COLUMNS", raising=False)

    def call(*arguments: str, root: Path = store) -> Done:
        capsys.readouterr()
        try:
            code = main(["compare", *arguments, "--store", str(root)])
        except SystemExit as left:  # argparse's own
            code = int(left.code or 0)
        return Done(code, *capsys.readouterr())

    return call


def printed(found: Comparison, *, every: bool = False, width: int = 80, colour: bool = False) -> str:
    console = Console(
        file=io.StringIO(),
        width=width,
        force_terminal=colour,
        color_system="standard" if colour else None,
        highlight=False,
        markup=False,
    )
    console.print(comparison_text(found, every=every))
    return console.file.getvalue()  # type: ignore[attr-defined]


# Exit codes


@pytest.mark.parametrize(
    ("base", "new", "code", "last"),
    [
        ("base", "fine", 0, "exit code 0: no case is known to be slower"),
        ("base", "base", 0, "exit code 0: no case is known to be slower"),
        ("base", "slower", 1, "exit code 1: a case is slower"),
        ("base", "other", 3, "exit code 3: no case is comparable"),
        ("gpu", "cpu", 3, "exit code 3: no case is comparable"),
        ("base", "empty", 3, "exit code 3: no case is comparable"),
        ("empty", "empty", 3, "exit code 3: no case is comparable"),
        ("base", "wrong", 5, "exit code 5: a kernel is wrong or crashed in the new run"),
        ("base", "crashed", 5, "exit code 5: a kernel is wrong or crashed in the new run"),
        ("one", "one", 5, "exit code 5: a kernel is wrong or crashed in the new run"),
    ],
)
def test_exit_codes(command: Any, base: str, new: str, code: int, last: str) -> None:
    """The text ends with what the code means."""
    done = command(base, new)
    assert (done.code, done.err) == (code, "")
    assert done.lines[-1] == last


def test_every_code_of_a_comparison_has_a_meaning() -> None:
    """And every word its place."""
    assert {Exit.FINE, Exit.SLOWER, Exit.NOT_COMPARABLE, Exit.KERNEL} == set(EXIT_MEANS)
    assert sorted(ORDER) == sorted(Change)


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["base", "fine", "slower", "x\x1b[31m"], "compare: wanted two runs, BASE and NEW, found also: slower x⟨"),
        (["base", "fine", "--threshold", "5%"], "--threshold: found '5%', wanted a fraction from 0 to below 1, such"),
        (["base", "fine", "--threshold", "nan"], "--threshold: found 'nan', wanted a fraction"),
        (["base", "fine", "--threshold", "-0.1"], "--threshold: found '-0.1', wanted a fraction"),
        (["base", "fine", "--threshold", "1"], "--threshold: found '1', wanted a fraction"),
        (["base", "fine", "--kernel", "nope"], "--kernel: found 'nope', wanted one of steady, quick, slow, lost"),
        (["base", "slower", "--timer", "grpah"], "--timer: found 'grpah', wanted one of graph, async"),
        (["empty", "empty", "--timer", "graph"], "--timer: found 'graph', wanted none: no case in either run"),
        (["base", "fine", "--shape", "9y9"], "--shape: found '9y9', wanted MxK with two whole numbers"),
        (["base", "fine", "--shape", "9x9"], "--shape 9x9: none of the 5 cases in these runs"),
        (["empty", "empty", "--shape", "9x9"], "--shape 9x9: none of the 0 cases in these runs"),
        (
            ["base", "slower", "--kernel", "slow", "--timer", "async"],
            "--kernel slow --timer async: none of the 6 cases in these runs",
        ),
    ],
)  # fmt: skip
def test_wrong_usage_is_one_line(command: Any, arguments: list[str], line: str) -> None:
    """Code 2, nothing on stdout, and the line says what was wanted."""
    done = command(*arguments)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(line)
    assert len(done.err.splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "words"), [(["base"], "required: NEW; "), ([], "required: BASE, NEW; "), (["--no"], "required: BASE")]
)
def test_two_runs_are_needed(command: Any, arguments: list[str], words: str) -> None:
    """Code 2; the one that is missing is named."""
    done = command(*arguments)
    assert (done.code, done.out) == (2, "")
    assert words in done.err


def test_a_run_that_is_missing_or_damaged(command: Any, tmp_path: Path) -> None:
    """Code 4, whichever of the two it is, before anything is printed."""
    base, new = publish(tmp_path, "base", BASE), publish(tmp_path, "new", FINE)
    done = command("base", "nope", root=tmp_path)
    assert (done.code, done.out) == (4, "")
    assert done.err.startswith("run 'nope': no such run among 2 in ")
    assert command("base", "new", root=tmp_path).code == 0
    with (new / "samples.parquet").open("ab") as file:
        file.write(b"x")
    line = f"{new / 'samples.parquet'}: changed since it was published (SHA-256 differs)\n"
    for arguments in (("base", "new"), ("new", "base"), ("base", "new", "--json"), ("new", "new")):
        done = command(*arguments, root=tmp_path)
        assert (done.code, done.out, done.err) == (4, "", line)
    (base / "more").write_text("")
    assert "added since the run was published" in command("base", "new", root=tmp_path).err


def test_a_killed_benchs_draft_is_published_first(command: Any, tmp_path: Path) -> None:
    """Then it is the latest run; the line about it stands on stderr, so that JSON stays whole."""
    publish(tmp_path, "20260101T000000Z-base", BASE)
    draft = Draft.create(tmp_path, replace(FINE, id="20260102T000000Z-cut", measurements=()))
    for measurement in FINE.measurements[:2]:
        draft.append(measurement)
    draft._lock.release()  # as when its process dies
    done = command("20260101", "latest", "--json", root=tmp_path)
    assert done.code == 0, done.err
    assert done.err.startswith("published what a bench had measured before it was killed: ")
    data = json.loads(done.out)
    assert data["new_id"] == "20260102T000000Z-cut"
    assert "not in new, which was cut short" in {each["reason"] for each in data["cases"]}


def test_an_interrupt_leaves_with_130(command: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """No traceback."""

    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("harness.commands.compare.load_whole", interrupt)
    assert command("base", "fine").code == 130


# The text


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
    assert rows[0] == "64×64 lost graph cold 1.723 – – failed"
    assert rows[1].startswith("64×64 slow graph cold 1.723 1.775 1.030 1.0")
    assert rows[1].endswith(" slower")
    assert rows[2].startswith("64×64 quick graph cold 1.723 1.551 0.900 0.")
    assert rows[2].endswith(" faster")
    assert rows[3] == "64×64 fresh async cold – 4.000 – new"
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
    assert sum("1.000 one trial ambiguous" in line for line in done.lines) == 2
    assert any(line.startswith("ambiguous: one trial a side gives no interval") for line in done.lines)


def test_the_threshold_moves_the_word(command: Any) -> None:
    """3 % slower is none of 5 %."""
    done = command("base", "slower", "--threshold", "0.05")
    assert done.code == 0
    assert done.lines[-2] == "1 faster, 1 new, 1 gone, 3 same of 6 cases, threshold 5 %"


def test_filters_choose_cases_and_change_no_word(command: Any) -> None:
    """The exit code is that of what was asked for; the figures are those of the whole table."""
    whole = json.loads(command("base", "slower", "--json").out)["cases"]
    for arguments, wanted in [
        (["--kernel", "slow"], [("slow", 64), ("slow", 128)]),
        (["--kernel", "slow", "--kernel", "quick", "--shape", "64x64"], [("quick", 64), ("slow", 64)]),
        (["--shape", "128x64", "--shape", "1x1"], [("slow", 128)]),
        (["--timer", "async"], [("fresh", 64)]),
    ]:
        found = json.loads(command("base", "slower", "--json", *arguments).out)
        assert [(each["case"]["kernel"], each["case"]["problem"]["m"]) for each in found["cases"]] == wanted
        assert all(each in whole for each in found["cases"])
    assert command("base", "slower", "--kernel", "steady").code == 0
    assert command("base", "slower", "--shape", "128x64").code == 0
    assert command("base", "slower", "--timer", "async").code == 3


def test_options_may_stand_between_the_runs(command: Any) -> None:
    """As people type."""
    assert command("--kernel", "slow", "base", "--threshold", "0.02", "slower").code == 1


@pytest.mark.parametrize("pair", [("gpu", "cpu"), ("gpu", "gpu"), ("base", "wrong"), ("gpu", "base")])
@pytest.mark.parametrize("options", [[], ["--all"]])
def test_it_fits_80_columns(command: Any, pair: tuple[str, str], options: list[str]) -> None:
    """Also a kernel whose name is hostile: what it would do to a terminal is written as codes."""
    out = command(*pair, *options).out
    assert max(len(line) for line in out.splitlines()) <= 80
    assert "\u202e" not in out
    assert "\x1b" not in out


def test_names_are_text_and_no_markup() -> None:
    """Square brackets are rich's; control characters are the terminal's; both are only shown."""
    names = ["[bold red]x[/]", "a\x1b[2Jb", ":smile:", HOSTILE]
    base = run(*(timed(case(name), 1000.0) for name in names), driver_version="[blink]1[/blink]\x07")
    new = run(*(timed(case(name), 1100.0) for name in names), driver_version="2")
    text = printed(compare(base, new), width=200)
    for shown in ("[bold red]x[/]", "a⟨001B⟩[2Jb", ":smile:", "[blink]1[/blink]⟨0007⟩", "⟨202E⟩"):
        assert shown in text
    assert visible("x" * 500) == "x" * 40 + "…" + "x" * 39


def test_changes_are_coloured() -> None:
    """Slower red, faster green; the others as they are."""
    text = printed(compare(replace(BASE, id="a"), replace(SLOWER, id="b")), colour=True, every=True)
    for word, code in (("slower", "\x1b[31m"), ("faster", "\x1b[32m")):
        assert f"{code}{word}" in text
        assert f"{code}1 {word}" in text
    assert "m64×64" not in text
    assert "msame" not in text


def test_many_reasons_are_cut_short() -> None:
    """All of them with --all."""
    new = run(*(judged(case("k", i + 1), Word.WRONG, f"row {i}") for i in range(MOST_LINES + 5)))
    found = compare(run(), new)
    short, long = printed(found), printed(found, every=True)
    assert "… and 5 more reasons and notes: --all shows each" in short
    assert short.count("failed: wrong: row") == MOST_LINES
    assert long.count("failed: wrong: row") == MOST_LINES + 5


def test_reasons_stand_before_notes(command: Any) -> None:
    """A note on the first row is less than why the last one has no figures."""
    heads = [line.partition(": ")[0] for line in command("gpu", "gpu").lines]
    assert heads.index("not comparable") < heads.index("note")


def test_a_problem_says_what_is_special() -> None:
    """Two cases of one shape are told apart."""
    cases = [timed(case("k", dtype="float16"), 12_345_678.0), timed(case("k"), 0.5)]
    text = printed(compare(run(*cases), run(*cases)), every=True, width=120)
    assert "64×64, float16" in text
    assert "12 346 12 346" in text
    assert "0.0005" in text


def test_thresholds_by_kernel_are_said() -> None:
    """The summary names the default one."""
    base = run(timed(case("a"), 1000.0), timed(case("b"), 1000.0))
    assert "threshold 1 %, other ones by kernel" in printed(compare(base, base, thresholds={"b": 0.05}))


# JSON


def test_json_is_all_of_it(command: Any) -> None:
    """What a program needs, by name; the same code as the text."""
    done = command("base", "slower", "--json")
    assert (done.code, done.err) == (1, "")
    data = json.loads(done.out, parse_constant=pytest.fail)
    assert (data["schema_version"], data["base_id"], data["new_id"], data["same_run"]) == (1, "base", "slower", False)
    assert (data["exit_code"], data["exit_means"]) == (1, "a case is slower")
    assert data["attribution"] == "several: driver, power limit"
    assert data["counts"] == {
        "failed": 0, "slower": 1, "faster": 1, "ambiguous": 0, "same": 2, "new": 1, "gone": 1, "not comparable": 0,
    }  # fmt: skip
    assert data["environment"][0] == {
        "key": "driver_version", "group": "driver", "base": "580.159.04", "new": "590.48", "unit": None,
    }  # fmt: skip
    slow = next(each for each in data["cases"] if each["change"] == "slower")
    assert slow["case"]["kernel"] == "slow"
    assert slow["ratio"]["estimate"] == pytest.approx(1775 / 1723)
    assert slow["ratio"]["low"] < slow["ratio"]["estimate"] < slow["ratio"]["high"]
    assert (slow["base_trials"], slow["new_trials"]) == (5, 5)
    assert next(each for each in data["cases"] if each["change"] == "gone")["ratio"] is None


def test_json_is_ascii_without_nan() -> None:
    """Hostile names and values that are no number go through any pipe and any parser."""
    made = run(timed(case(HOSTILE), 1000.0), driver_version=float("nan"))
    text = comparison_json(compare(made, run(driver_version=float("inf"))))
    assert text.isascii()
    data = json.loads(text, parse_constant=pytest.fail)
    assert data["cases"][0]["case"]["kernel"] == HOSTILE
    assert (data["environment"][0]["base"], data["environment"][0]["new"]) == (None, None)


def test_as_a_user_runs_it(store: Path) -> None:
    """In a process of its own, on a terminal that has ASCII alone."""
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "SGEMV_STORE": str(store)}
    arguments = [sys.executable, "-m", "harness", "compare", "base", "slower"]
    done = subprocess.run(arguments, cwd=ROOT, env=environment, capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (1, b"")
    assert b"64?64" in done.stdout
