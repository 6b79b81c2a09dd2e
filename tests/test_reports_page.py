"""The page as a file, and the command that writes it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from harness.errors import CommandError, Exit
from harness.store.draft import Draft, write_run
from reports import packages
from reports.__main__ import main
from reports.render import render_run
from reports.view import view
from tests.sample_roofline import roofline_run
from tests.sample_run import HOSTILE, cpu_run, empty_run, gpu_run, large_run, one_trial_run
from tests.sample_selfcheck import long_run


class _Links(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.scripts: list[dict[str, str | None]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.links += [value or "" for name, value in attrs if name in ("src", "href", "srcset", "action", "data")]
        if tag == "script":
            self.scripts.append(dict(attrs))


class TestPage:
    """The file as a whole."""

    def test_says_what_a_time_is(self) -> None:
        """Above the table of all cases, whose column is no median: that is a trial's."""
        html = render_run(gpu_run())
        assert "A time is the geometric mean of the medians of the trials." in html
        assert [column.title for column in view(gpu_run()).cases.columns][2:4] == ["time", "95 % interval"]

    def test_asks_the_network_for_nothing(self) -> None:
        """Every address is a place in the page itself."""
        parser = _Links()
        parser.feed(render_run(gpu_run()))
        assert all(link.startswith(("#", "data:")) for link in parser.links)

    def test_hostile_names_stay_text(self) -> None:
        """No script but the page's three, and no raw name anywhere."""
        html = render_run(gpu_run(hostile=True))
        parser = _Links()
        parser.feed(html)
        assert HOSTILE not in html
        assert sum("type" not in attributes for attributes in parser.scripts) == 3
        assert "<script>alert" not in html
        assert "{{ 7*7 }}" in html

    @pytest.mark.parametrize("make", [gpu_run, cpu_run, one_trial_run, empty_run, large_run, long_run])
    def test_every_kind_of_run_under_2_mb(self, make: object) -> None:
        """GPU, CPU, one trial, nothing measured, 160 cases × 5 trials × 200 samples, every timer and a selfcheck."""
        assert callable(make)
        html = render_run(make())
        assert len(html.encode()) < 2_000_000
        assert "</html>" in html

    def test_large_run_is_quick_and_small(self) -> None:
        """500 cases × 5 trials × 200 samples in under 5 s of a processor, to under 2 MB."""
        run = large_run(problems=25)
        assert sum(len(t.samples_ns) for m in run.measurements for t in m.trials) >= 500 * 5 * 200
        started = time.process_time()
        html = render_run(run)
        assert time.process_time() - started < 5
        assert len(html.encode()) < 2_000_000

    def test_both_suites_on_one_page(self) -> None:
        """Some 1280 cases, most of them products with several tokens, to under 3 MB."""
        both, plain = roofline_run(), large_run(problems=10)
        run = replace(
            both, measurements=(*both.measurements, *plain.measurements), kernels=both.kernels | plain.kernels
        )
        assert len(run.measurements) > 1270
        assert len(render_run(run).encode()) < 3_000_000

    def test_specifications_are_json(self) -> None:
        """No NaN gets into the page, nothing names an address."""
        html = render_run(gpu_run())
        for spec in re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', html, re.DOTALL):
            json.loads(spec, parse_constant=lambda name: pytest.fail(f"{name} in a specification"))
            assert "http" not in spec

    def test_view_has_all_sections(self) -> None:
        """What the page says is there without a template."""
        seen = view(gpu_run(), [("run.json", 2048)])
        assert seen.files == (("run.json", "2\xa0KiB"),)
        assert len(seen.cases.problems) == 4
        assert seen.builds[0].resources is not None
        assert any(term == "timer graph" for term, _ in seen.method)
        assert "nox -s bench" in seen.command


