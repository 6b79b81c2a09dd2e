"""Whether a run was reproduced: one line, and the code to leave with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.comparison.records import COMPARED, CaseChange, Change, Comparison
from harness.comparison.request import Compared
from harness.comparison.sides import FAILED, side
from harness.errors import Exit
from harness.selfcheck import failed as failed_checks
from harness.words import problem_in_words, significant, visible

NAMED = 3
"""Cases that the line names at most."""


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What became of it."""

    line: str
    """`reproduced: …`, `not reproduced: …` or `cannot be told: …`."""
    code: Exit
    """0 reproduced, 1 not, 3 nothing to tell it by, 5 a kernel or the selfcheck failed."""


def verdict(compared: Compared) -> Verdict:
    """Reproduced: a case is the same, and none is slower, faster, failed, lost, or right where it had been wrong.

    A case is lost if the run has figures of it that nothing could be held against. Where all are ambiguous, nothing
    was shown: that is no reproduction.

    Args:
        compared: the run and one other that was measured as it was.
    """
    found = compared.found[0]
    counted = [each for each in found.cases if each.change in COMPARED or each.change is Change.FAILED or _lost(each)]
    wrong = _wrong(compared, len(counted))
    if found.counts[Change.FAILED] or _selfcheck_broke(compared):
        return Verdict(line=f"not reproduced: {wrong}", code=Exit.KERNEL)
    cases = [each for each in found.cases if each.change in COMPARED]
    if not cases:
        why = "; ".join(found.not_comparable) or "no case has figures in both runs"
        return Verdict(line=f"cannot be told: {visible(why)}", code=Exit.NOT_COMPARABLE)
    if wrong:
        return Verdict(line=f"not reproduced: {wrong}", code=Exit.SLOWER)
    if not found.counts[Change.SAME]:
        return Verdict(line=f"cannot be told: {_doubt(cases)}", code=Exit.NOT_COMPARABLE)
    return Verdict(line=f"reproduced: {_right(found, cases)}", code=Exit.FINE)


def _lost(each: CaseChange) -> bool:
    return each.base_ns is not None and each.change not in COMPARED and each.change is not Change.FAILED


def _failed_only_before(each: CaseChange, before: set[str]) -> bool:
    return each.change is Change.NEW and each.case.id in before


def _reach(cases: Sequence[CaseChange]) -> float | None:
    """How far from 1 a ratio may be at most, as a fraction; None where no case has an interval."""
    ratios = [each.ratio for each in cases if each.ratio]
    ends = [end for ratio in ratios for end in (ratio.low, ratio.high) if end is not None]
    return max((abs(end - 1) for end in ends), default=None)


def _wrong(compared: Compared, total: int) -> str:
    """What speaks against it, in words; "" if nothing does."""
    found, before = compared.found[0], _failed_before(compared)
    by_word = {
        "failed": [each for each in found.cases if each.change is Change.FAILED],
        "slower": [each for each in found.cases if each.change is Change.SLOWER],
        "faster": [each for each in found.cases if each.change is Change.FASTER],
        "lost": [each for each in found.cases if _lost(each)],
        "failed in the run alone": [each for each in found.cases if _failed_only_before(each, before)],
    }
    counts = [(len(cases), word) for word, cases in by_word.items() if cases]
    parts = []
    if counts:
        names = _named([each for cases in by_word.values() for each in cases])
        (number, word), *others = counts
        rest = "".join(f", {count} {other}" for count, other in others)
        parts.append(f"{number} of {_cases(total)} {word}{rest} ({names})")
    if by_word["failed"] and before >= {each.case.id for each in by_word["failed"]}:
        parts.append("what failed had failed in the run too")
    if _selfcheck_broke(compared):
        parts.append("the selfcheck failed, and had not in the run")
    return "; ".join(parts)


def _right(found: Comparison, cases: Sequence[CaseChange]) -> str:
    told = [f"{found.counts[each]} {each}" for each in (Change.SAME, Change.AMBIGUOUS) if found.counts[each]]
    words = f"{_cases(len(cases))} compared, none known to be slower or faster by more than {_percent(found.threshold)}"
    return f"{words} ({', '.join(told)}); the widest 95 % interval reaches {_percent(_reach(cases) or 0.0)}"


def _doubt(cases: Sequence[CaseChange]) -> str:
    reach = _reach(cases)
    if reach is None:
        return f"{_cases(len(cases))} compared, by one trial a side, which gives no interval; take a run of more trials"
    widest = f"the widest 95 % interval reaches {_percent(reach)}"
    return f"all of {_cases(len(cases))} ambiguous; {widest}: take a run of more trials, or a larger --threshold"


def _failed_before(compared: Compared) -> set[str]:
    return {each.case.id for each in compared.base.measurements if side(each).word in FAILED}


def _selfcheck_broke(compared: Compared) -> bool:
    now, before = compared.news[0].selfcheck or (), compared.base.selfcheck or ()
    return bool(failed_checks(now)) and not failed_checks(before)


def _named(cases: Sequence[CaseChange]) -> str:
    more = [f"and {len(cases) - NAMED} more"] if len(cases) > NAMED else []
    return "; ".join([*map(_name, cases[:NAMED]), *more])


def _name(each: CaseChange) -> str:
    case = each.case
    ratio = f" {significant(each.ratio.estimate)}×" if each.ratio else ""
    return f"{visible(case.kernel)} {problem_in_words(case.problem)} {visible(case.timer)} {case.cache}{ratio}"


def _cases(count: int) -> str:
    return f"{count} case{'' if count == 1 else 's'}"


def _percent(fraction: float) -> str:
    return f"{100 * fraction:.3g} %"
