"""Runs by many timers: what leads and what is folded, timers side by side, what ran on the device."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from rich.console import Console

from harness.model import Cache, DeviceKernel, Measurement, Run, Verdict, Word
from harness.store import load
from harness.timing import Purpose, timers
from reports.charts import charts
from reports.device_kernels import device_kernels_view
from reports.figures import Way, figures
from reports.render import render_run
from reports.side_by_side import side_by_side
from reports.takeaway import floor_note
from reports.terminal import summary_table
from reports.view import lede, view
from tests.sample_run import HOSTILE, cpu_run, empty_run, gpu_run, one_trial_run
from tests.sample_selfcheck import DISTURBED_NS, DOT, GEMVX, NVBENCH_REASON, REDUCE, device_kernel, selfcheck_run

ROOT = Path(__file__).parents[1]
SHAPES = ((1024, 16), (1024, 128), (8, 4096))


@pytest.fixture(scope="module")
def run() -> Run:
    return selfcheck_run(shapes=SHAPES, samples=6)


def printed(run: Run, width: int = 80) -> str:
    out = io.StringIO()
    Console(file=out, width=width, force_terminal=False).print(summary_table(run))
    return out.getvalue()


def without(run: Run, *names: str) -> Run:
    return replace(run, measurements=tuple(m for m in run.measurements if m.case.timer not in names))


class TestFigures:
    """Which timers' figures are the run's."""

    def test_bench_alone(self, run: Run) -> None:
        """The selfcheck's timers are in nothing, other projects' in `peers` alone."""
        f = figures(run)
        ours = {name for name, timer in timers().items() if timer.purpose is Purpose.BENCH}
        assert {r.way.timer for r in f.rows} == {w.timer for w in f.ways} == {w.timer for w in f.floors} == ours
        assert {r.way.timer for r in f.peers} == {"do_bench", "nvbench"}

    def test_unknown_timer_stays(self) -> None:
        """A timer of another version was of the bench, and is charted."""
        base = gpu_run(shapes=((1024, 128),), samples=2)
        cases = [replace(m, case=replace(m.case, timer="of tomorrow")) for m in base.measurements]
        f = figures(replace(base, measurements=tuple(cases)))
        assert {w.timer for w in f.ways} == {w.timer for w in f.charted} == {"of tomorrow"}

    def test_selfcheck_changes_no_figure(self, run: Run) -> None:
        """Takeaways, cautions of figures, charts and tables are those of the run without the added timers."""
        added = [name for name, timer in timers().items() if timer.purpose in (Purpose.CHECK, Purpose.PEER)]
        alone = replace(without(run, *added), selfcheck=None)
        assert all(any(m.case.timer == name for m in run.measurements) for name in added)
        seen, bare = view(run), view(alone)
        for part in ("takeaway", "limit_takeaway", "floor_note", "cases", "device", "launch_rate", "device_kernels"):
            assert getattr(seen, part) == getattr(bare, part), part
        assert [c for c in seen.cautions if "selfcheck" not in c.text] == list(bare.cautions)
        f, g = figures(run), figures(alone)
        assert [c.table(f) for c in charts()] == [c.table(g) for c in charts()]

    def test_profiler_is_in_no_chart_of_speed(self, run: Run) -> None:
        """One trial gives no interval; its rows stand in the full tables."""
        f = figures(run)
        for chart in charts():
            if chart.section in {"speed", "limit", "trials"}:
                assert not any("profiler" in panel.title for panel in chart.spec(f))
                assert not any("profiler" in table.caption for table in chart.table(f))
        assert "profiler/cold" in {row.cells[1].text for row in view(run).cases.problems[0].rows}

    def test_profiler_alone_is_charted(self, run: Run) -> None:
        """Where it is all there is."""
        f = figures(replace(run, measurements=tuple(m for m in run.measurements if m.case.timer == "profiler")))
        assert f.headline == Way(timer="profiler", cache=Cache.COLD)
        assert f.charted == f.ways

    def test_what_leads(self, run: Run) -> None:
        """Up to four ways stand together; of more, the headline timer's lead, on the page and in its charts."""
        f = figures(run)
        assert [w.label for w in f.leading] == ["graph/cold", "graph/hot"]
        assert len(f.folded) == 8
        few = figures(gpu_run(samples=2))
        assert (few.leading, few.folded) == (few.ways, ())
        speed = next(c for c in charts() if c.section == "speed").spec(f)
        assert [(p.title, p.folded) for p in speed[:3]] == [
            ("graph/cold", False), ("graph/hot", False), ("event/cold", True),
        ]  # fmt: skip
        timer = next(facet for facet in view(run).cases.facets if facet.name == "timer")
        assert timer.values == ("graph", "event", "async", "sync", "profiler")
        assert timer.chosen == 0
        assert all(facet.chosen is None for facet in view(few.run).cases.facets)
        assert "event" not in floor_note(f)

    def test_lede_says_who_has_fewer_trials(self, run: Run) -> None:
        """Five trials each, but for the profiler."""
        assert "profiler (cold and hot, 1 trial), 5 trials each" in lede(figures(run))


