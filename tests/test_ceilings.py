"""Ceilings are read off a run's own cases: rates worked out by hand, a reason where one is missing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.ceilings import COPY, COPY_KERNEL, PEAK_DTYPES, PEAKS, READ, ceilings
from harness.model import Cache, Case, Measurement, Problem, Role, Run, TrialResult, Verdict, Word
from tests.sample_run import empty_run

PASSED = Verdict(word=Word.PASSED)


def measured(kernel: str, problem: Problem, *medians_ns: float, cache: Cache = Cache.COLD) -> Measurement:
    """A case by the graph timer, a trial a median."""
    role = Role.LIMIT if kernel == "read" else Role.GEMV
    case = Case(kernel=kernel, role=role, problem=problem, timer="graph", cache=cache)
    trials = tuple(
        TrialResult(trial=i, verdict=PASSED, samples_ns=(ns, ns), sample_clocks_mhz=(1900.0 + i, None))
        for i, ns in enumerate(medians_ns)
    )
    return Measurement(case=case, trials=trials)


def run_of(*measurements: Measurement) -> Run:
    return replace(empty_run(), measurements=measurements)


def test_read_and_copy_bandwidth() -> None:
    """READ moves (65536·16384 + 16384 + 65536)·4 bytes: 4 295.3 GB/s in 1 ms. COPY moves 2·1 GiB and 4 bytes."""
    found = ceilings(run_of(measured("read", READ, 1e6, 1e6), measured(COPY_KERNEL, COPY, 1e6)))
    assert found.read.per_s is not None
    assert found.read.per_s.estimate == pytest.approx(4_295_294_976e3)
    assert found.read.spread == 0
    assert found.read.sm_clock_mhz == 1900.5
    assert found.read.case_id == "read-65536x16384-graph-cold"
    assert found.copy.per_s is not None
    assert found.copy.per_s.estimate == pytest.approx(2_147_483_652e3)
    assert found.copy.per_s.half_width is None


def test_matrix_peak() -> None:
    """2·8192³ FLOP are 1.0995 TFLOP; in 2 ms that is 549.8 TFLOP/s."""
    found = ceilings(run_of(measured("torch.matmul", PEAKS["float16"], 2e6, 2e6)))
    peak = found.peaks["float16"].per_s
    assert peak is not None
    assert peak.estimate == pytest.approx(549.755813888e12)
    assert found.peak("int8") is found.peaks["float16"]
    assert found.peak("float8") is None


def test_attainable_and_ridge() -> None:
    """With 4 TB/s and 400 TFLOP/s the ridge is at 100 FLOP/byte: below it bandwidth bounds, above it the roof."""
    read_ns = 4_295_294_976 / 4e12 * 1e9
    peak_ns = 2 * 8192**3 / 400e12 * 1e9
    found = ceilings(run_of(measured("read", READ, read_ns), measured("torch.matmul", PEAKS["float16"], peak_ns)))
    assert found.ridge_flop_per_byte("float16") == pytest.approx(100)
    assert found.attainable_flop_per_s(Problem(m=4096, k=4096, n=512, dtype="float16")) == pytest.approx(400e12)
    assert found.attainable_flop_per_s(Problem(m=4096, k=4096, dtype="float16")) == pytest.approx(4e12, rel=1e-3)
    assert found.attainable_flop_per_s(Problem(m=4096, k=4096)) is None
    assert found.ridge_flop_per_byte("float32") is None


def test_what_is_missing_has_a_reason() -> None:
    """Not measured at all, measured hot only, or crashed."""
    crashed = Verdict(word=Word.CRASHED, reason="signal 11")
    lost = replace(measured("torch.matmul", PEAKS["tf32"], 1.0), trials=(TrialResult(trial=0, verdict=crashed),))
    none = replace(measured("torch.matmul", PEAKS["bfloat16"], 1.0), trials=())
    found = ceilings(run_of(measured("read", READ, 1e6, cache=Cache.HOT), lost, none))
    assert found.read.per_s is None
    assert "not in this run by graph, cold" in str(found.read.reason)
    assert str(found.peaks["tf32"].reason).endswith("-graph-cold: signal 11")
    assert "no trial of it ended" in str(found.peaks["bfloat16"].reason)
    assert len(found.every) == 2 + len(PEAK_DTYPES)
