"""The selfcheck on the page and the terminal: counts, signs and places by hand, what failed and what was not judged."""

from __future__ import annotations

import io
import re
from dataclasses import replace

import pytest
from rich.console import Console

from harness.model import Check, Problem, Run, TrialResult, Verdict, Word
from harness.selfcheck import CHECKS
from reports.cautions import Level
from reports.figures import figures
from reports.selfcheck import asked, failed_elsewhere, failures, selfcheck_view, takeaway
from reports.terminal import summary_table
from reports.view import all_cautions, view
from tests.sample_run import HOSTILE, gpu_run
from tests.sample_selfcheck import selfcheck_run

SHAPE = Problem(m=1024, k=128)
FLOOR = Problem(m=1, k=1)


def check(name: str, *, found: float, wanted: float, bound: float, passed: bool, kernel: str = "read") -> Check:
    return Check(
        name=name, kernel=kernel, problem=SHAPE, found_ns=found, wanted_ns=wanted, bound_ns=bound, passed=passed
    )


GOOD = check("profiler", found=2050, wanted=2000, bound=150, passed=True)
BAD = check("NVML", found=1900, wanted=2000, bound=10, passed=False, kernel="torch.matmul")
OPEN = Check(name="length", kernel="read", problem=SHAPE, reason="graph-double was not measured (cold)")
OF_FLOOR = replace(GOOD, name="length", kernel="empty", problem=FLOOR, found_ns=700, wanted_ns=690, bound_ns=20)
LOST = Check(name="profiler", kernel="sgemv_broken", problem=SHAPE, reason="integers: row 3 is wrong")


def run_with(*checks: Check) -> Run:
    return replace(gpu_run(shapes=((1024, 128),), samples=4), selfcheck=checks)


def printed(run: Run, width: int = 80) -> str:
    out = io.StringIO()
    Console(file=out, width=width, force_terminal=False).print(summary_table(run))
    return out.getvalue()


class TestSentence:
    """How many of how many, and which not."""

    def test_failed_is_named(self) -> None:
        """Two judged, one failed, one open; the kernel without any figure is counted apart."""
        f = figures(run_with(GOOD, BAD, OPEN, LOST))
        assert takeaway(f, f.run.selfcheck or ()) == (
            "1 of 2 checks passed; failed: «NVML» of torch.matmul on 1024×128. 1 more could not be judged. "
            "1 of 3 pairs of kernel and problem have no figures to check."
        )

    def test_many_failed_are_counted(self) -> None:
        """From four on a kind says how often."""
        f = figures(run_with(GOOD, BAD, *(replace(BAD, kernel=f"k{i}") for i in range(3))))
        assert takeaway(f, f.run.selfcheck or ()) == "1 of 5 checks passed; failed: «NVML» (4)."

    @pytest.mark.parametrize(
        ("checks", "said"),
        [
            ((GOOD, OF_FLOOR), "All 2 checks passed."),
            ((GOOD,), "The one check passed."),
            ((LOST,), "No check could be judged, of 1."),
            ((), "Nothing was measured that can be checked."),
        ],
    )
    def test_others(self, checks: tuple[Check, ...], said: str) -> None:
        """All, one, none judged, none made."""
        assert takeaway(figures(run_with(*checks)), checks) == said


