"""Every claim says each of its words on a run planted for it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import pytest

from harness.ceilings import PEAKS, READ
from harness.model import Cache, DeviceKernel, Energy, Environment, Layout, Measurement, Problem, Run, TrialResult
from harness.roofline import flops, least_bytes
from harness.stats import Interval
from reports.claims import Judged, Word, claims, within
from reports.figures import figures
from reports.roofline.llama import LAYERS
from reports.roofline.verdicts import verdicts
from tests.sample_roofline import PASSED, case
from tests.sample_run import empty_run

TB = 4.0
"""Read bandwidth of these runs in TB/s, so that 4 MB take 1 µs."""
WOBBLY = 0.2
CONFIRMED, REFUTED, CANNOT, ABSENT = Word.CONFIRMED, Word.REFUTED, Word.CANNOT, Word.ABSENT


def at(
    kernel: str,
    problem: Problem,
    ns: float,
    timer: str = "graph",
    cache: Cache = Cache.COLD,
    *,
    wobble: float = 0.0005,
    grid: tuple[int, int, int] | None = None,
    mj: float | None = None,
) -> Measurement:
    """A case with three trials, the second at `ns`, the others `wobble` beside it; with `mj` a launch."""
    launched = DeviceKernel(
        name="k", grid=grid or (1, 1, 1), block=(1, 1, 1), registers=1, shared_bytes=0, duration_ns=None
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
    own = Problem(m=11008, k=4096, dtype="int8")
    fewer = least_bytes(half(11008, 4096)) / least_bytes(own)
    return [at("hgemv", half(11008, 4096), 23_000), at("gemv_w8", own, 23_000 / (of_bytes * fewer), wobble=wobble)]


PLANTED: tuple[tuple[str, Sequence[Measurement], Word], ...] = (
    ("2.7 times", faster(2.7, 2.7), CONFIRMED),
    ("2.7 times", faster(2.7, 1.4), REFUTED),
    (
        "2.7 times",
        [*faster(2.7, 2.43)[:3], at("sgemv_k32_f32", SHAPE, 1500, "graph", Cache.HOT, wobble=WOBBLY)],
        CANNOT,
    ),
    ("float4", float4(1.02, 1.3), CONFIRMED),
    ("float4", float4(1.02, 1.02), REFUTED),
    ("float4", float4(1.02, 1.3, wobble=WOBBLY), CANNOT),
    ("256 blocks", [at("sgemv_k32_f32", SHAPE, 200), read_at()], CONFIRMED),
    ("256 blocks", [at("sgemv_k32_f32", SHAPE, 1730), read_at()], REFUTED),
    ("256 blocks", [at("sgemv_k32_f32", SHAPE, 264, wobble=WOBBLY), read_at()], CANNOT),
    ("two blocks", few_rows(2000, (2, 1, 1)), CONFIRMED),
    ("two blocks", few_rows(2000, (64, 1, 1)), REFUTED),
    ("two blocks", few_rows(100, (2, 1, 1)), REFUTED),
    ("two blocks", few_rows(2000, None), CANNOT),
    ("half lines", [at("sgemv_k16_f32", NARROW, 20_000), read_at()], REFUTED),
    ("half lines", [at("sgemv_k16_f32", NARROW, 60_000), read_at()], CANNOT),
    ("x is free", free(0.98), CONFIRMED),
    ("x is free", free(0.80), CANNOT),
    ("intensity", [at("torch.matmul", half(4096, 4096), 10_000)], CONFIRMED),
    ("T = 8 near the ridge", placed(8, 10), CONFIRMED),
    ("T = 8 near the ridge", placed(8, 100), REFUTED),
    ("T = 64 compute-bound", placed(64, 60), CONFIRMED),
    ("T = 64 compute-bound", placed(64, 100), REFUTED),
    ("T = 512 at 70 %", [*layers(512, 280), peak_at(400)], CONFIRMED),
    ("T = 512 at 70 %", [*layers(512, 360), peak_at(400)], REFUTED),
    ("T = 512 at 70 %", [*layers(512, 240, wobble=WOBBLY), peak_at(400)], CANNOT),
    ("T = 512 at 70 %", [*layers(512, 280)[:4], peak_at(400)], ABSENT),
    ("T = 8 at 10 to 20 %", [*layers(8, 60), peak_at(400)], CONFIRMED),
    ("T = 8 at 10 to 20 %", [*layers(8, 30), peak_at(400)], REFUTED),
    ("under 1 %", [*layers(1, 3.9), peak_at(400)], CONFIRMED),
    ("under 1 %", [*layers(1, 4.1), peak_at(400)], REFUTED),
    ("under 1 %", [*layers(1, 4.0, wobble=WOBBLY), peak_at(400)], CANNOT),
    ("50 times slower", [*layers(1, 4), *layers(512, 200)], CONFIRMED),
    ("50 times slower", [*layers(1, 4), *layers(512, 400)], REFUTED),
    ("50 times slower", [*layers(1, 4, wobble=WOBBLY), *layers(512, 200)], CANNOT),
    ("4.2 ms", [*layers(1, 3.9), read_at()], CONFIRMED),
    ("4.2 ms", [*layers(1, 4.4), read_at()], REFUTED),
    ("energy a token", energies(14.0, 0.2), CONFIRMED),
    ("energy a token", energies(14.0, 0.115), REFUTED),
    ("energy a token", energies(14.0, 0.14, wobble=WOBBLY), CANNOT),
    ("tensor cores", energies(14.0, 0.2), CANNOT),
    ("tensor cores", [], CANNOT),
    ("attention", attention(2000), CONFIRMED),
    ("attention", attention(100), REFUTED),
    ("DRAM bytes", hot(6.0), CONFIRMED),
    ("DRAM bytes", hot(3.0), CANNOT),
    ("DRAM bytes", [], CANNOT),
    ("weight-only", weight_only(0.97), CONFIRMED),
    ("weight-only", weight_only(0.70), REFUTED),
    ("weight-only", weight_only(0.90, wobble=WOBBLY), CANNOT),
)


@pytest.mark.parametrize(("name", "measurements", "word"), PLANTED)
def test_words(name: str, measurements: Sequence[Measurement], word: Word) -> None:
    """Planted by hand: the figure leads to the word, and a word on figures names its cases."""
    answer = judge(name, measurements)
    assert answer.word is word, answer.measured
    assert bool(answer.rows) == (word is not ABSENT and bool(measurements))
    assert answer.measured


@pytest.mark.parametrize(
    ("gpu", "peak", "word"),
    [
        ("NVIDIA H100 80GB HBM3", 295 * TB, CONFIRMED),
        ("NVIDIA H100 80GB HBM3", 160 * TB, REFUTED),
        ("NVIDIA H200", 295 * TB, CANNOT),
    ],
)
def test_a_ridge_belongs_to_its_gpu(gpu: str, peak: float, word: Word) -> None:
    """295 FLOP/byte is said of an H100: another GPU's ridge stands beside it and judges nothing."""
    answer = judge("ridge", [read_at(), peak_at(peak)], gpu)
    assert answer.word is word
    assert f"{peak / TB:.0f}" in answer.measured


