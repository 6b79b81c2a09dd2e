"""A roofline run's sections: figures worked out by hand, words where a choice changes, reasons where one is missing."""

from __future__ import annotations

import io
import time
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from harness.ceilings import PROBLEMS
from harness.compare import compare
from harness.errors import Exit
from harness.model import Cache, DeviceKernel, Layout, Measurement, Problem, Run, TrialResult, Verdict, Word
from harness.roofline import least_bytes
from reports.__main__ import main
from reports.datasheet import datasheet
from reports.device_kernels import device_kernels_view, duration, named
from reports.figures import Figures, Way, figures
from reports.render import render_run
from reports.roofline.best import best_table, choices, in_words
from reports.roofline.energy import taken
from reports.roofline.llama import DECODE, LAYERS, PREFILL, slower_per_token, step
from reports.roofline.points import is_roofline, of_attainable, weights
from reports.roofline.ran import ran
from reports.roofline.tables import ceilings_table, own_table, reference_table, weight_only_tables
from reports.roofline.view import roofline_view
from reports.tables import Table
from reports.takeaway import takeaway
from reports.terminal import summary_table
from reports.view import view
from tests.planted_runs import publish
from tests.sample_roofline import PASSED, REFERENCE, WEIGHTS, case, roofline_run
from tests.sample_run import HOSTILE, empty_run, gpu_run, one_trial_run

SEVEN_B = tuple(layer.weight for layer in LAYERS)


def small(**wanted: object) -> Run:
    """One weight with few T."""
    return roofline_run(**{"weights": (REFERENCE,), "tokens": (1, 2, 8, 16, 512), **wanted})  # type: ignore[arg-type]


def timed(kernel: str, problem: Problem, *trials_ns: float, names: tuple[str, ...] = ()) -> Measurement:
    """By graph, cold, a trial a time."""
    launched = tuple(
        DeviceKernel(name=n, grid=(8, 1, 1), block=(32, 1, 1), registers=1, shared_bytes=0, duration_ns=None)
        for n in names
    )
    trials = [
        TrialResult(trial=i, verdict=PASSED, samples_ns=(ns,), device_kernels=launched)
        for i, ns in enumerate(trials_ns)
    ]
    return Measurement(case=case(kernel, problem), trials=tuple(trials))


def of(*measurements: Measurement) -> Figures:
    return figures(replace(empty_run(), measurements=measurements))


def cells(table: Table | None) -> list[list[str]]:
    assert table is not None
    return [[cell.text for cell in row] for row in table.rows]


def half(n: int) -> Problem:
    return Problem(m=4096, k=4096, n=n, dtype="float16")


def test_a_plain_run_has_none_of_it() -> None:
    """Runs of one token and the usual timers look as ever, another dtype or not."""
    assert roofline_view(figures(gpu_run())) is None
    assert not is_roofline(of(timed("hgemv", half(1), 1.0)))
    assert 'id="roofline"' not in render_run(one_trial_run())


def test_products_with_several_tokens_leave_the_old_sections() -> None:
    """They are in the tables by T; a run of nothing else keeps them where every problem is."""
    f = figures(small())
    assert {p.n for p in f.gemv.problems} == {1}
    assert {p.n for p in f.problems} >= {1, 2, 8, 16, 512}
    assert "gemv_w8" in f.gemv.kernels
    assert "with one token (T = 1), the fastest" in takeaway(f.gemv)
    assert all("with one token" not in takeaway(each) for each in (f, figures(gpu_run())))
    alone = of(timed("torch.matmul", half(16), 1.0))
    assert alone.gemv is alone
    assert [each.title for each in view(alone.run).cases.problems] == ["4096×4096×16, float16"]


def test_ceilings_beside_the_datasheet() -> None:
    """4.4 TB/s less 2 µs of 978 is 4 391 GB/s, 91.5 % of the H200's published 4 800."""
    rows = {row[0]: row for row in cells(ceilings_table(figures(small())))}
    assert rows["read bandwidth"][1].startswith("4\u202f39")
    assert rows["read bandwidth"][5:7] == ["4\u202f800\u00a0GB/s", "92"]
    assert rows["float16 peak"][5] == "990\u00a0TFLOP/s"
    missing = cells(ceilings_table(figures(small(ceilings=False))))
    assert all("not measured: not in this run" in row[1] for row in missing)
    assert datasheet("NVIDIA GeForce RTX 3080") is not None
    assert datasheet("NVIDIA GB200") is None
    assert datasheet(None) is None


