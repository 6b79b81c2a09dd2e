"""harness.store, harness.store.draft and `python -m harness`: runs are found, come back whole; damage is noticed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from harness.errors import CommandError, Exit
from harness.model import DeviceState, Environment, Run, Verdict, Word
from harness.store import SELECTORS, Store, load, load_whole, verify
from harness.store.draft import Draft, write_run
from harness.store.open_store import open_store
from harness.store.refs import check_ref_name
from harness.store.run_id import new_run_id
from harness.store.store_folder import make_store
from harness.store.sums import write_sums
from tests.sample_run import empty_run, gpu_run

ROOT = Path(__file__).parents[1]
IDS = ("20260101T000000Z-a-1-aaaaaa", "20260102T000000Z-b-2-bbbbbb", "20260103T000000Z-b-3-cccccc")
ODD_NS = (0.1 + 0.2, 1 / 3, 5e-324, 1.7976931348623157e308, 1723.0000000000002, 7.0)
"""Samples that any rounding would change."""


def odd_run() -> Run:
    """Two trials with device states of every kind: all known, nothing known, mixed; and one case without samples."""
    run = gpu_run(shapes=((64, 64),), trials=2, samples=3)
    known = DeviceState(
        time_unix_s=1747213920.123456,
        sm_clock_mhz=1980,
        memory_clock_mhz=3201,
        temperature_c=42,
        power_mw=695123,
        power_is_instant=True,
        clock_event_reasons=("sw_power_cap", "hw_slowdown"),
    )
    blind = DeviceState(time_unix_s=1.5, unknown={"power_mw": "not supported", "temperature_c": 'a "quoted" µ'})
    mixed = replace(known, sm_clock_mhz=None, power_is_instant=None, clock_event_reasons=())
    first, second, third = run.measurements[:3]
    trials = (
        replace(first.trials[0], samples_ns=ODD_NS, states=(known, blind, mixed)),
        replace(first.trials[1], samples_ns=ODD_NS[::-1], states=()),
    )
    wrong = Verdict(word=Word.WRONG, reason="integers: 1 of 64 wrong", max_error=None)
    nothing = tuple(replace(trial, verdict=wrong, samples_ns=(), states=()) for trial in second.trials)
    return replace(run, measurements=(replace(first, trials=trials), replace(second, trials=nothing), third))


def write(root: Path, run_id: str, run: Run | None = None) -> Path:
    folder = root / run_id
    folder.mkdir(parents=True)
    (folder / "build").mkdir()
    (folder / "build" / "log.txt").write_text("nvcc said nothing\n")
    write_run(folder, replace(run or gpu_run(shapes=((64, 64),), trials=1, samples=2), id=run_id))
    return folder


@pytest.fixture
def run_folder(tmp_path: Path) -> Path:
    """One published run."""
    return write(tmp_path, IDS[0], odd_run())


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Three runs, of which the last two are on another driver; refs `baseline` and `lost`."""
    root = tmp_path_factory.mktemp("store")
    for run_id, driver in zip(IDS, ("580.1", "590.2", "590.2"), strict=True):
        run = gpu_run(shapes=((64, 64),), trials=1, samples=2)
        values = {**run.environment.values, "driver_version": driver}
        write(root, run_id, replace(run, environment=replace(run.environment, values=values)))
    made = Store(root)
    made.set_ref("baseline", IDS[0])
    made.set_ref("lost", "20250101T000000Z-gone")
    (root / "reports").mkdir()
    (root / ".draft-x").mkdir()
    return made


@pytest.mark.parametrize(
    ("selector", "wanted"),
    [
        (IDS[1], IDS[1]),
        ("20260102", IDS[1]),
        ("latest", IDS[2]),
        ("latest~0", IDS[2]),
        ("latest~2", IDS[0]),
        ("baseline", IDS[0]),
        ("driver_version=590.2", IDS[2]),
        ("driver_version=580.1", IDS[0]),
        ("driver_version=590.2,sm_count=132", IDS[2]),
        ("ecc=True", IDS[2]),
    ],
)
def test_a_run_is_found_by(store: Store, selector: str, wanted: str) -> None:
    """Id, its start, age, ref, environment (the newest that fits)."""
    assert store.resolve(selector) == store.root / wanted


