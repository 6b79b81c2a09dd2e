"""Why cases have their words, and what must be known beside them, in few lines on the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from rich.text import Text

from harness.comparison.records import CaseChange, Change
from harness.comparison.text_tables import CHANGED, STYLES
from harness.model import Case
from harness.words import LONGEST_LINE, problem_in_words, visible

MOST_LINES = 20
"""Unless all are asked for."""

MOST_CASES = 2
"""Named in one line; more are counted, unless all are asked for."""

MOST_ALIKE = 2
"""Lines with one head, such as `drift within trials in new`, unless all are asked for or the case failed or changed:
more are one line that counts their cases."""

_Key = tuple[str, str]
"""What a line begins with, a word or `note`, and its text."""


def remarks(cases: Iterable[CaseChange], *, every: bool, most: int = MOST_LINES) -> list[Text]:
    """Reasons and notes, each once with the cases that have it, in the order of the cases.

    Args:
        cases: in the order of their table.
        every: nothing is left out.
        most: lines, else.
    """
    found: dict[_Key, list[Case]] = {}
    for each in cases:
        for key in _keys(each):
            found.setdefault(key, []).append(each.case)
    lines = found if every else _folded(found)
    shown = [_line(key, having, every=every) for key, having in islice(lines.items(), None if every else most)]
    if left := len(lines) - len(shown):
        shown.append(Text(f"… and {left} more reasons and notes: --all shows each", style="dim"))
    return shown


def _keys(each: CaseChange) -> Iterator[_Key]:
    """A note belongs to the word where it may explain it."""
    if each.reason:
        yield each.change, each.reason
    for note in each.notes:
        yield each.change if each.change in CHANGED else "note", note


def _folded(found: dict[_Key, list[Case]]) -> dict[_Key, list[Case]]:
    """With the head alone where many lines have it."""
    by_head: dict[_Key, list[_Key]] = {}
    for word, text in found:
        by_head.setdefault((word, text.partition(": ")[0]), []).append((word, text))
    kept: dict[_Key, list[Case]] = {}
    for head, keys in by_head.items():
        if len(keys) <= MOST_ALIKE or head[0] in (Change.FAILED, *CHANGED):
            kept |= {key: found[key] for key in keys}
        else:
            kept[head] = [case for key in keys for case in found[key]]
    return kept


def _line(key: _Key, having: list[Case], *, every: bool) -> Text:
    word, text = key
    style = STYLES.get(Change(word), "") if word in set(Change) else "dim"
    return Text.assemble(
        (f"{word}: ", style), visible(text, LONGEST_LINE), (f" ({_cases(having, every=every)})", "dim")
    )


def _cases(cases: list[Case], *, every: bool) -> str:
    """Which ones: by name where they are few, else how many and of which kernel."""
    if every or len(cases) <= MOST_CASES:
        return "; ".join(_name(each) for each in cases)
    kernels = {each.kernel for each in cases}
    which = f"of {visible(cases[0].kernel)}" if len(kernels) == 1 else f"of {len(kernels)} kernels"
    return f"{len(cases)} cases {which}"


def _name(case: Case) -> str:
    return f"{visible(case.kernel)} {problem_in_words(case.problem)} {visible(case.timer)} {case.cache}"
