"""Published claims put to the test: one small function each, that reads a run and gives a figure and a word.

A module here holds `CLAIMS`, a tuple of `Claim`. To add a claim, add it to one, or add a module.

Which GPU may judge a claim is one rule for all, in `Claim.judge`. A claim of one GPU, whose words name it, a quantity
of it or a bare figure that was measured on it alone, is judged on that GPU alone, or by counting for it. A claim stated
for any GPU is judged by what is measured here, and where its source measured on another one, the answer says so.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from harness.stats import Interval
from harness.words import percent_decimals
from reports import format as fmt
from reports.figures import Figures, Row

BOTH = "bench -- --suite sgemv --suite roofline"
"""The session that measures float32 kernels in every way beside the ceilings."""


LEAST_TRIALS = 2
"""That an interval takes."""


class Word(StrEnum):
    """What a run says of a claim."""

    CONFIRMED = "confirmed"
    REFUTED = "refuted"
    UNDECIDED = "undecided"
    """Measured, but the interval reaches over a bound, or one trial gives none."""
    CANNOT = "cannot be measured here"
    """By no run on this device, or not by times and bytes."""
    ABSENT = "not in this run"
    """Its cases were not measured."""


BOARDS = {"H100": ("NVIDIA H100 80GB HBM3",), "RTX 4090": ("NVIDIA GeForce RTX 4090",)}
"""What boards call themselves that sources measured on: others of the name have other multiprocessors or bandwidth."""

DECIDED = (Word.CONFIRMED, Word.REFUTED, Word.UNDECIDED)
"""Words that rest on what was measured."""


@dataclass(frozen=True, kw_only=True)
class Judged:
    """A run's answer."""

    word: Word
    measured: str
    """Figures with unit, timer and interval; or why there are none."""
    rows: tuple[Row, ...] = ()
    """The cases that it rests on."""
    counted: bool = False
    """By arithmetic for the claim's own GPU: it holds wherever the run was made."""

    @property
    def case_ids(self) -> tuple[str, ...]:
        """Of `rows`, each once."""
        return tuple(dict.fromkeys(row.measurement.case.id for row in self.rows))


@dataclass(frozen=True, kw_only=True)
class Claim:
    """One published statement."""

    name: str
    """Short and unique."""
    place: int
    """In the order in which the page tells them."""
    says: str
    """The claim."""
    source: str
    """The source's own figure, with its device where it names one."""
    criterion: str
    """When it counts as confirmed; refuted where the whole interval lies outside, undecided where a part does."""
    measure: Callable[[Figures], Judged]
    """What a run says of it, whatever its GPU; pages ask `judge`."""
    source_gpu: str = ""
    """The GPU of the source's figure, of `BOARDS`; "": the source names none."""
    of_it_alone: bool = False
    """Its words name that GPU, a quantity of it or a bare figure of it; False: it is stated for any."""

    def judge(self, f: Figures) -> Judged:
        """A run's answer, by the rule on top."""
        answer = self.measure(f)
        if not self.source_gpu or answer.counted or answer.word not in DECIDED or is_a(self.source_gpu, f):
            return answer
        if self.of_it_alone:
            return replace(
                answer, word=Word.CANNOT, measured=f"the claim is of the {self.source_gpu}; {answer.measured}"
            )
        where = f"{answer.word} on {fmt.name(gpu(f))}; the source's figure is of the {self.source_gpu}"
        return replace(answer, measured=f"{answer.measured}; {where}")


def claims() -> tuple[Claim, ...]:
    """All claims of all modules, in order."""
    modules = sorted(info.name for info in pkgutil.iter_modules(__path__))
    found = [claim for name in modules for claim in importlib.import_module(f"{__name__}.{name}").CLAIMS]
    return tuple(sorted(found, key=lambda claim: claim.place))


def absent(what: str, session: str) -> Judged:
    """The run lacks `what`, which `nox -s {session}` measures."""
    return Judged(word=Word.ABSENT, measured=f"needs {what}: nox -s {session}")


def within(value: Interval, low: float = float("-inf"), high: float = float("inf")) -> Word:
    """Confirmed: the whole interval lies between the bounds; refuted: outside; else undecided."""
    if value.low is None or value.high is None:
        return Word.UNDECIDED
    if low <= value.low and value.high <= high:
        return Word.CONFIRMED
    return Word.REFUTED if value.high < low or value.low > high else Word.UNDECIDED


def all_of(words: Iterable[Word]) -> Word:
    """Of a claim with several parts: refuted where one is, confirmed where all are."""
    order = (Word.REFUTED, Word.CANNOT, Word.UNDECIDED, Word.CONFIRMED)
    return min(words, key=order.index)


def verdict(word: Word, said: str, rows: Iterable[Row]) -> Judged:
    """With the reason behind a figure that decides nothing."""
    found = tuple(rows)
    one_trial = any(len(row.measurement.trials) < LEAST_TRIALS for row in found)
    why = "one trial gives no interval" if one_trial else "an interval reaches over a bound"
    return Judged(word=word, measured=f"{said}; {why}" if word is Word.UNDECIDED else said, rows=found)


def gpu(f: Figures) -> str:
    """The run's GPU, as it calls itself."""
    return str(f.run.environment.get("gpu_name") or "this device")


def is_a(model: str, f: Figures) -> bool:
    """Whether the run's GPU is that of `BOARDS`."""
    return gpu(f) in BOARDS[model]


def percent_range(value: Interval) -> str:
    """A fraction in % with its interval: `0.62 % (95 %: 0.61–0.63)`, with a digit more than alone."""
    decimals = percent_decimals(value.estimate * 100) + 1
    middle, *ends = (
        None if each is None else f"{each * 100:.{decimals}f}" for each in (value.estimate, value.low, value.high)
    )
    if None in ends:
        return f"{middle}{fmt.NBSP}% (one trial: no interval)"
    return f"{middle}{fmt.NBSP}% (95{fmt.NBSP}%: {'–'.join(map(str, ends))})"
