"""harness.export.github_action: ns with their interval under names that last, as the action's own code reads them."""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from harness.export import github_action, spreadsheet
from harness.store import load_whole
from tests.planted_runs import case, measured
from tests.runs_to_export import EXAMPLE, entries, rows
from tests.sample_run import gpu_run, one_trial_run


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
        assert "geometric mean of the medians of 5 trials\n150 samples\n" in each["extra"]
        assert "driver: 580.159.04" in each["extra"]
        assert run.id in each["extra"]


def test_a_name_means_the_same_case_in_every_run(tmp_path: Path) -> None:
    """A chart's line goes on, whatever else was measured."""
    few, many = gpu_run(shapes=((1024, 16),)), gpu_run(shapes=((4096, 4096), (1024, 16)))
    assert {each["name"] for each in entries(few, tmp_path)} <= {each["name"] for each in entries(many, tmp_path)}


def test_a_value_is_called_what_it_is(tmp_path: Path) -> None:
    """Trials of 78751, 78964 and 72461 ns: their median is the first, their geometric mean 76665 ns is the value."""
    made = measured(case("mine"), (78751.0, 78964.0, 72461.0))
    [entry] = entries(replace(gpu_run(), measurements=(made,)), tmp_path)
    assert entry["value"] == pytest.approx((78751 * 78964 * 72461) ** (1 / 3), rel=1e-5)
    assert round(entry["value"]) == 76665
    assert entry["extra"].splitlines()[0] == "geometric mean of the medians of 3 trials"


def test_one_trial_has_no_range(tmp_path: Path) -> None:
    """And says so."""
    found = entries(one_trial_run(), tmp_path)
    assert all("range" not in each and "one trial, so no interval" in each["extra"] for each in found)


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
