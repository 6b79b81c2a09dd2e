"""The page of a store over time: the command that writes it, what it says, and the data that its script draws."""

from __future__ import annotations

import base64
import json
import re
import struct
import time
import zlib
from collections.abc import Sequence
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.errors import Exit
from harness.history.devices import History, read_history
from harness.history.standing import standings
from harness.model import Case, Digest, Verdict, Word
from harness.store import Store
from reports import packages
from reports.__main__ import main
from reports.history.changes import in_short, what_changed
from reports.history.data import NONE, WORD, packed
from reports.history.page import render_history
from reports.history.rows import rows
from reports.history.sparkline import HEIGHT, WIDTH, sparkline
from reports.history.view import view
from tests.many_runs import Digests, around, case, night_run, write, write_story
from tests.sample_run import HOSTILE

A, B, C, D = case(), case("sgemv_k32_f32"), case("sgemv_broken"), case("read", timer="async")
NIGHTS = 30
DRIVER, TORCH = 18, 24
WOBBLE = (0.0, 0.001, -0.001, 0.002, -0.002)


def told(each: Case, night: int) -> Sequence[Digest] | Verdict:
    """A is slower since the driver, B since last night, C fails since two nights ago, D was held back in the 6th."""
    centre = 1000.0 * (1 + WOBBLE[night % 5])
    if each == A:
        return around(centre * (1.08 if night >= DRIVER else 1))
    if each == B:
        return around(centre * (1.06 if night == NIGHTS - 1 else 1))
    if each == C and night >= NIGHTS - 2:
        return Verdict(word=Word.WRONG, reason=f"row 3, {HOSTILE}")
    return around(centre, held_back=12 if each == D and night == 5 else 0)


def test_a_checkout_with_changes_is_said_so(tmp_path: Path) -> None:
    """`git dirty: off → on` says nothing to a reader."""
    for night, dirty in enumerate((False, True)):
        write(tmp_path, night_run(night, (A,), told, git_dirty=dirty))
    (device,) = read_history(Store(tmp_path)).devices
    assert what_changed(device, 1) == ["checkout: clean → with changes"]
    assert in_short(device, 1) == "checkout changed"


def tell(root: Path, cases: Sequence[Case] = (A, B, C, D), digests: Digests = told, nights: int = NIGHTS) -> Path:
    """A store with this story."""
    for night in range(nights):
        values = {
            "driver_version": "580.1" if night < DRIVER else "590.2",
            "torch_version": "2.11" if night < TORCH else "2.12",
            "git_commit": f"{night // 10:040x}",
        }
        write(root, night_run(night, cases, digests, **values))
    return root


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> History:
    return read_history(Store(tell(tmp_path_factory.mktemp("story"))))


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


def unpacked(data: str) -> tuple[dict[str, Any], np.ndarray]:
    """The header and the planes (4, cases, runs), read as the page's script does."""
    content = zlib.decompress(base64.b64decode(data))
    (length,) = struct.unpack_from("<I", content)
    header = json.loads(content[4 : 4 + length])
    planes = np.frombuffer(content, np.uint8, offset=4 + length)
    return header, planes.reshape(4, len(header["cases"]), len(header["runs"])).astype(int)


