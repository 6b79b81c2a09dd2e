"""What a command line asks to be compared, for every program that compares: runs, thresholds, cases, exit code."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from harness import case_filter
from harness.case_filter import CaseFilter
from harness.compare import THRESHOLD, compare
from harness.comparison.records import COMPARED, Change, Comparison
from harness.comparison.thresholds import read_thresholds, thresholds
from harness.ending import say_error
from harness.errors import CommandError, Exit
from harness.model import Run
from harness.store import SELECTORS, Store, load_whole
from harness.words import visible

FAILS = (Change.SLOWER,)
"""Words that leave with code 1, unless others are named; `failed` has code 5 whatever is named."""

NOTHING = "nothing"
"""Of `--fail-on`: no word leaves with code 1."""


@dataclass(frozen=True, kw_only=True)
class Compared:
    """One run and those that were held against it."""

    base: Run
    """With its samples."""
    news: tuple[Run, ...]
    """In the order asked for, with their samples; one may be `base` itself."""
    found: tuple[Comparison, ...]
    """One for each of `news`, of the cases that were asked for."""
    fails: tuple[Change, ...] = FAILS
    """Words that leave with code 1."""
    filter: str = ""
    """Which cases were asked for, as typed, such as `--kernel read`; "": all."""
    left_out: tuple[dict[Change, int], ...] = ()
    """For each of `found`, how many cases of each word were not asked for; words without one are absent. Empty where
    all were asked for."""

    @property
    def exit_codes(self) -> tuple[Exit, ...]:
        """Of each comparison alone."""
        return tuple(_exit_code(each, self.fails) for each in self.found)

    @property
    def exit_code(self) -> Exit:
        """The highest that applies to any of the comparisons."""
        return max(self.exit_codes, default=Exit.NOT_COMPARABLE)

    def selection(self, place: int) -> str:
        """What is left out of `found[place]`, in a line; "" where all cases were asked for.

        E.g. `only --kernel read: 8 of 49 cases; 5 slower among those left out`.
        """
        if not self.filter:
            return ""
        left = self.left_out[place] if self.left_out else {}
        there = len(self.found[place].cases)
        total = there + sum(left.values())
        words = dict.fromkeys((Change.FAILED, Change.SLOWER, Change.FASTER, *self.fails))
        said = [f"{left[word]} {word}" for word in words if left.get(word)]
        among = f"; {', '.join(said)} among those left out" if said else ""
        return f"only {self.filter}: {there} of {total} case{'' if total == 1 else 's'}{among}"

    @property
    def exit_means(self) -> str:
        """`exit_code` in words."""
        words, several = _either(self.fails), len(self.found) > 1
        return {
            Exit.FINE: f"no case is known to be {words}" if words else "no kernel failed, and no change was to count",
            Exit.SLOWER: f"a case is {words}",
            Exit.NOT_COMPARABLE: f"no case is comparable{' in a new run' if several else ''}",
            Exit.KERNEL: f"a kernel is wrong or crashed in {'a' if several else 'the'} new run",
        }[self.exit_code]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options are text here: they are checked where an error is one line."""
    parser.add_argument("base", metavar="BASE", help=f"the run compared with: {SELECTORS}")
    parser.add_argument("new", metavar="NEW", nargs="+", help="the runs that are judged, named the same way")
    fraction = f"smallest change that counts (default: {THRESHOLD}, or the file's)"
    parser.add_argument("--threshold", metavar="FRACTION", help=fraction)
    file = "TOML: `default = 0.01`, and by kernel under [kernels]: `sgemv_k16_f32 = 0.02`"
    parser.add_argument("--thresholds", metavar="FILE", help=file)
    words = f"change that leaves with code 1 (repeatable; default: {', '.join(FAILS)}; {NOTHING}: none does)"
    parser.add_argument("--fail-on", metavar="CHANGE", action="append", default=[], help=words)
    case_filter.add_arguments(parser)


class _Refused(argparse.Action):
    """Of another program, which `const` names: said at once, before anything else is missed."""

    def __call__(self, _parser: object, _namespace: object, _values: object, option_string: str | None = None) -> None:
        raise CommandError(f"{option_string}: not of this program; {self.const}", Exit.USAGE)