def test_a_run_is_found_by_path(store: Store, tmp_path: Path) -> None:
    """In the store or outside of it, however the path is written."""
    outside = write(tmp_path, "20200101T000000Z-elsewhere")
    assert store.resolve(str(outside)) == outside
    assert store.resolve(f"{store.root / IDS[0]}/") == store.root / IDS[0]


@pytest.mark.parametrize(
    ("selector", "words"),
    [
        ("2026", f"run '2026': 3 runs start with it: {', '.join(IDS)}; wanted "),
        ("x" * 5000, "run 'xxx"),
        ("latest~" + "1" * 5000, "run 'latest~111"),
        ("a\0b", "run 'a\\x00b': no such run"),
        ("nope", "run 'nope': no such run among 3 in "),
        ("", "run '': 3 runs start with it"),
        ("latest~3", "run 'latest~3': the store "),
        ("lost", "ref 'lost': names 20250101T000000Z-gone, which is not in "),
        ("driver_version=1", "run 'driver_version=1': none of 3 runs in "),
        ("latest~x", "run 'latest~x': no such run"),
        ("../etc", "run '../etc': no such run"),
    ],
)
def test_what_is_not_found(store: Store, selector: str, words: str) -> None:
    """What was looked for, what was found, and where; code 4."""
    with pytest.raises(CommandError) as caught:
        store.resolve(selector)
    assert str(caught.value).startswith(words)
    assert caught.value.code is Exit.RUN
    if "start with" in words or "no such run" in words:
        assert str(caught.value).endswith(f"wanted {SELECTORS}")


def test_an_empty_or_absent_store_says_so(tmp_path: Path) -> None:
    """The folder may not even exist."""
    absent = Store(tmp_path / "absent")
    assert absent.ids() == []
    assert absent.recover() == []
    with pytest.raises(CommandError, match="holds 0 runs"):
        absent.resolve("latest")


def test_only_published_runs_are_listed(store: Store) -> None:
    """Oldest first; drafts, refs and reports are none."""
    assert store.ids() == list(IDS)


@pytest.mark.parametrize("name", ["baseline", "v1.2-rc_3", "A", "0" * 64])
def test_names_of_refs(name: str) -> None:
    """What can be a file's name everywhere."""
    check_ref_name(name)


@pytest.mark.parametrize("name", ["", "-x", ".x", "a/b", "a b", "latest", "ü", "0" * 65, "a\n"])
def test_what_is_no_name_of_a_ref(name: str) -> None:
    """Never a path out of the store, never a word that means something else; code 2."""
    with pytest.raises(CommandError, match="wanted 1 to 64 letters") as caught:
        check_ref_name(name)
    assert str(caught.value).startswith(f"--ref: found {name!r}")
    assert caught.value.code is Exit.USAGE


def test_latest_is_no_ref() -> None:
    """The line says why, not only what a name looks like."""
    with pytest.raises(CommandError, match=r"found 'latest', wanted .*; the word is reserved: it means the newest"):
        check_ref_name("latest")


def test_an_ambiguous_start_lists_five_ids(tmp_path: Path) -> None:
    """And counts the others."""
    for i in range(7):
        (tmp_path / f"2026{i}").mkdir()
        (tmp_path / f"2026{i}" / "run.json").touch()
    with pytest.raises(
        CommandError, match="7 runs start with it: 20260, 20261, 20262, 20263, 20264 and 2 more; wanted"
    ):
        Store(tmp_path).resolve("2026")


def test_a_ref_can_be_moved(tmp_path: Path) -> None:
    """The newest meaning holds, and no temporary file stays."""
    made = Store(tmp_path)
    for run_id in IDS[:2]:
        write(tmp_path, run_id)
        made.set_ref("nightly", run_id)
    assert made.resolve("nightly").name == IDS[1]
    assert [path.name for path in (tmp_path / "refs").iterdir()] == ["nightly"]


@pytest.mark.parametrize("place", ["the store itself", "its folder of refs"])
def test_a_store_that_cannot_be_written(tmp_path: Path, place: str) -> None:
    """A file stands where a folder should be: one line that says what to do, code 6."""
    root = tmp_path / "store"
    if place == "the store itself":
        root.write_text("")
    else:
        root.mkdir()
        (root / "refs").write_text("")
    with pytest.raises(CommandError, match="name a writable folder with --store or SGEMV_STORE") as caught:
        Store(root).set_ref("baseline", IDS[0])
    assert str(caught.value).startswith(f"store {root}: ")
    assert caught.value.code is Exit.INFRASTRUCTURE
    assert Store(root).recover() == []


