"""`python -m harness compare` on runs that are missing, damaged or hostile: one line, or a word with its reason."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from harness.model import Word
from harness.store.sums import sha256_of
from tests.planted_runs import Command, case, judged, measured, publish, run, timed
from tests.sample_run import HOSTILE

ONE = run(timed(case(), 1000.0))


@pytest.fixture
def command(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """On an empty store."""
    return Command(tmp_path, capsys, monkeypatch)


def signed(folder: Path) -> None:
    """Makes the sums of a run agree with what it holds now, as whoever forged it would."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != "SHA256SUMS")
    lines = [f"{sha256_of(path)}  {path.relative_to(folder).as_posix()}\n" for path in files]
    (folder / "SHA256SUMS").write_text("".join(lines))


@pytest.mark.parametrize(
    ("runs", "arguments", "line"),
    [
        ([], ["latest", "latest"], "run 'latest': the store {root} holds 0 runs"),
        ([], ["base", "new"], "run 'base': no such run among 0 in {root}"),
        (["base"], ["latest", "latest~1"], "run 'latest~1': the store {root} holds 1 run"),
        (["base"], ["base", "new"], "run 'new': no such run among 1 in {root}"),
        (["base"], ["base", "base", "new"], "run 'new': no such run among 1 in {root}"),
        (["base", "basis"], ["bas", "base"], "run 'bas': 2 runs start with it: base, basis"),
        (["base"], ["base", "a\nb"], "run 'a\\nb': no such run"),
    ],
)
def test_runs_that_are_not_there(command: Command, runs: list[str], arguments: list[str], line: str) -> None:
    """Code 4 and one line, before anything is printed."""
    for name in runs:
        publish(command.root, name, ONE)
    done = command(*arguments)
    assert (done.code, done.out) == (4, "")
    assert done.err.startswith(line.format(root=command.root))
    assert len(done.err.splitlines()) == 1


def truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def newer(path: Path) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | {"schema_version": 99}))


def without_options(path: Path) -> None:
    data = json.loads(path.read_text())
    del data["options"]["trials"]
    path.write_text(json.dumps(data))


def without_digests(folder: Path) -> None:
    """As a run from before there were any, which nothing holds its samples against."""
    data = json.loads((folder / "run.json").read_text())
    for trial in (trial for measurement in data["measurements"] for trial in measurement["trials"]):
        del trial["digest"]
    (folder / "run.json").write_text(json.dumps(data))


def without_column(path: Path) -> None:
    pd.read_parquet(path).drop(columns=["ns"]).to_parquet(path)


def of_text(path: Path) -> None:
    pd.read_parquet(path).assign(ns="fast").to_parquet(path)


@pytest.mark.parametrize("damaged", ["base", "new"])
@pytest.mark.parametrize(
    ("file", "damage", "line"),
    [
        ("run.json", truncated, "{folder}/run.json: not JSON: "),
        ("run.json", newer, "{folder}/run.json: schema version 99, wanted at most 1: update this project"),
        (
            "run.json",
            without_options,
            "{folder}: damaged: Run: Object missing required field `trials` - at `$.options`",
        ),
        ("run.json", Path.unlink, "{folder}/run.json: No such file or directory"),
        ("samples.parquet", truncated, "{folder}: damaged: "),
        ("device_states.parquet", truncated, "{folder}: damaged: "),
        ("samples.parquet", without_column, "{folder}: damaged: samples.parquet: no column 'ns'"),
        ("samples.parquet", of_text, "{folder}: damaged: samples.parquet: could not convert string to float"),
        ("samples.parquet", Path.unlink, "{folder}/samples.parquet: No such file or directory"),
    ],
)
def test_a_damaged_run(command: Command, file: str, damage: Callable[[Path], None], line: str, damaged: str) -> None:
    """Code 4 and one line, whichever run it is; and another one while the sums are those of before."""
    folders = {name: publish(command.root, name, ONE) for name in ("base", "new")}
    folder = folders[damaged]
    damage(folder / file)
    done = command("base", "new", "--json")
    assert (done.code, done.out) == (4, "")
    assert done.err.startswith((f"{folder / file}: changed since", f"{folder / file}: missing, but listed"))
    signed(folder)
    done = command("base", "new")
    assert (done.code, done.out) == (4, "")
    assert done.err.startswith(line.format(folder=folder))
    assert len(done.err.splitlines()) == 1