class TestCommand:
    """`python -m reports`."""

    def test_writes_the_page(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """`run` writes `<store>/reports/<id>.html` and prints the path."""
        run = one_trial_run()
        (tmp_path / run.id).mkdir()
        write_run(tmp_path / run.id, run)
        assert main(["run", "--store", str(tmp_path)]) == Exit.FINE
        page = tmp_path / "reports" / f"{run.id}.html"
        assert capsys.readouterr().out == f"{page}\n"
        assert "samples.parquet" in page.read_text(encoding="utf-8")
        assert list(page.parent.iterdir()) == [page]

    def test_table_comes_without_the_page(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """A missing package costs the page, not the figures; with it, both paths stand at the end."""
        run = one_trial_run()
        (tmp_path / run.id).mkdir()
        write_run(tmp_path / run.id, run)
        arguments = ["run", str(tmp_path / run.id), "--table"]
        assert main(arguments) == Exit.FINE
        page = tmp_path / "reports" / f"{run.id}.html"
        assert capsys.readouterr().out.splitlines()[-2:] == [f"run:    {tmp_path / run.id}", f"report: {page}"]
        monkeypatch.setattr(packages, "PAGE_PACKAGES", {"no_such_module_xyz": "altair"})
        assert main(arguments) == Exit.INFRASTRUCTURE
        shown = capsys.readouterr()
        assert "sgemv_k32_f32" in shown.out
        assert "pip install altair" in shown.err

    def test_changed_run_gets_no_page(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """Figures of a run whose sums differ cannot be trusted: neither table nor page, one line, the run's code."""
        run = one_trial_run()
        (tmp_path / run.id).mkdir()
        write_run(tmp_path / run.id, run)
        with (tmp_path / run.id / "run.json").open("a", encoding="utf-8") as file:
            file.write("\n")
        assert main(["run", "--store", str(tmp_path), "--table"]) == Exit.RUN == 4
        shown = capsys.readouterr()
        assert shown.out == ""
        assert shown.err.count("\n") == 1
        assert "run.json: changed since it was published" in shown.err
        assert not (tmp_path / "reports").exists()

    def test_publishes_what_a_killed_bench_left(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """`latest` is the run of the bench that was killed, cut short."""
        run = one_trial_run()
        draft = Draft.create(tmp_path, replace(run, measurements=(), partial=False))
        for measurement in run.measurements:
            draft.append(measurement)
        draft._lock.release()  # as when its process dies
        assert main(["run", "--store", str(tmp_path)]) == Exit.FINE
        assert f"before it was killed: {tmp_path / run.id}; no ref means it\n" in capsys.readouterr().err
        assert "cut short" in (tmp_path / "reports" / f"{run.id}.html").read_text(encoding="utf-8")

    def test_ascii_terminal(self, tmp_path: Path) -> None:
        """A terminal without µ gets a question mark, and its page."""
        run = one_trial_run()
        (tmp_path / run.id).mkdir()
        write_run(tmp_path / run.id, run)
        command = [sys.executable, "-m", "reports", "run", "--store", str(tmp_path), "--table"]
        environment = os.environ | {"PYTHONIOENCODING": "ascii"}
        root = Path(__file__).parents[1]
        done = subprocess.run(command, cwd=root, env=environment, capture_output=True, timeout=60, check=False)
        assert (done.returncode, done.stderr) == (Exit.FINE, b"")
        assert b"Time in ?s" in done.stdout

    def test_no_such_run(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """One line, and the code for a missing run."""
        assert main(["run", "nothing", "--store", str(tmp_path)]) == Exit.RUN
        error = capsys.readouterr().err
        assert error.count("\n") == 1
        assert "no such run" in error

    def test_unwritable_page(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """A page that cannot be written is infrastructure, and leaves nothing behind."""
        run = one_trial_run()
        (tmp_path / run.id).mkdir()
        write_run(tmp_path / run.id, run)
        blocked = tmp_path / "file"
        blocked.write_text("")
        target = str(blocked / "page.html")
        assert main(["run", "--store", str(tmp_path), "--output", target]) == Exit.INFRASTRUCTURE
        assert "--output" in capsys.readouterr().err

    def test_missing_package_is_named(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The package's name on the index, not the module's."""
        monkeypatch.setattr(packages, "PAGE_PACKAGES", {"json": "json", "no_such_module_xyz": "vl-convert-python"})
        with pytest.raises(CommandError, match="vl-convert-python"):
            packages.require_page_packages()
