"""The words of a comparison as they are shown: each with a sign, so that nobody needs to see colour."""

from __future__ import annotations

from collections.abc import Sequence

from harness.compare import SIGNIFICANCE
from harness.comparison.boards import allowance
from harness.comparison.records import Change, Comparison
from harness.model import Case
from harness.stats import Interval
from reports import format as fmt

SIGNS = {
    Change.FAILED: "✕",
    Change.SLOWER: "▲",
    Change.FASTER: "▼",
    Change.AMBIGUOUS: "?",
    Change.SAME: "=",
    Change.NEW: "+",
    Change.GONE: "−",
    Change.NOT_COMPARABLE: "/",
}

MEANINGS = {
    Change.FAILED: "its output is wrong, or it crashed, in the new run; no time of it counts",
    Change.SLOWER: "it takes longer by more than the threshold, significantly over the whole table",
    Change.FASTER: "it takes less time by more than the threshold, significantly over the whole table",
    Change.AMBIGUOUS: "these trials cannot tell. It may have changed; more trials, or a quieter machine, would say",
    Change.SAME: "the whole interval of the ratio lies within the threshold",
    Change.NEW: "the new run has figures of it and the base has none",
    Change.GONE: "the base run has figures of it and the new one has none",
    Change.NOT_COMPARABLE: "something else was measured, or nothing in either run",
}
"""What each word says of a case."""

PROBABILITY_FLOOR = 1e-4
"""Smaller p are only said to be so: the test's own assumptions are not known to hold further out."""


def signed(change: Change) -> str:
    """`▲ slower`."""
    return f"{SIGNS[change]} {change}"


def case_in_words(case: Case) -> str:
    """`sgemv_k16_f32 on 1024×16 (graph/cold)`."""
    return f"{fmt.name(case.kernel)} on {fmt.problem(case.problem)} ({way(case)})"


def way(case: Case) -> str:
    """How it was timed: `graph/cold`."""
    return f"{fmt.name(case.timer)}/{case.cache}"


def time_in_words(ns: Interval | None) -> str:
    """`1.472 µs ±0.06 %`; "" where there is none."""
    return fmt.microseconds_pm(ns) if ns else ""


def ratio_in_words(ratio: Interval) -> str:
    """A ratio as what it differs from 1 by: `+3.1 % (95 %: +2.8 to +3.4 %)`."""
    found = fmt.difference_range(ratio)
    interval = found if ratio.half_width is None else f"95{fmt.NBSP}%: {found}"
    return f"{fmt.difference(ratio)} ({interval})"


def probability(p: float | None) -> str:
    """`p = 0.0021`; `no p` where no test could be made."""
    if p is None:
        return "no p"
    if p < PROBABILITY_FLOOR:
        return f"p < {PROBABILITY_FLOOR}"
    return f"p = {p:.2g}"


def limit(threshold: float) -> str:
    """A threshold as it was asked for: `1 %`."""
    return f"{100 * threshold:.4g}{fmt.NBSP}%"


def notes(found: Sequence[Comparison]) -> tuple[str, ...]:
    """What a reader must know to trust a word neither too much nor too little.

    Args:
        found: one comparison for each new run.
    """
    columns, threshold = len(found), found[0].threshold
    what = (
        "A word is about time in the new run over time in the base run, on one problem, by one timer, from one cache "
        f"state. The threshold is {limit(threshold)} unless a case says otherwise; a smaller change is nobody's "
        "concern here."
    )
    test = (
        "The unit is the trial, a fresh process: its median counts, not its samples. Two tests are made on the "
        "logarithms of the medians, a t test with a variance moderated over the cases of a timer and cache (Smyth "
        "2004) and one with the case's own variance, and the less certain of the two counts."
    )
    table = (
        "Holm's correction goes over the headline's cold cases of one new run against the base, and over all others, "
        "each with half of the chance of error: that of any wrong slower or faster in such a table is at most "
        f"{limit(SIGNIFICANCE)}, if trials are alike and independent."
    )
    if columns > 1:
        table += f" Here are {columns} such tables: over all of them together it is up to {columns} times as high."
    interval = (
        f"The interval beside a ratio has 95{fmt.NBSP}% confidence for that case alone and is not corrected. So a case "
        "may be ambiguous although its own interval excludes 1."
    )
    cause = (
        "Ambiguous is not same. And a word says that a time changed, not why: what differs stands on top, clocks and "
        "limits in each case's details."
    )
    boards = (allowance(),) if any(each.two_boards for each in found) else ()
    return (what, test, table, *boards, interval, cause)
