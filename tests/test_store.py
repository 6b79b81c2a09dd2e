"""harness.store: a run is found by path, id, age, ref and environment; what is not found is said, and where."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.errors import CommandError, Exit
from harness.store import SELECTORS, Store
from harness.store.open_store import open_store
from tests.three_runs import IDS, copied, store, write

__all__ = ["copied", "store"]


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
        ("../no such", "run '../no such': no such run"),
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
    with pytest.raises(CommandError, match=f"the store {absent.root} holds 0 runs: there is no such folder$"):
        absent.resolve("latest")
    with pytest.raises(CommandError, match=f"no such run among 0 in {absent.root}: there is no such folder; wanted "):
        absent.resolve("nightly")
    with pytest.raises(CommandError, match=f"the store {tmp_path} holds 0 runs$"):
        Store(tmp_path).resolve("latest")


def test_a_path_that_is_no_run_is_said_to_be_there(store: Store, tmp_path: Path) -> None:
    """Not that there is no such run: what it is, and of what lies within a run's folder that folder."""
    (tmp_path / "README.md").write_text("")
    run = write(tmp_path, "20200101T000000Z-elsewhere")
    for path, what in {
        tmp_path: "is a folder and no run's folder, which holds run.json",
        tmp_path / "README.md": "is a file and no run's folder, which holds run.json",
        run / "run.json": f"is a file within a run's folder: name that, {run}",
        run / "build": f"is a folder within a run's folder: name that, {run}",
    }.items():
        with pytest.raises(CommandError) as caught:
            store.resolve(str(path))
        assert (str(caught.value), caught.value.code) == (f"run {str(path)!r}: {what}", Exit.RUN)


def test_only_published_runs_are_listed(store: Store) -> None:
    """Oldest first; drafts, refs and reports are none."""
    assert store.ids() == list(IDS)


def test_an_ambiguous_start_lists_five_ids(tmp_path: Path) -> None:
    """And counts the others."""
    for i in range(7):
        (tmp_path / f"2026{i}").mkdir()
        (tmp_path / f"2026{i}" / "run.json").touch()
    with pytest.raises(
        CommandError, match="7 runs start with it: 20260, 20261, 20262, 20263, 20264 and 2 more; wanted"
    ):
        Store(tmp_path).resolve("2026")


def test_where_the_store_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """The option, else the variable, else artifacts/."""
    monkeypatch.delenv("SGEMV_STORE", raising=False)
    assert open_store(None).root == Path("artifacts")
    monkeypatch.setenv("SGEMV_STORE", "/elsewhere")
    assert open_store(None).root == Path("/elsewhere")
    assert open_store("here").root == Path("here")


@pytest.mark.parametrize("content", ["{}", '{"environment": []}', "[", '{"schema_version": 9}'])
def test_a_damaged_run_does_not_hide_the_others(copied: Path, content: str) -> None:
    """A look-up by environment passes over it."""
    (copied / IDS[2] / "run.json").write_text(content)
    assert Store(copied).resolve("driver_version=590.2").name == IDS[1]
    with pytest.raises(CommandError, match="none of 3 runs"):
        Store(copied).resolve("driver_version=1")
