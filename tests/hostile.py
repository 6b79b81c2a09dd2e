"""Runs all of whose texts are hostile, for whatever shows a run. No figure in them was measured."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from itertools import cycle
from typing import Any

from harness.model import Case, Check, DeviceKernel, Measurement, Run, TrialResult, Word
from tests.sample_run import KERNELS, gpu_run

TEXTS = {
    "markup": "</script><script>alert(1)</script><img src=x onerror=alert(2)>",
    "quotes": "\"'`|{{7*7}}{%raw%}[b](javascript:alert(3))[red]@x#1\\",
    "lines": "a\nb\r\nc\x85d\u2028e\u2029f\x0bg\n::error::h\n\n# i\n| j |",
    "controls": "\x00\x07\x08\x1b[2J\x1b]0;t\x07\x1b[31m\x7f\x9b1m",
    "invisible": "\u200b\u200d\u202e\u2066\u061c\ufeff\U000e0041\ufff9\u00ad",
    "not UTF-8": "\udcff\ud800\udfff\udc80",
    "marks": "Z" + "\u0301\u0335\u0489" * 99,
    "long": "W" * 20_000,
}
"""What follows each text of a run, by what is hostile in it."""

LONGEST = "W" * 2_000_000
"""What follows a few of them in one run."""

KNOWN = frozenset({"timer", "dtype", "order", "device", "started_utc", "finished_utc", "id", "stopped", "source"})
"""Fields whose texts the program itself knows, beside enums'."""

_ENUMS = frozenset({"role", "cache", "word"})
_NAMES = frozenset({"kernels", "candidates", "sources_sha256", "device_code_sha256", "sources_by_kernel", "limited_ns"})
"""Fields that are tables by name."""

_KEPT = frozenset({"torch.matmul", "sw_power_cap"})
_FEW = ("torch.matmul", "sgemv_k32_f32", "sgemv_broken", "read", "empty")


def spoiled(run: Run, spoil: Callable[[str], str], kept: frozenset[str] = KNOWN) -> Run:
    """The run with `spoil` called on every text, but for enums and what is `kept`: names of fields."""
    return Run.from_dict(_spoiled(run.to_dict(), spoil, kept | _ENUMS, ""))


def followed_by(text: str) -> Callable[[str], str]:
    """The text behind whatever is there, so that names stay apart."""
    return lambda said: said + text


def each_by_another(*longest: str) -> Callable[[str], str]:
    """The same text by the same each time, others by others of `TEXTS`; those named by `LONGEST`."""
    found = {said: said + LONGEST for said in longest}
    texts = cycle(TEXTS.values())
    return lambda said: found[said] if said in found else found.setdefault(said, said + next(texts))


def _spoiled(value: Any, spoil: Callable[[str], str], kept: frozenset[str], field: str) -> Any:
    if isinstance(value, str):
        if field == "environment_variables":
            return json.dumps({spoil(name): spoil(said) for name, said in json.loads(value).items()})
        return value if field in kept or value in _KEPT else spoil(value)
    if isinstance(value, list | tuple):
        return [_spoiled(each, spoil, kept, field) for each in value]
    if isinstance(value, dict):
        keys = {key: key if field not in _NAMES or key in _KEPT else spoil(key) for key in value}
        return {keys[key]: _spoiled(each, spoil, kept, key) for key, each in value.items()}
    return value


def full_run(**values: str) -> Run:
    """A small run in which every field of text has one; `values` are of its environment."""
    run = gpu_run(shapes=((1024, 128),), kernels={name: KERNELS[name] for name in _FEW}, trials=2, samples=2)
    known = {key: f"{key} 1" if value is None else value for key, value in run.environment.values.items()}
    environment = replace(run.environment, values=known | {"vbios_version": None, "of a later version": "v"} | values)
    check = Check(name="events", kernel=_FEW[0], problem=run.measurements[-1].case.problem, reason="not judged")
    return replace(
        run,
        environment=environment,
        selfcheck=(check,),
        options=replace(run.options, selfcheck=True),
        picked_among=(_FEW[1],),
        candidates={"sgemv": (_FEW[1],)},
        warnings=("a warning",),
        measurements=tuple(map(_full, run.measurements)),
    )


def _full(measurement: Measurement) -> Measurement:
    return replace(measurement, trials=tuple(_full_trial(measurement.case, each) for each in measurement.trials))


def _full_trial(case: Case, trial: TrialResult) -> TrialResult:
    if trial.verdict.word is not Word.PASSED:
        return trial
    ran = (f"{case.kernel}_kernel(float const*)", f"void ns::{case.kernel}<float, 128>(float)")
    return replace(
        trial,
        variant="a variant",
        variant_reason="a reason",
        device_kernels=tuple(map(_device_kernel, ran)),
        unknown={"settled": "not asked", "energy": "no counter"},
        states=tuple(
            replace(each, unknown={"limited_ns": "not told"}, clock_event_reasons=("sw_power_cap", "another"))
            for each in trial.states
        ),
    )


def _device_kernel(name: str) -> DeviceKernel:
    return DeviceKernel(name=name, grid=(8, 1, 1), block=(32, 1, 1), registers=8, shared_bytes=0, duration_ns=700.0)
