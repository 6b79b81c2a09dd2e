"""The worker: one fresh process a trial. Reads requests and writes replies as JSON lines; alone touches the device.

    python -m harness.trial --registry kernels.registry --device cuda:0

Requests: `{"facts": {}}`, `{"release": {}}`,
`{"measure": {"case": …, "trial": 0, "max_time_s": 0.15, "variant": null}}`.
Replies: `{"phase": "…"}` whenever it goes on, then one `{"facts": …}`, `{"released": true}` or
`{"result": …, "lost": null}`; `lost` says why the worker must be replaced.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

from harness.device import held_bytes, last_level_cache_bytes, memory_bytes, release_memory, torch_facts
from harness.errors import said, show_traceback
from harness.gate import recheck
from harness.model import Cache, Case, Kernel, Launch, Problem, Role, TrialResult, Verdict, Word
from harness.precision import set_precision
from harness.problems import OperandSets, allocation_bytes, sets_for, why_never_cold, why_never_hot
from harness.process import die_with_parent, private_stdin, private_stdout, use_one_stream
from harness.registry import find
from harness.soundness import changed, device_fault, settings
from harness.timing import HEADLINE, NotMeasurable, Timing, refuse_no_time, timers
from harness.workbench import Workbench

OUT_OF_MEMORY = "out of memory: "
"""How the reason begins where operands did not fit; the others may then make room."""

MEMORY_ERRORS = ("DefaultCPUAllocator: can't allocate memory", "CUDA error: out of memory", "_STATUS_ALLOC_FAILED")
"""What torch, the driver and cuBLAS say where there is no exception of its own for it."""

SOAK = 3
"""Time budgets for which the first case on a problem is run before it is timed. The gate leaves the device cool, and
on an H200 at 42 °C a large kernel takes 1 % less than at the 48 °C of those that come after it."""


class Worker:
    """Answers requests."""

    def __init__(
        self,
        kernels: Mapping[str, Kernel],
        device: str,
        say: Callable[[dict[str, Any]], None],
        memory_share: float,
    ) -> None:
        self._kernels = kernels
        self._device = device
        self._memory_share_bytes = memory_share * memory_bytes(device)
        self._say = say
        self._timers = timers()
        self._bench: Workbench | None = None
        self._spoiled: str | None = None
        use_one_stream(device)
        self._cache_bytes = last_level_cache_bytes(device)
        self._settings, self._held_bytes = settings(device), held_bytes(device)

    def measure(self, case: Case, trial: int, max_time_s: float, variant: str | None = None) -> TrialResult:
        """Gate, time and recheck one case. A kernel's own exception becomes the verdict `crashed`.

        Args:
            case: what to measure.
            trial: its number, for the record.
            max_time_s: the timer's budget.
            variant: of the kernel, to be measured; None: the fastest.
        """
        import torch

        never = {Cache.HOT: why_never_hot, Cache.COLD: why_never_cold}[case.cache]
        any_size = case.role is Role.FLOOR or self._timers[case.timer].one_set
        reason = None if any_size else never(case.problem, self._cache_bytes)
        if reason is not None:
            return _without_samples(trial, Word.UNSUPPORTED, reason)
        kernel = self._kernels[case.kernel]
        set_precision(case.problem.dtype)  # the last case's kernel may have set it otherwise
        try:
            if (reason := kernel.unsupported(case.problem)) is not None:
                return _without_samples(trial, Word.UNSUPPORTED, reason)
            return self._measure(case, trial, max_time_s, variant)
        except NotMeasurable as refusal:
            return _without_samples(trial, Word.NOT_MEASURED, str(refusal))
        except Exception as error:  # noqa: BLE001 - a kernel is foreign code and may raise anything
            self._bench = None  # it may have written before it raised
            show_traceback(error)
            if isinstance(error, torch.OutOfMemoryError) or any(words in str(error) for words in MEMORY_ERRORS):
                need = allocation_bytes(case.problem, self._set_count(case)) / 2**30
                reason = f"{OUT_OF_MEMORY}its operands alone take {need:.1f} GiB"
                return _without_samples(trial, Word.NOT_MEASURED, reason)
            return _without_samples(trial, Word.CRASHED, said(error, kernel.file, kernel.line, by_name=True))

    def still_sound(self) -> str | None:
        """Why this process cannot be used any more, or None."""
        unfit = self._spoiled or device_fault(self._device) or changed(self._settings, settings(self._device))
        return unfit or self._make_room()

    @property
    def _on_gpu(self) -> bool:
        return self._device.startswith("cuda")

    def _make_room(self) -> str | None:
        """Give back what this worker holds beyond its share, which the other trials need; why it cannot, or None."""
        if held_bytes(self._device) <= self._memory_share_bytes:
            return None
        self.release()
        left_bytes = held_bytes(self._device) - self._held_bytes
        return f"{left_bytes / 2**30:.1f} GiB cannot be had again" if left_bytes > self._memory_share_bytes else None

    def release(self) -> None:
        """Give back all memory that can be had again."""
        self._bench = None
        release_memory(self._device)

    def _measure(self, case: Case, trial: int, max_time_s: float, variant: str | None) -> TrialResult:
        kernel, timer = self._kernels[case.kernel], self._timers[case.timer]
        bench = self._bench_for(case.problem)
        self._say({"phase": "gate"})
        verdict = self._gate(bench, kernel)
        if verdict.word is not Word.PASSED:
            return TrialResult(trial=trial, verdict=verdict)
        sets = bench.sets(self._set_count(case), case.cache)
        self._say({"phase": "variants"})
        chosen = self._variant(case, sets, max_time_s, variant)
        if self._on_gpu and not bench.soaked:
            self._say({"phase": "soaking"})
            self._timers[HEADLINE].measure(_bind(chosen, sets), case.cache, self._device, SOAK * max_time_s)
            bench.soaked = True
        self._say({"phase": "timing" if timer.watched else "timing unwatched"})
        started = time.perf_counter()
        timing = checked(timer.measure(_bind(chosen, sets), case.cache, self._device, max_time_s))
        seconds = time.perf_counter() - started
        if timer.one_case_a_process:
            self._spoiled = f"{timer.name} takes one case a process"
        self._say({"phase": "recheck"})
        wanted = bench.refresh(sets)
        after = recheck(kernel, sets, timing.rerun, wanted)
        if after.word is not Word.PASSED:
            bench.renew()
            bench.verdicts[kernel.name] = after  # one wrong output is a wrong kernel, whatever is timed next
            return TrialResult(trial=trial, verdict=after)
        return TrialResult(
            trial=trial,
            verdict=verdict,
            operand_sets=sets.count,
            seconds=seconds,
            **_which(kernel, chosen, sets),
            **_figures(timing),
        )

    def _bench_for(self, problem: Problem) -> Workbench:
        if self._bench is None or self._bench.problem != problem:
            self._bench = None  # free the old one first
            self._say({"phase": "operands"})
            self._bench = Workbench(problem, self._device)
        return self._bench

    def _gate(self, bench: Workbench, kernel: Kernel) -> Verdict:
        if kernel.name not in bench.verdicts:
            verdicts = [bench.gate.check(each, self._stray_launch) for each in self._variants(kernel, bench.problem)]
            bench.verdicts[kernel.name] = next((v for v in verdicts if v.word is not Word.PASSED), verdicts[0])
            if bench.verdicts[kernel.name].word is not Word.PASSED:
                bench.renew()
        return bench.verdicts[kernel.name]

    def _stray_launch(self, launch: Launch) -> str | None:
        """How a launch escapes the stream. What used another stream has spoiled this process for what comes after."""
        if not self._on_gpu:
            return None
        from harness.capture import branches, stray_launch

        reason = stray_launch(launch)
        if reason is not None or branches(launch):
            self._spoiled = "a kernel used a stream of its own, which slows all that this process runs afterwards"
        return reason

    def _variant(self, case: Case, sets: OperandSets, max_time_s: float, wanted: str | None) -> Kernel:
        """The wanted variant; without one that with the least median in a short measurement.

        The figure itself is measured afresh. All timers and trials measure the one that the first of them found, the
        headline's: a launch rate tells variants apart by nothing but chance.
        """
        variants = self._variants(self._kernels[case.kernel], case.problem)
        if len(variants) == 1:
            return variants[0]
        if wanted is not None:
            return next(variant for variant in variants if variant.name == wanted)
        timer, share_s = self._timers[case.timer], max_time_s / len(variants)

        def median_ns(variant: Kernel) -> float:
            timing = timer.measure(_bind(variant, sets), case.cache, self._device, share_s)
            return statistics.median(timing.samples_ns)

        return min(variants, key=median_ns)

    def _variants(self, kernel: Kernel, problem: Problem) -> list[Kernel]:
        """The ways to compute `problem` with `kernel` on this device; itself where it has no variants."""
        return kernel.ways(self._device.split(":")[0], problem)

    def _set_count(self, case: Case) -> int:
        if case.role is Role.FLOOR or self._timers[case.timer].one_set:
            return 1
        # on a GPU the placement of operands moves a time by percents
        placements_bytes = memory_bytes(self._device) if self._on_gpu else 0
        return sets_for(case.problem, case.cache, cache_bytes=self._cache_bytes, memory_bytes=placements_bytes)


def _bind(kernel: Kernel, sets: OperandSets) -> list[Launch]:
    return [kernel.bind(operands) for operands in sets.operands()]


def _which(kernel: Kernel, measured: Kernel, sets: OperandSets) -> dict[str, Any]:
    """The fields of `TrialResult` that say which of a kernel's ways was measured, where it has several."""
    if kernel.choose is not None:
        choice = kernel.choose(sets.operands()[0])  # every set lies as the first does
        return {"variant": choice.kernel, "variant_reason": choice.reason}
    return {"variant": measured.name} if kernel.variants else {}


