"""How a night's run stands against those before: on the terminal, on pages, and in the exit code."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from rich.console import Console, Group

from harness.comparison.records import Change
from harness.comparison.request import Compared
from harness.comparison.text import comparison_text
from harness.errors import CommandError, Exit
from harness.model import Run
from harness.nightly.bases import HELD_BACK, compares, held_against, night_before, share_held_back
from harness.nightly.night import BASELINE, Night, exit_of
from harness.store import load, read_run

MOST_PASSED_OVER = 5
"""Runs that are named as no base; more are counted."""

MOST_KERNELS = 3
"""Named in one line."""


def hold(night: Night, folder: Path, before: Sequence[str], baseline: Path | None) -> bool:
    """Say how the run stands against those before, and write its pages; whether there was any."""
    diary = night.diary
    held_back, new = share_held_back(read_run(folder)), load(folder)
    cut_short = ", cut short: the others are missing" if new.partial else ""
    diary.say("run", f"{new.id}, {len(new.measurements)} cases on {new.environment.get('device_name')}{cut_short}")
    hot = ""
    if held_back > HELD_BACK:
        hot = f"; a limit held the clocks back during {held_back:.0%} of tonight's samples"
        diary.say("clocks", hot.removeprefix("; "))
    bases = dict(_bases(night, new, held_back, before, baseline))
    for name, (_, compared) in bases.items():
        _say_comparison(night, name, compared, hot)
    _write_pages(night, folder, {name: base for name, (base, _) in bases.items()})
    return bool(bases)


def _bases(
    night: Night, new: Run, held_back: float, before: Sequence[str], baseline: Path | None
) -> Iterator[tuple[str, tuple[Path, Compared]]]:
    """By what they are called: the runs that the night's is held against."""
    diary = night.diary
    passed_over: list[tuple[str, str]] = []
    found = night_before(night.store, before, new, held_back, lambda run, why: passed_over.append((run, why)))
    for run, why in passed_over[:MOST_PASSED_OVER]:
        diary.say("not against", f"{run}: {why}")
    if len(passed_over) > MOST_PASSED_OVER:
        diary.say("not against", f"{len(passed_over) - MOST_PASSED_OVER} more")
    if found is None:
        diary.say("against", f"no earlier run on {new.environment.get('device_name')} to compare with")
    else:
        yield "the night before", found
    if baseline is None or (found is not None and baseline == found[0]):
        return
    try:
        compared = held_against(baseline, new)
    except CommandError as error:
        diary.fault(BASELINE, str(error), error.code)
        return
    if compares(compared):
        yield BASELINE, (baseline, compared)
    else:
        why = "; ".join(compared.found[0].not_comparable) or "no case has figures in both"
        diary.say(BASELINE, f"{compared.base.id} is left out: {why}")


def _say_comparison(night: Night, name: str, compared: Compared, hot: str) -> None:
    diary = night.diary
    diary.say("against", f"{name}: {compared.base.id}; {compared.found[0].attribution}")
    shown = comparison_text(compared)
    if isinstance(shown, Group):
        shown = Group(*shown.renderables[:-1])  # the last line is the exit code of comparing
    Console(highlight=False, markup=False, emoji=False).print(shown)
    if compared.exit_code:
        diary.fault("against", f"{_alarm(compared, name)}{hot}", compared.exit_code)


def _alarm(compared: Compared, name: str) -> str:
    """`4 cases are slower than the night before: sgemv_k16_f32`."""
    word = Change.FAILED if compared.exit_code is Exit.KERNEL else Change.SLOWER
    cases = [each.case for each in compared.found[0].cases if each.change is word]
    kernels = list(dict.fromkeys(each.kernel for each in cases))
    if len(kernels) > MOST_KERNELS:
        more = len(kernels) - MOST_KERNELS
        kernels[MOST_KERNELS:] = [f"{more} more kernel{'' if more == 1 else 's'}"]
    count, be = ("1 case", "is") if len(cases) == 1 else (f"{len(cases)} cases", "are")
    what = f"{be} wrong or crashed" if word is Change.FAILED else f"{be} slower than {name}"
    return f"{count} {what}: {', '.join(kernels)}"


def _write_pages(night: Night, folder: Path, bases: Mapping[str, Path]) -> None:
    """By a program of its own: reports are made of records, and what they need may be missing where runs are made."""
    diary = night.diary
    against = [f"--against={base}" for base in bases.values()]
    with tempfile.TemporaryDirectory(prefix="sgemv-nightly-") as work:
        markdown = Path(work) / "summary.md"
        where = [f"--pages={night.wish.pages}", f"--markdown={markdown}", f"--store={night.store_option}"]
        done = night.machine.ask([sys.executable, "-m", "reports", "nightly", str(folder), *against, *where])
        for line in done.stdout.splitlines():
            diary.say("page", line)
        if markdown.is_file():
            night.markdown.append(markdown.read_text(encoding="utf-8"))
    if done.code:
        diary.fault("page", done.complaint, exit_of(done.code))
