"""Figures worked out by hand, warnings, and what the page says."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from harness.model import Cache, Case, Measurement, Problem, Role, Run, TrialResult, Verdict, Word
from harness.stats import Interval
from reports import format as fmt
from reports.cases import case_table
from reports.cautions import Level, cautions
from reports.device import QUANTITIES, line, states_of
from reports.facts import build_views, environment_tables, fact
from reports.figures import Way, figures
from reports.launch_rate import launch_rate
from reports.tables import number, table, text
from reports.takeaway import limit_takeaway, takeaway
from reports.view import lede
from tests.sample_run import cpu_run, cuda_build, empty_run, gpu_run, large_run, one_trial_run

TINY = Problem(m=2, k=3)
GRAPH = Way(timer="graph", cache=Cache.COLD)


def tiny(*, kernel_ns: tuple[float, ...], baseline_ns: tuple[float, ...], limit_ns: tuple[float, ...]) -> Run:
    """One problem by one timer, one sample a trial."""
    ns_by_name = {"mine": kernel_ns, "torch.matmul": baseline_ns, "read": limit_ns}
    roles = {"read": Role.LIMIT}
    measurements = tuple(
        Measurement(
            case=Case(kernel=k, role=roles.get(k, Role.GEMV), problem=TINY, timer="graph", cache=Cache.COLD),
            trials=tuple(
                TrialResult(trial=i, verdict=Verdict(word=Word.PASSED), samples_ns=(ns,)) for i, ns in enumerate(all_ns)
            ),
        )
        for k, all_ns in ns_by_name.items()
    )
    base = gpu_run(shapes=((64, 64),), trials=len(kernel_ns), samples=2)
    return replace(base, kernels=dict.fromkeys(ns_by_name, ""), measurements=measurements)


class TestFigures:
    """What is computed from several cases."""

    def test_ratios_and_bandwidth_by_hand(self) -> None:
        """2×3 float32 moves 4·(6 + 3 + 2) = 44 bytes: in 1 µs that is 0.044 GB/s; 2 µs against 1 µs is 2×."""
        f = figures(tiny(kernel_ns=(1000, 1000), baseline_ns=(2000, 2000), limit_ns=(800, 800)))
        row = f.find("mine", TINY, GRAPH)
        assert row is not None
        assert row.speedup is not None
        assert row.of_limit is not None
        assert row.gb_per_s == pytest.approx(0.044)
        assert row.speedup.estimate == pytest.approx(2)
        assert row.of_limit.estimate == pytest.approx(0.8)

    def test_interval_is_paired_by_trial(self) -> None:
        """Both slow down by 10 % in trial 1: the ratio's interval has no width at all."""
        row = figures(tiny(kernel_ns=(1000, 1100), baseline_ns=(2000, 2200), limit_ns=(900, 990))).rows[0]
        assert row.speedup is not None
        assert row.speedup.low == pytest.approx(2)
        assert row.speedup.high == pytest.approx(2)

    def test_interval_by_hand(self) -> None:
        """Ratios 2 and 2/1.1: t(0.975, 1) = 12.706, so ±12.706·ln(1.1)/2 around the mean logarithm."""
        row = figures(tiny(kernel_ns=(1000, 1100), baseline_ns=(2000, 2000), limit_ns=(900, 900))).rows[0]
        assert row.speedup is not None
        middle = math.log(2) - math.log(1.1) / 2
        assert row.speedup.low == pytest.approx(math.exp(middle - 12.706 * math.log(1.1) / 2), rel=1e-3)
        assert row.speedup.high == pytest.approx(math.exp(middle + 12.706 * math.log(1.1) / 2), rel=1e-3)

    def test_no_figures_without_passing(self) -> None:
        """A wrong kernel has no figure of any kind."""
        broken = [r for r in figures(gpu_run()).rows if r.kernel == "sgemv_broken"]
        assert broken
        assert all(r.summary is r.gb_per_s is r.speedup is r.of_limit is None for r in broken)

    def test_headline_falls_back(self) -> None:
        """graph/cold where it is, else the first timer with figures; floors are no problem of their own."""
        assert figures(gpu_run()).headline == GRAPH
        assert figures(cpu_run()).headline == Way(timer="async", cache=Cache.COLD)
        assert figures(empty_run()).headline is None
        assert Problem(m=1, k=1) not in figures(gpu_run()).problems


