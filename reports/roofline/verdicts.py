"""Every claim with what this run says of it, as a table."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from reports import format as fmt
from reports.claims import Claim, Judged, Word, claims
from reports.figures import Figures
from reports.tables import Cell, Table, table, text

MARKS = {Word.CONFIRMED: "best", Word.REFUTED: "bad", Word.UNDECIDED: ""}
"""By word; the others, without a figure that could judge, stand back."""


@dataclass(frozen=True, kw_only=True)
class Verdicts:
    """The section's content."""

    takeaway: str
    table: Table
    cases: tuple[tuple[str, tuple[str, ...]], ...]
    """(claim, ids of the cases that it rests on)."""


def judged(f: Figures) -> tuple[tuple[Claim, Judged], ...]:
    """Every claim with its answer, in order."""
    return tuple((claim, claim.judge(f)) for claim in claims())


def verdicts(f: Figures) -> Verdicts | None:
    """What the page says of the claims; None where no ceiling was measured, against which most are held."""
    if not f.ceilings.measured:
        return None
    found = judged(f)
    rows = [_cells(claim, answer) for claim, answer in found]
    heads = [text("claim"), text("word"), text("source's figure"), text("measured here")]
    return Verdicts(
        takeaway=takeaway(found),
        table=table("Claims put to the test", heads, rows),
        cases=tuple((claim.says, answer.case_ids) for claim, answer in found if answer.rows),
    )


def takeaway(found: tuple[tuple[Claim, Judged], ...]) -> str:
    """How many of which word."""
    counts = Counter(answer.word for _, answer in found)
    said = [f"{counts[word]} {_of(word, counts[word])}" for word in Word if counts[word]]
    return f"Of {len(found)} published claims {fmt.listing(said)}."


def _of(word: Word, number: int) -> str:
    """E.g. `are refuted`, `is undecided`, `cannot be measured here`."""
    return str(word) if word is Word.CANNOT else f"{'is' if number == 1 else 'are'} {word}"


def _cells(claim: Claim, answer: Judged) -> list[Cell | str]:
    says = Cell(text=claim.says, note=f"Criterion: {claim.criterion}.")
    ids = fmt.listing([fmt.line(name) for name in answer.case_ids[:2]])
    more = f" and {len(answer.case_ids) - 2} more" if len(answer.case_ids) > 2 else ""
    measured = Cell(text=answer.measured, note=f"{ids}{more}")
    return [says, Cell(text=answer.word, mark=MARKS.get(answer.word, "quiet")), claim.source, measured]
