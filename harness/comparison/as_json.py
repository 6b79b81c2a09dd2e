"""Comparisons as JSON for programs."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from typing import Any

from harness.comparison.records import Change, Comparison
from harness.comparison.request import Compared
from harness.errors import Exit

JSON_SCHEMA_VERSION = 3


def comparison_json(compared: Compared) -> str:
    """All of it, one object for each new run; what is not finite is null. ASCII."""
    left_out = compared.left_out or ({},) * len(compared.found)
    data = {
        "schema_version": JSON_SCHEMA_VERSION,
        "base_id": compared.base.id,
        "fails": compared.fails,
        "exit_code": int(compared.exit_code),
        "exit_means": compared.exit_means,
        "filter": compared.filter,
        "comparisons": [_plain(*each) for each in zip(compared.found, left_out, compared.exit_codes, strict=True)],
    }
    return json.dumps(_finite(data), indent=1, allow_nan=False)


def _plain(found: Comparison, left_out: dict[Change, int], code: Exit) -> dict[str, Any]:
    return {
        "same_run": found.base_id == found.new_id,
        **asdict(found),
        "counts": {str(change): count for change, count in found.counts.items()},
        "left_out": {str(change): left_out.get(change, 0) for change in Change},
        "exit_code": int(code),
    }


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
