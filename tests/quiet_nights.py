"""Stores of nights in which little happens, the one device that a history makes of them, and runs with samples."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from harness.history.devices import Device, read_history
from harness.model import Case, Digest, Run, Verdict, Word
from harness.store import Store
from tests.many_runs import Digests, around, case, night_run, write
from tests.planted_runs import publish

A, B, C = case(), case("sgemv_k32_f32"), case("sgemv_k16_f32")
WRONG = Verdict(word=Word.WRONG, reason="integers: row 3 is 5, wanted 6")
WOBBLE = (0.0, 0.001, -0.001, 0.002, -0.002)
"""What a quiet case does from night to night, as a fraction."""


def steady(each: Case, night: int) -> Sequence[Digest]:  # noqa: ARG001 - every case does the same
    return around(1000.0 * (1 + WOBBLE[night % 5]))


def device_of(root: Path, nights: int, cases: Sequence[Case], digests: Digests) -> Device:
    """The one device of a store of `nights` runs."""
    for night in range(nights):
        write(root, night_run(night, cases, digests))
    (found,) = read_history(Store(root)).devices
    return found


def published(root: Path, run: Run) -> Path:
    """A run with its samples."""
    return publish(root, run.id, run)
