"""Drafts as killed benches leave them, with measurements of a synthetic run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from harness.model import Measurement
from harness.store.draft import Draft
from tests.sample_run import empty_run, gpu_run

SOME = gpu_run(shapes=((64, 64),), trials=2, samples=5).measurements[:3]


def abandon(root: Path, measurements: tuple[Measurement, ...], run_id: str = "20260101T000000Z-x-y-abcdef") -> Path:
    """A draft as a killed process leaves it."""
    draft = Draft.create(root, replace(empty_run(), id=run_id))
    for measurement in measurements:
        draft.append(measurement)
    draft._lock.release()
    return draft.folder