class TestFormat:
    """Numbers and names for people."""

    @pytest.mark.parametrize(
        ("ns", "shown"),
        [(690.04, "0.690"), (1723, "1.723"), (17_200, "17.20"), (119_800, "119.8"), (1_014_000, "1\u202f014")],
    )
    def test_microseconds(self, ns: float, shown: str) -> None:
        """Four digits, at most three of them behind the point."""
        assert fmt.microseconds_figure(ns) == shown

    def test_unit_and_spread(self) -> None:
        """A time says its unit and half its interval; one trial says that there is none."""
        assert fmt.microseconds_pm(Interval(estimate=2000, low=1980, high=2020)) == "2.000\xa0µs ±1.0\xa0%"
        assert fmt.plus_minus(Interval(estimate=2000, low=1999.94, high=2000.06)) == "±0.003\xa0%"
        assert fmt.microseconds_pm(Interval(estimate=2000, low=None, high=None)) == "2.000\xa0µs no interval"

    @pytest.mark.parametrize(
        ("fraction", "shown"),
        [(0.12, "12"), (0.004, "0.4"), (0.0004, "0.04"), (0.00004, "0.004"), (3e-7, "0.00003"), (0, "0.0"), (1, "100")],
    )
    def test_percent(self, fraction: float, shown: str) -> None:
        """No figure is rounded away."""
        assert fmt.percent_figure(fraction) == shown

    def test_times(self) -> None:
        """A third decimal only where two would hide the interval."""
        assert fmt.times_range(Interval(estimate=1.42, low=1.40, high=1.44)) == "1.42× (95\xa0%: 1.40–1.44)"
        assert fmt.times_range(Interval(estimate=1.42, low=1.418, high=1.422)) == "1.420× (95\xa0%: 1.418–1.422)"

    def test_names_cannot_hide(self) -> None:
        """Control, zero-width and direction characters are shown as codes; a long name is cut in the middle."""
        assert fmt.name("a\u202eb\u200bc\n\ud800") == "a⟨202E⟩b⟨200B⟩c⟨000A⟩⟨D800⟩"
        assert len(fmt.name("x" * 2_000_000)) == fmt.LONGEST_NAME

    def test_other_units(self) -> None:
        """Memory in binary units, lengths of time in what people say, problems with what differs from the usual."""
        assert fmt.data_bytes(60 * 2**20) == "60\xa0MiB"
        assert fmt.span(190) == "3\xa0min 10\xa0s"
        assert fmt.problem(Problem(m=8, k=16, n=2, dtype="float16")) == "8×16×2, float16"
        assert fmt.listing(["a", "b", "c"]) == "a, b and c"

    def test_part_of_all(self) -> None:
        """A count of a count; of a single one there is no «1 of 1 case»."""
        assert fmt.out_of(1, 3, "case") == "1 of 3 cases"
        assert fmt.out_of(3, 3, "case") == "3 of 3 cases"
        assert fmt.out_of(1, 1, "case") == "the one case"

    @pytest.mark.parametrize(
        ("end", "said"),
        [
            ("2026-05-14T09:12:50+00:00", "at 14 May 2026, 09:12 UTC"),
            ("2026-05-14T09:15:10+00:00", "from 14 May 2026, 09:12 to 09:15 UTC"),
            ("2026-05-15T00:02:00+00:00", "from 14 May 2026, 09:12 UTC to 15 May 2026, 00:02 UTC"),
        ],
    )
    def test_period(self, end: str, said: str) -> None:
        """One moment where both are the same minute; the day once where it is the same."""
        assert fmt.period("2026-05-14T09:12:00+00:00", end) == said