def test_share_of_attainable() -> None:
    """4096×4096 float16, T = 1: 33 570 816 bytes at the measured rate, over the time that it took."""
    f = figures(small())
    row = f.find("hgemv", half(1), Way(timer="graph", cache=Cache.COLD))
    assert row is not None
    assert row.summary is not None
    assert f.ceilings.read.per_s is not None
    least_ns = 33_570_816 / f.ceilings.read.per_s.estimate * 1e9
    assert of_attainable(f, row) == pytest.approx(least_ns / row.summary.median_ns.estimate)
    assert f.ceilings.peak("int8") is f.ceilings.peak("float16")


@pytest.mark.parametrize(
    ("own_ns", "words"),
    [
        ((8.0, 9.0, 12.0), "best up to T = 2, no longer at T = 8"),
        ((8.0, 9.0, 9.5), "best up to T = 8, the most measured"),
        ((11.0, 12.0, 13.0), "not the best at T = 1, 2 and 8"),
        ((8.0, 12.0, 9.0), "best up to T = 1, no longer at T = 2, best again at T = 8"),
        ((10.0, 9.0, 8.0), "ambiguous at T = 1, best at T = 2 and 8"),
        ((8.0, 10.0, 12.0), "best up to T = 1, ambiguous at T = 2, no longer at T = 8"),
    ],
)
def test_where_a_gemv_kernel_stops(own_ns: tuple[float, ...], words: str) -> None:
    """Torch takes 10 µs at every T; 1 % between trials, so that 10 against 10 cannot be told."""
    found = []
    for n, ns in zip((1, 2, 8), own_ns, strict=True):
        found.append(timed("hgemv", half(n), ns * 1e3, ns * 1.001e3, ns * 0.999e3))
        found.append(timed("torch.matmul", half(n), 1e4, 1e4, 1e4))
    found.append(timed("torch.matmul", half(16), 1e4, 1e4, 1e4))
    f = of(*found)
    made = choices(f, REFERENCE, "float16")
    assert [choice.tokens for choice in made] == [1, 2, 8]
    assert in_words(made).replace("\u00a0", " ") == words
    if words.startswith("best up to T = 8"):
        gaps = in_words((made[0], made[2]), (1, 2, 8)).replace("\u00a0", " ")
        assert gaps == "best at T = 1 and 8, all that was measured"
    assert cells(best_table(f))[0][-1].replace("\u00a0", " ") == words


def test_int8_is_chosen_against_float16() -> None:
    """Torch has no int8 product: 6 against 12 µs is 2.00; without a rival there is no choice."""
    own = timed("gemv_w8", Problem(m=4096, k=4096, dtype="int8"), 6e3, 6e3)
    several = timed("torch.matmul", half(2), 1e4, 1e4)
    assert cells(best_table(of(own, timed("torch.matmul", half(1), 12e3, 12e3), several)))[0][1:4] == [
        "int8", "4096×4096", "2.00",
    ]  # fmt: skip
    assert best_table(of(own, several)) is None


def test_llama_sums_every_layer() -> None:
    """32·(100 + 40 + 2·90 + 91) + 250 µs is 13 402 µs; prefill of the same at ten times that: 51.2 times a token.

    F.linear, twice as fast by chance, is the same product and in no sum.
    """
    decode_us = dict(zip(SEVEN_B, (100, 40, 90, 91, 250), strict=True))
    found = []
    for (m, k), us in decode_us.items():
        for n, factor in ((DECODE, 1), (PREFILL, 10)):
            problem = Problem(m=m, k=k, n=n, dtype="float16")
            found.append(timed("torch.matmul", problem, us * factor * 1e3, us * factor * 1e3))
            found.append(timed("F.linear", problem, us * factor * 5e2, us * factor * 5e2))
    decode, prefill = step(of(*found), "float16", DECODE), step(of(*found), "float16", PREFILL)
    assert decode is not None
    assert prefill is not None
    assert decode.ns.estimate == pytest.approx(13_402e3)
    assert decode.kernels == ("torch.matmul",)
    assert decode.tokens_per_s == pytest.approx(1e9 / 13_402e3)
    assert prefill.flops == 512 * decode.flops
    assert decode.flops == 2 * (32 * (12288 * 4096 + 4096 * 4096 + 2 * 11008 * 4096 + 4096 * 11008) + 32000 * 4096)
    layers = [(layer.count, Problem(m=layer.weight[0], k=layer.weight[1], dtype="float16")) for layer in LAYERS]
    assert decode.bytes == sum(count * least_bytes(problem) for count, problem in layers)
    ratio = slower_per_token(decode, prefill)
    assert ratio is not None
    assert ratio.estimate == pytest.approx(51.2)
    assert step(of(*found), "float32", DECODE) is None
    assert step(of(*found[4:]), "float16", DECODE) is None


