"""Every claim says each of its words on a run planted for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from harness.model import Cache, Measurement
from harness.stats import Interval
from reports.claims import Word, claims, within
from reports.figures import figures
from reports.roofline.verdicts import verdicts
from tests.sample_claims import (
    SHAPE,
    SHEET,
    TB,
    WOBBLY,
    at,
    attention,
    energies,
    faster,
    few_rows,
    float4,
    free,
    half,
    hot,
    judge,
    layers,
    narrow,
    peak_at,
    placed,
    read_at,
    run_of,
    weight_only,
)

CONFIRMED, REFUTED, UNDECIDED = Word.CONFIRMED, Word.REFUTED, Word.UNDECIDED
CANNOT, ABSENT = Word.CANNOT, Word.ABSENT

PLANTED: tuple[tuple[str, Sequence[Measurement], Word], ...] = (
    ("faster", faster(2.7, 1.4), CONFIRMED),
    ("faster", faster(2.7, 0.9), REFUTED),
    (
        "faster",
        [*faster(2.7, 1.1)[:3], at("sgemv_k32_f32", SHAPE, 1500, "graph", Cache.HOT, wobble=WOBBLY)],
        UNDECIDED,
    ),
    ("2.7 times", faster(2.7, 2.7), CANNOT),
    ("256 blocks", [at("sgemv_k32_f32", SHAPE, 1730, grid=(768, 1, 1)), read_at()], CONFIRMED),
    ("256 blocks", [at("sgemv_k32_f32", SHAPE, 1730, grid=(767, 1, 1)), read_at()], REFUTED),
    ("256 blocks", [at("sgemv_k32_f32", SHAPE, 1730), read_at()], CANNOT),
    ("two blocks", few_rows(2000, (2, 1, 1)), CONFIRMED),
    ("two blocks", few_rows(2000, (64, 1, 1)), REFUTED),
    ("two blocks", few_rows(100, (2, 1, 1)), REFUTED),
    ("two blocks", few_rows(2000, None), CANNOT),
    ("half lines", narrow(131_072), REFUTED),
    ("half lines", narrow(131_072, first_element=16), CONFIRMED),
    ("half lines", narrow(131_072, row_stride=32), CONFIRMED),
    ("half lines", narrow(262_144), REFUTED),
    ("half lines", narrow(None), CANNOT),
    ("x is free", free(0.98), CONFIRMED),
    ("x is free", free(0.80), CANNOT),
    ("intensity", [at("torch.matmul", half(4096, 4096), 10_000)], CONFIRMED),
    ("T = 8 near the ridge", placed(8, 10), CONFIRMED),
    ("T = 8 near the ridge", placed(8, 100), REFUTED),
    ("T = 64 compute-bound", placed(64, 60), CONFIRMED),
    ("T = 64 compute-bound", placed(64, 100), REFUTED),
    ("T = 512 compute-bound", [*layers(512, 280), read_at(), peak_at(400)], CONFIRMED),
    ("T = 512 compute-bound", [*layers(512, 280), read_at(), peak_at(500 * TB)], REFUTED),
    ("T = 512 compute-bound", [*layers(512, 440 * TB), read_at(), peak_at(400)], REFUTED),
    ("T = 512 compute-bound", [*layers(512, 410 * TB, wobble=WOBBLY), read_at(), peak_at(400)], UNDECIDED),
    ("T = 512 compute-bound", [*layers(512, 280), peak_at(400)], ABSENT),
    ("T = 512 at 70 %", [*layers(512, 0.7 * SHEET), peak_at(600)], CONFIRMED),
    ("T = 512 at 70 %", [*layers(512, 0.9 * SHEET), peak_at(1e3)], REFUTED),
    ("T = 512 at 70 %", [*layers(512, 0.6 * SHEET, wobble=WOBBLY), peak_at(600)], UNDECIDED),
    ("T = 512 at 70 %", [*layers(512, 0.7 * SHEET)[:4], peak_at(600)], ABSENT),
    ("T = 8 at 10 to 20 %", [*layers(8, 0.15 * SHEET), peak_at(400)], CONFIRMED),
    ("T = 8 at 10 to 20 %", [*layers(8, 0.03 * SHEET), peak_at(400)], REFUTED),
    ("under 1 %", [*layers(1, 3.9), peak_at(400)], CONFIRMED),
    ("under 1 %", [*layers(1, 4.1), peak_at(400)], REFUTED),
    ("under 1 %", [*layers(1, 4.0, wobble=WOBBLY), peak_at(400)], UNDECIDED),
    ("50 times slower", [*layers(1, 4), *layers(512, 200)], CONFIRMED),
    ("50 times slower", [*layers(1, 4), *layers(512, 400)], REFUTED),
    ("50 times slower", [*layers(1, 4, wobble=WOBBLY), *layers(512, 200)], UNDECIDED),
    ("4.2 ms", [*layers(1, 3.9), read_at()], CANNOT),
    ("energy a token", energies(14.0, 0.2), CONFIRMED),
    ("energy a token", energies(14.0, 0.115), REFUTED),
    ("energy a token", energies(14.0, 0.14, wobble=WOBBLY), UNDECIDED),
    ("tensor cores", energies(14.0, 0.2), CANNOT),
    ("tensor cores", [], CANNOT),
    ("attention", attention(2000), CONFIRMED),
    ("attention", attention(100), REFUTED),
    ("DRAM bytes", hot(6.0), CONFIRMED),
    ("DRAM bytes", hot(3.0), CANNOT),
    ("DRAM bytes", [], CANNOT),
    ("weight-only", weight_only(0.97), CONFIRMED),
    ("weight-only", weight_only(0.70), REFUTED),
    ("weight-only", weight_only(0.90, wobble=WOBBLY), UNDECIDED),
)


@pytest.mark.parametrize(("name", "measurements", "word"), PLANTED)
def test_words(name: str, measurements: Sequence[Measurement], word: Word) -> None:
    """Planted by hand: the figure leads to the word, and a word on figures names its cases."""
    answer = judge(name, measurements)
    assert answer.word is word, answer.measured
    assert bool(answer.rows) == (word is not ABSENT and bool(measurements))
    assert answer.measured


H100, H200, RTX_4090 = "NVIDIA H100 80GB HBM3", "NVIDIA H200", "NVIDIA GeForce RTX 4090"

OF_ONE_GPU: tuple[tuple[str, Sequence[Measurement], str, Word], ...] = (
    ("2.7 times", faster(2.7, 2.7), RTX_4090, CONFIRMED),
    ("2.7 times", faster(2.7, 1.4), RTX_4090, REFUTED),
    ("float4", float4(1.02, 1.3), RTX_4090, CONFIRMED),
    ("float4", float4(1.02, 1.03), RTX_4090, CONFIRMED),
    ("float4", float4(1.02, 1.01), RTX_4090, REFUTED),
    ("float4", float4(1.06, 1.3), RTX_4090, REFUTED),
    ("float4", float4(1.02, 1.3, wobble=WOBBLY), RTX_4090, UNDECIDED),
    ("ridge", [read_at(), peak_at(295 * TB)], H100, CONFIRMED),
    ("ridge", [read_at(), peak_at(160 * TB)], H100, REFUTED),
    ("4.2 ms", [*layers(1, 3.2), read_at(3.3)], H100, CONFIRMED),
    ("4.2 ms", [*layers(1, 3.2), read_at(3.9)], H100, REFUTED),
    ("4.2 ms", [*layers(1, 4.0, wobble=WOBBLY), read_at()], H100, UNDECIDED),
    ("4.2 ms", [*layers(1, 4.4), read_at()], H100, REFUTED),
)
"""By the GPU that the claim's words or its number are of."""