def test_planted_words_cover_every_claim() -> None:
    """Each claim is planted, and is absent from, or cannot be measured by, a run of nothing."""
    assert {name for name, _, _ in PLANTED} | {"ridge"} == {claim.name for claim in claims()}
    f = figures(run_of([]))
    for claim in claims():
        assert claim.judge(f).word in (ABSENT, CANNOT), claim.name
        assert not claim.judge(f).rows
    assert verdicts(f) is None


def test_claims_are_in_order_and_unique() -> None:
    """Names and places once each; who says «not in this run» names the command."""
    places, names = [claim.place for claim in claims()], [claim.name for claim in claims()]
    assert places == sorted(set(places))
    assert len(set(names)) == len(names) == 20
    assert "nox -s roofline" in judge("under 1 %", []).measured
    assert "nox -s bench" in judge("float4", []).measured


@pytest.mark.parametrize(
    ("low", "high", "word"),
    [(0.61, 0.69, CONFIRMED), (0.5, 0.59, REFUTED), (0.71, 0.8, REFUTED), (0.59, 0.65, CANNOT), (None, None, CANNOT)],
)
def test_within_judges_whole_intervals(low: float | None, high: float | None, word: Word) -> None:
    """Between 0.6 and 0.7, wholly; no interval, no word."""
    assert within(Interval(estimate=0.65, low=low, high=high), low=0.6, high=0.7) is word


def test_the_table_counts_words() -> None:
    """Two claims confirmed, one refuted; every row has its criterion."""
    made = verdicts(figures(run_of([*layers(1, 3.9), *layers(512, 400), read_at()])))
    assert made is not None
    said = {row[0].text: row[1].text for row in made.table.rows}
    assert said["Decode is «50× slower than prefill»"] == "refuted"
    assert said["It takes 4.2 ms at least to read 14 GB of weights at 3.35 TB/s"] == "confirmed"
    assert all(row[0].note.startswith("Criterion: ") for row in made.table.rows)
    assert "2 are confirmed, 1 is refuted" in made.takeaway
