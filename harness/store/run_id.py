"""Ids of runs: `<UTC time>-<gpu>-<driver>-<short hash>`, so that they sort by time."""

from __future__ import annotations

import os
import re
from datetime import UTC, datetime

from harness.model import Environment

STARTED = "%Y%m%dT%H%M%SZ"


def new_run_id(started: datetime, environment: Environment) -> str:
    """The id of a run that begins; that of a CPU run names the CPU and torch."""
    device = environment.get("gpu_name") or environment.get("cpu_name") or "unknown"
    driver = environment.get("driver_version") or f"torch{environment.get('torch_version')}"
    name = re.sub(r"[^a-z0-9.]+", "-", f"{device}-{driver}".lower()).strip("-")[:60]
    return f"{started:{STARTED}}-{name}-{os.urandom(3).hex()}"


def started_of(run_id: str) -> datetime | None:
    """When a run began, in UTC; None: its id, which somebody else gave it, does not say."""
    try:
        return datetime.strptime(run_id.partition("-")[0], STARTED).replace(tzinfo=UTC)
    except ValueError:
        return None