class TestSideBySide:
    """The same launches by every timer."""

    def test_medians_by_timer(self, run: Run) -> None:
        """A column a timer, cold; half the interval where there are trials; the floor last; 1024×128 first."""
        seen = side_by_side(figures(run))
        assert seen is not None
        heads = [c.title for c in seen.first.columns]
        assert heads == ["kernel", "graph", "event", "async", "sync", "profiler", "do_bench", "nvbench"]
        assert seen.first.caption == "1024×128: time of a launch, cold"
        assert [t.caption.split(":")[0] for t in seen.others] == ["1024×16", "8×4096"]
        rows = {row[0].text: row for row in seen.first.rows}
        assert list(rows) == ["torch.matmul", "sgemv_k32_f32", "sgemv_k128_f32x4", "read", "empty kernel"]
        assert all(re.fullmatch(r"\d+\.\d+", cell.text) for cell in rows["torch.matmul"][1:])
        assert rows["torch.matmul"][1].note.startswith("±")
        assert rows["torch.matmul"][5].note == "one trial"
        assert (rows["read"][7].text, rows["read"][7].note) == ("–", "")
        assert seen.first.note == f"nvbench has no figure of read: {NVBENCH_REASON}."
        assert float(rows["empty kernel"][2].text) == pytest.approx(2.9, rel=0.02)

    def test_what_each_timer_is_and_takes(self, run: Run) -> None:
        """Seconds are the mean over a timer's trials: graph 0.1 and 0.5 s make 0.3."""
        seconds = {"torch.matmul": 0.1, "read": 0.5}
        kept = [m for m in run.measurements if m.case.timer in {"graph", "nvbench"} and m.case.kernel in seconds]
        timed = tuple(
            replace(m, trials=tuple(replace(t, seconds=seconds[m.case.kernel]) for t in m.trials)) for m in kept
        )
        seen = side_by_side(figures(replace(run, measurements=timed)))
        assert seen is not None
        rows = {row[0].text: [cell.text for cell in row[1:]] for row in seen.timers.rows}
        assert rows["graph"] == [timers()["graph"].summary, "device", "5", "0.30"]
        assert rows["nvbench"][1:] == ["device", "1", "0.10"]
        assert next(row[0].note for row in seen.timers.rows if row[0].text == "nvbench") == "another project's"
        assert "no ratio" in seen.no_ratio

    def test_seconds_that_were_not_recorded(self) -> None:
        """Unknown, never 0."""
        seen = side_by_side(figures(gpu_run(samples=2)))
        assert seen is not None
        assert {row[4].text for row in seen.timers.rows} == {"unknown"}

    def test_one_timer_has_nothing_beside_it(self, run: Run) -> None:
        """No section for one timer of ours, none for no figures; one for a peer beside it."""
        assert side_by_side(figures(cpu_run())) is None
        assert side_by_side(figures(empty_run())) is None
        others = [m.case.timer for m in run.measurements if m.case.timer not in {"graph", "do_bench"}]
        assert side_by_side(figures(without(run, *others))) is not None
        assert side_by_side(figures(without(run, *others, "do_bench"))) is None


class TestDeviceKernels:
    """What a launch runs on the device."""

    def test_baseline_by_problem(self, run: Run) -> None:
        """Two instances of one template have one short name and two numbers; 8×4096 starts two kernels."""
        seen = device_kernels_view(figures(run))
        assert seen is not None
        assert seen.baseline is not None
        rows = [[c.text for c in row] for row in seen.baseline.rows]
        assert [row[:2] for row in rows] == [
            ["1024×16", "internal::gemvx::kernel<…>"],
            ["1024×128", "internal::gemvx::kernel<…>"],
            ["8×4096", "dot_kernel<…>"],
            ["8×4096", "reduce_1Block_kernel<…>"],
        ]
        assert rows[0][2:6] == ["128", "32×4", "40", "2\u202f048"]
        assert float(rows[0][6]) == pytest.approx(0.99 * float(rows[0][7]), rel=0.01)
        assert rows[3][4] == "unknown"
        assert rows[3][7] == "–"
        assert [row[1].note for row in seen.baseline.rows] == ["(1)", "(2)", "(3)", "(4)"]
        assert seen.names[:4] == (GEMVX.format("true"), GEMVX.format("false"), DOT, REDUCE)
        assert seen.takeaway == (
            "torch.matmul runs 4 different device kernels on 3 problems; a launch starts several on 8×4096."
        )

    def test_others_and_the_cold_ones(self, run: Run) -> None:
        """Every kernel that was profiled, cold where there are both; no floor."""
        seen = device_kernels_view(figures(run))
        assert seen is not None
        assert seen.others is not None
        places = [(row[0].text, row[1].text) for row in seen.others.rows]
        assert len(places) == len(set(places))
        assert ("sgemv_k16_f32", "1024×16") in places
        assert {kernel for kernel, _ in places} == {"sgemv_k32_f32", "sgemv_k128_f32x4", "sgemv_k16_f32", "read"}
        assert "profiler/cold" in seen.note
        assert "hot" not in seen.note

    def test_one_kernel(self, run: Run) -> None:
        """One name on all problems, one a launch."""
        same = (device_kernel("gemv()", 1),)
        seen = device_kernels_view(figures(profiled(run, same)))
        assert seen is not None
        assert seen.takeaway == "torch.matmul runs 1 device kernel on 3 problems, one a launch."

    def test_none_without_the_profiler(self) -> None:
        """No section for a run that was not profiled."""
        assert device_kernels_view(figures(gpu_run(samples=2))) is None


