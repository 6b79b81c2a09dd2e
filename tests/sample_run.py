"""Synthetic runs, the same on every call, for whatever reads runs. No figure in them was measured."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import UTC, datetime

from harness.environment import ENVIRONMENT_KEYS
from harness.model import (
    SCHEMA_VERSION,
    BuildRecord,
    Cache,
    Case,
    DeviceState,
    Environment,
    KernelResources,
    Measurement,
    Options,
    Problem,
    Role,
    Run,
    TrialResult,
    Verdict,
    Word,
)

START = datetime(2026, 5, 14, 9, 12, 0, tzinfo=UTC)
SHAPES = ((1024, 16), (1024, 128), (1024, 1024), (4096, 4096))
HOSTILE = "evil</script><script>alert(1)</script>\"'`|\n\u202e{{ 7*7 }}"
"""A kernel's name that breaks what is not escaped."""

KERNELS = {
    "torch.matmul": "torch's own, out= variant",
    "sgemv_k32_f32": "one warp a row, each lane every 32nd column",
    "sgemv_k128_f32x4": "one warp a row, each lane a float4 at a time",
    "sgemv_k16_f32": "two rows a warp, 16 lanes a row",
    "sgemv_broken": "drops the last element",
    "read": "reads A and x, writes m values",
    "empty": "does nothing",
}
ROLES = {"read": Role.LIMIT, "empty": Role.FLOOR}
FLOOR_NS = {"graph": 690.0, "async": 3900.0, "sync": 9400.0, "profiler": 640.0, "do_bench": 4100.0, "nvbench": 3700.0}
FLOOR_NS |= {"event": 2900.0, "event-read": 2900.0, "event-memset": 3300.0}
FACTOR = {"torch.matmul": 1.32, "sgemv_k32_f32": 1.13, "sgemv_k128_f32x4": 1.03, "sgemv_k16_f32": 1.02, "read": 1.0}
HOST_NS = {"torch.matmul": 8900.0, "read": 4600.0}


def gpu_run(
    *,
    shapes: tuple[tuple[int, int], ...] = SHAPES,
    kernels: dict[str, str] | None = None,
    trials: int = 5,
    samples: int = 30,
    hostile: bool = False,
) -> Run:
    """A run as of a large GPU: graph and async, cold and hot, with a wrong, a crashed and an unsupported kernel."""
    names = dict(KERNELS if kernels is None else kernels)
    if hostile:
        names = {**names, HOSTILE: f"a summary with {HOSTILE}"}
    cases = _cases(names, shapes, {"graph": (Cache.COLD, Cache.HOT), "async": (Cache.COLD, Cache.HOT)})
    measurements = tuple(_measurement(case, i, trials, samples) for i, case in enumerate(cases))
    return Run(
        schema_version=SCHEMA_VERSION,
        id="20260514T091200Z-nvidia-h200-580.159.04-5a3b1c",
        started_utc=START.isoformat(),
        finished_utc=START.replace(minute=15, second=10).isoformat(),
        partial=False,
        options=_options(trials, "cuda:0"),
        environment=gpu_environment(),
        builds=(cuda_build(),),
        kernels=names,
        warnings=(f"warning with {HOSTILE}",) if hostile else (),
        measurements=measurements,
    )


def cpu_run() -> Run:
    """A run on a CPU: async only, no device readings, CUDA kernels unsupported."""
    names = {name: KERNELS[name] for name in ("torch.matmul", "sgemv_k32_f32", "read", "empty")}
    names["sgemv_cpu_f32"] = "plain C++ loop"
    cases = _cases(names, ((1024, 16), (1024, 128)), {"async": (Cache.COLD, Cache.HOT)})
    needs_gpu = Verdict(word=Word.UNSUPPORTED, reason="needs a CUDA device")
    measurements = []
    for i, case in enumerate(cases):
        m = _measurement(case, i, 3, 20)
        trials = tuple(replace(t, states=(), kernels_per_launch=None) for t in m.trials)
        if case.kernel == "sgemv_k32_f32":
            trials = tuple(TrialResult(trial=t.trial, verdict=needs_gpu) for t in trials)
        measurements.append(replace(m, trials=trials))
    gpu = gpu_environment()
    values = {k: (None if ENVIRONMENT_KEYS[k].group in ("gpu", "driver") else v) for k, v in gpu.values.items()}
    values |= {"device_name": "AMD EPYC 9554", "git_dirty": True, "torch_version": "2.11.0+cpu"}
    values |= {"cuda_runtime_version": None}
    unknown = {k: gpu.unknown.get(k, "measured on the CPU") for k, v in values.items() if v is None}
    return replace(
        gpu_run(shapes=((64, 64),), trials=1, samples=2),
        id="20260514T091200Z-amd-epyc-9554-torch2.11.0-cpu-77aa01",
        options=_options(3, "cpu"),
        environment=Environment(values=values, unknown=unknown),
        builds=(replace(cuda_build(), library="sgemv_cpu.so", target="cpu", architectures=(), resources=()),),
        kernels=names,
        measurements=tuple(measurements),
    )


