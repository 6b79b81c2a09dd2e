"""harness.store's files of a run: they come back as they were written; a damaged, missing or newer one is one line."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from harness.errors import CommandError, Exit
from harness.store import load, load_whole, verify
from harness.store.sums import write_sums
from tests.sample_run import empty_run, gpu_run
from tests.three_runs import IDS, ODD_NS, odd_run, run_folder, write

__all__ = ["run_folder"]


def test_a_run_comes_back_as_it_was_written(run_folder: Path) -> None:
    """Bit for bit, in order, with what is None and why."""
    written, read = replace(odd_run(), id=IDS[0]), load(run_folder)
    assert read == written
    found = read.measurements[0].trials[0]
    assert [ns.hex() for ns in found.samples_ns] == [ns.hex() for ns in ODD_NS]
    blind = found.states[1]
    assert (blind.sm_clock_mhz, blind.power_is_instant, blind.clock_event_reasons) == (None, None, None)
    assert blind.unknown == {"power_mw": "not supported", "temperature_c": 'a "quoted" µ'}
    assert type(found.states[0].sm_clock_mhz) is int
    assert type(found.samples_ns[0]) is float


def test_a_large_and_an_empty_run_come_back(tmp_path: Path) -> None:
    """Every case of a GPU run; and one in which nothing was measured."""
    large = gpu_run(trials=2, samples=4)
    assert load(write(tmp_path, large.id, large)) == large
    empty = replace(empty_run(), id="empty")
    assert load(write(tmp_path, "empty", empty)) == empty


def test_run_json_has_no_samples(run_folder: Path) -> None:
    """They are in Parquet, where other tools read them as one table."""
    import pandas as pd

    data = json.loads((run_folder / "run.json").read_text())
    assert not {"samples_ns", "states"} & data["measurements"][0]["trials"][0].keys()
    frame = pd.read_parquet(run_folder / "samples.parquet")
    columns = ["case_id", "trial", "index", "ns", "time_unix_s", "sm_clock_mhz", "throttled"]
    assert list(frame.columns) == columns
    first = frame[(frame["case_id"] == data_id(data)) & (frame["trial"] == 0)]
    assert list(first["index"]) == [0, 1, 2, 3, 4, 5]
    assert list(first["ns"]) == list(ODD_NS)


def data_id(data: dict) -> str:
    """Written out by hand from the parts of the first case."""
    case = data["measurements"][0]["case"]
    return f"{case['kernel']}-{case['problem']['m']}x{case['problem']['k']}-{case['timer']}-{case['cache']}"


def test_a_newer_schema_is_refused(run_folder: Path) -> None:
    """Before any field is looked at, since none need mean the same; the line says what to do."""
    path = run_folder / "run.json"
    path.write_text('{"schema_version": 2, "what": "ever"}')
    with pytest.raises(CommandError) as caught:
        load(run_folder)
    assert str(caught.value) == f"{path}: schema version 2, wanted at most 1: update this project"
    assert caught.value.code is Exit.RUN


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("run.json", b'{"schema_version": 1, "id"', "run.json: not JSON: "),
        ("run.json", b"\xff\xfe", "run.json: not JSON: "),
        ("run.json", b"[]", "run.json: found list, wanted an object"),
        ("run.json", b'{"schema_version": 1}', "damaged: Run: Object missing required field"),
        ("samples.parquet", b"PAR1 and no more", "damaged: "),
        ("samples.parquet", b"", "damaged: "),
        ("device_states.parquet", b"PAR1", "damaged: "),
    ],
)
def test_a_damaged_file_is_one_line(run_folder: Path, name: str, content: bytes, words: str) -> None:
    """Where, and what is wrong; code 4."""
    (run_folder / name).write_bytes(content)
    with pytest.raises(CommandError) as caught:
        load(run_folder)
    assert words in str(caught.value)
    assert str(run_folder) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.code is Exit.RUN


@pytest.mark.parametrize("name", ["samples.parquet", "device_states.parquet"])
def test_a_truncated_table_is_one_line(run_folder: Path, name: str) -> None:
    """Half of a file, as a full disk leaves it."""
    whole = (run_folder / name).read_bytes()
    (run_folder / name).write_bytes(whole[: len(whole) // 2])
    with pytest.raises(CommandError, match="damaged: "):
        load(run_folder)


@pytest.mark.parametrize("name", ["run.json", "samples.parquet"])
def test_a_missing_file_is_one_line(run_folder: Path, name: str) -> None:
    """Its name and that it is not there."""
    (run_folder / name).unlink()
    with pytest.raises(CommandError, match=rf"{name}: No such file or directory$"):
        load(run_folder)


def test_a_table_without_a_column_is_damaged(run_folder: Path) -> None:
    """Not a traceback."""
    import pandas as pd

    pd.DataFrame({"other": [1]}).to_parquet(run_folder / "samples.parquet")
    with pytest.raises(CommandError, match=r"damaged: samples\.parquet: no column 'case_id'$"):
        load(run_folder)


def test_samples_that_are_not_the_records_are_damaged(run_folder: Path) -> None:
    """Though every sum is right: the line names case and trial, code 4."""
    import pandas as pd

    path = run_folder / "samples.parquet"
    pd.read_parquet(path).drop(index=[1]).to_parquet(path)
    write_sums(run_folder)
    verify(run_folder)
    with pytest.raises(CommandError) as caught:
        load_whole(run_folder)
    case = data_id(json.loads((run_folder / "run.json").read_text()))
    assert (
        str(caught.value)
        == f"{run_folder}: damaged: samples.parquet: {case}, trial 0: has 5 samples, and 6 by run.json"
    )
    assert caught.value.code is Exit.RUN