def test_a_draft_that_cannot_be_made(tmp_path: Path) -> None:
    """The same line, before anything is measured."""
    (tmp_path / "file").write_text("")
    with pytest.raises(CommandError, match=r"file: (File exists|Not a directory); name a writable folder") as caught:
        Draft.create(tmp_path / "file", empty_run())
    assert caught.value.code is Exit.INFRASTRUCTURE


def test_of_two_drafts_of_one_id_one_is_refused(tmp_path: Path) -> None:
    """While the first is measured, after it was killed, and once it is a run: its measurements stay as they are."""
    from harness.store.draft import JOURNAL

    run = gpu_run(shapes=((64, 64),), trials=1, samples=2)
    header = replace(run, id=IDS[0], measurements=())
    draft = Draft.create(tmp_path, header)
    draft.append(run.measurements[0])
    journal = (draft.folder / JOURNAL).read_bytes()
    with pytest.raises(CommandError) as caught:
        Draft.create(tmp_path, header)
    assert caught.value.code is Exit.INFRASTRUCTURE
    draft._lock.release()
    for published in (False, True):
        if published:
            draft.publish(partial=False)
        with pytest.raises(
            CommandError, match=f"^store {tmp_path}: there is a run {IDS[0]} already; try again"
        ) as caught:
            Draft.create(tmp_path, header)
        assert caught.value.code is Exit.INFRASTRUCTURE
        if not published:
            assert (draft.folder / JOURNAL).read_bytes() == journal
    assert load_whole(tmp_path / IDS[0]).measurements == run.measurements[:1]


def test_where_the_store_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """The option, else the variable, else artifacts/."""
    monkeypatch.delenv("SGEMV_STORE", raising=False)
    assert open_store(None).root == Path("artifacts")
    monkeypatch.setenv("SGEMV_STORE", "/elsewhere")
    assert open_store(None).root == Path("/elsewhere")
    assert open_store("here").root == Path("here")


@pytest.mark.parametrize(
    ("values", "middle"),
    [
        ({"gpu_name": "NVIDIA H200", "driver_version": "580.159.04"}, "nvidia-h200-580.159.04"),
        ({"gpu_name": None, "cpu_name": "AMD EPYC (TM) 9554/2", "torch_version": "2.13.0+cpu"}, None),
        ({"gpu_name": "x" * 100, "driver_version": "1"}, "x" * 60),
    ],
)
def test_ids(values: dict[str, str | int | float | bool | None], middle: str | None) -> None:
    """Sorted by time, readable, fit for a folder's name."""
    run_id = new_run_id(datetime(2026, 5, 4, 3, 2, 1, tzinfo=UTC), Environment(values=values))
    when, _, rest = run_id.partition("-")
    assert when == "20260504T030201Z"
    assert rest[:-7] == (middle or "amd-epyc-tm-9554-2-torch2.13.0-cpu")
    assert int(rest[-6:], 16) >= 0


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


