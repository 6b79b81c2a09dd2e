"""`python -m harness export`: each format as its reader reads it, from whole runs, hostile ones and failed cases."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import re
import shutil
import statistics
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pandas as pd
import pytest

from harness.__main__ import main
from harness.export import formats, github_action, pytest_benchmark, spreadsheet
from harness.model import Cache, Case, Measurement, Problem, Role, Run, TrialResult, Verdict, Word
from harness.output import write_file
from harness.store import load_whole
from harness.store.draft import write_run, write_sums
from reports.__main__ import main as reports
from tests.sample_run import HOSTILE, cpu_run, empty_run, gpu_run, one_trial_run

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "examples" / "h200"
PASSED = Verdict(word=Word.PASSED)


def kept(folder: Path, run: Run) -> Path:
    """The folder of a published run."""
    target = folder / run.id
    target.mkdir(parents=True)
    write_run(target, run)
    return target


def case(kernel: str, timer: str = "graph", dtype: str = "float32") -> Case:
    problem = Problem(m=1000, k=250, dtype=dtype)
    return Case(kernel=kernel, role=Role.GEMV, problem=problem, timer=timer, cache=Cache.COLD)


def timed(of: Case, *trials: tuple[float, ...]) -> Measurement:
    """With these samples, ns."""
    results = (TrialResult(trial=i, verdict=PASSED, samples_ns=samples) for i, samples in enumerate(trials))
    return Measurement(case=of, trials=tuple(results))


def run_of(*measurements: Measurement) -> Run:
    return replace(gpu_run(shapes=((64, 64),), kernels={}, trials=1, samples=2), measurements=measurements)


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_a_format_is_found_by_being_there() -> None:
    """Each says its name, what it is and how it is made."""
    assert sorted(formats()) == ["csv", "github-action-benchmark", "pytest-benchmark"]
    assert all(module.HELP and callable(module.export) for module in formats().values())


def test_csv_has_a_row_a_case_with_figures_worked_out_by_hand(tmp_path: Path) -> None:
    """Trial medians of 100, 200 and 400 ns: centre (100·200·400)^⅓ = 200, spread 300/200, 1 005 000 bytes."""
    (row,) = rows(spreadsheet.export(run_of(timed(case("mine"), (90.0, 100.0, 150.0), (200.0,), (400.0,))), tmp_path))
    assert float(row["median_ns"]) == pytest.approx(200.0)
    error = math.log(2) / math.sqrt(3)  # of the mean of three logarithms, ln 2 apart
    assert float(row["median_high_ns"]) == pytest.approx(200 * math.exp(4.302653 * error), rel=1e-6)
    assert float(row["median_low_ns"]) == pytest.approx(200 / math.exp(4.302653 * error), rel=1e-6)
    assert float(row["trial_spread_fraction"]) == 1.5
    assert float(row["bandwidth_gb_per_s"]) == pytest.approx((1000 * 250 + 250 + 1000) * 4 / 200)
    assert (row["trials"], row["samples"], row["m"], row["k"], row["n"]) == ("3", "5", "1000", "250", "1")
    assert (row["dtype"], row["timer"], row["cache"], row["verdict"]) == ("float32", "graph", "cold", "passed")
    assert row["driver_version"] == "580.159.04"
    assert row["throttled_samples"] == ""  # nothing was read that could tell


def test_csv_counts_marked_samples_where_something_tells(tmp_path: Path) -> None:
    """Two of five samples ran 50 % below the run's clock."""
    measured = timed(case("mine"), (100.0,) * 5)
    clocks = (1980.0, 990.0, 1980.0, 990.0, 1980.0)
    trial = replace(measured.trials[0], sample_clocks_mhz=clocks)
    (row,) = rows(spreadsheet.export(run_of(replace(measured, trials=(trial,))), tmp_path))
    assert (row["throttled_samples"], float(row["sm_clock_mhz"])) == ("2", 1980.0)


def test_csv_has_failed_cases_with_empty_figures(tmp_path: Path) -> None:
    """Every word with its reason; no figure, no NaN, no None."""
    text = spreadsheet.export(gpu_run(), tmp_path)
    assert not {"nan", "none", "inf"} & set(text.lower().replace("\n", ",").split(","))
    found = rows(text)
    assert len(found) == len(gpu_run().measurements)
    assert {row["verdict"] for row in found} == {"passed", "wrong", "crashed", "unsupported"}
    for row in found:
        passed = row["verdict"] == "passed"
        assert bool(row["median_ns"]) == bool(row["samples"]) == passed
        assert bool(row["reason"]) != passed
    wrong = next(row for row in found if row["verdict"] == "wrong")
    assert wrong["reason"] == "integers: row 3 is 16776192, wanted 16777216"
    assert {row["bandwidth_gb_per_s"] for row in found if row["kernel"] == "empty"} == {""}


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


