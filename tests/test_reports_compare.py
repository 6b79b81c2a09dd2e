"""The page that holds runs against a base run as a file, and the command that writes it."""

from __future__ import annotations

import json
import math
import re
import sys
import time
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from harness.compare import Change, compare
from harness.comparison.boards import allowance
from harness.errors import Exit
from harness.model import Run
from harness.store.draft import write_run
from reports import packages
from reports.__main__ import main
from reports.comparison.markdown import comparison_markdown
from reports.comparison.page import file_name, render_comparison, view
from reports.comparison.words import notes
from reports.page import content_security_policy, template_text
from tests.sample_comparison import held, large, night, pair, planted
from tests.sample_run import HOSTILE, cpu_run, empty_run, one_trial_run

NBSP = "\N{NO-BREAK SPACE}"


# The file


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.scripts: list[dict[str, str | None]] = []
        self.ids: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.links += [value or "" for name, value in attrs if name in ("src", "href", "srcset", "action", "data")]
        self.ids += [value or "" for name, value in attrs if name == "id"]
        if tag == "script":
            self.scripts.append(dict(attrs))


def test_says_what_a_time_is() -> None:
    """On the page and in the text for a pull request, in the same words."""
    for said in (render_comparison(pair()), comparison_markdown(pair())):
        assert "geometric mean of the medians of the trials, ± half their 95" in re.sub(r"\s+", " ", said)


def test_hostile_names_stay_text() -> None:
    """No script but the page's own, whose hash the policy names; no address; no raw name."""
    html = render_comparison(pair(hostile=True))
    tags = _Tags()
    tags.feed(html)
    assert [script.get("type") for script in tags.scripts] == ["application/json", None]
    assert all(link.startswith(("#", "data:")) for link in tags.links)
    assert len(tags.ids) == len(set(tags.ids))
    assert HOSTILE not in html
    assert "<script>alert" not in html
    assert "{{ 7*7 }}" in html
    policy = content_security_policy([template_text("compare.js")])
    assert policy.replace("'", "&#39;") in html


