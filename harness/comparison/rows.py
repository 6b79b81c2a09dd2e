"""Which cases of two runs belong together, and the words that no test is needed for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

from harness.comparison.records import Change
from harness.comparison.sides import FAILED, Side, side
from harness.model import Case, Measurement, Run, Word
from harness.timing import not_benched


@dataclass(frozen=True, kw_only=True)
class Row:
    """One case of either run."""

    base: Measurement | None
    """In the base run; None: it has no such case."""
    new: Measurement | None
    """In the new run; None: it has no such case."""
    base_side: Side | None
    """Figures of `base`."""
    new_side: Side | None
    """Figures of `new`."""
    change: Change | None = None
    """The word; None: the trials must say."""
    reason: str | None = None
    """Why that word."""

    @property
    def case(self) -> Case:
        """As the new run has it, else the base run."""
        known = self.new or self.base
        if known is None:
            raise ValueError("Row: base and new are None, wanted a case of either run")
        return known.case


def rows(base: Run, new: Run, obstacles: Iterable[str]) -> list[Row]:
    """A row for each case in either run: those of the new run in its order, then what only the base run has.

    Args:
        base: with its samples.
        new: with its samples.
        obstacles: why no case of these runs may be compared, from `attribution.obstacles`.
    """
    olds, news = _benched(base), _benched(new)
    twice = {f"twice in {name}": _twice(run) for name, run in (("base", base), ("new", new))}
    lone = {
        "new": [m.case for key, m in news.items() if key not in olds],
        "base": [m.case for key, m in olds.items() if key not in news],
    }
    blocked = next(iter(obstacles), None)
    made = []
    for key in dict.fromkeys([*news, *olds]):
        row = _row(olds.get(key), news.get(key))
        doubled = [name for name, keys in twice.items() if key in keys]
        if row.base is None or row.new is None:
            made.append(_of_one_run(row, lone, base if row.base is None else new))
        else:
            made.append(_of_both(row, "; ".join(doubled) or blocked or _other_case(row.base.case, row.new.case)))
    return made


def _benched(run: Run) -> dict[str, Measurement]:
    """By case id; a timer that is there to check another is no figure."""
    others = not_benched()
    mine = [m for m in run.measurements if m.case.timer not in others]
    failed_last = sorted(mine, key=lambda m: bool(m.trials) and m.verdict.word in FAILED)  # of two, it is the one kept
    kept = {m.case.id: m for m in failed_last}
    return {m.case.id: kept[m.case.id] for m in mine}


def _twice(run: Run) -> set[str]:
    return {key for key, count in Counter(m.case.id for m in run.measurements).items() if count > 1}


def _row(base: Measurement | None, new: Measurement | None) -> Row:
    return Row(
        base=base, new=new, base_side=None if base is None else side(base), new_side=None if new is None else side(new)
    )


def _of_both(row: Row, obstacle: str | None) -> Row:
    """The word on a case that both runs have. A kernel that fails does so on any device."""
    old, fresh = row.base_side, row.new_side
    if old is None or fresh is None:
        raise ValueError(f"{row.case.id}: wanted a case of both runs")
    if fresh.word in FAILED:
        return replace(row, change=Change.FAILED, reason=fresh.fault)
    if obstacle:
        return replace(row, change=Change.NOT_COMPARABLE, reason=obstacle)
    if old.fault and fresh.fault:
        return replace(row, change=Change.NOT_COMPARABLE, reason=_both_faults(old.fault, fresh.fault))
    if old.fault or fresh.fault:
        name, found = ("base", old) if old.fault else ("new", fresh)
        reason = f"in {name} {found.fault}"
        if found.word is Word.PASSED:  # its record is damaged: whether it still runs is not known
            return replace(row, change=Change.NOT_COMPARABLE, reason=reason)
        return replace(row, change=Change.NEW if old.fault else Change.GONE, reason=reason)
    return row


def _both_faults(old: str, fresh: str) -> str:
    return f"in both {old}" if old == fresh else f"in base {old}; in new {fresh}"


def _of_one_run(row: Row, lone: dict[str, list[Case]], lacking: Run) -> Row:
    """The word on a case that `lacking` does not have."""
    name, other = ("new", "base") if row.base is None else ("base", "new")
    found = row.new_side or row.base_side
    if row.new_side is not None and row.new_side.word in FAILED:
        return replace(row, change=Change.FAILED, reason=row.new_side.fault)
    if counterpart := _counterpart(row.case, lone[other]):
        return replace(row, change=Change.NOT_COMPARABLE, reason=counterpart)
    if found is not None and found.fault:
        return replace(row, change=Change.NOT_COMPARABLE, reason=f"not in {other}; in {name} {found.fault}")
    reason = f"not in {other}, which was cut short" if lacking.partial else f"not in {other}"
    return replace(row, change=Change.NEW if row.base is None else Change.GONE, reason=reason)


def _counterpart(case: Case, others: list[Case]) -> str | None:
    """Of what the other run alone has: the same kernel and problem, measured in another way, in words; else None."""
    for other in others:
        named = {"timer": (case.timer, other.timer), "cache": (case.cache, other.cache)}
        named["dtype"] = (case.problem.dtype, other.problem.dtype)
        differing = [name for name, (own, its) in named.items() if own != its]
        if len(differing) == 1 and _like(case, other) == case:
            own, its = named[differing[0]]
            return f"other {differing[0]}: {own} here, {its} in the other run"
    return None


def _like(case: Case, other: Case) -> Case:
    """`other` with this case's timer, cache and dtype."""
    problem = replace(other.problem, dtype=case.problem.dtype)
    return replace(other, timer=case.timer, cache=case.cache, problem=problem)


def _other_case(base: Case, new: Case) -> str | None:
    """Why two cases of one id are not the same: ids shorten what they stand for."""
    if base == new:
        return None
    if base.problem.dtype != new.problem.dtype:
        return f"other dtype: {new.problem.dtype} against {base.problem.dtype}"
    return "other problem" if base.problem != new.problem else f"other role: {new.role} against {base.role}"
