"""Runs planted for claims: a few cases each, their times chosen by hand so that a figure comes out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from harness.ceilings import PEAKS, READ
from harness.model import Cache, DeviceKernel, Energy, Environment, Layout, Measurement, Problem, Run, TrialResult
from harness.roofline import flops, least_bytes
from reports.claims import Judged, claims
from reports.figures import figures
from reports.roofline.llama import LAYERS
from tests.sample_roofline import PASSED, case
from tests.sample_run import empty_run

TB = 4.0
"""Read bandwidth of these runs in TB/s, so that 4 MB take 1 µs."""
WOBBLY = 0.2
SHEET = 989.5
"""The H200's published float16 peak in TFLOP/s."""


def at(
    kernel: str,
    problem: Problem,
    ns: float,
    timer: str = "graph",
    cache: Cache = Cache.COLD,
    *,
    wobble: float = 0.0005,
    grid: tuple[int, int, int] | None = None,
    block: tuple[int, int, int] = (32, 4, 1),
    mj: float | None = None,
) -> Measurement:
    """A case with three trials, the second at `ns`, the others `wobble` beside it; with `mj` a launch."""
    launched = DeviceKernel(
        name="k", grid=grid or (1, 1, 1), block=block, registers=1, shared_bytes=0, duration_ns=None
    )
    trials = []
    for i in range(3):
        factor = 1 + wobble * (i - 1)
        taken = mj * factor * 1000 if mj is not None else 0.0
        energy = Energy(seconds=2.0, launches=1000, millijoules=taken, source="counter", idle_mw=None)
        trials.append(
            TrialResult(
                trial=i,
                verdict=PASSED,
                samples_ns=(ns * factor,) * 2,
                device_kernels=(launched,) if grid else (),
                energy=energy if mj is not None else None,
            )
        )
    return Measurement(case=case(kernel, problem, timer, cache), trials=tuple(trials))


def read_at(tb_per_s: float = TB) -> Measurement:
    return at("read", READ, least_bytes(READ) / tb_per_s / 1e3, wobble=0)


def peak_at(tflop_per_s: float) -> Measurement:
    return at("torch.matmul", PEAKS["float16"], flops(PEAKS["float16"]) / tflop_per_s / 1e3, wobble=0)


def half(m: int, k: int, n: int = 1) -> Problem:
    return Problem(m=m, k=k, n=n, dtype="float16")


def layers(n: int, tflop_per_s: float, wobble: float = 0.0005) -> list[Measurement]:
    """Every LLaMA-7B layer with `n` tokens, at this speed."""
    problems = [half(*layer.weight, n) for layer in LAYERS]
    return [at("torch.matmul", p, flops(p) / tflop_per_s / 1e3, wobble=wobble) for p in problems]


def run_of(measurements: Iterable[Measurement], gpu: str = "NVIDIA H200") -> Run:
    run = empty_run()
    environment = Environment(values={**run.environment.values, "gpu_name": gpu}, unknown=run.environment.unknown)
    return replace(run, environment=environment, measurements=tuple(measurements))


def judge(name: str, measurements: Iterable[Measurement], gpu: str = "NVIDIA H200") -> Judged:
    claim = next(each for each in claims() if each.name == name)
    return claim.judge(figures(run_of(measurements, gpu)))


SHAPE = Problem(m=1024, k=128)
NARROW = Problem(m=1 << 20, k=16)
SQUARE = Problem(m=4096, k=4096)


def both_ways(times: dict[str, tuple[float, float]], wobble: float = 0.0005) -> list[Measurement]:
    """(ns by async, ns by graph), hot, by kernel."""
    by_rate = [at(kernel, SHAPE, ns, "async", Cache.HOT, wobble=wobble) for kernel, (ns, _) in times.items()]
    return by_rate + [at(kernel, SHAPE, ns, "graph", Cache.HOT, wobble=0) for kernel, (_, ns) in times.items()]


def faster(by_rate: float, by_device: float) -> list[Measurement]:
    return both_ways({"torch.matmul": (2830 * by_rate, 1500 * by_device), "sgemv_k32_f32": (2830, 1500)})


def float4(by_rate: float, by_device: float, wobble: float = 0.0) -> list[Measurement]:
    scalar = both_ways({"sgemv_k32_f32": (2830, 1500)}, wobble=-wobble)
    return scalar + both_ways({"sgemv_k128_f32x4": (2830 / by_rate, 1500 / by_device)}, wobble=wobble)


def few_rows(ns: float, grid: tuple[int, int, int] | None) -> list[Measurement]:
    return [at("sgemv_k32_f32", Problem(m=8, k=4096), ns, grid=grid), read_at()]


def free(of_limit: float) -> list[Measurement]:
    return [at("sgemv", SQUARE, 17_000 / of_limit), at("read", SQUARE, 17_000)]


def placed(n: int, ridge: float) -> list[Measurement]:
    return [at("torch.matmul", half(4096, 4096, n), 10_000), read_at(), peak_at(ridge * TB)]


def energies(decode_mj: float, prefill_mj: float, wobble: float = 0.0005) -> list[Measurement]:
    """On one layer, mJ a token."""
    by_tokens = ((1, decode_mj, wobble), (512, prefill_mj * 512, 0.0))
    return [at("torch.matmul", half(4096, 11008, n), 1e4, "energy", mj=mj, wobble=w) for n, mj, w in by_tokens]


def attention(ns: float) -> list[Measurement]:
    sums = Problem(m=128, k=4096, dtype="float16", layout=Layout(order="col"))
    return [at("torch.matmul", half(4096, 128), ns), at("torch.matmul", sums, ns), peak_at(400)]


def hot(tb_per_s: float) -> list[Measurement]:
    ns = least_bytes(SQUARE) / tb_per_s / 1e3
    return [at("sgemv", SQUARE, ns, "graph", Cache.HOT), read_at()]


def weight_only(of_bytes: float, wobble: float = 0.0005) -> list[Measurement]:
    """Every LLaMA-7B layer, in time by its bytes, with this share of the byte ratio kept."""
    found = []
    for layer in LAYERS:
        own, halves = replace(half(*layer.weight), dtype="int8"), half(*layer.weight)
        ns, fewer = least_bytes(halves) / 4e3, least_bytes(halves) / least_bytes(own)
        found += [at("hgemv", halves, ns), at("gemv_w8", own, ns / (of_bytes * fewer), wobble=wobble)]
    return found


def narrow(blocks: int | None, **layout: int) -> list[Measurement]:
    """2²⁰ rows of 64 bytes by blocks of 4 warps: two rows a warp with 131 072 of them."""
    problem = replace(NARROW, layout=Layout(**layout))
    return [at("sgemv_k16_f32", problem, 20_000, grid=(blocks, 1, 1) if blocks else None), read_at()]
