"""What the figures come to, in a sentence each, worked out from the intervals."""

from __future__ import annotations

from collections.abc import Sequence

from harness.model import Problem, Role
from reports import format as fmt
from reports.figures import BASELINE, FLOOR_MATTERS_NS, Figures, Row


def takeaway(f: Figures) -> str:
    """How the best kernel of each problem stands against the baseline, by the headline timer."""
    if f.headline is None:
        return "No kernel has figures in this run."
    best = best_rows(f)
    if not best:
        return f"No kernel beside torch's own has figures against {BASELINE} by {f.headline.label}."
    faster = [r for r in best if side(r) > 0]
    slower = [r for r in best if side(r) < 0]
    open_ = [r for r in best if side(r) == 0]
    parts: list[str] = []
    for verb, rows in (("beats", faster), ("is slower than", slower), ("cannot be told apart from", open_)):
        if rows:
            what = "it" if parts else BASELINE
            parts.append(f"{verb} {what} on {_part(len(rows), len(best))}: {_extremes(rows)}")
    return f"Timed by {f.headline.label}{_one_token(f)}, the fastest hand-written kernel {'; '.join(parts)}."


def _one_token(f: Figures) -> str:
    """What these figures leave out, where the run measured products with several tokens too."""
    several = any(m.case.problem.n > 1 for m in f.run.measurements)
    return " with one token (T = 1)" if several and all(p.n == 1 for p in f.problems) else ""


def best_rows(f: Figures) -> tuple[Row, ...]:
    """The fastest hand-written kernel of each problem by the headline timer, where it has a speed-up."""
    found: dict[Problem, Row] = {}
    for row in f.passed(f.headline) if f.headline else ():
        if row.written_here and row.speedup is not None:
            other = found.get(row.problem)
            if other is None or _ratio(row) > _ratio(other):
                found[row.problem] = row
    return tuple(found.values())


def _ratio(row: Row) -> float:
    return row.speedup.estimate if row.speedup is not None else 0.0


def side(row: Row) -> int:
    """1: surely faster than the baseline; −1: surely slower; 0: the interval holds 1, or there is none."""
    if row.speedup is None or row.speedup.low is None or row.speedup.high is None:
        return 0
    return 1 if row.speedup.low > 1 else -1 if row.speedup.high < 1 else 0


def _part(some: int, every: int) -> str:
    if some < every:
        return fmt.out_of(some, every, "problem")
    return {1: "the one problem", 2: "both problems"}.get(every, f"all {every} problems")


def _extremes(rows: list[Row]) -> str:
    """The least and the most, each with interval, kernel and problem."""
    ends = [min(rows, key=_ratio), max(rows, key=_ratio)] if len(rows) > 1 else rows
    said = [f"{fmt.times_range(r.speedup)} on {fmt.problem(r.problem)}" for r in ends if r.speedup is not None]
    return " to ".join(said)


def limit_takeaway(f: Figures) -> str:
    """How near the fastest hand-written kernel of each problem comes to the limit, by the headline timer."""
    best = [(r.of_limit.estimate, r) for r in best_rows(f) if r.of_limit is not None]
    if f.headline is None or not best:
        return _no_limit_takeaway(f.passed(f.headline) if f.headline else ())
    ends = [min(best, key=lambda p: p[0])[1], max(best, key=lambda p: p[0])[1]] if len(best) > 1 else [best[0][1]]
    said = [f"{fmt.share_range(r.of_limit)} on {fmt.problem(r.problem)}" for r in ends if r.of_limit is not None]
    who = f"Timed by {f.headline.label}{_one_token(f)}, the fastest hand-written kernel of each problem"
    return f"{who} reaches {' to '.join(said)} of the limit's speed."


def _no_limit_takeaway(rows: Sequence[Row]) -> str:
    """What is missing."""
    if not any(row.role is Role.LIMIT for row in rows):
        return "The limit was not measured by the headline timer."
    if not any(row.written_here for row in rows):
        return "No hand-written kernel has figures to hold against the limit."
    return f"No problem has figures of the limit, of {BASELINE} and of a hand-written kernel together."


def floor_note(f: Figures) -> str:
    """The floors of the ways of timing that lead, where a figure is short enough for them to matter."""
    short = {r.way for r in f.rows if r.role is not Role.FLOOR and r.summary and is_short(r)}
    said = [
        f"{fmt.microseconds_pm(f.floors[w].median_ns)} by {w.label}" for w in f.leading if w in short and w in f.floors
    ]
    if not said:
        return ""
    below = f"{FLOOR_MATTERS_NS // 1000}{fmt.NBSP}µs"
    own = f"an empty kernel takes {fmt.listing(said)}"
    return f"Figures below {below} hold a visible part of the timer's own floor: {own}."


def is_short(row: Row) -> bool:
    """Whether the timer's floor is a visible part of the figure."""
    return row.summary is not None and row.summary.median_ns.estimate < FLOOR_MATTERS_NS