class TestView:
    """What the page says."""

    def test_five_seconds(self, history: History) -> None:
        """What fails, what is slower since last night, and what is for longer, since when and with what change."""
        (section,) = view(history).sections
        assert section.alarming
        assert section.takeaway == (
            "sgemv_broken on 1024×128 (graph, cold) fails in the newest run. 1 of 3 cases is slower than in the run "
            "before, sgemv_k32_f32 on 1024×128 (graph, cold) by 5.6\xa0%."
        )
        assert section.details == (
            "Nothing recorded changed in between. 1 more was slower than at best already, since 1\xa0Jun\xa02026, when "
            "the driver changed."
        )

    def test_beginnings(self, history: History) -> None:
        """The latest first, each with what changed."""
        (section,) = view(history).sections
        found = [(each.day.replace("\xa0", " "), each.cases.split()[0], each.changes) for each in section.beginnings]
        assert found == [
            ("12 Jun 2026", "sgemv_k32_f32", ()),
            ("11 Jun 2026", "sgemv_broken", ()),
            ("1 Jun 2026", "torch.matmul", ("driver: 580.1 → 590.2",)),
        ]
        assert [each.newest for each in section.beginnings] == [True, False, False]

    def test_rows_by_effect(self, history: History) -> None:
        """Failed, slower since last night, slower than the best, the rest; with figures worked out by hand."""
        rows = view(history).sections[0].rows
        assert [row.kernel for row in rows] == [C.kernel, B.kernel, A.kernel, D.kernel]
        wrong, last_night, long_ago, quiet = rows
        assert (wrong.newest, wrong.previous.word, wrong.began) == ("wrong", "failed", "11\xa0Jun\xa02026")
        # 1.06 · 0.998 against 1.002 before it, and against 0.998, the best; of the 30 nights the last wobbles by -0.2 %
        assert last_night.newest == "1.058\xa0µs"
        assert last_night.previous.figure == "+5.6\xa0%"
        assert (last_night.best.word, last_night.best.figure) == ("slower", "+6.0\xa0%")
        assert (long_ago.previous.word, long_ago.best.word) == ("same", "slower")
        assert (long_ago.began, long_ago.began_note) == ("1\xa0Jun\xa02026", "driver changed")
        assert (quiet.alarming, quiet.moved, quiet.began) == (False, False, "")

    def test_quiet_morning(self, tmp_path: Path) -> None:
        """Nothing to see, in one sentence."""
        root = tell(tmp_path, [D], lambda _, night: around(1000.0 * (1 + WOBBLE[night % 5])))
        (section,) = view(read_history(Store(root))).sections
        assert section.takeaway == "The one case is not slower than in the run before."
        assert (section.alarming, section.details) == (False, "")
        assert section.beginnings == ()

    def test_two_models(self, tmp_path: Path) -> None:
        """A section each, named by the model; ECC off is named where the model alone would not tell."""
        a100 = {"gpu_name": "NVIDIA A100", "device_name": "NVIDIA A100"}
        for night, values in enumerate(({}, a100, {"ecc": False}, {})):
            write(tmp_path, night_run(night, [A], lambda *_: around(1000.0), **values))
        found = view(read_history(Store(tmp_path)))
        assert [section.title for section in found.sections] == [
            "NVIDIA H200, ecc on",
            "NVIDIA H200, ecc off",
            "NVIDIA A100",
        ]
        assert [len(unpacked(section.data)[0]["runs"]) for section in found.sections] == [2, 1, 1]

    def test_selected_cases_keep_their_words(self, history: History) -> None:
        """No word depends on which others are shown."""
        every = {row.kernel: row for row in view(history).sections[0].rows}
        (row,) = view(history, lambda each: each == B).sections[0].rows
        assert row == every[B.kernel]

    def test_intervals_are_not_rounded_away(self, tmp_path: Path) -> None:
        """Narrow ones get more digits, and what did not move has no sign."""

        def narrow(each: Case, night: int) -> Sequence[Digest]:
            return around(2059.7 if each == A and night == 1 else 1000.0, spread=3e-4)

        (device,) = read_history(Store(tell(tmp_path, [A, B], narrow, nights=2))).devices
        moved, still = (row.previous for row in rows(device, standings(device)))
        assert moved.figure == "+105.97\xa0%"
        interval = re.fullmatch(r"\+105\.(\d\d) to \+106\.(\d\d)\xa0% · .*", moved.note)
        assert interval is not None
        assert int(interval[1]) + int(interval[2]) == pytest.approx(94, abs=1)  # evenly around 105.97
        assert still.figure == "0.00\xa0%"
        low, high = re.findall(r"([−+])(0\.\d\d)", still.note)
        assert (low[0], high[0]) == ("−", "+")
        assert low[1] == high[1] > "0.00"


