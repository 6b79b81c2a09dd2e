"""suites.progress: the line of a case, and the time left."""

from __future__ import annotations

import re
from dataclasses import replace
from types import SimpleNamespace

import pytest

from harness.model import Cache, Case, Measurement, Problem, Role, TrialResult, Verdict, Word
from suites import progress
from suites.progress import Progress

CASE = Case(kernel="mine", role=Role.GEMV, problem=Problem(m=64, k=128), timer="async", cache=Cache.COLD)


class Clock:
    """In place of `time`: only `advance` moves it."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def monotonic(self) -> float:
        """As of `time`."""
        return self.now_s


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Of the progress alone."""
    made = Clock()
    monkeypatch.setattr(progress, "time", made)
    return made


def started(total: int, capture: object = None) -> Progress:
    plugins = SimpleNamespace(getplugin={"capturemanager": capture}.get)
    return Progress(SimpleNamespace(pluginmanager=plugins), total=total)  # type: ignore[arg-type]


def passed(*medians_ns: float) -> Measurement:
    """A trial a median."""
    verdict = Verdict(word=Word.PASSED)
    trials = [TrialResult(trial=i, verdict=verdict, samples_ns=(ns,)) for i, ns in enumerate(medians_ns)]
    return Measurement(case=CASE, trials=tuple(trials))


def ended(word: Word, reason: str | None) -> Measurement:
    return Measurement(case=CASE, trials=(TrialResult(trial=0, verdict=Verdict(word=word, reason=reason)),))


def said(measurement: Measurement, capsys: pytest.CaptureFixture[str], total: int = 9) -> str:
    """The one line of a first case."""
    shown = started(total)
    shown.measured(measurement)
    shown.close()
    (line,) = capsys.readouterr().out.splitlines()
    return line


@pytest.mark.usefixtures("clock")
def test_a_case_of_several_trials(capsys: pytest.CaptureFixture[str]) -> None:
    """Its place, what it is, the median in µs and how far the trials lie apart: (2200 − 2000)/2000 by hand."""
    line = said(passed(2000.0, 2200.0, 2000.0), capsys)
    assert re.match(r" +1/9 ✓ +64x128  async +cold  mine ", line)
    assert re.search(r" 2\.065 µs  spread 10\.0 %  0:00 left$", line)


@pytest.mark.usefixtures("clock")
def test_problems_with_long_names_keep_the_columns(capsys: pytest.CaptureFixture[str]) -> None:
    """Of tokens and a dtype; the names of timers stand below each other."""
    shown = Progress(SimpleNamespace(pluginmanager=SimpleNamespace(getplugin=lambda _: None)), total=2, width=22)  # type: ignore[arg-type]
    long = Problem(m=4096, k=4096, n=16, dtype="bfloat16")
    for problem in (long, CASE.problem):
        shown.measured(replace(passed(2000.0), case=replace(CASE, problem=problem)))
    shown.close()
    lines = capsys.readouterr().out.splitlines()
    assert "4096x4096x16:bfloat16  async" in lines[0]
    assert lines[0].index("async") == lines[1].index("async")


@pytest.mark.usefixtures("clock")
def test_a_case_of_one_trial_has_no_spread(capsys: pytest.CaptureFixture[str]) -> None:
    """«spread 0.0 %» would say that it is known."""
    line = said(passed(2000.0), capsys)
    assert "spread" not in line
    assert line.endswith(" 2.000 µs  0:00 left")


@pytest.mark.usefixtures("clock")
def test_equal_trials_have_a_spread_of_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """That, in turn, is known."""
    assert "spread  0.0 %" in said(passed(2000.0, 2000.0), capsys)


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize(
    ("word", "mark"),
    [(Word.UNSUPPORTED, "–"), (Word.NOT_MEASURED, "!"), (Word.WRONG, "✗"), (Word.CRASHED, "✗")],
)
def test_a_case_without_figures_says_why(word: Word, mark: str, capsys: pytest.CaptureFixture[str]) -> None:
    """In its own words, which may look like markup."""
    line = said(ended(word, "y[red] is [/] nan"), capsys)
    assert f"1/9 {mark} " in line
    assert line.endswith(f"{word}: y[red] is [/] nan")


def test_the_time_left(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    """Of the cases still to come, at the pace of those since `begin`: building is none of them."""
    shown = started(4)
    clock.now_s += 1000
    shown.begin()
    for seconds in (40, 20, 0, 10):
        clock.now_s += seconds
        shown.measured(passed(1.0))
    shown.close()
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[-2] for line in lines] == ["2:00", "1:00", "0:20", "0:00"]
    assert [line.split()[0] for line in lines] == ["1/4", "2/4", "3/4", "4/4"]


@pytest.mark.parametrize(
    ("seconds", "left"), [(29.4, "0:29"), (59.7, "1:00"), (90.0, "1:30"), (119.0, "1:59"), (3600.0, "60:00")]
)
def test_the_time_left_in_minutes_and_seconds(
    clock: Clock, seconds: float, left: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Half a minute is not one; 60 s are."""
    shown = started(2)
    clock.now_s += seconds
    shown.measured(passed(1.0))
    shown.close()
    assert capsys.readouterr().out.endswith(f" {left} left\n")


def test_a_case_that_was_not_measured_counts(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    """It took its time, if little: what is left is the mean over all."""
    shown = started(3)
    shown.measured(ended(Word.UNSUPPORTED, "K is odd"))
    clock.now_s += 10
    shown.measured(passed(1.0))
    assert capsys.readouterr().out.splitlines()[-1].endswith(" 0:05 left")
    shown.close()


def test_a_line_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    """A path or a GPU's name is no markup either."""
    shown = started(1)
    shown.say("warning: [bold]x[/] µ")
    shown.close()
    assert capsys.readouterr().out == "warning: [bold]x[/] µ\n"


def test_lines_are_for_the_person_not_for_pytest() -> None:
    """What pytest captures of a test would be seen at its failure alone."""
    entered: list[str] = []

    class Capture:
        def global_and_fixture_disabled(self):
            import contextlib

            @contextlib.contextmanager
            def off():
                entered.append("off")
                yield
                entered.append("on")

            return off()

    shown = started(1, Capture())
    entered.clear()
    shown.say("x")
    shown.measured(passed(1.0))
    shown.close()
    assert entered == ["off", "on"] * 3