def test_sums_agree_with_coreutils(run_folder: Path) -> None:
    """Whoever has no Python can check a run."""
    checked = subprocess.run(
        ["sha256sum", "-c", "SHA256SUMS"], cwd=run_folder, capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert sorted(checked.stdout.splitlines()) == [
        "build/log.txt: OK",
        "device_states.parquet: OK",
        "run.json: OK",
        "samples.parquet: OK",
    ]


def test_a_whole_run_verifies(run_folder: Path) -> None:
    """No complaint."""
    verify(run_folder)


def flip(path: Path) -> None:
    """Change one bit in the middle of a file."""
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0x80
    path.write_bytes(data)


@pytest.mark.parametrize("name", ["run.json", "samples.parquet", "device_states.parquet", "build/log.txt"])
def test_one_changed_bit_is_noticed(run_folder: Path, name: str) -> None:
    """Which file, and what is wrong with it; code 4."""
    flip(run_folder / name)
    with pytest.raises(CommandError) as caught:
        verify(run_folder)
    assert str(caught.value) == f"{run_folder / name}: changed since it was published (SHA-256 differs)"
    assert caught.value.code is Exit.RUN


def test_a_damaged_list_of_sums_is_noticed(run_folder: Path) -> None:
    """A bit of it, all of it, or the file itself."""
    sums = run_folder / "SHA256SUMS"
    flip(sums)
    with pytest.raises(CommandError):
        verify(run_folder)
    sums.write_text("")
    with pytest.raises(CommandError, match="added since the run was published"):
        verify(run_folder)
    sums.unlink()
    with pytest.raises(CommandError, match="no SHA256SUMS: not a published run"):
        verify(run_folder)


def test_missing_and_added_files_are_noticed(run_folder: Path) -> None:
    """Also in subfolders."""
    (run_folder / "build" / "more.txt").write_text("")
    with pytest.raises(CommandError, match=r"build/more\.txt: added since the run was published"):
        verify(run_folder)
    (run_folder / "build" / "more.txt").unlink()
    (run_folder / "samples.parquet").unlink()
    with pytest.raises(CommandError, match=r"samples\.parquet: missing, but listed in SHA256SUMS"):
        verify(run_folder)


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


@pytest.mark.parametrize("line", ["nonsense", "0" * 64 + " one-space", "", "0" * 63 + "  run.json", "0" * 64 + "  "])
def test_a_line_that_is_no_sum_is_one_line(run_folder: Path, line: str) -> None:
    """Which, and what was wanted; no file of an empty name is missed."""
    sums = run_folder / "SHA256SUMS"
    sums.write_text(f"{sums.read_text()}{line}\n")
    with pytest.raises(CommandError) as caught:
        verify(run_folder)
    assert str(caught.value) == f"{sums}: line 5 is no sum: wanted 64 hex digits, two spaces, a name"
    assert caught.value.code is Exit.RUN


def test_whether_a_store_can_be_written_is_found_out_first(tmp_path: Path) -> None:
    """Nothing is made; a file in its place, or in that of a folder above it, is one line."""
    Store(tmp_path / "a" / "b").check_writable()
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").write_text("")
    for root in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(CommandError, match=f"^store {root}: Not a directory; name a writable folder") as caught:
            Store(root).check_writable()
        assert caught.value.code is Exit.INFRASTRUCTURE


def harness(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name not in {"SGEMV_STORE", "COLUMNS"}}
    command = [sys.executable, "-m", "harness", *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60, check=False)


@pytest.fixture
def copied(store: Store, tmp_path: Path) -> Path:
    """The three runs, to be damaged."""
    return Path(shutil.copytree(store.root, tmp_path / "store", ignore=shutil.ignore_patterns(".draft-*")))


def test_runs_lists_the_newest_first(copied: Path) -> None:
    """A line a run: its whole id, device, driver, torch, cases and refs."""
    done = harness("runs", "--store", str(copied))
    assert (done.returncode, done.stderr) == (0, "")
    header, *rows = [line.split() for line in done.stdout.splitlines() if line.strip()]
    assert header[0] == "run"
    assert [row[0] for row in rows] == list(reversed(IDS))
    assert rows[2][1:5] == ["NVIDIA", "H200", "580.1", "2.11.0+cu130"]
    assert "baseline" in rows[2]
    assert "baseline" not in rows[0]


def test_runs_survives_a_damaged_run(copied: Path) -> None:
    """The others are listed, the damaged one is named, code 4."""
    (copied / IDS[1] / "run.json").write_text("{")
    done = harness("runs", "--store", str(copied))
    assert done.returncode == 4
    assert IDS[0] in done.stdout
    assert IDS[2] in done.stdout
    assert f"{IDS[1]}/run.json: not JSON" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_run_without_run_json_is_still_a_run(copied: Path) -> None:
    """It does not vanish from either list: the file is named, code 4."""
    (copied / IDS[1] / "run.json").unlink()
    for command in ("runs", "verify"):
        done = harness(command, "--store", str(copied))
        assert done.returncode == 4
        assert IDS[0] in done.stdout
        assert f"{copied / IDS[1] / 'run.json'}: " in done.stderr
        assert len(done.stderr.splitlines()) == 1
    assert harness("verify", "--store", str(copied), IDS[1]).stderr.endswith("missing, but listed in SHA256SUMS\n")


@pytest.mark.parametrize("content", ["{}", '{"environment": []}', "[", '{"schema_version": 9}'])
def test_a_damaged_run_does_not_hide_the_others(copied: Path, content: str) -> None:
    """A look-up by environment passes over it."""
    (copied / IDS[2] / "run.json").write_text(content)
    assert Store(copied).resolve("driver_version=590.2").name == IDS[1]
    with pytest.raises(CommandError, match="none of 3 runs"):
        Store(copied).resolve("driver_version=1")


def test_a_ref_of_other_bytes_means_no_run(copied: Path) -> None:
    """Not UTF-8, longer than a path, empty, or a folder: `runs` lists the runs, a look-up says what it names."""
    refs = copied / "refs"
    (refs / "bytes").write_bytes(b"\xff\xfe\n")
    (refs / "long").write_text("x" * 5000)
    (refs / "empty").write_text("")
    (refs / "folder").mkdir()
    done = harness("runs", "--store", str(copied))
    assert (done.returncode, done.stderr) == (0, "")
    assert all(run_id in done.stdout for run_id in IDS)
    for name in ("bytes", "long", "empty"):
        with pytest.raises(CommandError, match=f"ref '{name}': names .*which is not in"):
            Store(copied).resolve(name)


def test_an_ascii_terminal_gets_question_marks(copied: Path) -> None:
    """A GPU's name or a path may hold anything; no traceback."""
    odd = copied.rename(copied.with_name("größe"))
    command = [sys.executable, "-m", "harness", "verify", "--store", str(odd)]
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"gr??e" in done.stdout


def test_runs_names_a_draft_that_cannot_be_read(copied: Path) -> None:
    """One line on stderr; the list is as it would be without it."""
    draft = copied / ".draft-20260104T000000Z-x"
    draft.mkdir()
    (draft / "journal.jsonl").write_text('{"of": "another schema"}\n')
    done = harness("runs", "--store", str(copied))
    assert done.returncode == 0
    assert done.stderr.startswith(f"draft {draft}: header.json: No such file or directory; it holds measurements")
    assert len(done.stderr.splitlines()) == 1
    assert (draft / "journal.jsonl").exists()


def test_runs_of_an_empty_store(tmp_path: Path) -> None:
    """Nothing is wrong with it, and it is not made."""
    done = harness("runs", "--store", str(tmp_path / "none"))
    assert (done.returncode, done.stdout) == (0, f"no runs in {tmp_path / 'none'}\n")
    assert not (tmp_path / "none").exists()


def test_verify_on_the_command_line(copied: Path) -> None:
    """A line a run, all of them if none is named; a damaged one does not hide the next; code 4."""
    done = harness("verify", "--store", str(copied))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [f"{copied / run_id}: whole" for run_id in IDS]
    flip(copied / IDS[1] / "samples.parquet")
    done = harness("verify", "--store", str(copied))
    assert done.returncode == 4
    assert done.stdout.splitlines() == [f"{copied / IDS[0]}: whole", f"{copied / IDS[2]}: whole"]
    assert done.stderr == f"{copied / IDS[1] / 'samples.parquet'}: changed since it was published (SHA-256 differs)\n"
    assert harness("verify", "--store", str(copied), "baseline", "latest").returncode == 0


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["verify", "nope"], 4, "run 'nope': no such run among 3"),
        (["verify", "2026"], 4, "3 runs start with it"),
        (["veryfy"], 2, "invalid choice: 'veryfy'"),
        ([], 2, "required: COMMAND"),
    ],
)
def test_wrong_commands(copied: Path, arguments: list[str], code: int, words: str) -> None:
    """One line and the right code."""
    done = harness(*arguments, *(["--store", str(copied)] if arguments else []))
    assert done.returncode == code
    assert words in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_verify_of_an_empty_store(tmp_path: Path) -> None:
    """Nothing to verify is not fine: whoever asked expected a run."""
    done = harness("verify", "--store", str(tmp_path))
    assert (done.returncode, done.stderr) == (4, f"no runs in {tmp_path}\n")


def test_a_store_within_a_checkout_is_no_change_to_it(tmp_path: Path) -> None:
    """Else every run after the first would say that the code it measured had been changed."""
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    make_store(tmp_path / "deep" / "store")
    (tmp_path / "deep" / "store" / "run").mkdir()
    (tmp_path / "deep" / "store" / "run" / "run.json").write_text("{}")
    status = subprocess.run(
        ["git", "-C", tmp_path, "status", "--porcelain"], capture_output=True, text=True, check=True
    )
    assert status.stdout == ""


def test_a_folder_that_was_there_is_left_as_it_is(tmp_path: Path) -> None:
    """Whoever keeps runs under version control goes on doing so."""
    make_store(tmp_path)
    assert list(tmp_path.iterdir()) == []
