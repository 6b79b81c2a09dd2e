"""A store of thirty nights with a story: what each case does, when driver and torch change, and its history."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from harness.history.devices import History, read_history
from harness.model import Case, Digest, Verdict, Word
from harness.store import Store
from tests.many_runs import Digests, around, case, night_run, write
from tests.quiet_nights import WOBBLE
from tests.sample_run import HOSTILE

A, B, C, D = case(), case("sgemv_k32_f32"), case("sgemv_broken"), case("read", timer="async")
NIGHTS = 30
DRIVER, TORCH = 18, 24


def told(each: Case, night: int) -> Sequence[Digest] | Verdict:
    """A is slower since the driver, B since last night, C fails since two nights ago, D was held back in the 6th."""
    centre = 1000.0 * (1 + WOBBLE[night % 5])
    if each == A:
        return around(centre * (1.08 if night >= DRIVER else 1))
    if each == B:
        return around(centre * (1.06 if night == NIGHTS - 1 else 1))
    if each == C and night >= NIGHTS - 2:
        return Verdict(word=Word.WRONG, reason=f"row 3, {HOSTILE}")
    return around(centre, held_back=12 if each == D and night == 5 else 0)


def tell(root: Path, cases: Sequence[Case] = (A, B, C, D), digests: Digests = told, nights: int = NIGHTS) -> Path:
    """A store with this story."""
    for night in range(nights):
        values = {
            "driver_version": "580.1" if night < DRIVER else "590.2",
            "torch_version": "2.11" if night < TORCH else "2.12",
            "git_commit": f"{night // 10:040x}",
        }
        write(root, night_run(night, cases, digests, **values))
    return root


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> History:
    return read_history(Store(tell(tmp_path_factory.mktemp("story"))))