def refuse(parser: argparse.ArgumentParser, options: Iterable[str], whose: str) -> None:
    """Say in one line which program takes options that this one does not; --help does not list them.

    Args:
        parser: of this program.
        options: as typed.
        whose: the line's end.
    """
    for option in options:
        parser.add_argument(option, action=_Refused, nargs="?", const=whose, help=argparse.SUPPRESS)


def compared(store: Store, options: argparse.Namespace) -> Compared:
    """The comparisons that the options ask for; kernels of a thresholds file that no run has are named on stderr.

    Args:
        store: where the runs are.
        options: of `add_arguments`.

    Raises:
        CommandError: a wrong option, or one that leaves no case of runs that have some (USAGE); a run that is missing
            or damaged (RUN).
    """
    fails, shown = _fails(options.fail_on), CaseFilter.of(options)
    threshold, by_kernel = thresholds(options.threshold, options.thresholds)
    folders = [store.resolve(each) for each in (options.base, *options.new)]
    known = {folder: load_whole(folder) for folder in dict.fromkeys(folders)}
    base, *news = (known[folder] for folder in folders)
    _say_unused(options.thresholds, by_kernel, known.values())
    every = [compare(base, new, threshold=threshold, thresholds=by_kernel) for new in news]
    shown.check(change.case for each in every for change in each.cases)
    return Compared(
        base=base,
        news=tuple(news),
        found=tuple(_selected(each, shown) for each in every),
        fails=fails,
        filter=shown.in_words,
        left_out=tuple(_left_out(each, shown) for each in every),
    )


def _selected(found: Comparison, shown: CaseFilter) -> Comparison:
    """The comparison with the asked-for cases alone; no word depends on which others one looks at."""
    return replace(found, cases=tuple(each for each in found.cases if shown.wants(each.case)))


def _left_out(found: Comparison, shown: CaseFilter) -> dict[Change, int]:
    """How many cases of each word are not among the asked-for ones."""
    counted = Counter(each.change for each in found.cases if not shown.wants(each.case))
    return {change: counted[change] for change in Change if counted[change]}


def _say_unused(file: str, names: Iterable[str], runs: Iterable[Run]) -> None:
    """A file may serve many runs, but a slip in a name must not go unseen."""
    there = {name for run in runs for name in (*run.kernels, *(m.case.kernel for m in run.measurements))}
    if unused := [visible(name) for name in names if name not in there]:
        say_error(f"--thresholds {file}: not in these runs: {', '.join(unused)}")


def _fails(named: Iterable[str]) -> tuple[Change, ...]:
    """The words of `--fail-on`."""
    words = list(dict.fromkeys(named))
    known = [NOTHING, *(str(change) for change in Change if change is not Change.FAILED)]
    for word in words:
        if word not in known:
            always = ", which always leaves with code 5" if word == Change.FAILED else ""
            raise CommandError(f"--fail-on: found {word!r}{always}, wanted one of: {', '.join(known)}", Exit.USAGE)
    if NOTHING in words and len(words) > 1:
        raise CommandError(f"--fail-on: found {' and '.join(words)}, wanted {NOTHING} alone", Exit.USAGE)
    return FAILS if not words else tuple(Change(word) for word in words if word != NOTHING)


def _exit_code(found: Comparison, fails: tuple[Change, ...]) -> Exit:
    """300 slower cases leave with 1, as one does; nothing that could be compared is never fine."""
    counts = found.counts
    if counts[Change.FAILED]:
        return Exit.KERNEL
    if not any(counts[change] for change in COMPARED):
        return Exit.NOT_COMPARABLE
    return Exit.SLOWER if any(counts[change] for change in fails) else Exit.FINE


def _either(words: Sequence[str]) -> str:
    """`slower`, `slower or gone`, `slower, gone or new`."""
    return " or ".join(each for each in (", ".join(words[:-1]), *words[-1:]) if each)


__all__ = ["FAILS", "NOTHING", "Compared", "add_arguments", "compared", "read_thresholds"]
