"""suites.options: what is measured where nothing is asked for or something is, and values that are refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.errors import CommandError, Exit
from harness.model import Cache
from kernels import registry
from tests.running_suites import selection

KERNELS = "torch.matmul, torch.mv, sgemv, sgemv_k128_f32x4, sgemv_k16_f32, sgemv_k32_f32, sgemv_cpu_f32, read, empty"


def test_what_is_selected_by_default() -> None:
    """Everything, five workers, 0.15 s; the suite's own problems."""
    found = selection()
    measured = {case.kernel for case in found.cases()["sgemv"]}
    assert [name for name in registry.kernels() if name in measured] == KERNELS.split(", ")
    assert (found.problems, found.timers, found.caches) == (None, ("async", "sync"), (Cache.COLD, Cache.HOT))
    assert (found.options.trials, found.options.max_time_s, found.options.quick) == (5, 0.15, False)
    assert not found.options.selfcheck


def test_a_kernel_is_measured_beside_what_it_is_judged_by() -> None:
    """--kernel keeps the baseline, the limit and the floor, in the order of the tables."""
    names = [kernel.name for kernel in selection(kernel=["sgemv_cpu_f32"]).kernels]
    assert names == ["torch.matmul", "sgemv_cpu_f32", "read", "empty"]


def test_kernels_that_another_picks_among_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """By name, or all of them by --variants, whatever else is named; a rule may pick one that is measured anyway."""
    real = {name: replace(k, picks=()) for name, k in registry.kernels().items() if not k.by_name_only}
    variant = replace(real["torch.mv"], by_name_only=True, candidate=True)
    among = {name: replace(variant, name=name) for name in ("variant_0", "variant_1")}
    monkeypatch.setattr(registry, "kernels", lambda: real | among)
    always = ["torch.matmul", "read", "empty"]
    assert [kernel.name for kernel in selection().kernels if kernel.by_name_only] == []
    assert [kernel.name for kernel in selection(kernel=["variant_1"]).kernels] == [*always, "variant_1"]
    assert [kernel.name for kernel in selection(variants=True).kernels][-2:] == list(among)
    named = [kernel.name for kernel in selection(variants=True, kernel=["sgemv"]).kernels]
    assert named == ["torch.matmul", "sgemv", "read", "empty", *among]
    real["sgemv"] = replace(real["sgemv"], picks=("torch.mv", "variant_0"))
    named = [kernel.name for kernel in selection(variants=True, kernel=["sgemv"]).kernels]
    assert named == ["torch.matmul", "torch.mv", "sgemv", "read", "empty", *among]


@pytest.mark.parametrize("other", [{"shape": ["8x8"]}, {"peers": True}])
def test_the_problems_of_every_regime_are_not_mixed_with_others(other: dict[str, object]) -> None:
    """Neither wins silently."""
    with pytest.raises(CommandError, match=r"^--regimes: has problems of its own; leave --shape, --shapes and "):
        selection(regimes=True, **other)


def test_quick_is_a_coarse_look() -> None:
    """Cold only, the first timer, three workers, 0.03 s, each unless said otherwise."""
    quick = selection(quick=True)
    assert (quick.caches, quick.options.trials, quick.options.max_time_s) == ((Cache.COLD,), 3, 0.03)
    assert (quick.timers, selection(quick=True, timer=["sync"]).timers) == (("async",), ("sync",))
    other = selection(quick=True, cache=["hot"], trials="7", max_time="1.5")
    assert (other.caches, other.options.trials, other.options.max_time_s) == ((Cache.HOT,), 7, 1.5)


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("shape", ["64x64", "0x1"], "--shape: found '0x1', wanted MxK"),
        ("timer", ["graph"], "--timer: graph does not work on cpu, wanted one of: async, sync"),
        (
            "timer",
            ["graph-double"],
            "--timer: found 'graph-double', wanted one of: graph, event, async, sync, profiler",
        ),
        ("timer", ["do_bench"], "--timer: found 'do_bench', wanted one of: graph, event, async, sync, profiler"),
        ("trials", "2.5", "--trials: found '2.5', wanted a whole number from 1 to 1000"),
        ("trials", "1001", "--trials: found '1001', wanted a whole number from 1 to 1000"),
        ("max_time", "nan", "--max-time: found 'nan', wanted a number from 0.001 to 3600"),
        ("max_time", "-1", "--max-time: found '-1', wanted a number from 0.001 to 3600"),
        ("device", "cuda:x", "--device: found 'cuda:x', wanted cuda, cuda:N, a UUID (GPU-… or MIG-…), all or cpu"),
        ("device", "cuda:", "--device: found 'cuda:', wanted cuda, cuda:N, a UUID (GPU-… or MIG-…), all or cpu"),
        ("device", "cpu:0", "--device: found 'cpu:0', wanted cuda, cuda:N, a UUID (GPU-… or MIG-…), all or cpu"),
        ("ref", "latest", "--ref: found 'latest', wanted 1 to 64 letters"),
    ],
)
def test_more_wrong_values(option: str, value: object, words: str) -> None:
    """The same line, without a process of its own."""
    with pytest.raises(CommandError) as caught:
        selection(**{option: value})
    assert str(caught.value).startswith(words)
    assert caught.value.code is Exit.USAGE
