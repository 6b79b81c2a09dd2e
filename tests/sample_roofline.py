"""A synthetic run of the roofline suite, the same on every call: its times are a plain model, none was measured."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace

from harness.ceilings import COPY, COPY_KERNEL, PEAKS, READ
from harness.model import (
    Cache,
    Case,
    DeviceKernel,
    DeviceState,
    Energy,
    Measurement,
    Problem,
    Role,
    Run,
    TrialResult,
    Verdict,
    Word,
)
from harness.roofline import flops, least_bytes
from tests.sample_run import START, gpu_run

REFERENCE = (4096, 4096)
WEIGHTS = (
    REFERENCE, (12288, 4096), (11008, 4096), (4096, 11008), (32000, 4096),
    (6144, 4096), (14336, 4096), (4096, 14336), (128256, 4096),
)  # fmt: skip
TOKENS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
CONTEXTS = (1024, 4096, 16384)
PEAK_FLOP_PER_S = {"float32": 50e12, "tf32": 400e12, "float16": 650e12, "bfloat16": 680e12, "int8": 650e12}
BYTES_PER_S = 4.4e12
LAUNCH_NS = 2000.0
TORCH = ("torch.matmul", "F.linear")
OWN = {"float32": "sgemv", "float16": "hgemv", "bfloat16": "bgemv", "int8": "gemv_w8"}
MOST_TOKENS = {"sgemv": 1, "hgemv": 8, "bgemv": 8, "gemv_w8": 8}
KERNELS = {
    "torch.matmul": "torch's own, out= variant",
    "F.linear": "torch.nn.functional.linear",
    "sgemv": "picks one of its variants by a rule",
    "hgemv": "float16, float32 accumulation",
    "bgemv": "bfloat16, float32 accumulation",
    "gemv_w8": "int8 weights with a float16 scale a row",
    COPY_KERNEL: "y = A·x of one column",
    "read": "reads A and x, writes m values",
    "empty": "does nothing",
}
ROLES = {"read": Role.LIMIT, "empty": Role.FLOOR}
GEMVX = "void gemvx::kernel<int, int, __half, __half, __half, float, false, true, true, false, 7, false>(int)"
NVJET = "nvjet_hsh_64x8_64x16_2x4_v_bz_TNT"
LARGE = "nvjet_hsh_128x256_64x4_2x1_v_bz_coopA_TNT"
PASSED = Verdict(word=Word.PASSED, max_error=0.2)


def roofline_run(
    *,
    weights: Sequence[tuple[int, int]] = WEIGHTS,
    tokens: Sequence[int] = TOKENS,
    dtypes: Sequence[str] = ("float32", "tf32", "float16", "bfloat16", "int8"),
    trials: int = 3,
    ceilings: bool = True,
    slower: dict[str, float] | None = None,
) -> Run:
    """A run as of a large GPU.

    Args:
        weights: (m, k).
        tokens: T.
        dtypes: of the problems.
        trials: worker processes.
        ceilings: with the ceiling problems.
        slower: by the beginning of a case's id, what its times are multiplied with.
    """
    cases = [*_cases(weights, tokens, dtypes), *(_ceiling_cases() if ceilings else ())]
    run = gpu_run(shapes=((64, 64),), trials=1, samples=2)
    return replace(
        run,
        id="20260514T091200Z-nvidia-h200-580.159.04-70f1e2",
        options=replace(run.options, trials=trials, command=("nox", "-s", "roofline")),
        kernels=KERNELS,
        measurements=tuple(measured(case, trials, slower or {}) for case in cases),
    )


def case(kernel: str, problem: Problem, timer: str = "graph", cache: Cache = Cache.COLD) -> Case:
    """A case with its kernel's role."""
    return Case(kernel=kernel, role=ROLES.get(kernel, Role.GEMV), problem=problem, timer=timer, cache=cache)


def _ceiling_cases() -> Iterator[Case]:
    yield case("empty", Problem(m=1, k=1))
    yield case("read", READ)
    yield case(COPY_KERNEL, COPY)
    for problem in PEAKS.values():
        yield case("torch.matmul", problem)


def _cases(weights: Sequence[tuple[int, int]], tokens: Sequence[int], dtypes: Sequence[str]) -> Iterator[Case]:
    batch = [Problem(m=m, k=k, n=n, dtype=dtype) for m, k in weights for dtype in dtypes for n in tokens]
    for problem in batch:
        for kernel in _kernels(problem):
            yield from _timed(kernel, problem)
    shapes = [shape for context in CONTEXTS for shape in ((context, 128), (128, context))]
    for m, k in shapes if "float16" in dtypes else ():
        attention = Problem(m=m, k=k, dtype="float16")
        for kernel in _kernels(attention):
            yield case(kernel, attention)