class TestCautions:
    """What stands before the figures."""

    def test_gravest_first_with_reasons(self) -> None:
        """Wrong and crashed kernels stand first, each with where and why."""
        found = cautions(figures(gpu_run()))
        assert [c.level for c in found[:2]] == [Level.BAD, Level.BAD]
        assert "sgemv_broken gave a wrong result" in found[0].text
        assert "row 3 is 16776192" in found[0].details[0]
        assert "SIGSEGV" in found[1].details[0]

    def test_power_cap_names_cases(self) -> None:
        """The four kernels that pass on 4096×4096, by graph, cold and hot, ran into the cap: 8 cases."""
        capped = next(c for c in cautions(figures(gpu_run())) if "power limit" in c.text)
        assert len(capped.details) == 8
        assert all("4096×4096" in detail and "10 of 10 readings" in detail for detail in capped.details)

    def test_spread_names_the_states(self) -> None:
        """A case with two states shows each trial's median."""
        run = tiny(kernel_ns=(1000, 1050, 1000), baseline_ns=(2000,) * 3, limit_ns=(900,) * 3)
        [found] = [c for c in cautions(figures(run)) if "Trials disagree" in c.text]
        assert "1 of 3 cases" in found.text
        assert found.details == ("mine on 2×3 (graph/cold): 1.000, 1.050, 1.000\xa0µs by trial, 5.0\xa0% apart",)

    def test_one_case_is_the_one_case(self) -> None:
        """Nothing is counted where there is nothing else."""
        run = tiny(kernel_ns=(1000, 1050, 1000), baseline_ns=(2000,) * 3, limit_ns=(900,) * 3)
        [found] = [
            c for c in cautions(figures(replace(run, measurements=run.measurements[:1]))) if "disagree" in c.text
        ]
        assert "Trials disagree in the one case (graph/cold): " in found.text

    def test_spread_is_stricter_for_long_ones(self) -> None:
        """2 % apart is fine at 1 µs and too much at 10 µs."""
        short = tiny(kernel_ns=(1000, 1020), baseline_ns=(2000, 2000), limit_ns=(900, 900))
        long = tiny(kernel_ns=(10_000, 10_200), baseline_ns=(20_000, 20_000), limit_ns=(9000, 9000))
        assert not any("disagree" in c.text for c in cautions(figures(short)))
        assert any("disagree" in c.text for c in cautions(figures(long)))

    def test_cpu_dirty_partial_single(self) -> None:
        """What kind of run it is stands among the warnings."""
        on_cpu = [c.text for c in cautions(figures(cpu_run()))]
        assert on_cpu[0].startswith("These are CPU numbers")
        assert any("uncommitted" in text for text in on_cpu)
        cut = " ".join(c.text for c in cautions(figures(one_trial_run())))
        assert "cut short" in cut
        assert "One trial only" in cut
        assert "--quick" in cut


class TestText:
    """Sentences and tables."""

    def test_lede(self) -> None:
        """What ran where, when and how long, in one sentence."""
        said = lede(figures(gpu_run()))
        for part in (
            "NVIDIA H200",
            "580.159.04",
            "6 kernels on 4 problems",
            "graph (cold and hot)",
            "5 trials",
            "3\xa0min",
        ):
            assert part in said

    def test_takeaway_follows_the_interval(self) -> None:
        """Faster, slower, or not to be told apart, as the interval says."""
        fast = tiny(kernel_ns=(1000, 1000), baseline_ns=(2000, 2000), limit_ns=(900, 900))
        slow = tiny(kernel_ns=(2000, 2000), baseline_ns=(1000, 1000), limit_ns=(900, 900))
        open_ = tiny(kernel_ns=(1000, 1000), baseline_ns=(900, 1200), limit_ns=(900, 900))
        assert "beats torch.matmul on the one problem: 2.000×" in takeaway(figures(fast))
        assert "kernel is slower than torch.matmul on the one problem: 0.500×" in takeaway(figures(slow))
        assert "kernel cannot be told apart from torch.matmul on the one problem: 1.0" in takeaway(figures(open_))
        assert takeaway(figures(empty_run())) == "No kernel has figures in this run."

    def test_takeaway_names_the_baseline_first(self) -> None:
        """Slower on one problem, open on the other: torch.matmul is named in what comes first, counts are of all."""
        slow = tiny(kernel_ns=(2000, 2000), baseline_ns=(1000, 1000), limit_ns=(900, 900))
        open_ = tiny(kernel_ns=(1000, 1000), baseline_ns=(900, 1200), limit_ns=(900, 900))
        other = Problem(m=4, k=5)
        moved = tuple(replace(m, case=replace(m.case, problem=other)) for m in open_.measurements)
        said = takeaway(figures(replace(slow, measurements=(*slow.measurements, *moved))))
        assert "kernel is slower than torch.matmul on 1 of 2 problems: 0.500×" in said
        assert "; cannot be told apart from it on 1 of 2 problems: 1.0" in said

    def test_limit_takeaway_says_whose_kernel(self) -> None:
        """The fastest that was written here, which torch's own may beat: 900 ns of 1000 ns is 90 %."""
        run = tiny(kernel_ns=(1000, 1000), baseline_ns=(950, 950), limit_ns=(900, 900))
        assert "the fastest hand-written kernel of each problem reaches 90.0\xa0%" in limit_takeaway(figures(run))

    def test_limit_takeaway_says_what_is_missing(self) -> None:
        """The limit, a kernel to hold against it, or the two on one problem beside the baseline."""
        run = tiny(kernel_ns=(1000, 1000), baseline_ns=(950, 950), limit_ns=(900, 900))

        def without(*kernels: str) -> str:
            left = tuple(each for each in run.measurements if each.case.kernel not in kernels)
            return limit_takeaway(figures(replace(run, measurements=left)))

        assert without("read") == "The limit was not measured by the headline timer."
        assert without("mine") == "No hand-written kernel has figures to hold against the limit."
        said = "No problem has figures of the limit, of torch.matmul and of a hand-written kernel together."
        assert without("torch.matmul") == said

    def test_case_table_says_why(self) -> None:
        """A row without figures spans the figures' columns with its verdict and reason."""
        rows = case_table(figures(gpu_run()), Problem(m=1024, k=128)).rows
        last = {row[0].text: row[2] for row in rows if row[2].columns > 1}
        assert last["sgemv_k16_f32"].text == "unsupported"
        assert last["sgemv_k16_f32"].note == "K=128 is not 16"
        assert last["sgemv_broken"].text == "wrong"

    def test_one_trial_has_no_interval(self) -> None:
        """No ± and no spread from one trial: a dash, never 0."""
        row = case_table(figures(one_trial_run()), Problem(m=1024, k=128)).rows[0]
        assert (row[3].text, row[4].text) == (fmt.NONE, fmt.NONE)

    def test_launch_rate_compares_only_same_timers(self) -> None:
        """Each line has one timer's figures and its ratio; without graph the section is left out."""
        found = launch_rate(figures(gpu_run()))
        assert found is not None
        assert [f.problem for f in found.findings] == ["1024×16, in this run", "1024×128, in this run"]
        assert "200 calls" in found.findings[1].lines[0][0]
        assert "2.83" in found.reference
        assert launch_rate(figures(cpu_run())) is None

    def test_environment_gives_reasons(self) -> None:
        """Unknown with its reason; units for people."""
        run = gpu_run()
        cells = {row[0].note: row[1].text for t in environment_tables(run) for row in t.rows}
        assert cells["hostname"] == "unknown: turned off"
        assert cells["l2_bytes"] == "60\xa0MiB"
        assert cells["power_limit_mw"] == "700\xa0W"
        assert fact("mig", False, None) == "no"

    def test_unfilled_row_is_refused(self) -> None:
        """A row that does not fill its table is a mistake of the code."""
        with pytest.raises(ValueError, match="does not fill 2 columns"):
            table("t", [text("a"), number("b")], [["1"]])

    def test_device_line_is_short(self) -> None:
        """However many readings, a line has a bounded number of points, and the extremes stay."""
        states = states_of(figures(large_run()).rows)
        points = line(QUANTITIES[0], states)
        assert len(points) <= 160
        assert min(p.low for p in points) == min(s.sm_clock_mhz or 0 for s in states)