class TestTables:
    """A row a kind, then a row a kernel and problem."""

    def test_kinds_by_hand(self) -> None:
        """50 ns of 2000 are 2.5 %, −100 ns are 5 %, 10 ns of 690 are 1.4 %."""
        seen = selfcheck_view(figures(run_with(GOOD, BAD, OPEN, OF_FLOOR, LOST)))
        assert seen is not None
        assert seen.kinds is not None
        rows = {row[0].text: [cell.text for cell in row[3:]] for row in seen.kinds.rows}
        assert rows == {
            "profiler": ["1 of 1", "+0.050", "+2.5", "read on 1024×128"],
            "length": ["1 of 1", "+0.010", "+1.4", "empty"],
            "NVML": ["0 of 1", "−0.100", "−5.0", "torch.matmul on 1024×128"],
        }
        marks = {row[0].text: (row[3].mark, row[4].mark) for row in seen.kinds.rows}
        assert marks == {"profiler": ("", ""), "length": ("", ""), "NVML": ("bad", "bad")}
        assert {row[0].text: row[3].note for row in seen.kinds.rows}["length"] == "1 not judged"
        by_name = {kind.name: kind for kind in CHECKS}
        assert seen.kinds.rows[0][1].text == by_name["profiler"].question
        assert seen.kinds.rows[0][2].text == "differ by at most 4 % or 0.15 µs, whichever is more"

    def test_cases_by_hand(self) -> None:
        """Signed µs with %, failed ones marked, a number for why one is open, one reason across where all are."""
        seen = selfcheck_view(figures(run_with(GOOD, OPEN, BAD, OF_FLOOR, LOST)))
        assert seen is not None
        assert seen.cases is not None
        assert [c.title for c in seen.cases.columns] == ["kernel", "problem", "profiler", "length", "NVML"]
        cells = {row[0].text: [(c.text, c.note, c.mark) for c in row[1:]] for row in seen.cases.rows}
        open_, not_asked = ("–", "(1)", "quiet"), ("–", "(2)", "quiet")
        shape = ("1024×128", "", "")
        assert cells["read"] == [shape, ("+0.050", "+2.5\xa0%", ""), open_, not_asked]
        assert cells["torch.matmul"] == [shape, not_asked, not_asked, ("−0.100", "−5.0\xa0%", "bad")]
        assert cells["empty"] == [("–", "", ""), not_asked, ("+0.010", "+1.4\xa0%", ""), not_asked]
        assert cells["sgemv_broken"] == [shape, ("–", "integers: row 3 is wrong", "quiet")]
        assert seen.reasons == ("graph-double was not measured (cold)", "not asked of this kernel")

    def test_largest_by_bound_and_rule(self) -> None:
        """AGREE: most of its bound; ABOVE: least; NOT_BELOW: the cost, but a failed one before any."""
        near = replace(GOOD, found_ns=1900, kernel="near")
        wide = replace(GOOD, found_ns=20_500, wanted_ns=20_000, bound_ns=800, kernel="wide")
        assert asked((GOOD, near, wide))[0].worst == asked((near,))[0].worst
        little = check("cold", found=2030, wanted=2000, bound=20, passed=True)
        assert asked((little, replace(little, found_ns=2500)))[0].worst == asked((little,))[0].worst
        cost = check("dirty lines", found=9000, wanted=2000, bound=300, passed=True)
        cheap = replace(cost, found_ns=1990)
        below = replace(cost, found_ns=1500, passed=False)
        assert asked((cheap, cost))[0].worst == asked((cost,))[0].worst
        assert asked((cheap, cost, below))[0].worst == asked((below,))[0].worst

    def test_unknown_kind_stands_last(self) -> None:
        """A check of another version is shown, without a question."""
        seen = selfcheck_view(figures(run_with(replace(GOOD, name="of tomorrow"), GOOD)))
        assert seen is not None
        assert seen.kinds is not None
        assert [row[0].text for row in seen.kinds.rows] == ["profiler", "of tomorrow"]
        assert seen.kinds.rows[1][2].text == "not a check of this version"

    def test_odd_figures_are_no_error(self) -> None:
        """Nothing to take a share of, and a check said to be judged that holds no figures."""
        zero = replace(GOOD, wanted_ns=0.0, bound_ns=0.0)
        hollow = Check(name="NVML", kernel="read", problem=SHAPE, passed=True)
        seen = selfcheck_view(figures(run_with(zero, hollow)))
        assert seen is not None
        assert seen.cases is not None
        assert [c.text for c in seen.cases.rows[0][2:]] == ["+2.050", "–"]
        assert seen.reasons == ("no reason recorded",)