@pytest.mark.parametrize(
    "news",
    [(cpu_run(),), (one_trial_run(),), (empty_run(),), (night(1), cpu_run(), empty_run())],
    ids=["cpu", "one trial", "empty", "several"],
)
def test_every_kind_of_run(news: tuple[Run, ...]) -> None:
    """What cannot be compared says why; the data is JSON without NaN."""
    html = render_comparison(held(night(0), *news))
    assert html.rstrip().endswith("</html>")
    (data,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', html, re.DOTALL)
    json.loads(data, parse_constant=lambda name: pytest.fail(f"{name} in the data"))
    if cpu_run().id in {run.id for run in news}:
        assert "cannot be compared with the base: CPU against GPU" in html


def test_damaged_records() -> None:
    """Samples that are no times, trials and samples that are missing: each case says so, and the page is made."""
    base, new = night(0), night(1)
    first, second, third, *rest = new.measurements
    unfit = replace(first.trials[0], samples_ns=(math.nan, math.inf, -1.0), sample_clocks_mhz=(math.nan, None, 1e308))
    unread = replace(second.trials[0], samples_ns=())
    damaged = [replace(first, trials=(unfit,)), replace(second, trials=(unread,)), replace(third, trials=())]
    made = held(base, replace(new, measurements=(*damaged, *rest)))
    html = render_comparison(made)
    for said in ("in new a sample of nan ns", "in new passed, but without samples", "in new no trials"):
        assert said in html
        assert said in comparison_markdown(made)


def test_two_empty_runs() -> None:
    """There is nothing, and that is said."""
    html = render_comparison(held(empty_run(), empty_run()))
    assert "No case can be compared." in html
    assert "Exit code 3: no case is comparable." in html


def test_300_cases_of_2_runs_are_small_and_quick() -> None:
    """Under 1 MB and 5 s with 5 trials of 100 samples; the samples are not in it."""
    made = large(1)
    assert len(made.found[0].cases) == 300
    started = time.process_time()
    html = render_comparison(made)
    assert time.process_time() - started < 5
    assert len(html.encode()) < 1_000_000


def test_many_runs_stay_small() -> None:
    """A third of 30 runs × 300 cases takes a third of 8 MB at most, and the page says what so many tables mean."""
    made = large(10, samples=10)
    html = render_comparison(made)
    assert len(html.encode()) < 8_000_000 / 3
    assert "over all of them together it is up to 10 times as high" in html


def test_the_notes_speak_of_several_tables_only_where_there_are() -> None:
    """Holm's correction is made by table; boards are spoken of where the runs are of two."""
    one = pair().found
    assert not any("together" in note or "boards" in note for note in notes(one))
    assert any("Here are 3 such tables" in note for note in notes(one * 3))
    other = replace(one[0], two_boards=True)
    assert allowance() in notes([one[0], other])


def test_what_stands_on_the_page() -> None:
    """Attribution, exit code, every figure of a slower case with unit and spread: readable without script."""
    html = render_comparison(pair()).replace("&nbsp;", NBSP)
    body = html[: html.index('<script type="application/json"')]
    assert '<p class="takeaway">driver only</p>' in body
    assert "Exit code 5: a kernel is wrong or crashed in the new run." in body
    row = re.search(r"<tr data-case[^>]*>(?:(?!</tr>).)*torch\.matmul(?:(?!</tr>).)*</tr>", body, re.DOTALL)
    assert row is not None
    said = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", row[0]).replace(NBSP, " "))
    assert re.search(r"▲ \+5\.\d+ % slower \+4\.\d+ to \+5\.\d+ % p < 0\.0001", said.replace("&lt;", "<"))
    assert len(re.findall(r"\d µs ±0\.\d %", said)) == 2
    assert said.count("±") == 2  # of the times alone: beside a difference from 1 it would be read in its unit


def test_the_interval_stands_in_the_cells_of_several_runs() -> None:
    """There is no column for it: it is in each cell, in the figure's unit."""
    html = render_comparison(held(night(0), night(1), night(2, planted)))
    cell = re.search(r'<td class="cell longer slower".*?</td>', html)
    assert cell is not None
    said = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", cell[0]).replace(NBSP, " ")).strip()
    assert re.fullmatch(r"▲ \+5\.\d+ % slower \+4\.\d+ to \+5\.\d+ %", said)


# The command


@pytest.fixture
def store(tmp_path: Path) -> Path:
    for run in (night(0), night(1, planted, driver_version="590.44.01"), night(2)):
        (tmp_path / run.id).mkdir()
        write_run(tmp_path / run.id, run)
    return tmp_path


def ids(store: Path) -> list[str]:
    return sorted(path.name for path in store.iterdir() if path.name.startswith("2026"))


def test_the_page_lies_beside_the_runs(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Named by both ids; its path is printed, the comparison's code left with, nothing else left behind."""
    base, new, _ = ids(store)
    assert main(["compare", base, new, "--store", str(store)]) == Exit.KERNEL
    page = store / "reports" / f"compare-{base}-{new}.html"
    assert capsys.readouterr().out == f"{page.resolve()}\n"
    assert "driver only" in page.read_text(encoding="utf-8")
    assert list(page.parent.iterdir()) == [page]
    assert main(["compare", base, "latest", "--store", str(store)]) == Exit.FINE


def test_several_runs_have_a_short_name(store: Path) -> None:
    """The same for the same runs, another for others; no id leaves its folder."""
    base, *news = ids(store)
    assert main(["compare", base, *news, "--store", str(store)]) == Exit.KERNEL
    (page,) = (store / "reports").iterdir()
    assert re.fullmatch(rf"compare-{base}-2-runs-[0-9a-f]{{8}}\.html", page.name)
    made = held(night(0), night(1), night(2))
    assert file_name(made) == page.name
    assert file_name(replace(made, news=made.news[::-1])) != page.name
    assert "/" not in file_name(held(replace(night(0), id="../../x"), night(1)))


def test_markdown_goes_to_stdout_or_a_file(store: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """And needs none of the page's packages; no page is written."""
    base, new, _ = ids(store)
    arguments = ["compare", base, new, "--store", str(store), "--markdown"]
    assert main(arguments) == Exit.KERNEL
    said = capsys.readouterr().out
    assert said.startswith("### SGEMV on NVIDIA H200: driver only\n")
    target = tmp_path / "new" / "comment.md"
    assert main([*arguments, "--output", str(target)]) == Exit.KERNEL
    assert target.read_text(encoding="utf-8") == said
    assert capsys.readouterr().out == f"{target}\n"
    assert not (store / "reports").exists()


def test_options_of_the_terminals_command(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Filters and thresholds are the same ones; a wrong one is one line."""
    base, new, _ = ids(store)
    named = ["compare", base, new, "--store", str(store), "--markdown"]
    assert main([*named, "--kernel", "torch.matmul", "--timer", "graph"]) == Exit.SLOWER
    assert "read" not in capsys.readouterr().out.replace("spread", "")
    assert main([*named, "--kernel", "torch.matmul", "--threshold", "0.2"]) == Exit.FINE
    assert main([*named, "--threshold", "2"]) == Exit.USAGE
    assert capsys.readouterr().err.count("\n") == 1


def test_a_comparison_of_some_cases_says_so(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In the head, before the takeaway and with the exit code, with what changed among the others."""
    base, new, _ = ids(store)
    target = store / "some.html"
    named = ["compare", base, new, "--store", str(store), "--kernel", "sgemv_k32_f32", "--timer", "graph"]
    said = "nly --kernel sgemv_k32_f32 --timer graph: 4 of 36 cases; 4 failed, 4 slower, 4 faster among those left out"
    none = "None of 4 compared cases is known to take more than 1 % longer."
    assert main([*named, "--output", str(target)]) == Exit.FINE
    html = target.read_text(encoding="utf-8").replace(NBSP, " ")
    assert f"<dt>cases</dt><dd>o{said}</dd>" in html
    assert f'<p class="takeaway">O{said}. {none}' in html
    assert f"Exit code 0: no case is known to be slower (o{said})." in html
    capsys.readouterr()
    assert main([*named, "--markdown"]) == Exit.FINE
    heading, _, takeaway, _, code, *_ = capsys.readouterr().out.replace(NBSP, " ").splitlines()
    assert heading == "### SGEMV on NVIDIA H200, only --kernel sgemv_k32_f32 --timer graph: driver only"
    assert f". O{said}. {none}" in takeaway
    assert code == f"Exit code 0: no case is known to be slower (o{said})."


def test_some_cases_of_several_runs_are_counted_by_run(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Where they have not the same numbers, these stand in the table."""
    base, *news = ids(store)
    assert main(["compare", base, *news, "--store", str(store), "--kernel", "read", "--markdown"]) == Exit.FINE
    said = capsys.readouterr().out
    assert said.count("nly --kernel read: counted by run in the table") == 2
    rows = [line for line in said.splitlines() if line.startswith(("| driver 5", "| new run"))]
    assert rows[0].startswith("| new run | cases asked for | ")
    assert "| 8 of 36 cases; 4 failed, 4 slower among those left out | driver only |" in rows[1]
    assert "| 8 of 36 cases | same environment |" in rows[2]


def test_all_cases_are_not_said_to_be_some() -> None:
    """Nothing is asked for in a comparison of all."""
    assert view(pair()).selection == ""
    assert ">cases</dt>" not in render_comparison(pair())
    assert ", only" not in comparison_markdown(pair())


def test_a_hostile_filter_stays_text() -> None:
    """It comes from a command line, and goes into a page and a comment."""
    made = replace(pair(), filter=f"--kernel {HOSTILE}", left_out=({Change.SLOWER: 1},))
    html, markdown = render_comparison(made), comparison_markdown(made)
    assert HOSTILE not in html + markdown
    assert "`" not in markdown
    assert "<script>alert" not in html
    assert "evil&#60;/script&#62;" in markdown


def test_the_file_that_is_asked_for(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`--output`; one that cannot be written is infrastructure, in one line."""
    base, new, _ = ids(store)
    target = store / "there.html"
    arguments = ["compare", base, new, "--store", str(store)]
    assert main([*arguments, "--output", str(target)]) == Exit.KERNEL
    assert "</html>" in target.read_text(encoding="utf-8")
    for more in ([], ["--markdown"]):
        capsys.readouterr()
        assert main([*arguments, *more, "--output", str(target / "below.html")]) == Exit.INFRASTRUCTURE
        shown = capsys.readouterr()
        assert shown.out == ""
        assert shown.err.count("\n") == 1
        assert "--output" in shown.err


def test_a_missing_package_costs_the_page_alone(
    store: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Markdown comes without it."""
    base, new, _ = ids(store)
    monkeypatch.setattr(packages, "PAGE_PACKAGES", {"no_such_module_xyz": "jinja2"})
    assert main(["compare", base, new, "--store", str(store)]) == Exit.INFRASTRUCTURE
    assert "pip install jinja2" in capsys.readouterr().err
    for module in ("jinja2", "markupsafe", "vl_convert", "altair"):
        monkeypatch.setitem(sys.modules, module, None)
    assert main(["compare", base, new, "--store", str(store), "--markdown"]) == Exit.KERNEL


def test_the_view_without_a_template() -> None:
    """What the page says is there as data, with the reason for every run that is not comparable."""
    other = replace(night(2), options=replace(night(2).options, device="cpu"))
    made = held(night(0), night(1), other)
    seen = view(made)
    assert seen.cautions == (f"{seen.news[1].text} cannot be compared with the base: CPU against GPU",)
    assert [word for _, word, _ in seen.words] == [str(word) for word in Change]
    assert seen.exit_line == "Exit code 3: no case is comparable in a new run."
    assert len(seen.map.rows) == len(compare(made.base, made.news[0]).cases)


def test_options_of_the_terminal_are_told_apart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`--json` is the other program's; one line names it."""
    assert main(["compare", "a", "b", "--html", "--json", "--store", str(tmp_path)]) == 2
    err = capsys.readouterr().err
    assert err.startswith("--json: not of this program; `python -m harness compare` prints")
    assert len(err.splitlines()) == 1