def test_which_kernel_ran() -> None:
    """Gemv at T = 1 and 2, another from 16 on: two lines; F.linear differs on one of two."""
    found = ran(
        of(
            timed("torch.matmul", half(1), 1.0, names=("void gemv<int>(int)",)),
            timed("torch.matmul", half(2), 1.0, names=("void gemv<int>(int)",)),
            timed("torch.matmul", half(16), 1.0, names=("nvjet_a", "splitk")),
            timed("F.linear", half(2), 1.0, names=("void gemv<int>(int)",)),
            timed("F.linear", half(16), 1.0, names=("nvjet_b",)),
        )
    )
    assert found is not None
    assert [row[:3] for row in cells(found.tables[0])] == [
        ["4096×4096", "1–2", "gemv<int> (1)"],
        ["4096×4096", "16", "nvjet_a (2), splitk (3)"],
    ]
    assert "changes 1 time over 1 weight" in found.takeaway
    assert "the same one on 1 of 2 problems" in found.takeaway
    assert ran(of(timed("torch.matmul", half(1), 1.0))) is None


def test_layouts_are_weights_of_their_own() -> None:
    """Column order stands apart from row order."""
    col = replace(half(2), layout=Layout(order="col"))
    names = ("nvjet_a",)
    found = ran(of(timed("torch.matmul", half(2), 1.0, names=names), timed("torch.matmul", col, 1.0, names=names)))
    assert found is not None
    assert [row[0] for row in cells(found.tables[0])] == ["4096×4096", "4096×4096, col-major"]


def test_names_without_durations_are_no_profile() -> None:
    """The profiler's table is about durations; names alone are told elsewhere."""
    f = figures(small())
    assert any(named(row) for row in f.rows)
    assert device_kernels_view(f) is None
    row = next(row for row in f.rows if named(row))
    assert duration(named(row)[0]) == "–"
    assert duration(replace(named(row)[0], duration_ns=1500.0)) == "1.500"


def test_energy_by_launch_and_token() -> None:
    """MJ a token is mJ a launch over T; the board's own figures beside it."""
    found = {(t.row.kernel, t.row.problem.n): t for t in taken(figures(small())) if t.row.problem.dtype == "float16"}
    one, many = found["torch.matmul", 1], found["torch.matmul", 512]
    trial = one.row.measurement.trials[0].energy
    assert trial is not None
    assert one.mj_per_launch.estimate == pytest.approx(trial.millijoules / trial.launches, rel=0.02)
    assert one.mj_per_token == one.mj_per_launch.estimate
    assert many.mj_per_token == many.mj_per_launch.estimate / 512
    assert one.idle_watts == 78.0
    assert one.source == "NVML's energy counter"
    assert 300 < one.watts < 700


def test_the_reference_case_beside_its_figures() -> None:
    """Published 60.0, 60.9 and 329.9 µs; ours by the same protocol and by the graph."""
    rows = cells(reference_table(figures(small())))
    assert [row[0] for row in rows] == ["T = 1", "T = 16", "T = 512"]
    assert [row[4] for row in rows] == ["60.0", "60.9", "329.9"]
    assert float(rows[0][2]) == pytest.approx((33_570_816 / 4400 + 2000) * 1.25e-3 + 9, rel=0.01)
    assert reference_table(figures(small(dtypes=("float32",)))) is None


def test_fewer_bytes_against_faster() -> None:
    """4096×4096: 33 570 816 bytes over 16 801 792 are 2.00×; twice as fast keeps 100 % of it."""
    own = timed("gemv_w8", Problem(m=4096, k=4096, dtype="int8"), 5e3, 5e3)
    found = of(own, timed("hgemv", half(1), 1e4, 1e4))
    row = cells(weight_only_tables(found)[0])[0]
    assert row[:3] == ["4096×4096", "1", "5.000"]
    assert row[6:8] == ["2.00", "2.00"]
    assert row[9] == "100"
    assert weight_only_tables(of(own)) == ()
    assert own_table(of(timed("sgemv", Problem(m=4, k=4), 1.0))) is None


def test_first_sentence_says_what_one_token_costs() -> None:
    """Its time with interval, kernel, share of the ceilings and timer; then the most tokens."""
    made = roofline_view(figures(small()))
    assert made is not None
    said = made.takeaway.replace("\u00a0", " ")
    assert said.startswith("At T = 1 token (columns of x), 4096×4096 in float16 takes 9.8")
    for part in (
        "µs ±",
        "by hgemv",
        "% of what the measured ceilings allow",
        "(graph/cold)",
        "At T = 512",
        "512 times",
    ):
        assert part in said
    peak = "what a product of 8192³ sustains, at an SM clock of 1905 MHz"
    assert said.endswith(f"The measured peak is {peak}: a short product can exceed it.")
    assert any(line.startswith("hgemv (float16) is best up to") for line in made.best_takeaway)


def test_every_timer_is_named() -> None:
    """Those of the suite too, with fewer trials where they had fewer."""
    made = view(small())
    for part in ("graph (cold)", "sync (cold)", "energy (cold, 2 trials)", "sync-50 (hot)", "3 trials each"):
        assert part in made.lede
    assert {"timer energy", "timer sync-50"} <= {term for term, _ in made.method}


