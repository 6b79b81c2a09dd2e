"""harness.store.url_store against a real S3 server: runs come back whole, from any machine, by every command."""

from __future__ import annotations

import io
import tarfile
import time
from pathlib import Path

import pytest

from harness.__main__ import main
from harness.errors import CommandError, Exit
from harness.store import Store, load, verify
from harness.store.run_archive import pack, tar_of
from harness.store.url_store import HEADS, SENT, UrlStore
from reports.__main__ import main as reports
from tests.s3_server import S3, on_machine, published, s3, s3_server

__all__ = ["s3", "s3_server"]

IDS = ("20260101T000000Z-a-1-aaaaaa", "20260102T000000Z-b-2-bbbbbb", "20260103T000000Z-b-3-cccccc")


@pytest.fixture
def here(s3: S3) -> UrlStore:
    """The store on a machine that has sent three runs; refs `baseline` and `nightly`."""
    store = UrlStore(s3.url)
    store.check_writable()
    for run_id in IDS:
        published(store, run_id)
    store.set_ref("baseline", IDS[0])
    store.set_ref("nightly", IDS[2])
    assert store.send() == [f"sent {s3.url}/{run_id}.tar.gz" for run_id in IDS]
    return store


@pytest.fixture
def there(here: UrlStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> UrlStore:
    """The same store on another machine."""
    return on_machine(here.name, tmp_path / "there", monkeypatch)


def altered(packed: bytes, name: str) -> bytes:
    """A packed run of which one byte of one file is another."""
    out = io.BytesIO()
    with tarfile.open(fileobj=io.BytesIO(packed)) as old, tarfile.open(fileobj=out, mode="w") as new:
        for member in old:
            content = bytearray(old.extractfile(member).read())  # type: ignore[union-attr]
            if member.name == name:
                content[len(content) // 2] ^= 1
            new.addfile(member, io.BytesIO(content))
    return pack(out.getvalue())


@pytest.mark.usefixtures("here")
def test_a_run_is_one_object(s3: S3) -> None:
    """Beside the marker and a small object a ref; the tar opens with any tar, and says first what it is."""
    found = s3.objects()
    keys = [*(f"deep/runs/{run_id}.tar.gz" for run_id in IDS), "deep/runs/refs/baseline", "deep/runs/refs/nightly"]
    assert sorted(found) == sorted([*keys, "deep/runs/.store"])
    assert found["deep/runs/refs/baseline"] == f"{IDS[0]}\n".encode()
    with tarfile.open(fileobj=io.BytesIO(found[keys[0]])) as tar:
        names = tar.getnames()
    assert names == [
        "SHA256SUMS",
        "run.json",
        "build/compiler.log",
        "device_states.parquet",
        "samples.parquet",
    ]


@pytest.mark.parametrize(
    ("selector", "run_id"),
    [
        ("latest", IDS[2]),
        ("latest~2", IDS[0]),
        ("20260102", IDS[1]),
        (IDS[0], IDS[0]),
        ("baseline", IDS[0]),
        ("nightly", IDS[2]),
    ],
)
def test_a_run_is_named_by_what_is_listed(there: UrlStore, selector: str, run_id: str) -> None:
    """Nothing of any run is fetched until its folder is wanted; then it is the run that was sent."""
    assert there.find(selector) == run_id
    assert not there.root.exists()
    folder = there.resolve(selector)
    verify(folder)
    assert load(folder).id == run_id


def test_a_run_is_named_by_its_environment(there: UrlStore) -> None:
    """The beginnings of the objects alone are fetched for it."""
    assert there.find("driver_version=580.159.04") == IDS[2]
    assert sorted(path.name for path in (there.root / HEADS).iterdir()) == list(IDS)
    assert Store(there.root).ids() == []
    with pytest.raises(CommandError, match=f"none of 3 runs in {there.name} has it"):
        there.find("driver_version=1")


def test_what_is_fetched_is_kept(there: UrlStore, s3: S3) -> None:
    """Runs are never changed, so they are fetched once; without the server they can still be read."""
    first = there.folder(IDS[0])
    s3.client.delete_object(Bucket=s3.bucket, Key=f"deep/runs/{IDS[0]}.tar.gz")
    assert there.folder(IDS[0]) == first
    assert tar_of(first)
    s3.client.delete_object(Bucket=s3.bucket, Key=f"deep/runs/{IDS[1]}.tar.gz")
    with pytest.raises(CommandError, match=f"{IDS[1]}.tar.gz: there is no such run any more") as caught:
        there.folder(IDS[1])
    assert caught.value.code is Exit.RUN


def test_sending_again_sends_nothing(here: UrlStore) -> None:
    """Nor what was fetched."""
    assert here.unsent() == []
    assert here.send() == []


def test_a_run_whose_answer_was_lost_is_sent(here: UrlStore) -> None:
    """The same content under the same id is no conflict: it came through, or another process sent it."""
    (here.root / SENT / IDS[0]).unlink()
    assert here.unsent() == [IDS[0]]
    assert here.send() == [f"sent {here.name}/{IDS[0]}.tar.gz"]
    assert here.unsent() == []


def test_of_two_publishers_of_one_id_one_wins(
    here: UrlStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, s3: S3
) -> None:
    """The other is told, keeps its own, and the object stays as it was; other runs are sent all the same."""
    before = s3.objects()
    other = on_machine(here.name, tmp_path / "other", monkeypatch)
    other.check_writable()
    mine = published(other, IDS[0], samples=3)
    published(other, "20260104T000000Z-d-4-dddddd")
    with pytest.raises(CommandError) as caught:
        other.send()
    assert str(caught.value) == (
        f"{here.name}/{IDS[0]}.tar.gz is another run by the same id, and stays as it is; this one is kept in {mine}"
    )
    assert caught.value.code is Exit.INFRASTRUCTURE
    after = s3.objects()
    assert {key: after.pop(key) for key in before} == before
    assert list(after) == ["deep/runs/20260104T000000Z-d-4-dddddd.tar.gz"]
    verify(mine)


def test_a_ref_is_set_at_the_url(here: UrlStore, there: UrlStore) -> None:
    """By any machine; a ref of a run that could not be sent waits for it."""
    there.set_ref("baseline", IDS[1])
    assert there.refs() == {IDS[1]: ["baseline"], IDS[2]: ["nightly"]}
    assert here.refs() == {IDS[0]: ["baseline"], IDS[2]: ["nightly"]}
    assert there.send() == []
    assert here.refs() == there.refs() == {IDS[1]: ["baseline"], IDS[2]: ["nightly"]}


def test_a_ref_that_comes_late_does_not_go_back(here: UrlStore, there: UrlStore) -> None:
    """A machine that was cut off sends its ref when another has set it to a newer run: it stays, and a line says so."""
    there.set_ref("nightly", IDS[1])
    assert there.send() == [f"ref nightly stays at {IDS[2]}, which is newer than {IDS[1]}"]
    assert here.refs() == there.refs() == {IDS[0]: ["baseline"], IDS[2]: ["nightly"]}
    assert there.send() == []


def test_an_altered_object_is_found(
    here: UrlStore, there: UrlStore, s3: S3, capsys: pytest.CaptureFixture[str]
) -> None:
    """By a first fetch, and by verify though the run is here already; the line names object and file, code 4."""
    key = f"deep/runs/{IDS[1]}.tar.gz"
    s3.replace(key, altered(s3.objects()[key], "samples.parquet"))
    with pytest.raises(CommandError) as caught:
        there.folder(IDS[1])
    line = f"{s3.url}/{IDS[1]}.tar.gz: damaged: samples.parquet: changed since it was published (SHA-256 differs)"
    assert str(caught.value) == line
    assert not (there.root / IDS[1]).exists()
    verify(here.root / IDS[1])
    assert main(["verify", "--store", s3.url]) == Exit.RUN
    said = capsys.readouterr()
    assert said.err == f"{line}\n"
    assert said.out.splitlines() == [f"{s3.url}/{run_id}.tar.gz: whole" for run_id in (IDS[0], IDS[2])]


def test_another_run_at_the_place_of_one_that_is_here_alone_is_found(
    here: UrlStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both are looked at: the run that waits to be sent, and the object that has its name."""
    other = on_machine(here.name, tmp_path / "other", monkeypatch)
    other.check_writable()
    published(other, IDS[0], samples=3)
    with pytest.raises(CommandError, match=rf"/{IDS[0]}\.tar\.gz: damaged: it is not what was sent or fetched before"):
        other.verify(IDS[0])


def test_an_object_with_other_sums_too_is_found(here: UrlStore, tmp_path: Path, s3: S3) -> None:
    """Whole in itself, but not what was sent; and one that holds another run."""
    other = published(Store(tmp_path / "other"), IDS[1], samples=3)
    s3.replace(f"deep/runs/{IDS[1]}.tar.gz", pack(tar_of(other)))
    with pytest.raises(CommandError, match=f"{IDS[1]}.tar.gz: damaged: it is not what was sent or fetched before"):
        here.verify(IDS[1])
    s3.replace(f"deep/runs/{IDS[1]}.tar.gz", s3.objects()[f"deep/runs/{IDS[0]}.tar.gz"])
    with pytest.raises(CommandError, match=f"{IDS[1]}.tar.gz: damaged: it holds the run {IDS[0]}"):
        here.verify(IDS[1])


@pytest.mark.parametrize("content", [b"", b"not a run", b"\x1f\x8b\x08 torn"])
def test_an_object_that_is_no_run_is_damaged(there: UrlStore, s3: S3, content: bytes) -> None:
    """It hides no other run, and is named by every command that reads it, with code 4."""
    s3.replace(f"deep/runs/{IDS[1]}.tar.gz", content)
    with pytest.raises(CommandError, match=rf"^{s3.url}/{IDS[1]}.tar.gz: damaged: no packed run") as caught:
        there.head(IDS[1])
    assert caught.value.code is Exit.RUN
    assert there.find("driver_version=580.159.04") == IDS[2]
    assert main(["runs", "--store", s3.url]) == Exit.RUN


def test_names_that_are_no_runs_are_passed_over(here: UrlStore, s3: S3) -> None:
    """Whoever may write there may call an object anything."""
    for name in ("..tar.gz", "a b.tar.gz", "x" * 300 + ".tar.gz", "notes.txt", "-rf.tar.gz"):
        s3.replace(f"deep/runs/{name}", b"")
    s3.replace("deep/runs/refs/a b", b"")
    assert here.ids() == list(IDS)
    assert here.ref_names() == ["baseline", "nightly"]


def test_every_command_takes_the_url(
    there: UrlStore, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the code that a folder of the same runs gives; pages go to artifacts/ where the command was typed."""
    monkeypatch.chdir(tmp_path)
    for run_id in IDS:
        published(Store(tmp_path / "folder"), run_id)
    for name, run_id in (("baseline", IDS[0]), ("nightly", IDS[2])):
        Store(tmp_path / "folder").set_ref(name, run_id)
    for words in (
        ["runs"],
        ["runs", "--stale-after", "1h"],
        ["verify", "baseline"],
        ["compare", "baseline", "latest"],
        ["export", "latest", "--to", "csv", "--output", "out.csv"],
        ["power", "20260103", "--trials", "2"],
        ["regret", "latest"],
        ["reproduce", "latest"],
        ["prune", "--keep-days", "36500"],
    ):
        found = [main([*words, "--store", store]) for store in (str(tmp_path / "folder"), there.name)]
        said = capsys.readouterr()
        assert found[0] == found[1], (words, said)
        assert "unexpected" not in said.err
    assert [
        reports([*words, "--store", there.name])
        for words in (["run", "nightly"], ["compare", "baseline", "latest"], ["history"])
    ] == [Exit.FINE] * 3
    pages = {path.name for path in Path("artifacts/reports").iterdir()}
    assert pages == {f"{IDS[2]}.html", f"compare-{IDS[0]}-{IDS[2]}.html", "history.html"}
    assert not (there.root / "reports").exists()


def test_runs_lists_an_empty_store(s3: S3, capsys: pytest.CaptureFixture[str]) -> None:
    """A bucket without the prefix is a store without runs; a bucket that is not there is none."""
    assert main(["runs", "--store", s3.url]) == Exit.FINE
    assert capsys.readouterr().out == f"no runs in {s3.url}\n"
    assert main(["runs", "--store", "s3://no-such-bucket/runs"]) == Exit.INFRASTRUCTURE
    line = "store s3://no-such-bucket/runs: it cannot be listed: there is no such bucket (NoSuchBucket)\n"
    assert capsys.readouterr().err == line


def test_5000_runs_are_listed_in_under_5_s(s3: S3, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Those that are not shown are counted."""
    from moto.s3.models import s3_backends

    backend = s3_backends["123456789012"]["aws"]
    for number in range(5000):
        backend.put_object(s3.bucket, f"deep/runs/20260101T000000Z-x-y-{number:06}.tar.gz", b"")
    packed = pack(tar_of(published(Store(tmp_path), IDS[1])))
    backend.put_object(s3.bucket, f"deep/runs/{IDS[1]}.tar.gz", packed)
    started = time.process_time()  # of the server too, which runs here
    assert main(["runs", "--store", s3.url, "--last", "1"]) == Exit.FINE
    assert time.process_time() - started < 5
    said = capsys.readouterr()
    assert IDS[1] in said.out
    assert said.out.splitlines()[-1] == "5000 older ones are not shown: --all, or --last N"


def test_pruning_deletes_objects(here: UrlStore, there: UrlStore, s3: S3, capsys: pytest.CaptureFixture[str]) -> None:
    """Not those of a ref, nor what could not be sent; another machine's mirror is cleared by its own prune."""
    for run_id in IDS:
        there.folder(run_id)
    own = published(there, "20250101T000000Z-e-5-eeeeee")
    assert main(["prune", "--keep-days", "1", "--store", s3.url, "--yes"]) == Exit.FINE
    said = capsys.readouterr()
    assert "sent s3://" in said.err
    assert f"deleted  {own.name}" in said.out
    assert f"deleted  {IDS[1]}" in said.out
    assert not own.exists()
    assert not (there.root / IDS[1]).exists()
    assert here.ids() == there.ids() == [IDS[0], IDS[2]]
    assert (here.root / IDS[1]).exists()
    here.tidy()
    assert sorted(path.name for path in here.root.glob("[!.]*")) == sorted([IDS[0], IDS[2], "refs"])


def test_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another file system of fsspec does the same."""
    store = on_machine("memory://shared/runs", tmp_path / "here", monkeypatch)
    assert store.ids() == []
    store.check_writable()
    published(store, IDS[0])
    store.set_ref("baseline", IDS[0])
    store.send()
    other = on_machine("memory://shared/runs", tmp_path / "there", monkeypatch)
    assert other.ids() == list(IDS[:1])
    assert load(other.resolve("baseline")).id == IDS[0]
    other.verify(IDS[0])
    published(on_machine("memory://shared/runs", tmp_path / "third", monkeypatch), IDS[0], samples=3)
    with pytest.raises(CommandError, match=r"is another run by the same id"):
        on_machine("memory://shared/runs", tmp_path / "third", monkeypatch).send()
    other.delete(IDS[0])
    assert store.ids() == []
