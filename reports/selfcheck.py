"""The selfcheck's table: what was asked of the timers, how far they differ, and where by too much."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.model import Check, Problem, Word
from harness.selfcheck import CHECKS, CheckKind, Rule, failed
from harness.timing import Purpose, timers
from reports import format as fmt
from reports.cautions import Caution, Level
from reports.figures import Figures, purpose_of, verdict_of, way_of
from reports.tables import Cell, Column, Table, number, table, text

MOST_NAMED = 3
"""Failed checks that the sentence on top names one by one; of more it counts each kind's."""

NOT_ASKED = "not asked of this kernel"

WORST = (
    "The largest difference is a failed one, else the one that takes most of its bound; for a check that wants a "
    "difference, the one that takes least. A difference is what the check looks at less what it is held against; the "
    "percentages are of the latter. Both are over the trials that the two timers share, or over all where they ran in "
    "different processes."
)


@dataclass(frozen=True, kw_only=True)
class Difference:
    """A judged check in figures."""

    check: Check
    ns: float
    """Found − wanted."""
    share: float | None
    """Of what it is held against; None where that is 0."""
    of_bound: float
    """Difference over bound, with its sign."""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """One kind of check and what came of it."""

    name: str
    kind: CheckKind | None
    """None: this version does not know it."""
    judged: tuple[Difference, ...]
    worst: Difference | None
    """None: nothing was judged."""
    unjudged: int

    @property
    def failed(self) -> int:
        """How many did not pass."""
        return sum(each.check.passed is False for each in self.judged)

    @property
    def passed(self) -> str:
        """E.g. `40 of 41`."""
        return f"{len(self.judged) - self.failed} of {len(self.judged)}"


@dataclass(frozen=True, kw_only=True)
class Selfcheck:
    """The section's content; exists only where the run has a selfcheck."""

    takeaway: str
    kinds: Table | None
    """A row a kind of check; None: no check was made."""
    cases: Table | None
    """A row a kernel and problem."""
    reasons: tuple[str, ...]
    """Why a check was not judged; the table of cases refers to them by number, from 1."""
    timers: tuple[tuple[str, str], ...]
    """(name, what it does differently) of the timers that exist for the selfcheck alone."""


def selfcheck_view(f: Figures) -> Selfcheck | None:
    """What the page says of the selfcheck; None where the run has none."""
    checks = f.run.selfcheck
    if checks is None:
        return None
    reasons = _reasons(checks)
    used = {m.case.timer for m in f.run.measurements}
    own = [t for t in timers().values() if t.purpose is Purpose.CHECK and t.name in used]
    return Selfcheck(
        takeaway=takeaway(f, checks),
        kinds=_kinds_table(f, asked(checks)) if checks else None,
        cases=_cases_table(f, checks, reasons) if checks else None,
        reasons=tuple(fmt.line(reason) for reason in reasons),
        timers=tuple((t.name, t.summary) for t in own),
    )


def takeaway(f: Figures, checks: Sequence[Check]) -> str:
    """How many checks passed, and which did not."""
    judged = [check for check in checks if difference(check) is not None]
    if not judged:
        return f"No check could be judged, of {len(checks)}." if checks else "Nothing was measured that can be checked."
    bad = failed(checks)
    if not bad:
        said = "The one check passed" if len(judged) == 1 else f"All {len(judged)} checks passed"
    else:
        said = f"{len(judged) - len(bad)} of {fmt.count(len(judged), 'check')} passed; failed: {_which(f, bad)}"
    return " ".join(line for line in (f"{said}.", _open(checks)) if line)


def _which(f: Figures, bad: Sequence[Check]) -> str:
    if len(bad) <= MOST_NAMED:
        return fmt.listing([f"«{fmt.name(check.name)}» of {case(f, check)}" for check in bad])
    names = [check.name for check in bad]
    return fmt.listing([f"«{fmt.name(name)}» ({names.count(name)})" for name in dict.fromkeys(names)])


def _open(checks: Sequence[Check]) -> str:
    """How many were not judged; those of a kernel without figures on a problem are no checks that were left open."""
    checked = with_figures(checks)
    unjudged = sum(difference(check) is None for check in checked)
    every, live = ({(check.kernel, check.problem) for check in some} for some in (checks, checked))
    said = [f"{unjudged} more could not be judged."] if unjudged else []
    if len(every) > len(live):
        said.append(f"{len(every) - len(live)} of {len(every)} pairs of kernel and problem have no figures to check.")
    return " ".join(said)


