"""harness.timing.profiler: a trace into launches and kernels, and the real thing on a GPU."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from harness.model import Cache, DeviceKernel
from harness.process import use_one_stream
from harness.timing import NotMeasurable
from harness.timing.profiler import device_events, device_kernels, measure_profiler, span_ns, split_launches, thinned

KNOWN = {"grid": [256, 1, 1], "block": [32, 4, 1], "registers per thread": 40, "shared memory": 528}


def event(name: str, ts: float, dur: float, **known: Any) -> dict[str, Any]:
    """An event as torch writes it: times in µs."""
    return {"ph": "X", "cat": "kernel", "name": name, "ts": ts, "dur": dur, "args": known}


def two_kernels(launches: int) -> list[dict[str, Any]]:
    """Each launch: a product of 1.5 µs, a gap of 0.25 µs, a sum of 1 µs."""
    starts = [10.0 * i for i in range(launches)]
    return [e for t in starts for e in (event("product", t, 1.5, **KNOWN), event("sum", t + 1.75, 1.0))]


def test_only_what_ran_on_the_device_counts() -> None:
    """In the order of the device, not of the file; the host's calls are in the trace too."""
    trace = {"traceEvents": [event("b", 2, 1), {"cat": "cuda_runtime", "name": "launch", "ts": 0}, event("a", 1, 1)]}
    assert [e["name"] for e in device_events(trace)] == ["a", "b"]


def test_a_launch_of_two_kernels_is_split_and_spanned() -> None:
    """From the start of the first to the end of the last, in ns."""
    launches = split_launches(two_kernels(3), 3)
    assert [[e["name"] for e in each] for each in launches] == [["product", "sum"]] * 3
    assert [span_ns(each) for each in launches] == pytest.approx([2750.0] * 3)


def test_kernels_are_described_by_place() -> None:
    """What the profiler does not say is None, not 0."""
    product, total = device_kernels(split_launches(two_kernels(3), 3))
    assert product == DeviceKernel(
        name="product", grid=(256, 1, 1), block=(32, 4, 1), registers=40, shared_bytes=528, duration_ns=1500.0
    )
    assert (total.name, total.registers, total.duration_ns) == ("sum", None, 1000.0)


def test_a_trace_without_kernels_says_what_may_be_wrong() -> None:
    """CUPTI serves one profiler at a time, and not everybody."""
    with pytest.raises(NotMeasurable, match="the profiler saw no kernel: CUPTI cannot trace here"):
        split_launches([], 3)


def test_kernels_that_do_not_share_out_are_refused() -> None:
    """Seven kernels of three launches: something else ran, or something is lost."""
    with pytest.raises(NotMeasurable, match="the profiler saw 7 kernels of 3 launches: not as many for each"):
        split_launches(two_kernels(4)[:7], 3)


@pytest.mark.parametrize(("launches", "kept"), [(3, 3), (400, 400), (401, 201), (3611, 362)])
def test_thinning_keeps_an_even_share(launches: int, kept: int) -> None:
    """A rotation over thousands of sets gives thousands of launches."""
    every = split_launches(two_kernels(launches), launches)
    few = thinned(every, 400)
    assert len(few) == kept <= 400
    assert few[0] is every[0]


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")
def test_a_real_trace() -> None:
    """Two kernels of torch: their names, and a span that is longer than both."""
    use_one_stream("cuda:0")
    a = torch.zeros(1 << 20, device="cuda:0")

    def launch() -> None:
        a.add_(1.0)
        a.mul_(0.5)

    timing = measure_profiler([launch], Cache.COLD, "cuda:0", 0.1)
    assert timing.kernels_per_launch == len(timing.device_kernels) == 2
    assert all("elementwise" in kernel.name for kernel in timing.device_kernels)
    assert all(kernel.registers and kernel.grid[0] > 1 for kernel in timing.device_kernels)
    assert min(timing.samples_ns) >= sum(kernel.duration_ns for kernel in timing.device_kernels) * 0.8
