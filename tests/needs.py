"""What a test cannot do without: where it is missing the test is skipped, but never on CI."""

from __future__ import annotations

import os

import pytest


def need(missing: str | None) -> None:
    """Skip for the reason `missing`, if any; fail where CI is set: a runner that checks nothing would be green."""
    if missing is not None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(missing)