class TestOwnKernels:
    """What the page says of users' files."""

    def test_what_a_kernel_printed_is_a_note(self) -> None:
        """The first line of each problem, with nothing that could hide or end it; none of kernels that were silent."""
        run = tiny(kernel_ns=(1000, 1000), baseline_ns=(950, 950), limit_ns=(900, 900))
        mine, *others = run.measurements
        spoken = replace(mine, trials=(mine.trials[0], replace(mine.trials[1], printed="a \u202e line\nand more")))
        found = [c for c in cautions(figures(replace(run, measurements=(spoken, *others)))) if "printed" in c.text]
        assert [(c.level, c.text.partition(";")[0]) for c in found] == [(Level.NOTE, "mine printed")]
        assert found[0].details == ("2×3: a ⟨202E⟩ line",)
        assert not [c for c in cautions(figures(run)) if "printed" in c.text]

    @pytest.mark.parametrize(
        ("run", "said"), [(cpu_run(), "not built: no CUDA device"), (gpu_run(), "nothing to build: no .cu file")]
    )
    def test_a_file_that_was_not_compiled_says_so(self, run: Run, said: str) -> None:
        """Neither a compiler nor architectures are told, as there are none; packages where it has some."""
        kept = replace(cuda_build(), library="mine.py", target="own/mine", commands=(), resources=())
        (view,) = build_views(replace(run, builds=(replace(kept, compiler_version="triton 3.6.0"),)))
        assert (view.title, view.resources) == ("mine.py (own/mine)", None)
        assert view.facts == (("compiled", said), ("packages", "triton 3.6.0"), ("content hash", kept.key))
        (bare,) = build_views(replace(run, builds=(replace(kept, compiler_version="none"),)))
        assert [what for what, _ in bare.facts] == ["compiled", "content hash"]
