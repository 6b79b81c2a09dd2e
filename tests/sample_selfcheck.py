"""A synthetic run with every timer, profiled launches and a selfcheck. No figure in it was measured."""

from __future__ import annotations

from dataclasses import replace

from harness.model import Cache, Case, DeviceKernel, Measurement, Role, Run, TrialResult, Verdict, Word
from harness.selfcheck import selfcheck
from harness.timing import Crew, Purpose, timers
from tests.sample_run import HOSTILE, SHAPES, _cases, _measurement, gpu_run

GEMVX = (
    "std::enable_if<!T7, void>::type internal::gemvx::kernel<int, int, float, float, float, float, false, true, {}, "
    "false, 7, false, cublasGemvParamsEx<int, cublasGemvTensorStridedBatched<float const>, "
    "cublasGemvTensorStridedBatched<float const>, cublasGemvTensorStridedBatched<float>, float> >"
    "(cublasGemvParamsEx<int, cublasGemvTensorStridedBatched<float const>, float>)"
)
DOT = "void dot_kernel<float, 128, 0, cublasDotParams<cublasGemvTensor<float const>, cublasGemvTensor<float>>>(T4)"
REDUCE = "void reduce_1Block_kernel<float, 128, 7, cublasGemvTensor<float>>(float const*, float, T4, int)"
SECONDS = {"graph": 0.31, "event": 0.22, "async": 0.4, "sync": 0.05, "profiler": 0.9, "do_bench": 0.14, "nvbench": 6.2}
DISTURBED_NS = 400.0
"""What torch.matmul on 1024×128 takes longer while nobody reads NVML: a check that fails."""
NVBENCH_REASON = "cuda-bench is not installed or does not load: No module named 'cuda'"


def selfcheck_run(
    *, shapes: tuple[tuple[int, int], ...] = SHAPES, hostile: bool = False, peers: bool = True, samples: int = 30
) -> Run:
    """All timers, cold and hot where they know it; checks that pass, that fail, and that could not be judged."""
    base = gpu_run(shapes=shapes, trials=5, samples=2, hostile=hostile)
    wanted = {Purpose.BENCH, Purpose.CHECK, *([Purpose.PEER] if peers else [])}
    caches = {name: timer.caches for name, timer in timers().items() if timer.purpose in wanted}
    cases = _cases(dict(base.kernels), shapes, caches)
    measurements = tuple(_changed(_measured(case, i, samples), hostile=hostile) for i, case in enumerate(cases))
    return replace(
        base,
        measurements=measurements,
        selfcheck=selfcheck(measurements),
        options=replace(base.options, selfcheck=True),
    )


def long_run() -> Run:
    """As large as a bench gets: the suite's eight problems by every timer."""
    shapes = ((1024, 16), (1024, 128), (1024, 1024), (8, 4096), (4096, 4096), (11008, 4096), (4096, 11008))
    return selfcheck_run(shapes=(*shapes, (32000, 4096)), samples=100)


def _measured(case: Case, place: int, samples: int) -> Measurement:
    """A timer outside the trials' workers has one trial."""
    trials = 5 if timers()[case.timer].crew is Crew.EVERY else 1
    return _measurement(case, place, trials, samples)


def _changed(m: Measurement, *, hostile: bool) -> Measurement:
    case = m.case
    if m.verdict.word is not Word.PASSED:
        return m
    if case.timer == "nvbench" and case.kernel == "read":
        return _without(m, Word.NOT_MEASURED, NVBENCH_REASON)
    if case.cache is Cache.HOT and case.problem.m * case.problem.k >= 4096**2:
        return _without(m, Word.UNSUPPORTED, "hot: its operands do not fit the cache")
    trials = [replace(t, seconds=SECONDS.get(case.timer)) for t in m.trials]
    if (case.kernel, case.problem.label, case.timer) == ("torch.matmul", "1024x128", "graph-unwatched"):
        trials = [replace(t, samples_ns=tuple(ns + DISTURBED_NS for ns in t.samples_ns)) for t in trials]
    if case.timer == "profiler":
        trials = [replace(t, device_kernels=_lasting(_device_kernels(case, hostile=hostile), t)) for t in trials]
    return replace(m, trials=tuple(trials))


def _without(m: Measurement, word: Word, reason: str) -> Measurement:
    verdict = Verdict(word=word, reason=reason)
    return replace(m, trials=tuple(TrialResult(trial=t.trial, verdict=verdict) for t in m.trials))


def _lasting(ran: tuple[DeviceKernel, ...], trial: TrialResult) -> tuple[DeviceKernel, ...]:
    """Kernels that share all but a hundredth of the launch's span."""
    return tuple(replace(each, duration_ns=0.99 * trial.samples_ns[0] / len(ran)) for each in ran)


def _device_kernels(case: Case, *, hostile: bool) -> tuple[DeviceKernel, ...]:
    """torch.matmul: one kernel by its arguments, two where there are few rows; others their own."""
    if case.role is Role.FLOOR:
        return (device_kernel("empty_kernel()", 1),)
    if case.kernel != "torch.matmul":
        name = HOSTILE if hostile else f"{case.kernel}_kernel(float const*, float const*, float*, long, long)"
        return (device_kernel(name, case.problem.m // 4),)
    if case.problem.m < 128:
        return device_kernel(DOT, case.problem.m), replace(device_kernel(REDUCE, 1), registers=None)
    return (device_kernel(GEMVX.format("true" if case.problem.k == 16 else "false"), case.problem.m // 8),)


def device_kernel(name: str, blocks: int) -> DeviceKernel:
    """128 threads a block, in two dimensions."""
    return DeviceKernel(
        name=name, grid=(blocks, 1, 1), block=(32, 4, 1), registers=40, shared_bytes=2048, duration_ns=1700.0
    )
