"""Other projects' timers on the same launches, as they come: Triton's do_bench and NVBench.

Both are optional. Neither is told to do anything but its default, so that the figure is what their users get. Both
empty the cache by writing to it, whose lines the timed kernel then pays to have written back.
"""

from __future__ import annotations

import importlib
import itertools
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from harness.model import Cache, Launch
from harness.timing import Crew, NotMeasurable, Purpose, Sample, Timer, Timing, run_each


def measure_do_bench(
    launches: Sequence[Launch],
    cache: Cache,  # noqa: ARG001 - it knows no other than cold
    device: str,
    max_time_s: float,  # noqa: ARG001 - it has its own
) -> Timing:
    """A sample: one of do_bench's, one launch between two events."""
    import torch

    testing = _installed("triton.testing", "triton")
    rotation = itertools.cycle(launches)

    def launch_next() -> None:
        next(rotation)()

    with torch.cuda.device(device):
        times_ms = testing.do_bench(launch_next, return_mode="all")
    return _timing([ms * 1e6 for ms in times_ms], launches, device)


def measure_nvbench(
    launches: Sequence[Launch],
    cache: Cache,  # noqa: ARG001 - it knows no other than cold
    device: str,
    max_time_s: float,  # noqa: ARG001 - it has its own
) -> Timing:
    """A sample: one of NVBench's «cold» measurements, one launch between two events."""
    import torch

    bench, results = _installed("cuda.bench", "cuda-bench"), _installed("cuda.bench.results", "cuda-bench")
    index = torch.device(device).index or 0
    bench.register(_benchmark(launches)).set_name(NVBENCH_NAME)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "nvbench.json"
        bench.run_all_benchmarks(["-d", str(index), "--jsonbin", str(path)])
        (state,) = results.BenchmarkResult.from_json(path)[NVBENCH_NAME]
    torch.cuda.synchronize()
    if state.is_skipped or not state.samples:
        raise NotMeasurable(f"NVBench measured nothing: {state.skip_reason or 'it kept no samples'}")
    return _timing([seconds * 1e9 for seconds in state.samples], launches, device)


NVBENCH_NAME = "launch"


def _benchmark(launches: Sequence[Launch]) -> Callable[[Any], None]:
    """What NVBench calls: it launches on a stream of NVBench's own."""
    import torch

    rotation = itertools.cycle(launches)

    def benchmark(state: Any) -> None:
        stream = torch.cuda.ExternalStream(state.get_stream().addressof(), device=state.get_device())

        def launch(_: Any) -> None:
            with torch.cuda.stream(stream):
                next(rotation)()

        state.exec(launch, batched=False)

    return benchmark


def _installed(module: str, package: str) -> ModuleType:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise NotMeasurable(f"{package} is not installed or does not load: {error}") from error


def _timing(samples_ns: Sequence[float], launches: Sequence[Launch], device: str) -> Timing:
    return Timing(
        samples=tuple(Sample(ns=ns) for ns in samples_ns),
        launches_per_sample=1,
        kernels_per_launch=None,
        stopped="count",
        rerun=run_each(launches, device),
        unknown=dict.fromkeys(("sample_times_unix_s", "sample_clocks_mhz"), "the timer is not ours"),
    )


TIMERS = (
    Timer(
        name="do_bench",
        summary="Triton's do_bench at its defaults: events, the cache emptied by writing zeros",
        clock="device",
        devices=("cuda",),
        measure=measure_do_bench,
        caches=(Cache.COLD,),
        purpose=Purpose.PEER,
        crew=Crew.FRESH,
        most_trials=1,
        module="triton",
        package="triton",
    ),
    Timer(
        name="nvbench",
        summary="NVBench at its defaults (cold): events behind a blocking kernel, the cache emptied by writing",
        clock="device",
        devices=("cuda",),
        measure=measure_nvbench,
        caches=(Cache.COLD,),
        purpose=Purpose.PEER,
        crew=Crew.FRESH,
        most_trials=1,
        module="cuda.bench",
        one_case_a_process=True,  # NVBench runs once in a process, and then refuses
        package="cuda-bench",
    ),
)
