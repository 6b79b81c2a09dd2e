"""harness.export.pytest_benchmark: the file that a run keeps, one made like it, and what its own program says of it."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from harness.__main__ import main
from harness.export import pytest_benchmark
from harness.model import Measurement, TrialResult, Verdict, Word
from harness.store import load_whole
from harness.store.draft import write_sums
from tests.runs_to_export import EXAMPLE, case, compare, kept, run_of, timed
from tests.sample_run import gpu_run


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