@pytest.mark.parametrize("name", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", " =1", "＝1", "a;=1", "\n@x", '"=1'])
def test_no_cell_is_a_formula(name: str, tmp_path: Path) -> None:
    """However a spreadsheet splits the line: at commas, or at semicolons where commas mark decimals."""
    text = spreadsheet.export(run_of(timed(case(name), (100.0,))), tmp_path)
    line = text.splitlines()[1]
    assert len(text.splitlines()) == 2
    cells = [cell for row in csv.reader([line]) for cell in row]
    cells += [cell for row in csv.reader([line], delimiter=";") for cell in row]
    assert not [cell for cell in cells if cell.lstrip()[:1] in set("=+-@\t\r＝＋－＠")]
    assert rows(text)[0]["timer"] == "graph"


def test_csv_files_of_several_runs_go_under_each_other(tmp_path: Path) -> None:
    """Also pandas reads numbers as numbers, whatever the run lacks."""
    texts = [spreadsheet.export(run, tmp_path) for run in (gpu_run(), cpu_run(), one_trial_run())]
    frame = pd.concat([pd.read_csv(io.StringIO(text)) for text in texts])
    assert frame["run_id"].nunique() == 2  # the one-trial run has the id of the first
    assert frame["median_ns"].dtype == float
    assert frame.loc[frame["verdict"] == "passed", "median_ns"].notna().all()
    assert frame.loc[frame["trials"] == 1, ["median_low_ns", "trial_spread_fraction"]].isna().all(axis=None)
    assert list(frame.columns) == list(spreadsheet.COLUMNS)
    assert spreadsheet.export(empty_run(), tmp_path) == ",".join(spreadsheet.COLUMNS) + "\n"


def test_a_whole_run_gives_pytest_benchmarks_own_file(tmp_path: Path) -> None:
    """As it is kept, digit for digit."""
    found = tmp_path / "found.json"
    assert main(["export", str(EXAMPLE), "--to", "pytest-benchmark", "--output", str(found)]) == 0
    assert found.read_bytes() == (EXAMPLE / "pytest-benchmark.json").read_bytes()


def test_what_is_made_is_what_pytest_benchmark_had_made() -> None:
    """Of a run that has its file: the same cases in the same order, all of each but what no run knows."""
    wanted = json.loads((EXAMPLE / "pytest-benchmark.json").read_text(encoding="utf-8"))
    made = json.loads(pytest_benchmark.export(load_whole(EXAMPLE), EXAMPLE / "not here"))
    assert len(made["benchmarks"]) == 300
    for own, theirs in zip(made["benchmarks"], wanted["benchmarks"], strict=True):
        stats, wanted_stats = own.pop("stats"), theirs.pop("stats")
        assert own == theirs
        assert stats["data"] == wanted_stats["data"]
        assert {k: v for k, v in stats.items() if k != "data"} == {
            k: pytest.approx(v, rel=1e-9, abs=1e-15) if isinstance(v, float) else v
            for k, v in wanted_stats.items() if k != "data"
        }  # fmt: skip
    assert made["machine_info"]["environment"] == wanted["machine_info"]["environment"]
    assert made["commit_info"]["id"] == wanted["commit_info"]["id"]
    assert made["version"] == wanted["version"]


def test_a_record_that_holds_no_numbers_gives_no_nan(tmp_path: Path) -> None:
    """JSON has no NaN; an environment may come from anywhere."""
    run = run_of(timed(case("mine"), (100.0,)))
    values = {**run.environment.to_dict()["values"], "power_limit_mw": math.nan, "ram_bytes": math.inf}
    run = replace(run, environment=replace(run.environment, values=values))
    assert rows(spreadsheet.export(run, tmp_path))[0]["power_limit_mw"] == ""
    environment = json.loads(pytest_benchmark.export(run, tmp_path))["machine_info"]["environment"]
    assert environment["power_limit_mw"] is environment["ram_bytes"] is None
    entries(run, tmp_path)


@pytest.mark.parametrize("content", [b"\xff", b"{", b'{"benchmarks": [NaN]}'])
def test_a_kept_file_that_is_no_json_is_one_line(
    content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its sum may be right all the same: code 4."""
    folder = kept(tmp_path, gpu_run(shapes=((64, 64),)))
    (folder / pytest_benchmark.FILE).write_bytes(content)
    write_sums(folder)
    assert main(["export", str(folder), "--to", "pytest-benchmark"]) == 4
    assert capsys.readouterr().err.startswith(f"{folder}/pytest-benchmark.json: not JSON: ")


def compare(folder: Path, *files: Path) -> str:
    """What pytest-benchmark's own program prints of the files."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest_benchmark", "compare", *map(str, files)],
        cwd=folder, capture_output=True, text=True, timeout=60, check=False, env={**os.environ, "COLUMNS": "300"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_pytest_benchmark_compares_what_is_made(tmp_path: Path) -> None:
    """Of partial runs, which lack the file: medians in its table as worked out here, by unit; no case that failed."""
    files = []
    for name, factor in (("first", 1), ("second", 2)):
        scaled = [(1000.0 * factor, 2000.0 * factor, 4000.0 * factor), (2000.0 * factor,)]
        broken = Measurement(case=case("broken"), trials=(TrialResult(trial=0, verdict=Verdict(word=Word.WRONG)),))
        run = replace(run_of(timed(case("mine"), *scaled), broken), partial=True, id=f"20260101T000000Z-{name}")
        files.append(tmp_path / f"{name}.json")
        folder = kept(tmp_path / "store", run)
        assert main(["export", str(folder), "--to", "pytest-benchmark", "--output", str(files[-1])]) == 0
    stats = json.loads(files[0].read_text())["benchmarks"][0]["stats"]
    assert (stats["median"], stats["min"], stats["rounds"]) == (2e-6, 1e-6, 4)  # of 1, 2, 2 and 4 µs
    assert stats["mean"] == pytest.approx(2.25e-6)
    table = compare(tmp_path, *files)
    assert "(time in us)" in table
    assert "broken" not in table
    figures = re.findall(r"(first|second)\)" + r"\s+([\d.]+) \([\d.]+\)" * 5, table)
    assert [(name, least, median) for name, least, _, _, _, median in figures] == [
        ("first", "1.0000", "2.0000"),
        ("second", "2.0000", "4.0000"),
    ]


RESULT = {
    "type": "array",
    "minItems": 1,
    "items": {
        "type": "object",
        "properties": {
            "name": {"type": "string", "minLength": 1, "pattern": r"^[^`|\x00-\x1f]+$"},
            "value": {"type": "number", "exclusiveMinimum": 0},
            "unit": {"const": "ns"},
            "range": {"type": "string", "pattern": r"^± \d[\d.]*(e-?\d+)?$"},
            "extra": {"type": "string"},
        },
        "required": ["name", "value", "unit", "extra"],
        "additionalProperties": False,
    },
}
"""`BenchmarkResult` of benchmark-action/github-action-benchmark, which reads a range as a number behind ±, and what its
comments hold: names between backticks in a table."""


def entries(run: Run, folder: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(github_action.export(run, folder))
    jsonschema.validate(found, RESULT)
    names = [each["name"] for each in found]
    assert len(set(names)) == len(names)
    return found


def test_the_github_action_gets_ns_with_their_interval(tmp_path: Path) -> None:
    """Half of what the CSV says low to high is; the extra says how sure and where."""
    run = gpu_run()
    table = {row["case_id"]: row for row in rows(spreadsheet.export(run, tmp_path))}
    found = entries(run, tmp_path)
    assert {each["name"] for each in found} == {name for name, row in table.items() if row["verdict"] == "passed"}
    for each in found:
        row = table[each["name"]]
        half = (float(row["median_high_ns"]) - float(row["median_low_ns"])) / 2
        assert each["value"] == pytest.approx(float(row["median_ns"]), rel=1e-5)
        assert float(each["range"].removeprefix("± ")) == pytest.approx(half, rel=1e-5)
        assert "median of 5 trials\n150 samples\n" in each["extra"]
        assert "driver: 580.159.04" in each["extra"]
        assert run.id in each["extra"]


def test_a_name_means_the_same_case_in_every_run(tmp_path: Path) -> None:
    """A chart's line goes on, whatever else was measured."""
    few, many = gpu_run(shapes=((1024, 16),)), gpu_run(shapes=((4096, 4096), (1024, 16)))
    assert {each["name"] for each in entries(few, tmp_path)} <= {each["name"] for each in entries(many, tmp_path)}


def test_one_trial_has_no_range(tmp_path: Path) -> None:
    """And says so."""
    found = entries(one_trial_run(), tmp_path)
    assert all("range" not in each and "one trial, so no interval" in each["extra"] for each in found)


def test_hostile_names_break_nothing_and_stay_apart(tmp_path: Path) -> None:
    """Neither the action's table, nor pytest-benchmark's."""
    names = (HOSTILE, "a`b", "a|b", "a_b", "a\u202eb")
    run = run_of(*(timed(case(name), (1000.0, 1100.0)) for name in names))
    assert len(entries(run, tmp_path)) == len(names)
    made = tmp_path / "made.json"
    made.write_text(pytest_benchmark.export(run, tmp_path))
    assert "a|b" in compare(tmp_path, made)


def test_timers_that_check_others_are_no_benchmarks() -> None:
    """Of the example: 300 cases by pytest-benchmark's own count, none by a timer of the selfcheck or with a failure."""
    run = load_whole(EXAMPLE)
    found = entries(run, EXAMPLE)
    wanted = json.loads((EXAMPLE / "pytest-benchmark.json").read_text(encoding="utf-8"))["benchmarks"]
    assert {each["name"] for each in found} == {each["param"] for each in wanted}
    table = {row["case_id"]: row for row in rows(spreadsheet.export(run, EXAMPLE))}
    assert len(table) == len({each.case.id for each in run.measurements}) > len(found)
    medians = [statistics.median(t.samples_ns) for t in run.measurements[0].trials]
    assert float(table[run.measurements[0].case.id]["median_ns"]) == pytest.approx(statistics.geometric_mean(medians))


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


@pytest.mark.parametrize(
    ("name", "why"),
    [("file/x.csv", "File exists"), ("folder", "Is a directory"), ("x" * 300, "File name too long"), ("", "Is a")],
)
def test_an_output_that_cannot_be_written_is_one_line(
    name: str, why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same line, and code 6, whatever is written there; nothing else is left."""
    monkeypatch.chdir(tmp_path)
    folder = kept(tmp_path / "store", one_trial_run())
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    before = sorted(tmp_path.rglob("*"))
    for program, verb in ((main, ["export", str(folder), "--to", "csv"]), (reports, ["compare", "--markdown"])):
        runs = [str(folder)] * 2 if verb[0] == "compare" else []
        if program is reports and not name:
            continue  # there an empty name is none
        assert program([*verb, *runs, "--output", name]) == 6
        out, err = capsys.readouterr()
        assert out == ""
        assert err.startswith(f"{Path(name)}: {why}") or name.startswith("x")
        assert err.endswith("; name a writable file with --output\n")
        assert len(err.splitlines()) == 1
    assert sorted(tmp_path.rglob("*")) == before


def test_a_device_stays_one(tmp_path: Path) -> None:
    """What is no file, as /dev/stdout, is written to; a file is replaced in one step."""
    target, link, fifo = tmp_path / "target", tmp_path / "link", tmp_path / "fifo"
    link.symlink_to(target)
    write_file(b"x", link)
    assert (link.is_symlink(), target.read_bytes()) == (True, b"x")
    os.mkfifo(fifo)
    reading = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    write_file(b"y", fifo)
    assert os.read(reading, 10) == b"y"
    os.close(reading)
    assert fifo.is_fifo()
    target.chmod(0o600)
    before = target.stat().st_ino
    write_file(b"z", target)
    assert (target.read_bytes(), target.stat().st_ino == before) == (b"z", False)
    assert len(list(tmp_path.iterdir())) == 3


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


ACTION = os.environ.get("GITHUB_ACTION_BENCHMARK")
CONSUMER = """
const Module = require('module'), load = Module._load;
const commit = {id: 'first'};
const stubs = {'@actions/core': {debug() {}}, '@actions/github': {context: {payload: {head_commit: commit}}}};
Module._load = (name, ...rest) => stubs[name] ?? load(name, ...rest);
const [, action, ...files] = process.argv;
const {extractResult} = require(action + '/dist/src/extract.js');
const {addBenchmarkEntry} = require(action + '/dist/src/addBenchmarkEntry.js');
(async () => {
  const entries = {};
  for (const [place, outputFilePath] of files.entries()) {
    const found = await extractResult({outputFilePath, tool: 'customSmallerIsBetter'});
    addBenchmarkEntry('x', {...found, commit: {id: String(place)}}, entries, null);
  }
  console.log(JSON.stringify(entries.x));
})();
"""


@pytest.mark.skipif(
    ACTION is None or shutil.which("node") is None,
    reason="the action is no package: needs node, and GITHUB_ACTION_BENCHMARK with the path of its checkout",
)
def test_the_github_action_reads_it(tmp_path: Path) -> None:
    """The action's own code, twice: names are found again, values and ranges are read as numbers in one unit."""
    files = [tmp_path / "a.json", tmp_path / "b.json"]
    for file, run in zip(files, (gpu_run(), one_trial_run()), strict=True):
        file.write_text(github_action.export(run, tmp_path))
    done = subprocess.run(
        ["node", "-e", CONSUMER, str(ACTION), *map(str, files)], capture_output=True, text=True, check=True, timeout=60
    )
    for suite, file in zip(json.loads(done.stdout), files, strict=True):
        assert suite["benches"] == json.loads(file.read_text())
