"""suites/test_roofline.py: that it has what it is about, that it can be measured, what it takes; and a run of it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from harness import ceilings
from harness.cases import cases_for
from harness.export.pytest_benchmark import export
from harness.model import Case, Word
from harness.problems import parse_shape
from harness.store import Store, load
from kernels import registry
from reports.roofline import llama
from suites import test_roofline as roofline
from tests.running_suites import benchmarks, suites

TOKENS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
LAYERS = (
    "12288x4096", "4096x4096", "11008x4096", "4096x11008", "32000x4096",
    "6144x4096", "14336x4096", "4096x14336", "128256x4096",
)  # fmt: skip
HELD_TO = ("1024x1024", "4096x4096", "11008x4096", "4096x11008", "32000x4096", "57344x7168")
"""What `hgemv` and `bgemv` are held to against `torch.matmul`."""


@pytest.fixture(scope="module")
def found() -> list[Case]:
    """All cases on a GPU."""
    return cases_for(registry.kernels().values(), roofline.SUITE.grids, "cuda")


def ids(cases: Iterable[Case]) -> set[str]:
    return {case.id for case in cases}


def test_no_case_is_refused_by_its_kernel(found: list[Case]) -> None:
    """Every row of the run is to have a figure."""
    kernels = registry.kernels()
    refused = {case.id: reason for case in found if (reason := kernels[case.kernel].unsupported(case.problem))}
    assert refused == {}
    assert {case.kernel for case in found} == {
        "torch.matmul", "F.linear", "torch.mv", "sgemv", "sgemv_k1", "sgemv_k16_f32", "sgemv_k32_f32",
        "sgemv_k128_f32x4", "hgemv", "bgemv", "gemv_w8", "read", "empty",
    }  # fmt: skip


def test_every_layer_has_every_number_of_tokens_in_float16(found: list[Case]) -> None:
    """The whole batch suite; in other dtypes the ends at least."""
    batched = [f"{layer}{'' if tokens == 1 else f'x{tokens}'}" for layer in LAYERS for tokens in TOKENS]
    wanted = {f"torch.matmul-{label}-float16-graph-cold" for label in batched}
    for dtype in ("", "-tf32", "-bfloat16"):
        wanted |= {f"torch.matmul-{layer}{tokens}{dtype}-graph-cold" for layer in LAYERS for tokens in ("", "x512")}
        wanted |= {f"torch.matmul-4096x4096x{tokens}{dtype}-graph-cold" for tokens in TOKENS[1:]}
        wanted |= {f"F.linear-4096x4096x{tokens}{dtype}-graph-cold" for tokens in (8, 64, 512)}
    assert wanted <= ids(found)


def test_the_steps_that_the_page_sums_are_measured(found: list[Case]) -> None:
    """Decode and prefill of LLaMA-7B: every layer at both numbers of tokens, in every dtype that torch computes."""
    there = {(case.problem.m, case.problem.k, case.problem.n, case.problem.dtype) for case in found}
    for layer in llama.LAYERS:
        for tokens in (llama.DECODE, llama.PREFILL):
            assert {(*layer.weight, tokens, dtype) for dtype in ("float32", "tf32", "float16", "bfloat16")} <= there


def test_our_kernels_stand_beside_what_they_are_held_against(found: list[Case]) -> None:
    """The same problem by `torch.matmul`, which computes no int8: there float16 is beside it; and `read`."""
    there = ids(found)
    for shape in HELD_TO:
        for kernel, dtype in (("hgemv", "float16"), ("bgemv", "bfloat16"), ("gemv_w8", "int8")):
            assert f"{kernel}-{shape}-{dtype}-graph-cold" in there
            assert f"read-{shape}-{dtype}-graph-cold" in there
            assert dtype == "int8" or f"torch.matmul-{shape}-{dtype}-graph-cold" in there
    beside = {(case.problem, case.timer) for case in found if case.kernel == "torch.matmul"}
    alone = [case for case in found if case.kernel in ("F.linear", "hgemv", "bgemv", "sgemv", "torch.mv")]
    assert not [case.id for case in alone if case.timer != "energy" and (case.problem, case.timer) not in beside]


def test_decode_attention_is_in_it(found: list[Case]) -> None:
    """By hand: head size 128; V is context by head, so its transpose lies by columns."""
    problems = {case.problem for case in found}
    for context in (1024, 4096, 16384, 65536):
        for dtype in ("float16", "float32"):
            assert parse_shape(f"{context}x128:{dtype}") in problems
            assert parse_shape(f"128x{context}:{dtype}:col") in problems


def test_energy_ceilings_and_the_references_own_case(found: list[Case]) -> None:
    """Each on just its problems."""
    energy = {case.id for case in found if case.timer == "energy"}
    by_tokens = {
        f"torch.matmul-11008x4096{'' if n == 1 else f'x{n}'}-float16-energy-cold" for n in (1, 4, 16, 64, 256, 512)
    }
    assert energy == by_tokens | {
        "torch.matmul-11008x4096-energy-cold",
        "torch.matmul-11008x4096x512-energy-cold",
        "hgemv-11008x4096-float16-energy-cold",
        "gemv_w8-11008x4096-int8-energy-cold",
    }
    reference = {case.id for case in found if case.timer == "sync-50" and case.kernel != "empty"}
    assert reference == {f"torch.matmul-4096x4096{n}-float16-sync-50-hot" for n in ("", "x16", "x512")}
    measured = {(case.kernel, case.problem) for case in found if case.timer == "graph"}
    assert ("read", ceilings.READ) in measured
    assert (ceilings.COPY_KERNEL, ceilings.COPY) in measured
    assert {("torch.matmul", problem) for problem in ceilings.PEAKS.values()} <= measured


def test_it_is_over_in_eight_minutes(found: list[Case]) -> None:
    """The docstring's count is that of the cases, and its arithmetic comes to less than 8 minutes."""
    assert roofline.__doc__ is not None
    arithmetic = roofline.__doc__.partition("by arithmetic")[2]
    numbers = [int(number) for number in re.findall(r"\b(\d+) (?:problems|cases)", arithmetic)]
    others = [case for case in found if case.timer != "energy"]
    energy = [case for case in found if case.timer == "energy"]
    problems = [len({case.problem for case in cases}) for cases in (others, energy)]
    assert numbers == [problems[0], len(others), problems[1], len(energy)]
    measured_s = 3 * (problems[0] * 0.2 + len(others) * (roofline.SUITE.max_time_s + 0.11))
    energy_s = 2 * (problems[1] * 0.2 + len(energy) * 2.5)
    assert measured_s + energy_s + 40 < 480
    assert f"{measured_s:.0f} s" in arithmetic
    assert f"{energy_s:.0f} s" in arithmetic
    assert roofline.SUITE.trials == 3