class TestPlaces:
    """Where it stands."""

    def test_failure_is_among_the_first_lines(self) -> None:
        """An error a kind, with both times and the bound, before every caution."""
        [found] = failures(figures(run_with(GOOD, BAD, OPEN)))
        assert found.level is Level.BAD
        assert found.text.startswith("The selfcheck «NVML» failed in the one case: Does it stay the same while nobody")
        [detail] = found.details
        assert detail == (
            "torch.matmul on 1024×128: 1.900\xa0µs against 2.000\xa0µs, −0.100\xa0µs (−5.0\xa0%); "
            "wanted: differ by at most 0.010\xa0µs"
        )
        levels = [c.level for c in all_cautions(figures(run_with(GOOD, BAD)))]
        assert levels == sorted(levels, key=list(Level).index)
        assert found in all_cautions(figures(run_with(GOOD, BAD)))

    def test_wrong_by_a_timer_of_the_selfcheck_alone(self) -> None:
        """A kernel whose output is wrong in a process with a second stream is wrong, whatever the other timers saw."""
        run = selfcheck_run(shapes=((1024, 128),), samples=4)
        wrong = (TrialResult(trial=0, verdict=Verdict(word=Word.WRONG, reason="row 3")),)
        place = ("sgemv_k32_f32", "graph-two-streams")
        changed = [replace(m, trials=wrong) if (m.case.kernel, m.case.timer) == place else m for m in run.measurements]
        [found] = failed_elsewhere(figures(replace(run, measurements=tuple(changed))))
        assert found.details == ("sgemv_k32_f32 on 1024×128 (graph-two-streams/cold): wrong: row 3",)
        assert found in view(replace(run, measurements=tuple(changed))).cautions
        assert found.text in printed(replace(run, measurements=tuple(changed)))
        assert failed_elsewhere(figures(run)) == ()

    def test_no_section_without_a_selfcheck(self) -> None:
        """A run that was not asked for one says nothing of it, on the page and on the terminal."""
        assert view(gpu_run(samples=2)).selfcheck is None
        assert failures(figures(gpu_run(samples=2))) == ()
        assert "Selfcheck" not in printed(gpu_run(samples=2))

    def test_own_timers_are_explained_where_they_ran(self) -> None:
        """The timers of the selfcheck have no other place on the page."""
        seen = view(selfcheck_run(shapes=((1024, 128),), samples=4))
        assert seen.selfcheck is not None
        assert "graph-two-streams" in dict(seen.selfcheck.timers)
        assert not any("graph-two-streams" in term for term, _ in seen.method)

    def test_terminal(self) -> None:
        """80 columns: a line a kind, and every failed check in a line of its own."""
        others = tuple(replace(BAD, kernel=f"k{i}") for i in range(6))
        shown = printed(run_with(GOOD, BAD, *others))
        assert max(len(line) for line in shown.splitlines()) <= 80
        assert "Selfcheck: 1 of 8 checks passed; failed: «NVML» (7)." in shown
        assert all(f"\n  k{i} on 1024×128: 1.900\xa0µs against" in shown for i in range(6))

    def test_terminal_by_kernel_and_problem(self) -> None:
        """A row each, a column a kind, in %; a dash where a check was not judged; 80 columns with nine kinds."""
        shown = printed(selfcheck_run())
        assert max(len(line) for line in shown.splitlines()) <= 80
        table = shown[shown.index("Difference of each check in %") :]
        assert re.search(r"^1024×128 *$", table, flags=re.MULTILINE)
        judged = [check for check in selfcheck_run().selfcheck or () if check.kernel == "torch.matmul"]
        assert judged
        (first, *_) = re.findall(r"^torch.matmul +(.+)$", table, flags=re.MULTILINE)
        assert len(first.split()) == len(CHECKS)

    def test_hostile_names(self) -> None:
        """A check's name, kernel and reason are text like any other."""
        bad = replace(BAD, name=HOSTILE, kernel=HOSTILE)
        seen = view(run_with(GOOD, bad, replace(OPEN, reason=HOSTILE)))
        assert seen.selfcheck is not None
        said = next(c.text for c in seen.cautions if "The selfcheck" in c.text)
        for text in (seen.selfcheck.takeaway, said, str(seen.selfcheck.kinds), str(seen.selfcheck.reasons)):
            assert "\u202e" not in text
            assert "⟨202E⟩" in text
