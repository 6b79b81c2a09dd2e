"""What a comparison comes down to: how many cases have each word, and which changes weigh most."""

from __future__ import annotations

from collections.abc import Sequence

from harness.compare import COMPARED
from harness.comparison.records import CaseChange, Change, Comparison
from harness.comparison.request import Compared
from reports import format as fmt
from reports.comparison.columns import Column as RunColumn
from reports.comparison.scope import as_sentence, counted_by_run, selection
from reports.comparison.words import SIGNS, case_in_words, limit, ratio_in_words
from reports.tables import Cell, Table, number, table, text

MOST_FAILED = 4
"""Kernels that are named as wrong or crashed."""

NAMED = 2
"""Changes that are named in a sentence about one new run; the map has all."""


def takeaway(compared: Compared, runs: Sequence[RunColumn]) -> str:
    """The most important changes, in a few sentences; first, of which cases, where not of all.

    Args:
        compared: at least one new run.
        runs: the base, then the new runs.
    """
    return f"{as_sentence(selection(compared))} {_changes(compared.found, runs)}".strip()


def _changes(found: Sequence[Comparison], runs: Sequence[RunColumn]) -> str:
    pairs = [(each, run) for comparison, run in zip(found, runs[1:], strict=True) for each in comparison.cases]
    compared = sum(each.change in COMPARED for each, _ in pairs)
    parts = [_failed(pairs)]
    if not compared:
        parts.append("No case can be compared.")
        return " ".join(part for part in parts if part)
    where = "" if len(found) == 1 else f" in {len(found)} runs"
    own = limit(found[0].threshold)
    if len({each.threshold for each, _ in pairs}) > 1:
        own = "its threshold"
    least = {each.least for each, _ in pairs}
    beyond = f"more than {limit(next(iter(least))) if len(least) == 1 else own}"
    parts += [
        _changed(
            pairs, Change.SLOWER, f"of {fmt.count(compared, 'compared case')}{where} takes {beyond} longer", beyond
        ),
        _changed(pairs, Change.FASTER, "is faster", beyond),
        _undecided(pairs, own),
    ]
    return " ".join(part for part in parts if part)


def counts_table(compared: Compared, runs: Sequence[RunColumn]) -> Table:
    """How many cases have each word, what differs from the base, and the largest change, by new run.

    Args:
        compared: at least one new run.
        runs: the base, then the new runs.
    """
    found, counted_of = compared.found, counted_by_run(compared)
    shown = len(set(counted_of)) > 1
    words = [word for word in Change if any(comparison.counts[word] for comparison in found)]
    heads = [text("new run"), *([text("cases asked for")] if shown else []), text("differs from the base by")]
    heads += [*(number(f"{SIGNS[word]} {word}") for word in words), text("largest significant change")]
    rows: list[list[Cell | str]] = []
    for place, (comparison, run) in enumerate(zip(found, runs[1:], strict=True)):
        counted = [str(comparison.counts[word]) if comparison.counts[word] else fmt.NONE for word in words]
        same_run = "the base run itself" if comparison.base_id == comparison.new_id else fmt.line(run.run.id)
        head = Cell(text=run.text, note=same_run)
        of = [counted_of[place]] if shown else []
        rows.append([head, *of, fmt.line(comparison.attribution), *counted, _largest(comparison)])
    return table("Cases by word", heads, rows)


def _largest(comparison: Comparison) -> Cell:
    significant = [each for each in comparison.cases if each.change in (Change.SLOWER, Change.FASTER)]
    if not significant:
        return Cell(text="none", mark="quiet")
    found = max(significant, key=lambda each: abs(_effect(each)))
    return Cell(text=_figure(found), note=case_in_words(found.case))


def _failed(pairs: Sequence[tuple[CaseChange, RunColumn]]) -> str:
    kernels = list(dict.fromkeys(fmt.name(each.case.kernel) for each, _ in pairs if each.change is Change.FAILED))
    if not kernels:
        return ""
    runs = len({run.text for each, run in pairs if each.change is Change.FAILED})
    where = "the new run" if len({run.text for _, run in pairs}) == 1 else f"{fmt.count(runs, 'new run')}"
    if len(kernels) > MOST_FAILED:
        kernels[MOST_FAILED:] = [f"{len(kernels) - MOST_FAILED} more"]
    return f"{fmt.listing(kernels)} {'is' if len(kernels) == 1 else 'are'} wrong or crashed in {where}."


def _changed(pairs: Sequence[tuple[CaseChange, RunColumn]], word: Change, what: str, beyond: str) -> str:
    """How many cases have a word, and the largest of them by name."""
    having = [(each, run) for each, run in pairs if each.change is word]
    if word is Change.SLOWER and not having:
        of = what.partition(" takes ")[0]
        return f"None {of} is known to take {beyond} longer."
    if not having:
        return ""
    having.sort(key=lambda pair: -abs(_effect(pair[0])))
    several = len({run.text for _, run in pairs}) > 1
    shown = 1 if several else NAMED
    named = [
        f"{case_in_words(each.case)} by {_figure(each)}{f' in {run.text}' if several else ''}"
        for each, run in having[:shown]
    ]
    verb = what if len(having) == 1 else what.replace("takes", "take").replace("is ", "are ")
    most = " most of all" if len(having) > shown else ""
    return (
        f"{len(having)} {verb},{most} {fmt.listing(named)}." if most else f"{len(having)} {verb}: {fmt.listing(named)}."
    )


def _undecided(pairs: Sequence[tuple[CaseChange, RunColumn]], within: str) -> str:
    same = sum(each.change is Change.SAME for each, _ in pairs)
    open_ = sum(each.change is Change.AMBIGUOUS for each, _ in pairs)
    said = f"{same} {'is' if same == 1 else 'are'} the same within {within}" if same else ""
    cannot = f"of {open_} these trials cannot tell" if open_ else ""
    both = ", and ".join(part for part in (said, cannot) if part)
    return f"{both[0].upper()}{both[1:]}." if both else ""


def _effect(change: CaseChange) -> float:
    return change.ratio.estimate - 1 if change.ratio else 0.0


def _figure(change: CaseChange) -> str:
    """`+3.1 % (95 %: +2.8 to +3.4 %)`."""
    return ratio_in_words(change.ratio) if change.ratio else fmt.NONE