def _timed(kernel: str, problem: Problem) -> Iterator[Case]:
    """By graph; the reference's weight by sync too; some by energy, and the reference's own case."""
    yield case(kernel, problem)
    at_reference = (problem.m, problem.k) == REFERENCE
    if at_reference and kernel != "read":
        yield case(kernel, problem, "sync")
    if problem.dtype in ("float16", "int8") and problem.n in (1, 8, 512) and kernel not in ("read", "F.linear"):
        yield case(kernel, problem, "energy")
    if at_reference and problem.dtype == "float16" and problem.n in (1, 16, 512) and kernel == "torch.matmul":
        yield case(kernel, problem, "sync-50", Cache.HOT)


def _kernels(problem: Problem) -> Iterator[str]:
    if problem.dtype != "int8":
        yield from TORCH
    own = OWN.get(problem.dtype)
    if own is not None and problem.n <= MOST_TOKENS[own]:
        yield own
    if problem.n == 1:
        yield "read"


def typical_ns(of: Case) -> float:
    """max(FLOP / peak, bytes / bandwidth) + 2 µs; torch a quarter slower with few tokens, ours slower with each."""
    if of.role is Role.FLOOR:
        return 690.0
    problem = of.problem
    work_ns = flops(problem) / PEAK_FLOP_PER_S[problem.dtype] * 1e9
    traffic_ns = least_bytes(problem) / BYTES_PER_S * 1e9
    device = max(work_ns * (1 if problem in PEAKS.values() else 1.3), traffic_ns) + LAUNCH_NS
    if of.kernel in (*TORCH, "torch.mv") and problem.n <= 8:
        device *= 1.25
    if of.kernel in MOST_TOKENS:
        device *= 1.02 + 0.05 * (problem.n - 1)
    return device + (9000.0 if of.timer.startswith("sync") else 0.0)


def measured(of: Case, trials: int, slower: dict[str, float]) -> Measurement:
    """A case with every trial passed."""
    factor = next((f for start, f in slower.items() if of.id.startswith(start)), 1.0)
    count = min(trials, 2) if of.timer == "energy" else trials
    return Measurement(case=of, trials=tuple(_trial(of, i, factor) for i in range(count)))


def _trial(of: Case, trial: int, factor: float) -> TrialResult:
    luck = random.Random(f"{of.id}/{trial}")  # noqa: S311 - wanted: the same numbers every time
    typical = typical_ns(of) * factor * luck.gauss(1, 0.0008)
    samples = 1 if of.timer == "energy" else 8
    state = DeviceState(
        time_unix_s=START.timestamp() + trial, sm_clock_mhz=1900, memory_clock_mhz=3201, temperature_c=52,
        power_mw=620_000, power_is_instant=True, clock_event_reasons=(),
    )  # fmt: skip
    return TrialResult(
        trial=trial,
        verdict=PASSED,
        samples_ns=tuple(round(typical * luck.gauss(1, 0.0005), 3) for _ in range(samples)),
        sample_clocks_mhz=(1905.0,) * samples,
        launches_per_sample=200,
        operand_sets=40,
        kernels_per_launch=1 if of.timer == "graph" else None,
        stopped="precise",
        device_kernels=(_device_kernel(of),) if of.timer == "graph" and of.kernel in TORCH else (),
        energy=_energy(of, typical, luck) if of.timer == "energy" else None,
        states=(state,),
    )


def _device_kernel(of: Case) -> DeviceKernel:
    n = of.problem.n
    name = GEMVX if n == 1 else NVJET if n <= 64 else LARGE
    grid, block = (max(1, of.problem.m // 64), 1, 1), (128, 1, 1)
    return DeviceKernel(name=name, grid=grid, block=block, registers=None, shared_bytes=None, duration_ns=None)


def _energy(of: Case, ns: float, luck: random.Random) -> Energy:
    """Board power between 350 and 690 W, the more the nearer a product is to its roof."""
    busy = flops(of.problem) / PEAK_FLOP_PER_S[of.problem.dtype] * 1e9 / ns
    watts = (350 + 340 * min(1.0, busy)) * luck.gauss(1, 0.003)
    launches = round(1.6e9 / ns)
    seconds = launches * ns / 1e9
    return Energy(
        seconds=seconds, launches=launches, millijoules=watts * seconds * 1000, source="counter", idle_mw=78_000.0
    )
