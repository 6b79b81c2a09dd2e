"""What a comparison says where a launch ran another kernel on the device: the API is the same, the kernel is not."""

from __future__ import annotations

import pytest

from harness.compare import compare
from harness.model import DeviceKernel, Measurement
from tests.planted_runs import around, case, measured, printed, run
from tests.sample_run import HOSTILE

GEMV = "void gemvx::kernel<int, int, float, float, float, float, false, true, true, false, 7, false>(P)"
GEMV_OTHER = GEMV.replace("7", "8")
DOT, REDUCE = "void dot_kernel<float, 128, 0>(Q)", "void reduce_1Block<float, 7>(R)"
SPLIT = "dot_kernel<float, 128, 0> + reduce_1Block<float, 7>"


def ran(*names: str, ns: float = 1000.0, duration_ns: float | None = None) -> Measurement:
    """torch.matmul, of whose launch only the names are known."""
    kernels = tuple(
        DeviceKernel(name=name, grid=(1, 1, 1), block=(32, 1, 1), registers=40, shared_bytes=0, duration_ns=duration_ns)
        for name in names
    )
    return measured(case("torch.matmul"), around(ns), device_kernels=kernels)


def noted(base: Measurement, new: Measurement) -> tuple[str, ...]:
    (change,) = compare(run(base), run(new)).cases
    return change.notes


@pytest.mark.parametrize(
    ("base", "new", "note"),
    [
        ((GEMV,), (DOT, REDUCE), f"{SPLIT} against gemvx::kernel<…>"),
        ((DOT, REDUCE), (DOT,), f"dot_kernel<float, 128, 0> against {SPLIT}"),
        ((GEMV,), (GEMV_OTHER,), "another instance of gemvx::kernel<…>"),
    ],
)
def test_another_kernel_is_named(base: tuple[str, ...], new: tuple[str, ...], note: str) -> None:
    """By its short name, several in order; where those are alike, by that they are not."""
    assert noted(ran(*base), ran(*new, ns=1040.0)) == (f"other device kernel: {note}",)


def test_the_same_kernels_are_no_note() -> None:
    """Nor are names where the other run has none, as of an older version; durations and blocks do not matter here."""
    assert noted(ran(GEMV), ran(GEMV, duration_ns=900.0)) == ()
    assert noted(ran(), ran(GEMV)) == noted(ran(GEMV), ran()) == ()


def test_a_hostile_name_stays_on_its_line() -> None:
    """A record may say anything."""
    text = printed(run(ran(HOSTILE)), run(ran(GEMV, ns=1040.0)), width=200, every=True)
    (line,) = [line for line in text.splitlines() if "other device kernel" in line]
    assert "\u202e" not in line
