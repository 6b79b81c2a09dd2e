"""harness.history.devices: which runs of a store belong together, and the figures of their cases over time."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.history.devices import read_history
from harness.model import Case, Digest, Verdict, Word
from harness.stats import log_t_interval
from harness.store import Store
from tests.many_runs import around, night_run, write
from tests.quiet_nights import WRONG, A, B, C, device_of, steady
from tests.sample_run import cuda_build


class TestDevices:
    """Which runs belong together."""

    def ids(self, root: Path, *environments: dict[str, Any]) -> list[list[int]]:
        """The nights of each device, for runs with these environments night by night."""
        for night, values in enumerate(environments):
            write(root, night_run(night, [A], steady, **values))
        found = read_history(Store(root)).devices
        return [[int(past.run.id[-6:], 16) for past in device.runs] for device in found]

    def test_models_are_not_mixed(self, tmp_path: Path) -> None:
        """Two models in turns are two devices; the one that was measured last comes first."""
        a100 = {"gpu_name": "NVIDIA A100", "device_name": "NVIDIA A100"}
        assert self.ids(tmp_path, {}, a100, {}, a100, {}) == [[0, 2, 4], [1, 3]]

    @pytest.mark.parametrize(
        "other", [{"ecc": False}, {"mig": True}, {"sm_count": 114}, {"l2_bytes": 1}, {"allow_tf32": True}]
    )
    def test_facts_that_must_match(self, tmp_path: Path, other: dict[str, Any]) -> None:
        """One of them parts runs of one model."""
        assert self.ids(tmp_path, {}, other, {}) == [[0, 2], [1]]

    def test_facts_that_may_differ(self, tmp_path: Path) -> None:
        """Driver, torch, this very GPU and the host are what a history is about."""
        other = {"driver_version": "600", "torch_version": "3", "gpu_uuid": "GPU-1", "hostname": "b", "git_commit": "x"}
        assert self.ids(tmp_path, {}, other) == [[0, 1]]

    def test_unknown_forbids_nothing(self, tmp_path: Path) -> None:
        """As in a comparison; but it does not join what differs on either side of it."""
        assert self.ids(tmp_path, {"ecc": True}, {"ecc": None}, {"ecc": False}, {"ecc": True}) == [[0, 1, 3], [2]]

    def test_unknown_model_is_its_own(self, tmp_path: Path) -> None:
        """A run of who knows what is held against none of a known model."""
        nameless = {"gpu_name": None, "device_name": None}
        assert self.ids(tmp_path, {}, nameless, nameless) == [[1, 2], [0]]

    def test_newest_runs_alone(self, tmp_path: Path) -> None:
        """`last` counts runs of the store."""
        device_of(tmp_path, 5, [A], steady)
        (found,) = read_history(Store(tmp_path), last=2).devices
        assert [int(past.run.id[-6:], 16) for past in found.runs] == [3, 4]


class TestFigures:
    """A device's arrays."""

    def test_centres_are_those_of_stats(self, tmp_path: Path) -> None:
        """Centre and half-width of every case as `log_t_interval` has them, with 1, 2 and 5 trials."""
        medians = {A: (1000.0,), B: (1000.0, 1010.0), C: (900.0, 1000.0, 1010.0, 1020.0, 1500.0)}

        def digests(each: Case, _night: int) -> list[Digest]:
            return [Digest(count=3, median_ns=ns, throttled=0) for ns in medians[each]]

        device = device_of(tmp_path, 1, [A, B, C], digests)
        for place, each in enumerate(device.cases):
            wanted = log_t_interval([math.log(ns) for ns in medians[each]])
            half = math.nan if wanted.half_width is None else wanted.half_width
            assert device.centres_ns[0, place] == pytest.approx(wanted.estimate, rel=1e-12)
            assert device.half_widths[0, place] == pytest.approx(half, rel=1e-9, nan_ok=True)
        assert math.isnan(device.half_widths[0, 0])

    def test_only_cases_with_something_to_show(self, tmp_path: Path) -> None:
        """A case that was never supported is left out; one that always failed is not."""
        never = Verdict(word=Word.UNSUPPORTED, reason="K=128 is not 16")
        device = device_of(tmp_path, 2, [A, B, C], lambda each, _: {A: around(1.0), B: never, C: WRONG}[each])
        assert device.cases == (A, C)

    def test_changes_stand_at_their_run(self, tmp_path: Path) -> None:
        """Driver at the third run, torch at the fifth, a kernel's code at the fourth; nothing elsewhere."""
        for night in range(6):
            values = {"driver_version": "580" if night < 2 else "590", "torch_version": "2.11" if night < 4 else "2.12"}
            digest = ("1" if night < 3 else "2") * 64
            build = replace(cuda_build(), device_code_sha256={"sgemv_k32_f32.cu:sm_90": digest})
            write(tmp_path, replace(night_run(night, [A, B], steady, **values), builds=(build,)))
        (device,) = read_history(Store(tmp_path)).devices
        found = {run: [each.key for each in changes] for run, changes in enumerate(device.differences) if changes}
        assert found == {2: ["driver_version"], 4: ["torch_version"]}
        assert device.kernel_changes == {A.kernel: {}, B.kernel: {3: "device code changed, source did not"}}
