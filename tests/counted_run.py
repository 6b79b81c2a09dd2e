"""Small runs with clocks and limits' counters that can be worked out by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from harness.model import Cache, DeviceState, Run, TrialResult
from tests.sample_run import gpu_run

MINE = "sgemv_k32_f32"
OTHER = "torch.matmul"

STARTS_UNIX_S = (10.0, 11.0, 12.0, 13.0)
"""Of a trial's four samples, each of which takes 1.2 ms."""

READINGS_UNIX_S = (10.0, 11.0, 12.0, 13.0, 14.0)
"""Of the device: every sample lies between two of them that are its own."""


def counted_run(cases: Mapping[tuple[str, str], Sequence[TrialResult]]) -> Run:
    """Cases of 64×64 from cold by (kernel, timer), each with these trials."""
    base = gpu_run(shapes=((64, 64),), trials=2, samples=4)
    found = {(m.case.kernel, m.case.timer): m for m in base.measurements if m.case.cache is Cache.COLD}
    return replace(base, measurements=tuple(replace(found[place], trials=tuple(t)) for place, t in cases.items()))


def trial(
    number: int = 0,
    *,
    limited_ns: Mapping[str, Sequence[int]] | None = None,
    moments: Sequence[tuple[str, ...]] = ((),) * len(READINGS_UNIX_S),
    **changes: Any,
) -> TrialResult:
    """A trial with four samples of 1 µs and five readings of the device.

    Args:
        number: of the trial.
        limited_ns: by limit its counter in each reading; None: the device counts none.
        moments: clock-event reasons in each reading.
        changes: further fields of `TrialResult`.
    """
    states = tuple(
        DeviceState(
            time_unix_s=time_unix_s,
            sm_clock_mhz=1965,
            clock_event_reasons=moments[i],
            limited_ns=None if limited_ns is None else {name: counter[i] for name, counter in limited_ns.items()},
        )
        for i, time_unix_s in enumerate(READINGS_UNIX_S)
    )
    base = gpu_run(shapes=((64, 64),), trials=1, samples=4).measurements[0].trials[0]
    fields: dict[str, Any] = {
        "trial": number,
        "samples_ns": (1000.0,) * 4,
        "sample_times_unix_s": STARTS_UNIX_S,
        "sample_clocks_mhz": (),
        "launches_per_sample": 1200,
        "settled": None,
        "placements_ns": (),
        "unknown": {},
        "states": states,
    }
    return replace(base, **(fields | changes))