OF_ANY_GPU: tuple[tuple[str, Sequence[Measurement], Word], ...] = (
    ("faster", faster(2.7, 1.4), CONFIRMED),
    ("faster", faster(2.7, 0.9), REFUTED),
    ("two blocks", few_rows(2000, (64, 1, 1)), REFUTED),
)
"""Whose source measured on an RTX 4090."""


@pytest.mark.parametrize(("name", "measurements", "own", "word"), OF_ONE_GPU)
def test_a_claim_of_one_gpu_is_judged_on_it_alone(
    name: str, measurements: Sequence[Measurement], own: str, word: Word
) -> None:
    """H100 and RTX 4090 alike: on their own GPU a word, on any other none, with the same figures beside it."""
    there, here = judge(name, measurements, own), judge(name, measurements, H200)
    assert (there.word, here.word) == (word, CANNOT)
    model = "H100" if own == H100 else "RTX 4090"
    assert here.measured.replace(H200, own) == f"the claim is of the {model}; {there.measured}"
    assert here.rows == there.rows


@pytest.mark.parametrize(
    ("name", "measurements", "board"),
    [
        ("ridge", [read_at(), peak_at(160 * TB)], "NVIDIA H100 PCIe"),
        ("4.2 ms", [*layers(1, 3.2), read_at(3.9)], "NVIDIA H100 NVL"),
        ("2.7 times", faster(2.7, 1.4), "NVIDIA GeForce RTX 4090 D"),
        ("2.7 times", faster(2.7, 1.4), "NVIDIA GeForce RTX 4090 Laptop GPU"),
    ],
)
def test_another_board_of_a_name_is_another_gpu(name: str, measurements: Sequence[Measurement], board: str) -> None:
    """It has other multiprocessors, or another bandwidth, than the one that the source's figure is of."""
    assert judge(name, measurements, board).word is CANNOT


