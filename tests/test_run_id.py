"""harness.store.run_id: ids sort by time and say what was measured on."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from harness.model import Environment
from harness.store.run_id import new_run_id


@pytest.mark.parametrize(
    ("values", "middle"),
    [
        ({"gpu_name": "NVIDIA H200", "driver_version": "580.159.04"}, "nvidia-h200-580.159.04"),
        ({"gpu_name": None, "cpu_name": "AMD EPYC (TM) 9554/2", "torch_version": "2.13.0+cpu"}, None),
        ({"gpu_name": "x" * 100, "driver_version": "1"}, "x" * 60),
    ],
)
def test_ids(values: dict[str, str | int | float | bool | None], middle: str | None) -> None:
    """Sorted by time, readable, fit for a folder's name."""
    run_id = new_run_id(datetime(2026, 5, 4, 3, 2, 1, tzinfo=UTC), Environment(values=values))
    when, _, rest = run_id.partition("-")
    assert when == "20260504T030201Z"
    assert rest[:-7] == (middle or "amd-epyc-tm-9554-2-torch2.13.0-cpu")
    assert int(rest[-6:], 16) >= 0
