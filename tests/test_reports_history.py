"""The page of a store over time as a file, and the command that writes it."""

from __future__ import annotations

import json
import re
import time
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from harness.errors import Exit
from harness.history.devices import History, read_history
from harness.model import Verdict, Word
from harness.store import Store
from reports import packages
from reports.__main__ import main
from reports.history.page import render_history
from reports.history.view import view
from tests.many_runs import around, case, night_run, write, write_story
from tests.page_data import unpacked
from tests.sample_run import HOSTILE
from tests.thirty_nights import A, C, history, tell, told

__all__ = ["history"]

WRONG = Verdict(word=Word.WRONG, reason=HOSTILE)


def text_of(html: str) -> str:
    """What a reader sees without script."""
    parser = _Text()
    parser.feed(html)
    return re.sub(r"\s+", " ", " ".join(parser.said))


class _Text(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []
        self.open: list[str] = []
        self.links: list[str] = []
        self.scripts = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("script", "style", "template"):
            self.open.append(tag)
        self.scripts += tag == "script" and "type" not in dict(attrs)
        self.links += [value or "" for name, value in attrs if name in ("src", "href", "srcset", "action", "data")]

    def handle_endtag(self, tag: str) -> None:
        if self.open and tag == self.open[-1]:
            self.open.pop()

    def handle_data(self, data: str) -> None:
        if not self.open:
            self.said.append(data)


class TestCommand:
    """`python -m reports history`."""

    def test_writes_the_page(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """`reports/history.html` in the store, or where asked for; prints the path; no network."""
        tell(tmp_path)
        assert main(["history", "--store", str(tmp_path)]) == Exit.FINE
        page = tmp_path / "reports" / "history.html"
        assert capsys.readouterr().out == f"{page}\n"
        parser = _Text()
        parser.feed(page.read_text(encoding="utf-8"))
        assert "The geometric mean of the medians of a run's trials, each" in " ".join(parser.said)
        assert all(link.startswith(("#", "data:")) for link in parser.links)
        target = tmp_path / "elsewhere" / "x.html"
        assert main(["history", "--store", str(tmp_path), "--output", str(target)]) == Exit.FINE
        assert target.read_text(encoding="utf-8") == page.read_text(encoding="utf-8")

    def test_damaged_runs_are_named(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """A line each on stderr and on the page, the page of the rest, and code 4."""
        tell(tmp_path, nights=4)
        folders = sorted(path for path in tmp_path.iterdir() if path.is_dir())
        with (folders[1] / "run.json").open("a") as file:
            file.write("\n")
        (folders[2] / "SHA256SUMS").unlink()
        assert main(["history", "--store", str(tmp_path)]) == Exit.RUN == 4
        shown = capsys.readouterr()
        assert shown.out == f"{tmp_path / 'reports' / 'history.html'}\n"
        first, second = shown.err.splitlines()
        assert first == f"{folders[1] / 'run.json'}: changed since it was published (SHA-256 differs)"
        assert second == f"{folders[2] / 'SHA256SUMS'}: No such file or directory"
        said = text_of((tmp_path / "reports" / "history.html").read_text(encoding="utf-8"))
        assert "2 runs could not be read" in said
        assert folders[1].name in said
        assert "2 runs since 14\xa0May\xa02026".replace("\xa0", " ") in said

    @pytest.mark.parametrize(("nights", "said"), [(0, "no runs"), (2, "none of 2 runs can be read")])
    def test_nothing_to_show(self, tmp_path: Path, capsys: pytest.CaptureFixture[str], nights: int, said: str) -> None:
        """One line of its own, code 4, no page."""
        for night in range(nights):
            (write(tmp_path, night_run(night, [A], told)) / "run.json").write_text("{}")
        assert main(["history", "--store", str(tmp_path)]) == Exit.RUN
        shown = capsys.readouterr()
        assert len(shown.err.splitlines()) == nights + 1
        assert shown.err.splitlines()[-1].endswith(f"{said}: there is nothing to show over time")
        assert not (tmp_path / "reports").exists()

    def test_nothing_with_a_figure(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """Runs of unsupported cases alone hold nothing to compare."""
        never = Verdict(word=Word.UNSUPPORTED, reason="K=128 is not 16")
        write(tmp_path, night_run(0, [A], lambda *_: never))
        assert main(["history", "--store", str(tmp_path)]) == Exit.NOT_COMPARABLE
        assert capsys.readouterr().err == "none of 1 runs has a case with a figure or a failure\n"

    def test_chosen_cases_and_runs(self, tmp_path: Path) -> None:
        """Only these stand in the table, and the page says so."""
        tell(tmp_path)
        options = ["--kernel", "read", "--kernel", "torch.matmul", "--timer", "graph", "--shape", "1024x128"]
        assert main(["history", "--store", str(tmp_path), *options, "--last", "3"]) == Exit.FINE
        html = (tmp_path / "reports" / "history.html").read_text(encoding="utf-8")
        assert re.findall(r'<span class="case">([^<]*)<', html) == ["torch.matmul"]
        assert "--kernel read --kernel torch.matmul --shape 1024x128 --timer graph" in html
        assert "3 runs since" in text_of(html)

    @pytest.mark.parametrize(
        ("options", "said"),
        [
            (["--kernel", "sgemv_typo"], "--kernel: found 'sgemv_typo', wanted one of: torch.matmul, sgemv_k32_f32"),
            (["--timer", "clock"], "--timer: found 'clock', wanted one of: graph, async"),
            (["--kernel", "read", "--timer", "graph"], "--kernel read --timer graph: none of the 4 cases"),
            (["--shape", "7x7"], "--shape 7x7: none of the 4 cases"),
            (["--shape", "x"], "--shape: found 'x', wanted MxK"),
            (["--last", "0"], "--last: found '0', wanted a number of runs from 1 on"),
            (["--last", "many"], "--last: found 'many'"),
        ],
    )
    def test_wrong_usage(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], said: str
    ) -> None:
        """One line, code 2, no page."""
        tell(tmp_path, nights=2)
        assert main(["history", "--store", str(tmp_path), *options]) == Exit.USAGE == 2
        error = capsys.readouterr().err
        assert error.startswith(said)
        assert error.count("\n") == 1
        assert not (tmp_path / "reports").exists()

    def test_missing_package(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        """Infrastructure, before anything is read."""
        monkeypatch.setattr(packages, "PAGE_PACKAGES", {"no_such_module_xyz": "altair"})
        assert main(["history", "--store", str(tmp_path)]) == Exit.INFRASTRUCTURE


class TestPage:
    """The file as a whole."""

    def test_hostile_names_stay_text(self, tmp_path: Path) -> None:
        """In a kernel's name, a reason, a driver and a commit; no script but the page's two."""
        evil = case(HOSTILE)
        values = {"driver_version": HOSTILE, "torch_version": HOSTILE, "git_commit": HOSTILE, "gpu_name": HOSTILE}
        for night, each in enumerate(({"gpu_name": HOSTILE}, values)):
            run = night_run(night, [evil, C], lambda each, _: WRONG if each == C else around(1000.0), **each)
            write(tmp_path, replace(run, warnings=(HOSTILE,)))
        html = render_history(read_history(Store(tmp_path)), selected=HOSTILE)
        parser = _Text()
        parser.feed(html)
        assert parser.scripts == 2
        assert "<script>alert" not in html
        assert "\u202e" not in html
        (section,) = view(read_history(Store(tmp_path))).sections
        assert "\u202e" not in json.dumps(unpacked(section.data)[0], ensure_ascii=False)

    def test_stands_without_script(self, history: History) -> None:
        """The sentence, what changed, every case with figure, words and pictures."""
        html = render_history(history)
        said = text_of(html)
        for words in ("1 of 3 cases is slower", "driver: 580.1 → 590.2", "sgemv_k32_f32", "1.058 µs", "slower +5.6 %"):
            assert words in said
        assert html.count('<svg class="spark"') == 4

    def test_many_runs_are_quick_and_small(self, tmp_path: Path) -> None:
        """120 nights × 60 cases × 5 trials in under 5 s; what 7 200 points add to the page is under 8 bytes each."""
        write_story(tmp_path, nights=120, cases=60, trials=5)
        started = time.process_time()
        found = read_history(Store(tmp_path))
        html = render_history(found)
        assert time.process_time() - started < 5
        (section,) = view(found).sections
        assert len(section.data) < 120 * 60 * 8
        assert len(html) < 2_000_000
