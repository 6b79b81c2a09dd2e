"""harness.comparison.states: which trials are states, which outliers, ticks or the change itself."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest

from harness.comparison.states import find_states


@pytest.mark.parametrize(
    ("base", "new", "wanted"),
    [
        ((270.0, 72.0, 287.0), (68.0, 68.5, 369.0), None),  # one outlier a run, though each lies at the other's level
        ((100.0, 100.2, 100.1, 110.0, 100.3), (100.1, 100.2, 100.0, 100.3, 110.1), None),
        ((100.0, 110.2, 100.1, 110.0, 100.3), (100.1, 100.2, 100.0, 100.3, 110.1), (True, False)),
        ((100.1, 100.2, 100.0, 100.3, 110.1), (100.0, 110.2, 100.1, 110.0), (False, True)),
        ((100.0, 110.2, 100.1, 110.0), (110.3, 100.1, 110.0, 100.0), (True, True)),
        ((100.0, 110.2, 110.0), (110.3, 100.1, 100.0), None),  # of three trials one is always alone
    ],
)
def test_a_state_takes_two_of_a_runs_own_trials(
    base: Sequence[float], new: Sequence[float], wanted: tuple[bool, bool] | None
) -> None:
    """A trial that lies alone among its run's is an outlier, and the other run's trials make it no state."""
    found = find_states([math.log(ns) for ns in base], [math.log(ns) for ns in new])
    assert (None if found is None else (found.in_base, found.in_new)) == wanted


def test_ticks_are_no_states() -> None:
    """Levels two steps of a clock apart are the clock's; three are states."""
    low, high = [0.0] * 3, [0.01] * 3
    assert find_states([*low, *high], low, tick=0.005) is None
    assert find_states([*low, *high], low, tick=0.003) is not None
