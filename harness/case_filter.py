"""Which cases a command is asked to show: `--kernel`, `--shape` and `--timer`, each repeatable."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from dataclasses import dataclass

from harness.errors import CommandError, Exit, unknown
from harness.model import Case
from harness.problems import SHAPE, parse_shapes, shape_text
from harness.words import visible

OPTIONS = {"kernel": "NAME", "shape": SHAPE, "timer": "NAME"}
"""And what each takes."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The three options."""
    for option, metavar in OPTIONS.items():
        what = f"show only cases of this {option} (repeatable)"
        parser.add_argument(f"--{option}", metavar=metavar, action="append", default=[], help=what)


@dataclass(frozen=True, kw_only=True)
class CaseFilter:
    """What was asked for; nothing of an option: all."""

    kernels: tuple[str, ...] = ()
    shapes: tuple[str, ...] = ()
    """As typed."""
    problems: frozenset[str] = frozenset()
    """Which the shapes name, as `shape_text` does: another layout or dtype is another problem."""
    timers: tuple[str, ...] = ()

    @classmethod
    def of(cls, options: argparse.Namespace) -> CaseFilter:
        """What the options of `add_arguments` say.

        Raises:
            CommandError: a shape that is none (USAGE).
        """
        return cls(
            kernels=tuple(options.kernel),
            shapes=tuple(options.shape),
            problems=frozenset(map(shape_text, parse_shapes(options.shape))),
            timers=tuple(options.timer),
        )

    def wants(self, case: Case) -> bool:
        """Whether the case is one of them."""
        return (
            (not self.kernels or case.kernel in self.kernels)
            and (not self.timers or case.timer in self.timers)
            and (not self.problems or shape_text(case.problem) in self.problems)
        )

    def check(self, cases: Iterable[Case]) -> None:
        """A name that no case has, or names that none has together, are a slip; of no cases none is asked for.

        Raises:
            CommandError: with what there is (USAGE).
        """
        known = list(dict.fromkeys(cases))
        if not known:
            return
        _check_known("--kernel", self.kernels, (case.kernel for case in known))
        _check_known("--timer", self.timers, (case.timer for case in known))
        if not any(map(self.wants, known)):
            raise CommandError(f"{self.in_words}: none of the {len(known)} cases in these runs", Exit.USAGE)

    @property
    def in_words(self) -> str:
        """As it would be typed; "" for all."""
        named = {"--kernel": self.kernels, "--shape": self.shapes, "--timer": self.timers}
        return " ".join(f"{option} {visible(value)}" for option, values in named.items() for value in values)


def _check_known(option: str, names: Iterable[str], cases: Iterable[str]) -> None:
    known = list(dict.fromkeys(cases))
    for name in names:
        if name not in known:
            raise unknown(option, name, [visible(each) for each in known])