def checked(timing: Timing) -> Timing:
    """The timing, every sample of which is a time.

    Raises:
        NotMeasurable: there is none, or one is no time.
    """
    if not timing.samples:
        raise NotMeasurable("no sample was taken")
    for sample in timing.samples:
        refuse_no_time(sample)
    return timing


def _figures(timing: Timing) -> dict[str, Any]:
    """The fields of `TrialResult` that a timer fills."""
    times = tuple(round(sample.time_unix_s, 4) for sample in timing.samples if sample.time_unix_s is not None)
    clocks = tuple(sample.sm_clock_mhz and round(sample.sm_clock_mhz, 2) for sample in timing.samples)
    return {  # digits that no clock here has would make up half of a run's bytes
        "samples_ns": tuple(round(ns, 3) for ns in timing.samples_ns),
        "sample_times_unix_s": times if len(times) == len(timing.samples) else (),
        "sample_clocks_mhz": clocks if any(mhz is not None for mhz in clocks) else (),
        "launches_per_sample": timing.launches_per_sample,
        "kernels_per_launch": timing.kernels_per_launch,
        "stopped": timing.stopped,
        "settled": timing.settled,
        "placements_ns": timing.placements_ns,
        "device_kernels": timing.device_kernels,
        "energy": timing.energy,
        "unknown": timing.unknown,
    }


