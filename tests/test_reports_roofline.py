"""A roofline run on the page, in the terminal, in a comparison and over time: what is said, and what is left out."""

from __future__ import annotations

import io
import time
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from harness.ceilings import PROBLEMS
from harness.compare import compare
from harness.errors import Exit
from harness.model import Run, TrialResult, Verdict, Word
from reports.__main__ import main
from reports.figures import figures
from reports.render import render_run
from reports.roofline.points import is_roofline, weights
from reports.roofline.view import roofline_view
from reports.takeaway import takeaway
from reports.terminal import summary_table
from reports.view import view
from tests.planted_roofline import half, of, small, timed
from tests.planted_runs import publish
from tests.sample_roofline import WEIGHTS, roofline_run
from tests.sample_run import HOSTILE, gpu_run, one_trial_run


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
