"""`python -m harness export`: what every format makes of hostile runs and failed cases, and each way not to export."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from harness.__main__ import main
from harness.export import formats, github_action, pytest_benchmark, spreadsheet
from harness.model import Measurement, TrialResult, Verdict, Word
from tests.runs_to_export import ROOT, case, compare, entries, kept, rows, run_of, timed
from tests.sample_run import HOSTILE, empty_run, gpu_run


def test_a_format_is_found_by_being_there() -> None:
    """Each says its name, what it is and how it is made."""
    assert sorted(formats()) == ["csv", "github-action-benchmark", "pytest-benchmark"]
    assert all(module.HELP and callable(module.export) for module in formats().values())


@pytest.mark.parametrize("ns", [math.nan, math.inf, 0.0, -5.0])
def test_a_sample_that_is_no_time_gives_no_figure(ns: float, tmp_path: Path) -> None:
    """A record may come from anywhere; the others are exported."""
    run = run_of(timed(case("mine"), (100.0, ns)), timed(case("fine"), (100.0,)))
    bad, good = rows(spreadsheet.export(run, tmp_path))
    assert bad["median_ns"] == ""
    assert re.match(r"a sample of (-5|0|nan|inf) ns: wanted .* ns$", bad["reason"])
    assert float(good["median_ns"]) == pytest.approx(100)
    made = json.loads(pytest_benchmark.export(run, tmp_path))
    assert [each["extra_info"]["kernel"] for each in made["benchmarks"]] == ["fine"]
    assert [each["name"] for each in json.loads(github_action.export(run, tmp_path))] == ["fine-1000x250-graph-cold"]


def test_a_record_that_holds_no_numbers_gives_no_nan(tmp_path: Path) -> None:
    """JSON has no NaN; an environment may come from anywhere."""
    run = run_of(timed(case("mine"), (100.0,)))
    values = {**run.environment.to_dict()["values"], "power_limit_mw": math.nan, "ram_bytes": math.inf}
    run = replace(run, environment=replace(run.environment, values=values))
    assert rows(spreadsheet.export(run, tmp_path))[0]["power_limit_mw"] == ""
    environment = json.loads(pytest_benchmark.export(run, tmp_path))["machine_info"]["environment"]
    assert environment["power_limit_mw"] is environment["ram_bytes"] is None
    entries(run, tmp_path)


def test_hostile_names_break_nothing_and_stay_apart(tmp_path: Path) -> None:
    """Neither the action's table, nor pytest-benchmark's."""
    names = (HOSTILE, "a`b", "a|b", "a_b", "a\u202eb")
    run = run_of(*(timed(case(name), (1000.0, 1100.0)) for name in names))
    assert len(entries(run, tmp_path)) == len(names)
    made = tmp_path / "made.json"
    made.write_text(pytest_benchmark.export(run, tmp_path))
    assert "a|b" in compare(tmp_path, made)


@pytest.mark.parametrize("to", ["pytest-benchmark", "github-action-benchmark"])
def test_nothing_to_export_is_one_line(to: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The action refuses an empty list, and pytest-benchmark's table is none."""
    broken = Measurement(case=case("x"), trials=(TrialResult(trial=0, verdict=Verdict(word=Word.WRONG, reason="r")),))
    for run, what in ((empty_run(), "it has no cases"), (run_of(broken), "none of its 1 cases has figures")):
        folder = kept(tmp_path / what[:4], run)
        assert main(["export", str(folder), "--to", to]) == 2
        out, err = capfd.readouterr()
        assert out == ""
        assert err == f"run {run.id}: {what}: nothing to export; csv has failed cases too\n"


def test_a_damaged_run_is_not_exported(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Its samples were changed after it was published."""
    folder = tmp_path / "run"
    shutil.copytree(kept(tmp_path, gpu_run(shapes=((64, 64),))), folder)
    with (folder / "samples.parquet").open("ab") as samples:
        samples.write(b"x")
    assert main(["export", str(folder), "--to", "csv"]) == 4
    out, err = capfd.readouterr()
    assert out == ""
    assert "changed since it was published" in err
    assert main(["export", "nothing", "--store", str(tmp_path / "none"), "--to", "csv"]) == 4
    assert main(["export", str(folder), "--to", "xml"]) == 2
    assert "csv" in capfd.readouterr().err


def test_the_output_is_utf8_on_any_terminal(tmp_path: Path) -> None:
    """To stdout as to a file, whose folder is made."""
    folder = kept(tmp_path, run_of(timed(case("schnell-µ"), (100.0, 101.0))))
    command = [sys.executable, "-m", "harness", "export", str(folder), "--to", "csv"]
    english = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, timeout=60, env=english)
    assert rows(done.stdout.decode())[0]["kernel"] == "schnell-µ"
    into = tmp_path / "no" / "such" / "found.csv"
    assert main([*command[3:], "--output", str(into)]) == 0
    assert into.read_bytes() == done.stdout
    assert [path.name for path in into.parent.iterdir()] == ["found.csv"]


def test_a_reader_that_has_enough_is_no_error(tmp_path: Path) -> None:
    """`| head`: no traceback, no complaint at exit."""
    folder = kept(tmp_path, gpu_run(samples=3000, shapes=((64, 64), (64, 128))))
    command = [sys.executable, "-m", "harness", "export", str(folder), "--to", "pytest-benchmark"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as program:
        assert program.stdout is not None
        assert program.stderr is not None
        assert program.stdout.read(1) == b"{"
        program.stdout.close()
        assert program.stderr.read() == b""
        assert program.wait(timeout=60) == 0