def _without_samples(trial: int, word: Word, reason: str) -> TrialResult:
    return TrialResult(trial=trial, verdict=Verdict(word=word, reason=reason))


def main() -> int:
    """Serve until stdin ends or this process is of no more use."""
    parser = argparse.ArgumentParser(prog="harness.trial")
    parser.add_argument("--registry", required=True, help="as harness.registry.find takes it")
    parser.add_argument("--device", required=True, help="as torch names it")
    parser.add_argument("--memory-share", type=float, default=1.0, help="of the device's memory, held between cases")
    options = parser.parse_args()
    die_with_parent()
    requests, say = private_stdin(), private_stdout()
    say({"phase": "starting"})
    import torch

    if options.device.startswith("cuda"):
        torch.cuda.set_device(options.device)
    set_precision(Problem.dtype)  # what the facts are to say; a workbench sets it anew for its problem's dtype
    registry = find(options.registry)
    registry.load(options.device.split(":")[0])
    worker = Worker(registry.kernels(), options.device, say, options.memory_share)
    for line in requests:
        request = json.loads(line)
        if "facts" in request:
            say({"facts": torch_facts(options.device)})
            continue
        if "release" in request:
            worker.release()
            say({"released": True})
            continue
        wanted = request["measure"]
        case = Case.from_dict(wanted["case"])
        result = worker.measure(case, wanted["trial"], wanted["max_time_s"], wanted["variant"])
        lost = worker.still_sound()
        say({"result": result.to_dict(), "lost": lost})
        if lost is not None:
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