def test_hostile_names_stay_text() -> None:
    """A kernel's and a device kernel's name are shown, not run, on the page and in the terminal."""
    run = small(tokens=(1, 8))
    changed = []
    for m in run.measurements:
        trials = tuple(
            replace(t, device_kernels=tuple(replace(k, name=HOSTILE) for k in t.device_kernels)) for t in m.trials
        )
        name = HOSTILE if m.case.kernel == "hgemv" else m.case.kernel
        changed.append(replace(m, case=replace(m.case, kernel=name), trials=trials))
    html = render_run(replace(run, measurements=tuple(changed)))
    assert HOSTILE not in html
    assert "<script>alert" not in html
    assert "evil" in printed(replace(run, measurements=tuple(changed)), 80)


def test_runs_that_lack_most_of_it() -> None:
    """Without ceilings, with one trial, on some dtypes, with a kernel that failed, or of ceilings alone."""
    wrong = Verdict(word=Word.WRONG, reason="integers: row 3")
    run = small(dtypes=("float32",))
    failed = replace(
        run,
        measurements=tuple(
            replace(m, trials=(TrialResult(trial=0, verdict=wrong),)) if m.case.problem.n > 1 else m
            for m in run.measurements
        ),
    )
    only = replace(run, measurements=tuple(m for m in run.measurements if m.case.problem in PROBLEMS))
    for each in (small(ceilings=False), small(trials=1), run, failed, only, small(weights=())):
        html = render_run(each)
        assert 'id="roofline"' in html
        assert printed(each, 80)
    assert "No ceiling of the device was measured in this run." in render_run(small(ceilings=False))


def printed(run: Run, width: int) -> str:
    out = io.StringIO()
    Console(file=out, width=width, force_terminal=False).print(summary_table(run))
    return out.getvalue()


def test_terminal_stays_short() -> None:
    """Ceilings, weights by T, claims with words: at most 120 lines of 80, none cut."""
    shown = printed(roofline_run(), 80)
    lines = shown.splitlines()
    assert len(lines) <= 120
    assert max(len(line) for line in lines) <= 80
    assert not any(line.rstrip().endswith("…") for line in lines)
    for part in ("read bandwidth", "float16 peak", "T = 512", "hgemv (float16) is best up to", "refuted", "1905"):
        assert part in shown.replace("\u00a0", " ")


def test_few_problems_keep_their_tables() -> None:
    """Who names two problems sees both, with several tokens or not."""
    times = (1e4, 1e4)
    run = of(timed("torch.matmul", half(1), *times), timed("torch.matmul", half(16), *times)).run
    shown = printed(run, 80)
    assert "4096×4096, float16" in shown
    assert "4096×4096×16, float16" in shown
    assert "published claims" not in shown


def test_a_large_run_is_quick_and_small() -> None:
    """Over a thousand cases: a page of at most 3 MB; seconds of this process, whatever else runs."""
    run = roofline_run()
    assert len(run.measurements) > 1000
    begun = time.process_time()
    html = render_run(run)
    assert time.process_time() - begun < 10
    assert len(html.encode()) < 3_000_000
    assert weights(figures(run)) == WEIGHTS


def test_comparing_such_runs() -> None:
    """Cases pair by id, of which each is unique; a slower batch is found."""
    base, new = small(), replace(small(slower={"torch.matmul-4096x4096x16-": 1.2}), id="20260515T091200Z-x-y-000001")
    ids = [m.case.id for m in base.measurements]
    assert len(set(ids)) == len(ids)
    found = compare(base, new)
    slower = {each.case.problem.n for each in found.cases if each.change.value == "slower"}
    assert slower == {16}
    compared = [each.case.id for each in found.cases]
    assert len(set(compared)) == len(compared)
    assert {m.case.id for m in base.measurements if m.case.problem.n > 1 and m.case.timer == "graph"} <= set(compared)


def test_pages_of_several_such_runs(tmp_path: Path) -> None:
    """The commands that compare and tell a history of them write their pages."""
    for run_id, slower in (("20260514T091200Z-a-b-000001", {}), ("20260515T091200Z-a-b-000002", {"hgemv-": 1.2})):
        publish(tmp_path, run_id, small(slower=slower))
    page = tmp_path / "compared.html"
    store = ["--store", str(tmp_path)]
    assert main(["compare", "latest~1", "latest", *store, "--output", str(page)]) == Exit.SLOWER
    assert "hgemv" in page.read_text(encoding="utf-8")
    told = tmp_path / "history.html"
    assert main(["history", *store, "--output", str(told)]) == Exit.FINE
    assert "4096×4096×16, float16" in told.read_text(encoding="utf-8")
