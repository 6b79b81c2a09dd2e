"""docs/run-format.md: written from the records, true of the run kept here, and enough to read one with pandas alone."""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import io
import json
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from examples import run_format
from harness.environment import ENVIRONMENT_KEYS
from harness.model import SCHEMA_VERSION, Run
from harness.store import load
from harness.store.tables import SAMPLE_TYPES

ROOT = Path(__file__).resolve().parent.parent
TEXT = run_format.DOCUMENT.read_text(encoding="utf-8")
EXAMPLE = run_format.EXAMPLE


def test_it_is_what_the_records_say() -> None:
    """`python examples/run_format.py` writes it."""
    assert run_format.written(TEXT) == TEXT
    assert set(re.findall(r"<!-- (?!end)(.+?) -->", TEXT)) == set(run_format.BLOCKS)


def test_every_record_of_a_run_is_there() -> None:
    """Each once, with a heading for the links to it; each field of theirs that run.json holds."""
    headings = re.findall(r"^### (\w+)$", TEXT, flags=re.MULTILINE)
    assert len(headings) == len(set(headings))
    assert {"Run", "Environment", "BuildRecord", "TrialResult", "Layout", "Digest", "Word"} <= set(headings)
    assert "DeviceState" not in headings  # which is in its own file
    anchors = {re.sub(r"[^\w -]", "", title.lower()) for title in re.findall(r"^#+ (.+)$", TEXT, flags=re.MULTILINE)}
    assert set(re.findall(r"\]\(#(.+?)\)", TEXT)) <= anchors
    for target in re.findall(r"\]\((?!#)(.+?)\)", TEXT):
        assert (run_format.DOCUMENT.parent / target).exists(), target


def test_every_field_is_described() -> None:
    """Of what a run in this repository has, and nothing that it could not have."""
    written = json.loads((EXAMPLE / "run.json").read_text(encoding="utf-8"))
    described = {name for kind in run_format.records() for name in run_format.docstrings(kind)}
    found = set(written)
    trial, build = written["measurements"][0]["trials"][0], written["builds"][0]
    for each in (written["options"], build, build["resources"][0], trial, trial["verdict"], trial["digest"]):
        found |= set(each)
    assert found <= described
    assert {name for name in ENVIRONMENT_KEYS if f"| `{name}` |" in TEXT} == set(ENVIRONMENT_KEYS)


@pytest.mark.parametrize(
    ("field", "row"),
    [
        ("max_time_s", "| `max_time_s` | number | s |  | Time budget a case and trial. |"),
        ("n", "| `n` | integer | `1` | Columns of x and y, each of which lies in one piece, as the tokens"),
        ("grid", "| `grid` | list of 3: integer |  | Blocks. |"),
        ("idle_mw", "| `idle_mw` | number or null | mW | Mean board power before"),
        ("values", "| `values` | object of (string or integer or number or boolean or null) |"),
        ("max_error", "Largest \\|y − ref\\| over its row's bound on random operands"),
        ("power_mw", "| `power_mw` | int64 | mW | Board power; instantaneous where the device offers it. |"),
        ("trials", "| `trials` | list of [TrialResult](#trialresult) | In order of trial. |"),
    ],
)
def test_a_row_says_what_its_field_is(field: str, row: str) -> None:
    """Worked out by hand: type, unit and meaning, and what its absence means."""
    assert field in row or field == "max_error"
    assert row in TEXT


def test_its_columns_are_those_of_the_files() -> None:
    """None missing, none made up."""
    for name, columns in (("samples", set(SAMPLE_TYPES)), ("device_states", None)):
        block = TEXT.partition(f"## {name}.parquet")[2].partition("<!-- end -->")[0]
        there = set(pd.read_parquet(EXAMPLE / f"{name}.parquet").columns)
        assert set(re.findall(r"^\| `(\w+)`", block, flags=re.MULTILINE)) == there == (columns or there)


def test_every_file_of_a_run_is_named() -> None:
    """By its name, or by the folder below build/cuda that it is in."""
    for path in (path.relative_to(EXAMPLE) for path in EXAMPLE.rglob("*") if path.is_file()):
        shown = f"`{path.parts[2]}/`" if len(path.parts) > 3 else f"`{path.name}`"
        assert shown in TEXT, path


def test_pandas_alone_reads_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first lines of the document, as they stand: what they find are the samples, and what the project loads."""
    (code,) = re.findall(r"```python\n(.*?)```", TEXT, flags=re.DOTALL)
    assert len([line for line in code.splitlines() if line]) <= 10
    monkeypatch.chdir(ROOT)
    found: dict[str, Any] = {}
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(code, found)  # noqa: S102 - the document's own code
    assert "torch.matmul" in printed.getvalue()
    medians = found["samples"].groupby(["case_id", "trial"], observed=True)["ns"].median()
    assert sorted(found["passed"]["digest.median_ns"]) == sorted(medians)
    trials = [trial for measurement in load(EXAMPLE).measurements for trial in measurement.trials]
    assert list(found["samples"]["ns"]) == [ns for trial in trials for ns in trial.samples_ns]


def test_what_readers_are_promised() -> None:
    """Fields that a reader does not know are passed over, those with a word for their absence may be missing."""
    assert f"`schema_version` is {SCHEMA_VERSION}." in TEXT
    data = json.loads((EXAMPLE / "run.json").read_text(encoding="utf-8"))
    later = {**data, "of_a_later_version": 1, "options": {**data["options"], "too": None}}
    assert Run.from_dict(later) == Run.from_dict(data)
    for kind in run_format.records():
        if issubclass(kind, enum.Enum):
            continue
        absent = {row[0].strip("`"): row[3] for row in run_format.fields_of(kind)}
        for field in dataclasses.fields(kind):
            required = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
            assert field.name not in absent or (absent[field.name] == "") == required


def test_a_field_without_a_description_is_an_error() -> None:
    """Whoever adds one must say what it is."""

    @dataclasses.dataclass
    class Said:
        first: int
        """The first."""
        second: int

    with pytest.raises(LookupError, match=r"Said\.second: no docstring"):
        run_format.docstrings(Said)
