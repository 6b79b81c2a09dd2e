"""harness.store.open_store: a store by its name, and URLs that are refused before anything is recorded or said."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.__main__ import main
from harness.errors import CommandError, Exit
from harness.store import Store
from harness.store.open_store import open_store
from harness.store.url_store import UrlStore
from tests.s3_server import published

SECRET = "planted-secret"  # noqa: S105 - what must not be seen again


def test_a_file_url_is_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The very same: nothing is mirrored."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    folder = tmp_path / "with space"
    published(Store(folder), "20260101T000000Z-a-1-aaaaaa")
    url = f"file://{str(folder).replace(' ', '%20')}"
    store = open_store(url)
    assert type(store) is Store
    assert store.root == folder
    assert main(["verify", "--store", url]) == Exit.FINE
    assert not (tmp_path / "state").exists()


def test_a_url_is_a_store_with_a_mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Opening makes nothing; each URL has a mirror of its own, and so has each server."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"):
        monkeypatch.delenv(name, raising=False)
    stores = [open_store(f"s3://bucket/{name}") for name in ("a", "a/", "b")]
    assert all(isinstance(store, UrlStore) for store in stores)
    assert stores[0].name == "s3://bucket/a"
    assert stores[0].root == stores[1].root != stores[2].root
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://elsewhere")
    assert open_store("s3://bucket/a").root != stores[0].root
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("url", "words"),
    [
        (f"s3://key:{SECRET}@bucket/prefix", "its URL holds a login"),
        (f"s3://{SECRET}@bucket/prefix", "its URL holds a login"),
        (f"sftp://me:{SECRET}@host/path", "its URL holds a login"),
        (f"https://host/path?sig={SECRET}", "its URL holds a query"),
        (f"s3://bucket/prefix#{SECRET}", "its URL holds a query"),
        ("s3://", "found 's3://', wanted a folder or a URL such as s3://bucket/prefix"),
        ("simplecache::s3://bucket/prefix", "wanted a folder or a URL such as s3://bucket/prefix"),
    ],
)
def test_a_url_that_no_store_can_have(
    url: str, words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line that says where it came from and repeats no secret; code 2."""
    assert main(["runs", "--store", url]) == Exit.USAGE
    said = capsys.readouterr()
    assert said.err.startswith("--store: ")
    assert words in said.err
    assert len(said.err.splitlines()) == 1
    monkeypatch.setenv("SGEMV_STORE", url)
    with pytest.raises(CommandError, match=r"^SGEMV_STORE: ") as caught:
        open_store(None)
    assert caught.value.code is Exit.USAGE
    assert SECRET not in said.out + said.err + str(caught.value)


@pytest.mark.parametrize(
    "words",
    [["runs"], ["verify"], ["prune", "--keep-days", "3"], ["export", "latest", "--to", "csv"], ["regret", "latest"]],
    ids=" ".join,
)
def test_a_file_is_no_store(tmp_path: Path, words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Nor what would lie below one, or has a name that no folder can have: no command takes it for an empty store."""
    (tmp_path / "README.md").write_text("")
    hint = "name a writable folder with --store or SGEMV_STORE"
    for store, shown, why in (
        (tmp_path / "README.md", tmp_path / "README.md", "Not a directory"),
        (tmp_path / "README.md" / "below", tmp_path / "README.md" / "below", "Not a directory"),
        (f"file://{tmp_path}/README.md", tmp_path / "README.md", "Not a directory"),
        ("x" * 300, "x" * 300, "File name too long"),
    ):
        assert main([*words, "--store", str(store)]) == Exit.INFRASTRUCTURE
        assert capsys.readouterr() == ("", f"store {shown}: {why}; {hint}\n")


@pytest.mark.parametrize("url", ["abfs://container@account.dfs.core.windows.net/runs", "sftp://me@host/runs"])
def test_a_name_before_an_at_is_no_secret(url: str) -> None:
    """A container, or a user whose key is elsewhere."""
    assert open_store(url).name == url