class TestData:
    """What the page's script gets."""

    def test_figures_survive(self, history: History) -> None:
        """Centres within half a hundredth of a percent, half-widths within 3 %, in the order of the rows."""
        (device,) = history.devices
        shown = standings(device)[::-1]
        header, (low, high, half, _) = unpacked(packed(device, shown))
        for row, each in enumerate(shown):
            about = header["cases"][row]
            level = low[row] + 256 * high[row]
            us = np.where(level, about["lowest_us"] * np.exp((level - 1) * about["height"]), np.nan)
            wanted = device.centres_ns[:, each.place] / 1e3
            assert np.allclose(us, wanted, rtol=5.1e-5, equal_nan=True)
            finest, step = header["quantum"]["half"]
            share = np.where(half[row], finest * np.exp(step * (half[row] - 1.0)), np.nan)
            assert np.allclose(share, device.half_widths[:, each.place], rtol=0.03, equal_nan=True)
        assert [about["best"] for about in header["cases"]] == [each.best for each in shown]
        assert [about["began"] for about in header["cases"]] == [None, 28, 29, 18]

    def test_remarks(self, history: History) -> None:
        """How much runs usually differ: the median step is 0.2 % of a level, and a normal one 0.6745 deviations."""
        (device,) = history.devices
        shown = {each.case: row for row, each in enumerate(standings(device))}
        header, _ = unpacked(packed(device, standings(device)))
        said = "One run of this case usually differs from the next by 0.3\xa0% (standard deviation)."
        assert header["cases"][shown[A]]["remarks"] == [said]

    def test_reason_for_ambiguous(self, tmp_path: Path) -> None:
        """One trial on a side is told where the word is explained."""
        root = tell(tmp_path, [A], lambda _, night: around(1000.0 + night, trials=1), nights=2)
        (device,) = read_history(Store(root)).devices
        header, _ = unpacked(packed(device, standings(device)))
        (about,) = header["cases"]
        assert about["remarks"] == [
            "Ambiguous against the run before: one trial on a side gives no interval.",
            "Ambiguous against the best before: one trial on a side gives no interval.",
        ]

    def test_wide_span_keeps_its_ends(self, tmp_path: Path) -> None:
        """A case from a nanosecond to an hour has coarser levels, and none runs over."""
        times = (1.0, 1000.0, 3.6e12)
        root = tell(tmp_path, [A], lambda _, night: around(times[night]), nights=3)
        (device,) = read_history(Store(root)).devices
        header, (low, high, _, _) = unpacked(packed(device, standings(device)))
        (about,) = header["cases"]
        us = about["lowest_us"] * np.exp((low[0] + 256 * high[0] - 1) * about["height"])
        assert us.tolist() == [pytest.approx(ns / 1e3, rel=3e-4) for ns in times]

    def test_states(self, history: History) -> None:
        """The share held back in percent, a failure with its reason, and nothing where the run lacks the case."""
        (device,) = history.devices
        shown = {each.case: row for row, each in enumerate(standings(device))}
        header, (_, _, _, state) = unpacked(packed(device, standings(device)))
        assert state[shown[D]].tolist() == [40 if night == 5 else 0 for night in range(NIGHTS)]
        assert np.flatnonzero(state[shown[C]]).tolist() == [28, 29]
        assert set(state[shown[C]][28:]) <= set(header["quantum"]["failed"])
        assert sorted(header["cases"][shown[C]]["reasons"]) == ["28", "29"]
        assert NONE not in state
        assert WORD > 100  # no share can be taken for a word

    def test_absent_case(self, tmp_path: Path) -> None:
        """A run without it has no point, and no failure."""
        for night in range(3):
            write(tmp_path, night_run(night, [A] if night == 1 else [A, B], lambda *_: around(1000.0)))
        (device,) = read_history(Store(tmp_path)).devices
        _, (low, high, _, state) = unpacked(packed(device, standings(device)))
        assert (low[1] + high[1] > 0).tolist() == [True, False, True]
        assert state[1].tolist() == [0, NONE, 0]

    def test_marks_stand_at_their_run(self, history: History) -> None:
        """Driver, torch and commits."""
        (device,) = history.devices
        header, _ = unpacked(packed(device, standings(device)))
        assert [mark[:3] for mark in header["marks"]] == [
            [10, "commit", "commit 00000000"],
            [18, "driver", "driver 590.2"],
            [20, "commit", "commit 00000000"],
            [24, "torch", "torch 2.12"],
        ]
        assert header["marks"][1][3] == "driver: 580.1 → 590.2"


class TestSparkline:
    """The small picture."""

    def test_shape(self, history: History) -> None:
        """A point a run from left to right; up is slower; marks at the newest, the best and where it began."""
        (device,) = history.devices
        found = sparkline(device, next(each for each in standings(device) if each.case == A))
        points = [tuple(map(float, pair.split())) for pair in found.line.removeprefix("M").split("L")]
        assert len(points) == NIGHTS
        assert all(0 <= x <= WIDTH and 0 <= y <= HEIGHT for x, y in points)
        assert max(y for _, y in points[DRIVER:]) < min(y for _, y in points[:DRIVER])
        assert found.newest == pytest.approx(points[-1], abs=0.06)
        assert found.best == pytest.approx(points[14], abs=0.06)
        assert found.began == pytest.approx(points[DRIVER][0], abs=0.06)
        assert (found.hollow, found.failures, found.band) == (False, "", "")

    def test_failures_are_ticks(self, history: History) -> None:
        """Two nights, two ticks; no dot for a figure that is not there."""
        (device,) = history.devices
        found = sparkline(device, next(each for each in standings(device) if each.case == C))
        assert found.failures.count("M") == 2
        assert found.newest is None

    def test_many_runs_have_a_band(self, tmp_path: Path) -> None:
        """More runs than pixels: a span a pixel and a line of medians, a few hundred characters."""
        root = tell(tmp_path, [A], lambda _, night: around(1000.0 + night % 7), nights=400)
        (device,) = read_history(Store(root)).devices
        (standing,) = standings(device)
        found = sparkline(device, standing)
        assert 100 < found.band.count("M") <= WIDTH
        assert found.line.count("L") == found.band.count("M") - 1
        assert len(found.line + found.band) < 5000


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
        started = time.perf_counter()
        found = read_history(Store(tmp_path))
        html = render_history(found)
        assert time.perf_counter() - started < 5
        (section,) = view(found).sections
        assert len(section.data) < 120 * 60 * 8
        assert len(html) < 2_000_000


WRONG = Verdict(word=Word.WRONG, reason=HOSTILE)