@pytest.mark.parametrize(("name", "measurements", "word"), OF_ANY_GPU)
def test_a_claim_of_any_gpu_says_where_it_was_made_and_judged(
    name: str, measurements: Sequence[Measurement], word: Word
) -> None:
    """The word is this GPU's; nothing is added where both are one, and nothing hangs on the figures."""
    here, there = judge(name, measurements, H200), judge(name, measurements, RTX_4090)
    assert (here.word, there.word) == (word, word)
    assert here.measured == f"{there.measured}; {word} on NVIDIA H200; the source's figure is of the RTX 4090"


def test_no_claim_names_a_gpu_that_it_is_not_of() -> None:
    """Words or a criterion with a GPU's name or count are of that GPU alone; a source's GPU is known to the rule."""
    for claim in claims():
        for gpu, signs in (("H100", ("H100", "3.35 TB/s")), ("RTX 4090", ("RTX 4090", "128 SMs"))):
            if any(sign in f"{claim.says} {claim.criterion}" for sign in signs):
                assert (claim.source_gpu, claim.of_it_alone) == (gpu, True), claim.name
            if any(sign in claim.source for sign in signs):
                assert claim.source_gpu == gpu, claim.name


@pytest.mark.parametrize(("gpu", "here"), [(H200, ", 12\u00a0% of the 132 × 64 of NVIDIA H200"), (RTX_4090, "")])
def test_what_fills_the_sources_gpu_is_counted_for_it(gpu: str, here: str) -> None:
    """256 blocks of 4 warps on 128 SMs of 48 warps: 1024 / 6144, that is 2 blocks an SM; refuted wherever it ran."""
    answer = judge("256 blocks", [at("sgemv_k32_f32", SHAPE, 1730, grid=(256, 1, 1)), read_at()], gpu)
    assert answer.word is REFUTED
    assert f"17\u00a0% of the 128 × 48 warp slots of the RTX 4090 (counted){here}; it draws" in answer.measured


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


@pytest.mark.parametrize(
    ("gpu", "tb_per_s", "word"),
    [("NVIDIA H100 80GB HBM3", 3.3, CONFIRMED), ("NVIDIA H100 80GB HBM3", 3.9, REFUTED), ("NVIDIA H200", 3.3, CANNOT)],
)
def test_the_least_time_belongs_to_its_gpu(gpu: str, tb_per_s: float, word: Word) -> None:
    """14 GB at 3.3 TB/s are 4.24 ms, at 3.9 3.59 ms; elsewhere the rule may hold and its figure is another."""
    answer = judge("4.2 ms", [*layers(1, 3.2), read_at(tb_per_s)], gpu)
    assert answer.word is word
    assert "bytes over bandwidth, holds" in answer.measured
    assert f"{14 / tb_per_s:.2f}\u00a0ms on {gpu}" in answer.measured