def profiled(run: Run, ran: tuple[DeviceKernel, ...]) -> Run:
    def changed(m: Measurement) -> Measurement:
        passed = m.case.timer == "profiler" and m.verdict.word is Word.PASSED
        return replace(m, trials=tuple(replace(t, device_kernels=ran) for t in m.trials)) if passed else m

    return replace(run, measurements=tuple(changed(m) for m in run.measurements))


class _Headings(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.ids: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "section":
            self.ids += [value or "" for name, value in attrs if name == "id"]


def section_ids(html: str) -> set[str]:
    parser = _Headings()
    parser.feed(html)
    return set(parser.ids)


NEW = {"timers", "selfcheck", "device-kernels"}


class TestPage:
    """The file as a whole."""

    def test_sections_where_there_is_something_to_say(self, run: Run) -> None:
        """All three of a full run; none of a CPU's, of one without measurements; two timers are side by side."""
        assert section_ids(render_run(run)) >= NEW
        assert not section_ids(render_run(cpu_run())) & NEW
        assert not section_ids(render_run(empty_run())) & NEW
        assert section_ids(render_run(one_trial_run())) & NEW == {"timers"}

    def test_run_from_before_these_fields(self) -> None:
        """The example's page still comes, from a record without any of them."""
        html = render_run(load(ROOT / "examples" / "h200"))
        assert section_ids(html) & NEW <= NEW
        assert "NaN" not in re.sub(r"<script>.*?</script>", "", html, flags=re.DOTALL)

    def test_no_nan_and_no_hostile_name(self) -> None:
        """Names of device kernels and reasons are text; no number is missing its value."""
        base = selfcheck_run(shapes=((1024, 128),), samples=4, hostile=True)
        html = render_run(profiled(base, (device_kernel(HOSTILE, 4),)))
        assert HOSTILE not in html
        assert "<script>alert" not in html
        shown = re.sub(r"<script>.*?</script>", "", html, flags=re.DOTALL)
        assert not re.search(r"[>+−±]\s*(nan|inf|None)\b", shown, re.IGNORECASE)


class TestTerminal:
    """80 columns."""

    @pytest.mark.parametrize("width", [80, 120])
    def test_fits(self, run: Run, width: int) -> None:
        """Nothing is wider than the terminal or cut; the other timers are said to be on the page."""
        shown = printed(run, width)
        assert max(len(line) for line in shown.splitlines()) <= width
        assert not any(line.rstrip().endswith("…") for line in shown.splitlines())
        assert "Timed by event, async, sync and profiler too: the page has those figures." in shown
        assert "event/cold" not in shown.split("Timed by event")[0]

    def test_sections(self, run: Run) -> None:
        """What torch.matmul runs, its time by every timer with seconds, and the failed checks with their figures."""
        shown = printed(run)
        said = " ".join(shown.split())
        assert "torch.matmul runs 4 different device kernels on 3 problems" in said
        assert "reduce_1Block_kernel<…>" in shown
        [line] = [line for line in shown.splitlines() if line.startswith("s a case")]
        assert line.split()[3:] == ["0.31", "0.22", "0.40", "0.05", "0.90", "0.14", "6.20"]
        assert "failed: The selfcheck «NVML» failed in" in said
        [(found, wanted)] = re.findall(r"torch.matmul on 1024×128: (\S+) µs against (\S+) µs", said)
        assert float(found) - float(wanted) == pytest.approx(DISTURBED_NS / 1e3, abs=0.02)

    def test_why_a_peer_has_nothing(self, run: Run) -> None:
        """A package that is missing is said once."""
        lost = tuple(
            replace(m, trials=tuple(replace(t, verdict=_not_measured(run), samples_ns=()) for t in m.trials))
            if m.case.timer == "nvbench"
            else m
            for m in run.measurements
        )
        assert " ".join(printed(replace(run, measurements=lost)).split()).count(NVBENCH_REASON) == 1


def _not_measured(run: Run) -> Verdict:
    return next(m.verdict for m in run.measurements if m.verdict.word is Word.NOT_MEASURED)