def test_a_wrong_sum(command: Command) -> None:
    """Of a file that is whole; a file that no sum is of; no sums at all."""
    publish(command.root, "base", ONE)
    folder = publish(command.root, "new", ONE)
    sums = folder / "SHA256SUMS"
    whole = sums.read_text()
    sums.write_text(whole.replace(sha256_of(folder / "device_states.parquet"), "0" * 64))
    done = command("base", "new")
    line = f"{folder / 'device_states.parquet'}: changed since it was published (SHA-256 differs)\n"
    assert (done.code, done.out, done.err) == (4, "", line)
    sums.write_text(whole)
    assert command("base", "new").code == 0
    (folder / "more").write_text("")
    assert "added since the run was published" in command("base", "new").err
    (folder / "more").unlink()
    sums.unlink()
    assert command("base", "new").err == f"{folder}: no SHA256SUMS: not a published run\n"


@pytest.mark.parametrize("ns", [math.nan, math.inf, -math.inf, -5.0, 0.0])
@pytest.mark.parametrize("where", ["base", "new"])
def test_times_that_are_none(command: Command, ns: float, where: str) -> None:
    """The case is not comparable and says why; the others are compared, and JSON holds no NaN."""
    two = run(timed(case("a"), 1000.0), timed(case("b"), 1000.0))
    folders = {name: publish(command.root, name, two) for name in ("base", "new")}
    samples = folders[where] / "samples.parquet"
    table = pd.read_parquet(samples)
    table.loc[2, "ns"] = ns
    table.to_parquet(samples)
    without_digests(folders[where])
    signed(folders[where])
    done = command("base", "new")
    reason = f"in {where} a sample of {ns:g} ns: wanted 1e-06 to 1e+18 ns"
    assert (done.code, done.err) == (0, "")
    assert f"not comparable: {reason} (a 64×64 graph cold)" in " ".join(done.lines)
    assert done.lines[-2] == "1 not comparable, 1 same of 2 cases, threshold 1 %"
    (found,) = json.loads(command("base", "new", "--json").out, parse_constant=pytest.fail)["comparisons"]
    assert [each["reason"] for each in found["cases"]] == [reason, None]


def test_a_trial_whose_median_is_zero(command: Command) -> None:
    """No ratio to it exists."""
    done = command.on(base=run(measured(case(), [1000.0, 0.0, 1000.0])), new=ONE)
    assert done.code == 3
    assert "not comparable: in base a sample of 0 ns: wanted 1e-06 to 1e+18 ns" in " ".join(done.lines)


def test_hostile_names(command: Command) -> None:
    """Of a kernel, a timer, a reason and a fact, in a table and in remarks: nothing reaches the terminal but text."""
    bad = "\x1b]0;x\x07[red]\u202e\r\n" + HOSTILE
    base = run(timed(case(bad, timer="a\x1b[2Jb"), 1000.0), judged(case("k"), Word.CRASHED), driver_version=bad)
    new = run(timed(case(bad, timer="a\x1b[2Jb"), 1100.0), judged(case("k"), Word.CRASHED, bad), torch_version=bad)
    done = command.on(base=base, new=new)
    assert done.code == 5
    for arguments in (["base", "new", "--all"], ["base", "new", "new", "--all"]):
        out = command.on_a_terminal()(*arguments).out
        assert not any(each in out for each in "\x1b\x07\u202e\r")
        assert "⟨001B⟩" in out
        assert "[red]" in out
        assert max(map(len, out.splitlines())) <= 80