def test_a_peak_needs_its_datasheet() -> None:
    """Where none is known the measured peak stands beside the claim and judges nothing."""
    answer = judge("T = 512 at 70 %", [*layers(512, 300), peak_at(400)], "NVIDIA GB200")
    assert answer.word is CANNOT
    assert "75.0\u00a0%" in answer.measured
    assert "what a product of 8192³ sustains" in answer.measured


def test_one_torch_product_is_not_measured_twice() -> None:
    """F.linear is torch.matmul by another name: half its time changes no figure."""
    found = [*layers(512, 0.7 * SHEET), peak_at(600)]
    twice = [at("F.linear", m.case.problem, m.trials[1].samples_ns[0] / 2) for m in found if m.case.problem.n == 512]
    assert judge("T = 512 at 70 %", [*found, *twice]).measured == judge("T = 512 at 70 %", found).measured


def test_what_an_energy_is_of() -> None:
    """Kernel of both sides, trials, and which products where not all were measured."""
    said = judge("energy a token", energies(14.0, 0.2)).measured
    for part in ("at T = 1 by torch.matmul", "at T = 512 by torch.matmul", "the 32 of down (4096×11008)", "3 trials"):
        assert part in said
    assert "not for a whole token" in said


def test_why_a_word_is_undecided() -> None:
    """One trial, or an interval over a bound: never both."""
    several = judge("under 1 %", [*layers(1, 4.0, wobble=WOBBLY), peak_at(400)])
    once = [replace(m, trials=m.trials[:1]) for m in (*layers(1, 3.9), peak_at(400))]
    alone = judge("under 1 %", once)
    assert (several.word, alone.word) == (UNDECIDED, UNDECIDED)
    assert several.measured.endswith("; an interval reaches over a bound")
    assert alone.measured.endswith("; one trial gives no interval")


def test_planted_words_cover_every_claim() -> None:
    """Each claim is planted, and is absent from, or cannot be measured by, a run of nothing."""
    assert {name for name, *_ in (*PLANTED, *OF_ONE_GPU)} == {claim.name for claim in claims()}
    f = figures(run_of([]))
    for claim in claims():
        assert claim.judge(f).word in (ABSENT, CANNOT), claim.name
        assert not claim.judge(f).rows
    assert verdicts(f) is None


def test_claims_are_in_order_and_unique() -> None:
    """Names and places once each; who says «not in this run» names the command."""
    places, names = [claim.place for claim in claims()], [claim.name for claim in claims()]
    assert places == sorted(set(places))
    assert len(set(names)) == len(names) == 22
    assert "nox -s roofline" in judge("under 1 %", []).measured
    assert "nox -s bench" in judge("float4", []).measured


@pytest.mark.parametrize(
    ("low", "high", "word"),
    [
        (0.61, 0.69, CONFIRMED),
        (0.5, 0.59, REFUTED),
        (0.71, 0.8, REFUTED),
        (0.59, 0.65, UNDECIDED),
        (None, None, UNDECIDED),
    ],
)
def test_within_judges_whole_intervals(low: float | None, high: float | None, word: Word) -> None:
    """Between 0.6 and 0.7, wholly; no interval, no word."""
    assert within(Interval(estimate=0.65, low=low, high=high), low=0.6, high=0.7) is word


def test_the_table_counts_words() -> None:
    """Two claims confirmed, one refuted, one undecided; every row has its criterion, each word its mark."""
    unsure = energies(14.0, 0.14, wobble=WOBBLY)
    made = verdicts(figures(run_of([*layers(1, 3.9), *layers(512, 400), *unsure, read_at(), peak_at(600)])))
    assert made is not None
    said = {row[0].text: row[1].text for row in made.table.rows}
    assert said["Decode is «50× slower than prefill»"] == "refuted"
    assert said["Prefill (T = 512) is compute-bound"] == "confirmed"
    assert all(row[0].note.startswith("Criterion: ") for row in made.table.rows)
    assert said[next(each.says for each in claims() if each.name == "energy a token")] == "undecided"
    assert "1 is undecided" in made.takeaway
    assert {row[1].text: row[1].mark for row in made.table.rows}["undecided"] == ""