def with_figures(checks: Sequence[Check]) -> list[Check]:
    """The checks of kernels and problems of which any could be judged."""
    live = {(check.kernel, check.problem) for check in checks if difference(check) is not None}
    return [check for check in checks if (check.kernel, check.problem) in live]


def asked(checks: Sequence[Check]) -> tuple[Asked, ...]:
    """What came of each kind of check, in the order of `CHECKS`, then those that this version does not know.

    A kernel without figures on a problem is in none of the counts.
    """
    known = {kind.name: kind for kind in CHECKS}
    present = dict.fromkeys(check.name for check in checks)
    names = [*(name for name in known if name in present), *(name for name in present if name not in known)]
    live = with_figures(checks)
    return tuple(_asked(name, known.get(name), [check for check in live if check.name == name]) for name in names)


def _asked(name: str, kind: CheckKind | None, checks: Sequence[Check]) -> Asked:
    judged = tuple(found for check in checks if (found := difference(check)) is not None)
    worst = max(judged, key=lambda each: (each.check.passed is False, _strain(kind, each))) if judged else None
    return Asked(name=name, kind=kind, judged=judged, worst=worst, unjudged=len(checks) - len(judged))


def _strain(kind: CheckKind | None, of: Difference) -> float:
    """How much of its bound a difference takes; where a difference must be there, how little."""
    if kind is None or kind.rule is Rule.AGREE:
        return abs(of.of_bound)
    wants_little = kind.rule is Rule.NOT_BELOW and of.check.passed
    return of.of_bound if wants_little else -of.of_bound


def difference(check: Check) -> Difference | None:
    """A check in figures; None if it was not judged."""
    found, wanted, bound = check.found_ns, check.wanted_ns, check.bound_ns
    if check.passed is None or found is None or wanted is None or bound is None:
        return None
    ns = found - wanted
    share = ns / wanted if wanted else None
    return Difference(check=check, ns=ns, share=share, of_bound=ns / bound if bound else 0.0)


def failures(f: Figures) -> tuple[Caution, ...]:
    """An error a kind of check that failed, every case below it; to stand among the page's first lines."""
    found = []
    for each in asked(f.run.selfcheck or ()):
        if each.failed:
            of = fmt.out_of(each.failed, len(each.judged), "case")
            question = f": {each.kind.question}" if each.kind else "."
            lines = tuple(failure(f, d, each.kind) for d in each.judged if d.check.passed is False)
            said = f"The selfcheck «{fmt.name(each.name)}» failed in {of}{question}"
            found.append(Caution(level=Level.BAD, text=said, details=lines))
    return tuple(found)


def failed_elsewhere(f: Figures) -> tuple[Caution, ...]:
    """An error for kernels that were wrong or crashed by a timer of the selfcheck or a peer's, and by no other.

    Their figures are nowhere, but a wrong output is a wrong kernel.
    """
    broken = (Word.WRONG, Word.CRASHED)
    known = {(r.kernel, r.problem) for r in f.rows if r.verdict.word in broken}
    lines = []
    for m in f.run.measurements:
        verdict, where = verdict_of(m), (m.case.kernel, m.case.problem)
        if purpose_of(m.case.timer) is not Purpose.BENCH and verdict.word in broken and where not in known:
            who = f"{fmt.name(m.case.kernel)} on {fmt.problem(m.case.problem)} ({fmt.name(way_of(m).label)})"
            lines.append(f"{who}: {verdict.word}: {fmt.line(verdict.reason or 'no reason given')}")
    said = "Kernels that passed by the bench's own timers failed by others."
    return (Caution(level=Level.BAD, text=said, details=tuple(lines)),) if lines else ()


def failure(f: Figures, of: Difference, kind: CheckKind | None) -> str:
    """A failed check with its figures and what they should have been, in a line."""
    check = of.check
    times = f"{fmt.microseconds(check.found_ns or 0)} against {fmt.microseconds(check.wanted_ns or 0)}"
    wanted = f"wanted: {f'{kind.rule} ' if kind else ''}{fmt.microseconds(check.bound_ns or 0)}"
    return f"{case(f, check)}: {times}, {figures(of)}; {wanted}"