def test_a_run_on_the_cpu(tmp_path: Path) -> None:
    """Of one small problem: passes, says what it leaves out of the suite's own, and is named after the suite."""
    quickly = ("--trials", "1", "--max-time", "0.005", "--timer", "sync", "--device", "cpu")
    done = suites("--suite", "roofline", "--shape", "64x32x4", *quickly, "-q", "--store", tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    run = load(Store(tmp_path).resolve("latest"))
    measured = {m.case.kernel: m.verdict.word for m in run.measurements}
    assert (measured["torch.matmul"], measured["F.linear"]) == (Word.PASSED, Word.PASSED)
    assert (run.options.suites, run.options.trials, run.options.max_time_s) == (("roofline",), 1, 0.005)
    names = benchmarks(tmp_path / run.id / "pytest-benchmark.json")
    assert "test_roofline[torch.matmul-64x32x4-sync-cold]" in names
    assert names["test_roofline[F.linear-64x32x4-sync-cold]"]["group"] == "64x32x4 sync cold"
    made = json.loads(export(run, tmp_path / "a partial run's folder"))["benchmarks"]
    assert {record["fullname"] for record in made} == {f"suites/test_roofline.py::{name}" for name in names}


def test_the_cpu_has_a_few_problems(tmp_path: Path) -> None:
    """float32, few tokens, kernels that a CPU has."""
    done = suites("--suite", "roofline", "--collect-only", "-q", "--device", "cpu", "--store", tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    cases = re.findall(r"test_roofline\[(.+)\]", done.stdout)
    sizes = [f"{square}{n}" for square in ("1024x1024", "4096x4096") for n in ("", "x4", "x16")]
    wanted = {f"{kernel}-{size}" for kernel in ("torch.matmul", "F.linear") for size in sizes}
    wanted |= {f"{kernel}-{size}" for kernel in ("sgemv_cpu_f32", "read") for size in ("1024x1024", "4096x4096")}
    assert set(cases) == {f"{each}-{timer}-cold" for each in (*wanted, "empty-1x1") for timer in ("async", "sync")}
