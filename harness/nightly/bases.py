"""Which earlier runs a night is held against: the newest one that can say something of it, and baseline.

A run that was cut short, cannot be read, or was itself held back by a limit is passed over, and it is said: against a
base that ran hot, a night that became slower looks the same, and the one after it faster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from harness.compare import compare
from harness.comparison.attribution import obstacles
from harness.comparison.boards import BOARD
from harness.comparison.records import COMPARED
from harness.comparison.request import Compared
from harness.errors import CommandError, Exit
from harness.model import Run
from harness.store import AT_ONCE, Store, load_whole, read_run

MOST_READ = 200
"""Runs that are looked at, from the newest back: a store may hold thousands, of other GPUs too."""

ENOUGH = 0.5
"""Share of a night's cases that a base should have: a look at one kernel in between is none."""

HELD_BACK = 0.1
"""By how much more of its samples a base may have been held back than the night, as a share of all."""


def night_before(
    store: Store, ids: Sequence[str], new: Run, held_back: float, pass_over: Callable[[str, str], object]
) -> tuple[Path, Compared] | None:
    """The newest of the runs that has comparable cases, and what came of comparing; None: there is none.

    Of the same board, or where that has none, of the same model of GPU: machines of other drivers share a store.

    Args:
        store: which holds the runs.
        ids: of the runs before, oldest first.
        new: the night's, with its samples.
        held_back: `share_held_back` of it.
        pass_over: told which run was not taken, and why.
    """
    few: list[tuple[Path, Compared]] = []
    for run_id in _fit(store, ids[-MOST_READ:], new, held_back, pass_over):
        try:
            folder = store.folder(run_id)
            found = held_against(folder, new)
        except CommandError as error:
            pass_over(run_id, _unreadable(error))
            continue
        share = _share_compared(found)
        if share >= ENOUGH:
            return folder, found
        pass_over(run_id, f"it has only {share:.0%} of tonight's cases" if share else "no case is comparable")
        few += [(folder, found)] if share else []
    return few[0] if few else None


def _fit(
    store: Store, ids: Sequence[str], new: Run, held_back: float, pass_over: Callable[[str, str], object]
) -> Iterator[str]:
    """Runs on the same model of GPU that nothing speaks against, newest first, but those of the same board before."""
    others, newest_first = [], ids[::-1]
    for place, run_id in enumerate(newest_first):
        if place % AT_ONCE == 0:
            store.prefetch(newest_first[place : place + AT_ONCE])
        try:
            base = read_run(store.head(run_id))
        except CommandError as error:
            pass_over(run_id, _unreadable(error))
            continue
        if _model(base) != _model(new):
            continue
        if why := _unfit(base, new, held_back):
            pass_over(run_id, why)
        elif base.environment.get(BOARD) == new.environment.get(BOARD):
            yield run_id
        else:
            others.append(run_id)
    yield from others


def _unreadable(error: CommandError) -> str:
    """Why a run is no base; raises what is no fault of the run, such as a network that is down."""
    if error.code is not Exit.RUN:
        raise error
    return str(error)


def held_against(folder: Path, new: Run) -> Compared:
    """A night against a base.

    Args:
        folder: of the base.
        new: the night's run, with its samples.

    Raises:
        CommandError: the base is missing or damaged (RUN).
    """
    base = load_whole(folder)
    return Compared(base=base, news=(new,), found=(compare(base, new),))


def compares(found: Compared) -> bool:
    """Whether any case could be compared."""
    return any(each.change in COMPARED for each in found.found[0].cases)


def share_held_back(run: Run) -> float:
    """Share of the run's samples during which a limit held the clocks back.

    Args:
        run: as `read_run` gives it: with digests instead of samples.
    """
    digests = [trial.digest for each in run.measurements for trial in each.trials if trial.digest]
    return sum(each.throttled for each in digests) / max(1, sum(each.count for each in digests))


def _model(run: Run) -> object:
    """A GPU's name; of a run on a CPU the CPU's."""
    return run.environment.get("gpu_name") or run.environment.get("device_name")


def _unfit(base: Run, new: Run, held_back: float) -> str | None:
    """Why a run of the same model is no base."""
    if base.partial:
        return "it was cut short"
    if base.options.quick and not new.options.quick:
        return "it is a quick look"
    if base.options.lock_clocks_mhz != new.options.lock_clocks_mhz:
        return f"its clocks were locked {_locked(base)}, tonight's {_locked(new)}"
    if why := obstacles(base, new):
        return "; ".join(why)
    share = share_held_back(base)
    if share > held_back + HELD_BACK:
        return f"a limit held the clocks back during {share:.0%} of its samples"
    return None


def _locked(run: Run) -> str:
    mhz = run.options.lock_clocks_mhz
    return "nowhere" if mhz is None else f"at {mhz} MHz"


def _share_compared(found: Compared) -> float:
    """Of the cases with figures tonight, those that were compared."""
    cases = found.found[0].cases
    return sum(each.change in COMPARED for each in cases) / max(1, sum(each.new_trials > 0 for each in cases))
