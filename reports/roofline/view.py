"""What the page says of a run with several tokens, ceilings or energy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.words import significant
from reports import format as fmt
from reports.figures import BASELINE, Figures, Row
from reports.roofline.best import Choice, best_table, choices, in_words
from reports.roofline.energy import energy_tables
from reports.roofline.llama import DECODE, PREFILL, SCOPE, bound_ns, llama_table, slower_per_token, step
from reports.roofline.points import (
    Weight,
    fastest_product,
    is_compute_bound,
    is_roofline,
    of_attainable,
    of_weight,
    points,
    weight_label,
    weights,
)
from reports.roofline.ran import Ran, ran
from reports.roofline.shares import sustained
from reports.roofline.tables import ceilings_table, own_table, reference_table, weight_only_tables
from reports.roofline.verdicts import Verdicts, verdicts
from reports.tables import Table

LED_BY = ((4096, 4096), "float16")
"""The weight and dtype that the first sentence is about, where they were measured."""


@dataclass(frozen=True, kw_only=True)
class Roofline:
    """The sections' content."""

    takeaway: str
    """What T = 1 costs, and where that changes."""
    ceilings: Table | None
    """None where not a single one was measured."""
    best: Table | None
    best_takeaway: tuple[str, ...]
    """A line a dtype."""
    ran: Ran | None
    reference: Table | None
    own: Table | None
    weight_only: tuple[Table, ...]
    """For one token, then for several."""
    llama: Table | None
    llama_takeaway: str
    llama_scope: str
    energy: tuple[Table, ...]
    """Empty where none was measured."""
    verdicts: Verdicts | None
    """None where no ceiling was measured, against which most are held."""


def roofline_view(f: Figures) -> Roofline | None:
    """None where the run has one token and the usual timers alone."""
    if not is_roofline(f):
        return None
    return Roofline(
        takeaway=takeaway(f),
        ceilings=ceilings_table(f) if f.ceilings.measured else None,
        best=best_table(f),
        best_takeaway=best_takeaway(f),
        ran=ran(f),
        reference=reference_table(f),
        own=own_table(f),
        weight_only=weight_only_tables(f),
        llama=llama_table(f),
        llama_takeaway=llama_takeaway(f),
        llama_scope=SCOPE,
        energy=tuple(energy_tables(f)),
        verdicts=verdicts(f),
    )


def _lead(f: Figures) -> tuple[Weight, str] | None:
    """The weight and dtype of the first sentence."""
    measured = [((r.problem.m, r.problem.k), r.problem.dtype) for r in points(f)]
    batched = [pair for pair in measured if pair[0] in weights(f)]
    if LED_BY in batched:
        return LED_BY
    return next(iter(batched), None)


def takeaway(f: Figures) -> str:
    """E.g. `At T = 1 token (columns of x), 4096×4096 in float16 takes 9.6 µs by hgemv, …`."""
    lead = _lead(f)
    if lead is None or f.headline is None:
        return "No product with several tokens was measured."
    weight, dtype = lead
    rows = [r for r in of_weight(points(f), weight) if r.problem.dtype == dtype]
    counts = rows[0].problem.n, max(r.problem.n for r in rows)
    ends = [fastest_product([r for r in rows if r.problem.n == n]) for n in counts]
    first, last = ends
    if first is None or first.summary is None:
        return "No product with several tokens has figures."
    count = fmt.count(first.problem.n, "token")
    said = f"At T{fmt.NBSP}={fmt.NBSP}{count} (columns of x), {weight_label(weight)} in {fmt.name(dtype)} takes "
    said += _took(f, first)
    if first.speedup is not None and first.kernel != BASELINE:
        said += f", at {fmt.times_range(first.speedup)} the speed of {BASELINE}"
    said += f" ({f.headline.label})."
    if last is not None and last is not first and last.summary is not None:
        more = last.problem.n / first.problem.n
        slower = last.summary.median_ns.estimate / first.summary.median_ns.estimate
        said += f" At T{fmt.NBSP}={fmt.NBSP}{last.problem.n} it takes {_took(f, last)}: {more:g} times the work in "
        said += f"{significant(slower, 2)} times the time."
        if is_compute_bound(f, last):
            said += f" The measured peak is {sustained(f, dtype)}: a short product can exceed it."
    return said


def _took(f: Figures, row: Row) -> str:
    """A time with its interval, its kernel, and how near it comes to what the ceilings allow."""
    median = row.summary.median_ns if row.summary else None
    figure = "an unknown time" if median is None else fmt.microseconds_pm(median)
    share = of_attainable(f, row)
    near = "" if share is None else f", {fmt.percent(share)} of what the measured ceilings allow"
    return f"{figure} by {fmt.name(row.kernel)}{near}"


def best_takeaway(f: Figures) -> tuple[str, ...]:
    """In words for each dtype, the same for many weights said once."""
    said = []
    for dtype in f.dtypes:
        by_words: dict[str, list[Weight]] = {}
        every = [(weight, choices(f, weight, dtype)) for weight in weights(f)]
        asked = sorted({choice.tokens for _, found in every for choice in found})
        for weight, found in every:
            if found:
                by_words.setdefault(in_words(found, asked), []).append(weight)
        if by_words:
            parts = [f"{words} ({_where(own, by_words)})" for words, own in by_words.items()]
            said.append(f"{_own(f, every)} ({fmt.name(dtype)}) is {'; '.join(parts)}.")
    return tuple(said)


def _own(f: Figures, every: Sequence[tuple[Weight, Sequence[Choice]]]) -> str:
    names = dict.fromkeys(choice.own.kernel for _, found in every for choice in found)
    return fmt.listing([fmt.name(kernel) for kernel in f.kernels if kernel in names])


def _where(own: Sequence[Weight], by_words: dict[str, list[Weight]]) -> str:
    if len(by_words) == 1:
        return "every weight" if len(own) > 1 else weight_label(own[0])
    shown = [weight_label(weight) for weight in own]
    return fmt.listing(shown) if len(shown) <= 3 else f"{len(shown)} weights"


def llama_takeaway(f: Figures) -> str:
    """Decode against prefill and the bandwidth bound, in the first dtype that has both."""
    for dtype in ("float16", *f.dtypes):
        decode, prefill = step(f, dtype, DECODE), step(f, dtype, PREFILL)
        if decode is None:
            continue
        bound = bound_ns(f, decode)
        said = (
            f"One decode step in {fmt.name(dtype)} takes {significant(decode.ns.estimate / 1e6)}{fmt.NBSP}ms "
            f"{fmt.plus_minus(decode.ns)}: {significant(decode.tokens_per_s, 3)} tokens/s"
        )
        if bound is not None:
            said += f", {fmt.percent(bound / decode.ns.estimate)} of what the measured read bandwidth allows"
        ratio = slower_per_token(decode, prefill) if prefill is not None else None
        if ratio is not None:
            said += f". A token of it takes {fmt.times_range(ratio)} the time of one in a prefill of {PREFILL}"
        return f"{said}."
    return ""
