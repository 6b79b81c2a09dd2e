"""What a night says: lines as it goes on, its exit code, and a summary in Markdown."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass, field

from harness.errors import Exit
from harness.words import LONGEST_LINE, visible

MEANS = {
    Exit.FINE: "fine",
    Exit.SLOWER: "slower",
    Exit.USAGE: "wrong usage",
    Exit.NOT_COMPARABLE: "nothing comparable",
    Exit.RUN: "a run cannot be read",
    Exit.KERNEL: "a kernel failed",
    Exit.INFRASTRUCTURE: "not measured as it should be",
    Exit.INTERRUPTED: "interrupted",
}
"""A night's code in a few words."""

INDENT = 13
"""Columns of the word before a line."""


@dataclass
class Diary:
    """Said so far."""

    lines: list[str] = field(default_factory=list)
    """As they stand on the terminal, fit to be shown."""
    found: list[tuple[Exit, str]] = field(default_factory=list)
    """What the exit code is the highest of, each with its reason."""

    def say(self, what: str, said: str) -> None:
        """One line, after a word that says what it is about."""
        self.lines.append(f"{what:{INDENT}}{visible(said, 2 * LONGEST_LINE)}")
        sys.stdout.write(f"{self.lines[-1]}\n")
        sys.stdout.flush()

    def fault(self, what: str, said: str, code: Exit) -> None:
        """One line that the exit code has to do with."""
        self.found.append((code, said))
        self.say(what, said)

    @property
    def code(self) -> Exit:
        """The highest that applies."""
        return max((code for code, _ in self.found), default=Exit.FINE)

    def end(self, otherwise: str) -> None:
        """The last line: the code and why, or what a fine night comes to."""
        reasons = list(dict.fromkeys(said for code, said in self.found if code is self.code))
        more = f" (and {len(reasons) - 1} more, above)" if len(reasons) > 1 else ""
        said = f"{reasons[0]}{more}" if reasons else otherwise
        self.say("exit code", f"{int(self.code)}: {said}")

    def markdown(self, parts: Iterable[str]) -> str:
        """The summary: the code, the lines as code, which no name in them can break out of, then `parts`."""
        title = f"## SGEMV nightly, exit code {int(self.code)}: {MEANS[self.code]}"
        return (
            "\n\n".join([title, "\n".join(["```text", *self.lines, "```"]), *(part.strip() for part in parts)]) + "\n"
        )