def figures(of: Difference) -> str:
    """A difference in both units: `+0.012 µs (+0.4 %)`."""
    share = "" if of.share is None else f" ({fmt.signed_percent_figure(of.share)}{fmt.NBSP}%)"
    return f"{fmt.signed_microseconds_figure(of.ns)}{fmt.NBSP}µs{share}"


def case(f: Figures, check: Check) -> str:
    """Whom a check was of."""
    return f"{fmt.name(check.kernel)}{f' on {place}' if (place := _place(f, check.problem)) else ''}"


def bound(kind: CheckKind | None) -> str:
    """The rule with its bound in words."""
    return f"{kind.rule} {kind.bound}, whichever is more" if kind else "not a check of this version"


def _place(f: Figures, problem: Problem) -> str:
    """The problem; "" for the floor's, which is none."""
    return fmt.problem(problem) if problem in f.problems else ""


def _kinds_table(f: Figures, found: Sequence[Asked]) -> Table:
    rows: list[list[Cell | str]] = []
    for each in found:
        worst = each.worst
        largest = [Cell(text=fmt.NONE)] * 3
        if worst is not None:
            mark = "bad" if worst.check.passed is False else ""
            share = fmt.NONE if worst.share is None else fmt.signed_percent_figure(worst.share)
            largest = [Cell(text=fmt.signed_microseconds_figure(worst.ns), mark=mark), Cell(text=share, mark=mark)]
            largest.append(Cell(text=case(f, worst.check)))
        passed = Cell(
            text=each.passed,
            note=f"{each.unjudged} not judged" if each.unjudged else "",
            mark="bad" if each.failed else "" if each.judged else "quiet",
        )
        question = each.kind.question if each.kind else fmt.NONE
        rows.append([fmt.name(each.name), question, bound(each.kind), passed, *largest])
    heads = [text("check"), text("question"), text("bound"), text("passed"), number("largest difference", "µs")]
    heads += [number("largest difference", "%"), text("of")]
    return table("What was asked, and what came of it", heads, rows, note=WORST)


def _cases_table(f: Figures, checks: Sequence[Check], reasons: Sequence[str]) -> Table:
    names = [each.name for each in asked(checks)]
    by_case: dict[tuple[Problem, str], dict[str, Check]] = {}
    for check in checks:
        by_case.setdefault((check.problem, check.kernel), {})[check.name] = check
    rows: list[list[Cell | str]] = []
    for (problem, kernel), own in by_case.items():
        head = [Cell(text=fmt.name(kernel), kernel=kernel), Cell(text=_place(f, problem) or fmt.NONE)]
        if with_figures(list(own.values())):
            rows.append([*head, *(_cell(own.get(name), reasons) for name in names)])
        else:
            why = "; ".join(dict.fromkeys(fmt.line(_reason(check)) for check in own.values()))
            rows.append([*head, Cell(text=fmt.NONE, note=fmt.line(why), mark="quiet", columns=len(names))])
    columns: list[Column] = [text("kernel"), text("problem"), *(number(fmt.name(name), "µs, %") for name in names)]
    return table("Differences by kernel and problem", columns, rows, group_by=1)


def _cell(check: Check | None, reasons: Sequence[str]) -> Cell:
    of = difference(check) if check is not None else None
    if of is None:
        return Cell(text=fmt.NONE, note=f"({reasons.index(_reason(check)) + 1})", mark="quiet")
    share = "" if of.share is None else f"{fmt.signed_percent_figure(of.share)}{fmt.NBSP}%"
    mark = "bad" if of.check.passed is False else ""
    return Cell(text=fmt.signed_microseconds_figure(of.ns), note=share, mark=mark)


def _reason(check: Check | None) -> str:
    return NOT_ASKED if check is None else check.reason or "no reason recorded"


def _reasons(checks: Sequence[Check]) -> list[str]:
    """Each once, in order of appearance; that a kernel was not asked comes last."""
    live = with_figures(checks)
    found = dict.fromkeys(_reason(check) for check in live if difference(check) is None)
    asked_of: dict[tuple[Problem, str], set[str]] = {}
    for check in live:
        asked_of.setdefault((check.problem, check.kernel), set()).add(check.name)
    every = {check.name for check in checks}
    missing = any(names != every for names in asked_of.values())
    return [*found, *([NOT_ASKED] if missing else [])]