def one_trial_run() -> Run:
    """A quick look with a single trial: no interval anywhere; cut short."""
    run = gpu_run(shapes=((1024, 128),), trials=1, samples=10)
    return replace(run, partial=True, options=replace(run.options, quick=True))


def large_run(problems: int = 8) -> Run:
    """Passed cases alone, 5 trials of 200 samples each: 5 kernels, 4 ways of timing; 160 cases of 8 problems."""
    names = {name: KERNELS[name] for name in ("torch.matmul", "sgemv_k32_f32", "sgemv_k128_f32x4", "read")}
    names["sgemv_extra"] = "one more"
    shapes = tuple((256 * 2 ** (i % 8), 1024 + 128 * (i // 8)) for i in range(problems))
    return gpu_run(shapes=shapes, kernels=names, samples=200)


def empty_run() -> Run:
    """A run in which nothing was measured."""
    return replace(gpu_run(shapes=((64, 64),), trials=1, samples=2), measurements=(), builds=())


def gpu_environment() -> Environment:
    """Most keys known, some not; two variables of interest."""
    values: dict[str, str | int | float | bool | None] = dict.fromkeys(ENVIRONMENT_KEYS)
    values |= {
        "device_name": "NVIDIA H200", "gpu_name": "NVIDIA H200", "gpu_uuid": "GPU-00000000-0000-0000-0000-000000000000",
        "gpu_pci_bus_id": "0000:18:00.0", "compute_capability": "9.0", "sm_count": 132, "l2_bytes": 60 * 2**20,
        "memory_bytes": 150_000_000_000, "driver_version": "580.159.04", "cuda_driver_version": "13.0",
        "cuda_runtime_version": "13.0", "torch_version": "2.11.0+cu130", "python_version": "3.12.3",
        "pytest_benchmark_version": "5.3.0", "os": "Debian GNU/Linux 12 (bookworm)", "kernel": "6.8.0",
        "cpu_name": "AMD EPYC 9554", "cpu_count": 16, "cpu_llc_bytes": 256 * 2**20, "ram_bytes": 128 * 2**30,
        "power_limit_mw": 700_000, "power_limit_default_mw": 700_000, "max_sm_clock_mhz": 1980,
        "max_memory_clock_mhz": 3201, "ecc": True, "mig": False, "persistence": True, "compute_mode": "default",
        "allow_tf32": False, "allow_fp16_reduced_precision_reduction": False,
        "allow_bf16_reduced_precision_reduction": False, "torch_num_threads": 8,
        "environment_variables": '{"CUDA_VISIBLE_DEVICES": "0", "PYTORCH_ALLOC_CONF": "x"}',
        "git_commit": "6188ce3f0c1d2e3f4a5b6c7d8e9f0a1b2c3d4e5f", "git_dirty": False,
    }  # fmt: skip
    reasons = {"hostname": "turned off", "vbios_version": "NVMLError_NotSupported"}
    return Environment(
        values=values, unknown={k: reasons.get(k, "not reported by the driver") for k, v in values.items() if v is None}
    )


def cuda_build() -> BuildRecord:
    """Three kernels for sm_90; one spills."""
    needs = (("sgemv_k32_f32_kernel", 28, 0), ("sgemv_k128_f32x4_kernel", 40, 0), ("sgemv_broken_kernel", 255, 96))
    return BuildRecord(
        library="sgemv_cuda.so",
        target="cuda",
        key="9f1c2a77b0e4",
        commands=(("nvcc", "-O3", "-shared", "-o", "sgemv_cuda.so", "kernels/csrc/sgemv_k32_f32.cu"),),
        compiler_version="nvcc 13.0.88",
        host_compiler_version="g++ 12.2.0",
        torch_version="2.11.0+cu130",
        flags=("-O3", "-std=c++17", "-gencode=arch=compute_90,code=sm_90"),
        architectures=("sm_90",),
        sources_sha256={"sgemv_k32_f32.cu": "0" * 64},
        device_code_sha256={"sgemv_k32_f32.cu:sm_90": "1" * 64},
        resources=tuple(
            KernelResources(
                function=f"{name}(float const*, float const*, float*, long, long)",
                arch="sm_90",
                registers=registers,
                spill_store_bytes=spill,
                spill_load_bytes=spill,
                stack_bytes=spill,
                static_shared_bytes=0,
            )
            for name, registers, spill in needs
        ),
        seconds=5.2,
    )


def _options(trials: int, device: str) -> Options:
    command = ("nox", "-s", "bench", "--", "--trials", str(trials), "--device", device)
    return Options(trials=trials, max_time_s=0.5, quick=False, device=device, command=command)


def _cases(
    kernels: dict[str, str], shapes: tuple[tuple[int, int], ...], timers: dict[str, tuple[Cache, ...]]
) -> list[Case]:
    places = [(timer, cache) for timer, caches in timers.items() for cache in caches]
    floors = [_case("empty", Problem(m=1, k=1), timer, cache) for timer, cache in places if "empty" in kernels]
    return floors + [
        _case(kernel, Problem(m=m, k=k), timer, cache)
        for m, k in shapes
        for timer, cache in places
        for kernel in kernels
        if ROLES.get(kernel) is not Role.FLOOR
    ]


def _case(kernel: str, problem: Problem, timer: str, cache: Cache) -> Case:
    return Case(kernel=kernel, role=ROLES.get(kernel, Role.GEMV), problem=problem, timer=timer, cache=cache)


def _measurement(case: Case, place: int, trials: int, samples: int) -> Measurement:
    verdict = _verdict(case)
    if verdict.word is not Word.PASSED:
        return Measurement(case=case, trials=tuple(TrialResult(trial=i, verdict=verdict) for i in range(trials)))
    return Measurement(case=case, trials=tuple(_trial(case, place, i, samples) for i in range(trials)))


def _verdict(case: Case) -> Verdict:
    k, m = case.problem.k, case.problem.m
    if case.kernel == "sgemv_k16_f32" and k != 16:
        return Verdict(word=Word.UNSUPPORTED, reason=f"K={k} is not 16")
    if case.kernel == "sgemv_k128_f32x4" and k % 128:
        return Verdict(word=Word.UNSUPPORTED, reason=f"K={k} is not a multiple of 128")
    if case.kernel == "sgemv_broken":
        if m >= 4096:
            return Verdict(word=Word.CRASHED, reason="the worker died: signal 11 (SIGSEGV)")
        return Verdict(word=Word.WRONG, reason="integers: row 3 is 16776192, wanted 16777216", max_error=412.0)
    return Verdict(word=Word.PASSED, max_error=0.2)


def _trial(case: Case, place: int, trial: int, samples: int) -> TrialResult:
    luck = random.Random(f"{case.id}/{trial}")  # noqa: S311 - wanted: the same numbers every time
    typical = typical_ns(case) * luck.gauss(1, 0.02 if case.timer in ("async", "sync") else 0.0015)
    if case.kernel == "sgemv_k32_f32" and case.problem.k == 128 and case.timer == "graph" and trial % 2:
        typical *= 1.065  # a second state, as small kernels have
    ns = tuple(round(typical * luck.gauss(1, 0.002), 3) for _ in range(samples))
    states = tuple(_state(case, START.timestamp() + 1.2 * place + 0.2 * trial + 0.1 * i, luck) for i in range(2))
    return TrialResult(
        trial=trial,
        verdict=Verdict(word=Word.PASSED, max_error=0.2),
        samples_ns=ns,
        launches_per_sample=200 if case.timer == "async" else 1200,
        operand_sets=400,
        kernels_per_launch=1 if case.timer == "graph" else None,
        variant="float4" if case.kernel == "read" else None,
        stopped="precise",
        states=states,
    )


def typical_ns(case: Case) -> float:
    """The time around which a case's samples lie: floor + bytes over a bandwidth, or the host's cost of a launch."""
    if case.role is Role.FLOOR:
        return FLOOR_NS.get(case.timer, FLOOR_NS["graph"])
    latency, bandwidth = (850.0, 4400.0) if case.cache is Cache.COLD else (740.0, 7000.0)
    traffic = 4 * (case.problem.m * case.problem.k + case.problem.k + case.problem.m) / bandwidth
    device = 690.0 + (latency + traffic) * FACTOR.get(case.kernel, 1.2)
    if case.timer in ("async", "sync"):
        host = HOST_NS.get(case.kernel, 4300.0) + FLOOR_NS[case.timer] - FLOOR_NS["async"]
        return max(device, host)
    return device + FLOOR_NS.get(case.timer, FLOOR_NS["graph"]) - FLOOR_NS["graph"]


def _state(case: Case, time_unix_s: float, luck: random.Random) -> DeviceState:
    capped = case.problem.m >= 4096 and case.timer == "graph"
    return DeviceState(
        time_unix_s=time_unix_s,
        sm_clock_mhz=luck.choice((1905, 1920, 1935)) if capped else 1980,
        memory_clock_mhz=3201,
        temperature_c=42 + case.problem.m // 256 + luck.randrange(3),
        power_mw=luck.randrange(680_000, 699_000) if capped else luck.randrange(240_000, 330_000),
        power_is_instant=True,
        clock_event_reasons=("sw_power_cap",) if capped else (),
    )
